//! Proof of the path: what is counted in the ends' network namespaces before and while messages go, and what it proves.
//!
//! The counters are read three times: when the ends have met, after a quiet interval in which they send nothing, and when
//! the last slot is over. The first pair tells what is there without messages (discovery, liveliness, other programs).

mod judge;
mod ports;

pub(super) use ports::{Ports, not_taken};

use super::lab::Standing;
use super::length::estimate;
use std::time::Duration;
use tailbound_model::*;

/// Longest quiet interval that is taken unasked, and that of slow rates.
const AUTO: Nanos = Nanos::from_secs(1);
const AUTO_SLOW: Nanos = Nanos::from_secs(5);
/// So many slots of a slow rate.
const SLOTS: i64 = 20;
/// Before it begins the interfaces are to be calm: no more than a packet in each of so many steps. It begins anyway after
/// the last of the most.
const CALM_STEP: Duration = Duration::from_millis(50);
const CALM_STEPS: u32 = 2;
const CALM_MOST: u32 = 12;

/// How long the ends of a trial are silent.
pub(super) fn quiet(spec: &TrialSpec) -> Nanos {
    let whole = estimate(spec);
    match spec.quiet {
        // Virtual time: nothing is sent, and all of the trial takes no time.
        _ if is_scripted(spec) => Nanos(0),
        Quiet::Off => Nanos(0),
        Quiet::Same => whole,
        Quiet::For(time) => time,
        Quiet::Auto => {
            let slots = spec.rate.period().map_or(0, |p| p.0.saturating_mul(SLOTS));
            whole.min(Nanos(slots.clamp(AUTO.0, AUTO_SLOW.0)))
        }
    }
}

fn is_scripted(spec: &TrialSpec) -> bool {
    spec.driver.options.get("clock").is_some_and(|c| c == "scripted")
}

/// The counters of a trial's namespaces.
pub(super) struct Watch {
    /// Ends that share a namespace are counted once.
    spaces: Vec<(Vec<usize>, Option<Counted>)>,
    quiet: Vec<Option<Counted>>,
}

impl Watch {
    /// The ends have met: waits in silence.
    pub async fn begin(standing: &Standing, quiet: Nanos) -> Watch {
        let space = |end: usize| standing.lab.space(end);
        let mut ends: Vec<Vec<usize>> = Vec::new();
        for end in 0..standing.lab.places() {
            match ends.iter_mut().find(|shared| space(shared[0]) == space(end)) {
                Some(shared) => shared.push(end),
                None => ends.push(vec![end]),
            }
        }
        let count = |ends: &[usize]| standing.lab.counted(ends[0]).ok();
        if quiet.0 > 0 {
            calm(|| ends.iter().filter_map(|e| count(e)).map(|c| packets(&c)).sum()).await;
        }
        let met: Vec<Option<Counted>> = ends.iter().map(|e| count(e)).collect();
        if quiet.0 == 0 {
            let none = met.iter().map(|_| None).collect();
            return Watch { spaces: ends.into_iter().zip(met).collect(), quiet: none };
        }
        tokio::time::sleep(Duration::from_nanos(quiet.0 as u64)).await;
        let now: Vec<Option<Counted>> = ends.iter().map(|e| count(e)).collect();
        let quiet = met.iter().zip(&now).map(|(then, now)| Some(now.as_ref()?.since(then.as_ref()?))).collect();
        Watch { spaces: ends.into_iter().zip(now).collect(), quiet }
    }

    /// The last slot is over; `None` where the counters cannot be read.
    pub fn end(self, standing: &Standing) -> Option<Vec<Space>> {
        let space = |((ends, before), quiet): ((Vec<usize>, Option<Counted>), Option<Counted>)| {
            let data = standing.lab.counted(ends[0]).ok()?.since(&before?);
            let mut path: Vec<String> = ends.iter().map(|e| standing.lab.end(*e).interface.clone()).collect();
            path.dedup();
            let ends = ends.iter().map(|e| standing.spec.name(*e).to_owned()).collect();
            Some(Space { ends, path, made: standing.lab.is_made(), quiet, data })
        };
        self.spaces.into_iter().zip(self.quiet).map(space).collect()
    }
}

/// Waits out the burst of discovery: scaled to a long trial, it would stand for a multitude of packets.
async fn calm(packets: impl Fn() -> i64) {
    let (mut last, mut steps) = (packets(), 0);
    for _ in 0..CALM_MOST {
        tokio::time::sleep(CALM_STEP).await;
        let now = packets();
        steps = if now - last <= 1 { steps + 1 } else { 0 };
        last = now;
        if steps >= CALM_STEPS {
            return;
        }
    }
}

/// Packets that all interfaces sent.
fn packets(counted: &Counted) -> i64 {
    counted.interfaces.values().map(|i| i.tx_packets).sum()
}

/// What the counts of a trial prove. `None`: nothing went by any way, or time was virtual.
pub(super) fn proof(
    spec: &TrialSpec,
    spaces: Option<Vec<Space>>,
    processes: Vec<ProcessSeen>,
    (sent, answered): (u64, u64),
    described: impl Fn(&str) -> Option<serde_json::Value>,
) -> Option<PathProof> {
    if answered == 0 || is_scripted(spec) {
        return None;
    }
    let spaces = spaces?;
    let asked = asked(spec, described);
    let mut proof = PathProof { asked, sent, answered, spaces, processes, ..PathProof::default() };
    // What a command does is not known.
    let sends = |load: &LoadSpec| load.run.has_receiver() || matches!(load.run, LoadKind::Command(_));
    proof.loads_send = spec.loads.iter().any(sends);
    judge::judge(&mut proof);
    Some(proof)
}

/// A trial whose messages went another way than the study asks for measured something else.
pub(super) fn warning(proof: &PathProof) -> Option<Warning> {
    let text =
        format!("messages went another way than the study asks for: it asks for {}", proof.contradiction.as_ref()?);
    let mend = "look at the driver's options and its `config`, and at what it says of its transport";
    Some(Warning::new("path_not_as_asked", Severity::Invalid, text, mend))
}

/// The way that a study asks for: by the transport of a driver, or by its path.
fn asked(spec: &TrialSpec, described: impl Fn(&str) -> Option<serde_json::Value>) -> Option<Way> {
    let of_driver = |driver: &DriverSpec| {
        let way = |word: &str| match word {
            "udp" => Some(Way::Packets),
            "shm" => Some(Way::SharedMemory),
            "data-sharing" => Some(Way::DataSharing),
            "intra-process" => Some(Way::InsideProcess),
            _ => None,
        };
        if let Some(word) = driver.options.get("transport") {
            return way(word);
        }
        // A configuration of the user's own decides by itself; ends of one process may share more than the driver says.
        if driver.config.is_some() || spec.ping.place == PlaceSpec::SameProcess {
            return None;
        }
        let described = described(&driver.name)?;
        let option = described["options"].as_array()?.iter().find(|o| o["key"] == "transport")?;
        way(option["default"].as_str()?)
    };
    let by_drivers = spec.drivers().find_map(of_driver);
    by_drivers.or_else(|| (spec.path != PathSpec::Loopback).then_some(Way::Packets))
}
