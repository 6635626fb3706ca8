//! What of a condition a tool cannot do, and what it has in its own way: refused, or said.

use crate::controller::RunError;
use crate::controller::fit::is_program;
use tailbound_model::*;
use tailbound_tools::{Measures, Receives, Tool, ToolEnd, Values};

/// What starting, ending and printing may take beyond the time that a tool was told.
const AROUND_NS: i64 = 10_000_000_000;

/// The tool of a trial.
///
/// # Errors
/// Its file is wrong: where and why.
pub(in crate::controller) fn read(spec: &TrialSpec) -> Result<Option<Tool>, String> {
    let file = spec.drivers().find_map(|d| d.tool.as_ref());
    file.map(|file| Tool::read(&file.path, &file.text).map_err(|e| e.to_string())).transpose()
}

/// Whole seconds that a tool is told to run.
pub(super) fn seconds(spec: &TrialSpec) -> u64 {
    let ns = match &spec.measure {
        Measure::Flow(flow) => flow.window.0,
        Measure::PingPong(p) => match (p.length, spec.rate) {
            (Length::Duration(d), _) => d.0,
            (Length::Slots(n), Rate::Period(period)) => (n as i64).saturating_mul(period.0),
            (Length::Slots(_), Rate::Max) => 0,
        },
    };
    (ns as u64).div_ceil(1_000_000_000).max(1)
}

/// How long a trial of a tool takes.
pub(in crate::controller) fn takes(spec: &TrialSpec) -> Nanos {
    Nanos::from_secs(seconds(spec) as i64)
}

/// It is killed after this.
pub(super) fn longest(spec: &TrialSpec) -> Nanos {
    Nanos(takes(spec).0 + AROUND_NS)
}

/// Messages in a second, where the study gives a rate.
pub(super) fn rate_hz(spec: &TrialSpec) -> Option<f64> {
    spec.rate.period().map(|period| 1e9 / period.0 as f64)
}

/// Why a tool cannot run a trial; `None` = it can, or the trial has none.
pub(in crate::controller) fn impossible(spec: &TrialSpec) -> Option<String> {
    match read(spec) {
        Ok(tool) => refusal(spec, &tool?),
        Err(why) => Some(why),
    }
}

fn refusal(spec: &TrialSpec, tool: &Tool) -> Option<String> {
    let name = &tool.tool;
    if spec.pong_driver.is_some() {
        return Some(format!("the tool {name} brings both of its ends: {} cannot meet", spec.driver_names()));
    }
    let measures = match (&spec.measure, tool.measures) {
        (Measure::PingPong(_), Measures::PingPong) => None,
        (Measure::PingPong(_), Measures::Throughput) => Some("throughput, and the study ping-pong"),
        (Measure::Flow(f), _) if f.rows == FlowRows::OneWay => Some("no fan-out"),
        (Measure::Flow(_), Measures::PingPong) => Some("latency, and the study throughput"),
        (Measure::Flow(_), Measures::Throughput) => None,
    };
    if let Some(what) = measures {
        return Some(format!("the tool {name} measures {what}"));
    }
    if let Some(what) = of_flow(spec).or_else(|| of_ping_pong(spec, tool)) {
        return Some(format!("the tool {name} {what}"));
    }
    if let Some((least, most)) = tool.payload_octets.filter(|(least, most)| !(*least..=*most).contains(&spec.payload.0))
    {
        return Some(format!(
            "the tool {name} takes payloads of {least} to {most} B, and the study's is {}",
            spec.payload
        ));
    }
    let rated = ["rate_hz", "period_us", "bit_rate"].iter().any(|value| tool.takes(value));
    let own = match spec.rate {
        Rate::Period(_) if !rated => Some("cannot be given a rate: write `rate: max`".to_owned()),
        Rate::Max if tool.needs_rate => Some("cannot go without a rate: write one, such as `1 kHz`".into()),
        _ => None,
    };
    own.or_else(|| of_ends(spec)).map(|what| format!("the tool {name} {what}"))
}

fn of_flow(spec: &TrialSpec) -> Option<String> {
    let flow = spec.measure.flow()?;
    if flow.subscribers > 1 {
        return Some(format!("has one subscriber, and the study {}", flow.subscribers));
    }
    if flow.publishers > 1 {
        return Some(format!("has one publisher, and the study {}", flow.publishers));
    }
    if flow.pack > 1 || flow.batching {
        return Some("neither packs nor batches for the study: remove `pack` and `batching`".into());
    }
    if flow.unacked_limit.is_some() {
        return Some("acknowledges in its own way, if at all: remove `unacked_limit`".into());
    }
    None
}

fn of_ping_pong(spec: &TrialSpec, tool: &Tool) -> Option<String> {
    let asked = spec.measure.receive();
    let has = tool.receive.map(|receive| match receive {
        Receives::Listener => ReceiveMode::Listener,
        Receives::Block => ReceiveMode::Block,
        Receives::Spin => ReceiveMode::Spin,
    });
    // The listener is what a study has that names no way.
    if asked != ReceiveMode::Listener && has != Some(asked) {
        let own = tool.receive.map_or("in its own way", receives);
        return Some(format!("receives {own}, and not as `receive` of the study asks"));
    }
    if *spec.measure.hand_off() != HandOff::None {
        return Some("hands nothing off to a second thread: remove `hand_off`".into());
    }
    if let Measure::PingPong(PingPong { length: Length::Slots(_), .. }) = &spec.measure
        && spec.rate == Rate::Max
    {
        return Some("runs for a time: write `duration` in place of `slots`, or give a rate".into());
    }
    None
}

/// How it receives, in words.
fn receives(receive: Receives) -> &'static str {
    match receive {
        Receives::Listener => "in a callback",
        Receives::Block => "with a thread that blocks",
        Receives::Spin => "with a thread that spins",
    }
}

fn of_ends(spec: &TrialSpec) -> Option<String> {
    let driver = &spec.driver;
    if let Some(key) = driver.options.keys().next() {
        return Some(format!("takes no options from a study, here `{key}`: they stand in its file"));
    }
    if driver.config.is_some() {
        return Some("takes no `config`: name the file in the command or the environment of its tool file".into());
    }
    if let Some(policy) = spec.qos.keys().next() {
        return Some(format!("has a QoS of its own, and none is set through it, here `{policy}`"));
    }
    if spec.ping.place == PlaceSpec::SameProcess {
        return Some("has processes of its own: write `place: process` or `place: netns`".into());
    }
    if spec.arrangement.is_some() {
        return Some("arranges its processes itself: remove `arrangement`".into());
    }
    if spec.collect == Collect::Live {
        return Some("has no samples to be collected: remove `collect: live`".into());
    }
    for end in [&spec.ping, &spec.pong] {
        if end.scheduling.by_vendor || !end.scheduling.roles.is_empty() {
            return Some("has threads whose roles nobody knows: give `scheduling` for the whole process".into());
        }
        if end.scheduling.policies().any(|p| matches!(p, Policy::Deadline { .. })) {
            return Some("makes threads of its own, which the policy deadline does not allow".into());
        }
    }
    let topic = spec.loads.iter().find(|load| matches!(load.run, LoadKind::Topic(_)));
    topic.map(|load| format!("carries no topic beside its own, here the load `{}`", load.run))
}

/// A program of the tool that is not there.
pub(in crate::controller) fn lack(spec: &TrialSpec) -> Option<RunError> {
    let tool = read(spec).ok().flatten()?;
    let commands = std::iter::once(&tool.ping).chain(&tool.pong).filter_map(|end| end.command.first());
    let missing = commands.into_iter().find(|program| !is_program(program))?;
    let text = format!("the tool {} cannot be run: there is no program `{missing}`", tool.tool);
    let mend = match &tool.package {
        Some(package) => format!("install the package {package} (Debian, Ubuntu: apt install {package})"),
        None => "install it, or write its full path in the tool file".into(),
    };
    Some(RunError::new(ExitCode::MachineNotFit, text, mend))
}

/// What the study says and the tool has in its own way.
pub(super) fn remarks(spec: &TrialSpec, tool: &Tool) -> Vec<String> {
    let mut all = Vec::new();
    if !tool.takes("payload") {
        all.push(format!("The payload of the study, {}, does not reach it.", spec.payload));
    }
    if !tool.takes("seconds") {
        all.push("It is not told how long to run.".to_owned());
    }
    let asked = match &spec.measure {
        Measure::Flow(flow) => flow.window,
        Measure::PingPong(PingPong { length: Length::Duration(d), .. }) => *d,
        Measure::PingPong(_) => takes(spec),
    };
    if takes(spec) != asked && tool.takes("seconds") {
        all.push(format!("It runs for whole seconds, here {} in place of {asked}.", takes(spec)));
    }
    if let Some(receive) = tool.receive {
        all.push(format!("It receives {}.", receives(receive)));
    }
    all.push(match &spec.measure {
        Measure::PingPong(_) => "Warm-up, timeout and what it does when it is late are its own.".to_owned(),
        Measure::Flow(_) => "Ramp-up and drain are its own, and so is the end of its window.".to_owned(),
    });
    all
}

/// The commands of a trial, before its addresses are known.
pub(in crate::controller) fn describe(spec: &TrialSpec) -> Vec<String> {
    let Ok(Some(tool)) = read(spec) else { return Vec::new() };
    let values = Values {
        payload: spec.payload.0,
        seconds: seconds(spec),
        rate_hz: rate_hz(spec),
        address: "ADDRESS".into(),
        peer: "PEER".into(),
        interface: "INTERFACE".into(),
        port: 0,
        domain: spec.domain,
    };
    let line = |(end, at): (&ToolEnd, &str)| {
        let command = Tool::command(end, &values).map_or_else(|e| e.to_string(), |(words, _)| words.join(" "));
        format!("  tool at {at}: {command}\n")
    };
    let ends = tool.pong.iter().map(|end| (end, "pong")).chain([(&tool.ping, "ping")]);
    ends.map(line).collect()
}
