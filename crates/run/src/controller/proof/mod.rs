//! Proof of the path: reads packet counters of the ends' network namespaces before and while messages are sent, and
//! derives which path the messages took.
//!
//! The counters are read three times: when the ends have found each other, after a quiet interval in which the ends
//! send nothing, and when the last slot is over. The first two readings count the packets without messages (discovery,
//! liveliness, other programs).

mod judge;
mod ports;

pub(super) use ports::{Ports, not_taken};

use super::active_lab::ActiveLab;
use super::trial_length::is_scripted;
use std::time::Duration;
use tailbound_model::*;

/// Time between two readings of the packet counters before the quiet interval begins.
const CALM_STEP: Duration = Duration::from_millis(50);
/// Number of consecutive readings of the packet counters, with at most one new packet each, after which the quiet
/// interval begins.
const CALM_STEPS: u32 = 2;
/// Largest number of readings of the packet counters before the quiet interval begins.
const CALM_MOST_STEPS: u32 = 12;

/// Watches the packet counters of the network namespaces of a trial.
pub(super) struct Watch {
    /// Indices of the ends in each network namespace, and the packet counters of the namespace before the messages are
    /// sent.
    spaces: Vec<(Vec<usize>, Option<Counted>)>,
    quiet: Vec<Option<Counted>>,
}

impl Watch {
    /// Waits for the quiet interval after the ends have found each other, and counts the packets that are sent in this
    /// interval.
    pub async fn begin(lab: &ActiveLab, quiet: Nanos) -> Watch {
        let space = |end: usize| lab.lab.space(end);
        let mut ends: Vec<Vec<usize>> = Vec::new();
        for end in 0..lab.lab.places() {
            match ends.iter_mut().find(|shared| space(shared[0]) == space(end)) {
                Some(shared) => shared.push(end),
                None => ends.push(vec![end]),
            }
        }
        let count = |ends: &[usize]| lab.lab.counted(ends[0]).ok();
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

    /// Reads the counters again after the last slot. `None` = the counters cannot be read.
    pub fn end(self, lab: &ActiveLab) -> Option<Vec<Space>> {
        let space = |((ends, before), quiet): ((Vec<usize>, Option<Counted>), Option<Counted>)| {
            let data = lab.lab.counted(ends[0]).ok()?.since(&before?);
            let mut path: Vec<String> = ends.iter().map(|e| lab.lab.end(*e).interface.clone()).collect();
            path.dedup();
            let ends = ends.iter().map(|e| lab.spec.name(*e).to_owned()).collect();
            Some(Space { ends, path, made: lab.lab.is_made(), quiet, data })
        };
        self.spaces.into_iter().zip(self.quiet).map(space).collect()
    }
}

/// Waits until the burst of discovery packets is over. A burst that was counted and scaled to the length of a trial
/// would look like many packets.
async fn calm(packets: impl Fn() -> i64) {
    let (mut last, mut steps) = (packets(), 0);
    for _ in 0..CALM_MOST_STEPS {
        tokio::time::sleep(CALM_STEP).await;
        let now = packets();
        steps = if now - last <= 1 { steps + 1 } else { 0 };
        last = now;
        if steps >= CALM_STEPS {
            return;
        }
    }
}

/// Number of packets that all interfaces of a network namespace sent.
fn packets(counted: &Counted) -> i64 {
    counted.interfaces.values().map(|i| i.tx_packets).sum()
}

/// Derives from the counters of a trial which path the messages took. `None` = no message was answered, or the clock
/// was scripted.
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
    // A command may send, because it is not known what the command does.
    let sends = |load: &LoadSpec| load.run.has_receiver() || matches!(load.run, LoadKind::Command(_));
    proof.loads_send = spec.loads.iter().any(sends);
    judge::judge(&mut proof);
    Some(proof)
}

/// Warns if the messages took another path than the study asks for. The trial is then invalid.
pub(super) fn warning(proof: &PathProof) -> Option<Warning> {
    let text = format!(
        "messages took another path than the study asks for: the study asks for {}",
        proof.contradiction.as_ref()?
    );
    let remedy = "check the options and the `config` of the driver, and the transport that the driver reports";
    Some(Warning::new("path_not_as_asked", Severity::Invalid, text, remedy))
}

/// Path that the study asks for, either by the option `transport` of a driver or by the key `path`.
fn asked(spec: &TrialSpec, described: impl Fn(&str) -> Option<serde_json::Value>) -> Option<Way> {
    let of_driver = |driver: &DriverSpec| {
        let way = |word: &str| match word {
            "udp" | "tcp" => Some(Way::Packets),
            "shm" => Some(Way::SharedMemory),
            "data-sharing" => Some(Way::DataSharing),
            "intra-process" => Some(Way::InsideProcess),
            _ => None,
        };
        if let Some(word) = driver.options.get("transport") {
            return way(word);
        }
        // With a configuration file of the user, the transport is unknown; ends of one process may use a transport that
        // the driver does not report.
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
