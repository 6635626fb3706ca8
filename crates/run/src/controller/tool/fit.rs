//! Finds the conditions that a tool cannot run, and the differences between a tool and the study.

use crate::controller::RunError;
use crate::controller::program_path::is_program;
use crate::controller::trial_length::{tool_seconds, tool_time};
use tailbound_model::*;
use tailbound_tools::{Measures, Receives, Tool, ToolEnd, Values};

/// Reads the tool file of a trial; `None` = the trial has a driver and no tool.
///
/// # Errors
/// The tool file has an error.
pub(in crate::controller) fn read(spec: &TrialSpec) -> Result<Option<Tool>, Problem> {
    let file = spec.drivers().find_map(|d| d.tool.as_ref());
    let read = |file: &ConfigFile| Tool::read(&file.path, &file.text);
    file.map(read).transpose().map_err(Problem::from)
}

/// Number of messages per second; `None` = the study gives no rate.
pub(super) fn rate_hz(spec: &TrialSpec) -> Option<f64> {
    spec.rate.period().map(|period| 1e9 / period.0 as f64)
}

/// Reason why a tool cannot run a trial; `None` = the tool can run it, or the trial has no tool.
pub(in crate::controller) fn impossible(spec: &TrialSpec) -> Option<String> {
    match read(spec) {
        Ok(tool) => refusal(spec, &tool?),
        Err(problem) => Some(problem.to_string()),
    }
}

fn refusal(spec: &TrialSpec, tool: &Tool) -> Option<String> {
    let name = &tool.tool;
    if spec.pong_driver.is_some() {
        return Some(format!(
            "the tool {name} runs both ends itself, so the ends cannot have two drivers ({})",
            spec.driver_names()
        ));
    }
    let measures = match (&spec.measure, tool.measures) {
        (Measure::PingPong(_), Measures::PingPong) => None,
        (Measure::PingPong(_), Measures::Throughput) => {
            Some(format!("the tool {name} measures throughput, and the study asks for ping-pong"))
        }
        (Measure::Flow(f), _) if f.rows == FlowRows::OneWay => Some(format!("the tool {name} measures no fan-out")),
        (Measure::Flow(_), Measures::PingPong) => {
            Some(format!("the tool {name} measures latency, and the study asks for throughput"))
        }
        (Measure::Flow(_), Measures::Throughput) => None,
    };
    if measures.is_some() {
        return measures;
    }
    if let Some(why) = of_flow(spec, name).or_else(|| of_ping_pong(spec, tool)) {
        return Some(why);
    }
    if let Some((least, most)) = tool.payload_bytes.filter(|(least, most)| !(*least..=*most).contains(&spec.payload.0))
    {
        return Some(format!(
            "the tool {name} takes payloads of {least} to {most} B, and the payload of the study is {}",
            spec.payload
        ));
    }
    let rated = ["rate_hz", "period_us", "period_s", "bit_rate"].iter().any(|value| tool.takes(value));
    let own = match spec.rate {
        Rate::Period(_) if !rated => Some(format!("the tool {name} cannot be given a rate: write `rate: max`")),
        Rate::Max if tool.needs_rate => Some(format!("the tool {name} needs a rate: write one, such as `1 kHz`")),
        _ => None,
    };
    own.or_else(|| of_options(spec, tool)).or_else(|| of_stream(spec, tool)).or_else(|| of_ends(spec, name))
}

fn of_stream(spec: &TrialSpec, tool: &Tool) -> Option<String> {
    let (stream, name) = (spec.stream?, &tool.tool);
    if !tool.takes("offset_s") {
        return Some(format!("the tool {name} does not send at times of CLOCK_TAI: remove `stream`"));
    }
    stream.launch.map(|_| format!("the tool {name} takes no launch times from a study: remove `launch` from `stream`"))
}

/// Begin and offset of the stream of a trial, in seconds, for the command of a tool; both are zero if the trial has no stream.
/// `base_ns`: begin of the stream on CLOCK_TAI.
pub(super) fn stream_times(spec: &TrialSpec, base_ns: i64) -> [String; 2] {
    let [base, offset] = spec.stream.map_or([Nanos(0); 2], |stream| [Nanos(base_ns), stream.offset]);
    [base, offset].map(tailbound_tools::seconds)
}

fn of_flow(spec: &TrialSpec, name: &str) -> Option<String> {
    let flow = spec.measure.flow()?;
    if flow.subscribers > 1 {
        return Some(format!("the tool {name} has one subscriber, and the study asks for {}", flow.subscribers));
    }
    if flow.publishers > 1 {
        return Some(format!("the tool {name} has one publisher, and the study asks for {}", flow.publishers));
    }
    if flow.pack > 1 || flow.batching {
        return Some(format!(
            "the tool {name} cannot pack or batch messages for the study: remove `pack` and `batching`"
        ));
    }
    if flow.unacked_limit.is_some() {
        return Some(format!(
            "the tool {name} acknowledges messages in its own way or not at all: remove `unacked_limit`"
        ));
    }
    None
}

fn of_ping_pong(spec: &TrialSpec, tool: &Tool) -> Option<String> {
    let (name, asked) = (&tool.tool, spec.measure.receive());
    let has = tool.receive.map(|receive| match receive {
        Receives::Listener => ReceiveMode::Listener,
        Receives::Block => ReceiveMode::Block,
        Receives::Spin => ReceiveMode::Spin,
    });
    // `listener` is the default of studies.
    if asked != ReceiveMode::Listener && has != Some(asked) {
        let own = tool.receive.map_or("in its own way", receives);
        return Some(format!("the tool {name} receives {own}, and not as `receive` of the study asks"));
    }
    if *spec.measure.hand_off() != HandOff::None {
        return Some(format!("the tool {name} hands nothing off to a second thread: remove `hand_off`"));
    }
    if let Measure::PingPong(PingPong { length: Length::Loops(_), .. }) = &spec.measure {
        return Some(format!("the tool {name} does not count loops: write `duration` in place of `loops`"));
    }
    if let Measure::PingPong(PingPong { length: Length::Slots(_), .. }) = &spec.measure
        && spec.rate == Rate::Max
    {
        return Some(format!(
            "the tool {name} runs for a duration, not for a number of slots: write `duration` in place of `slots`, or \
             give a rate"
        ));
    }
    None
}

/// Text that says how a tool receives messages, as a part of a sentence.
fn receives(receive: Receives) -> &'static str {
    match receive {
        Receives::Listener => "in a callback",
        Receives::Block => "with a thread that blocks",
        Receives::Spin => "with a thread that spins",
    }
}

/// Option of a driver that the command of a tool can contain.
const PRIORITY: &str = "priority";

/// Priority of the messages that a study gives to a tool; 0 if it gives none, and `None` if it is not possible.
pub(super) fn priority(spec: &TrialSpec) -> Option<u8> {
    let Some(text) = spec.driver.options.get(PRIORITY) else { return Some(0) };
    text.trim().parse().ok().filter(|priority| *priority < SOCKET_PRIORITIES)
}

fn of_options(spec: &TrialSpec, tool: &Tool) -> Option<String> {
    let (name, takes) = (&tool.tool, tool.takes(PRIORITY));
    if let Some(key) = spec.driver.options.keys().find(|key| !(takes && *key == PRIORITY)) {
        let others = if takes { " other than `priority`" } else { "" };
        return Some(format!(
            "the tool {name} takes no options{others} from a study, here `{key}`: set them in the tool file"
        ));
    }
    priority(spec).is_none().then(|| format!("the tool {name} takes a priority of 0 to {}", SOCKET_PRIORITIES - 1))
}

fn of_ends(spec: &TrialSpec, name: &str) -> Option<String> {
    let driver = &spec.driver;
    if driver.config.is_some() {
        return Some(format!(
            "the tool {name} takes no `config`: name the configuration file in the command or the environment of the \
             tool file"
        ));
    }
    if let Some(policy) = spec.qos.keys().next() {
        return Some(format!("the tool {name} sets its own QoS, which a study cannot change, here `{policy}`"));
    }
    if spec.ping.place == PlaceSpec::SameProcess {
        return Some(format!("the tool {name} has processes of its own: write `place: process` or `place: netns`"));
    }
    if spec.security.is_some() {
        return Some(format!(
            "`security` applies to drivers, and {name} is a tool: remove `security`, or name a driver"
        ));
    }
    if spec.arrangement.is_some() {
        return Some(format!("the tool {name} arranges its processes itself: remove `arrangement`"));
    }
    if spec.collect == Collect::Live {
        return Some(format!("the tool {name} has no samples that could be collected: remove `collect: live`"));
    }
    for end in [&spec.ping, &spec.pong] {
        if end.scheduling.by_vendor || !end.scheduling.roles.is_empty() {
            return Some(format!(
                "the tool {name} has threads whose roles are unknown: give `scheduling` for the whole process"
            ));
        }
        if end.scheduling.policies().any(|p| matches!(p, Policy::Deadline { .. })) {
            return Some(format!("the tool {name} creates threads, which the policy deadline does not allow"));
        }
    }
    let topic = spec.loads.iter().find(|load| matches!(load.run, LoadKind::Topic(_)));
    topic.map(|load| {
        format!("the tool {name} carries no topic beside its own, and therefore not the load `{}`", load.run)
    })
}

/// Makes the error for a tool whose program does not exist; `None` = all programs exist, or the trial has no tool.
pub(in crate::controller) fn lack(spec: &TrialSpec) -> Option<RunError> {
    let tool = read(spec).ok().flatten()?;
    let commands = std::iter::once(&tool.ping).chain(&tool.pong).filter_map(|end| end.command.first());
    let missing = commands.into_iter().find(|program| !is_program(program))?;
    let text = format!("the tool {} cannot be run: there is no program `{missing}`", tool.tool);
    let remedy = match &tool.package {
        Some(package) => format!("install the package {package} (Debian, Ubuntu: apt install {package})"),
        None => "install the program, or write its full path in the tool file".into(),
    };
    Some(RunError::new(ExitCode::MachineNotFit, text, remedy))
}

/// Marks the conditions with a tool whose program is not installed as not possible, if another condition needs no such
/// program.
pub(in crate::controller) fn leave_out_missing(plan: &mut Plan) {
    let possible = || plan.conditions.iter().filter(|c| c.not_possible.is_none());
    if possible().all(|c| lack(&c.spec).is_some()) {
        return;
    }
    for condition in plan.conditions.iter_mut().filter(|c| c.not_possible.is_none()) {
        condition.not_possible = lack(&condition.spec).map(|error| error.problem.to_string());
    }
}

/// Lists the differences between what a tool can do and what the study asks for, as sentences.
pub(super) fn remarks(spec: &TrialSpec, tool: &Tool) -> Vec<String> {
    let mut all = Vec::new();
    if !tool.takes("payload") {
        all.push(format!("The payload of the study, {}, has no effect on the tool.", spec.payload));
    }
    if !tool.takes_time() {
        all.push("The tool does not get a duration from the study.".to_owned());
    }
    let asked = match &spec.measure {
        Measure::Flow(flow) => flow.window,
        Measure::PingPong(PingPong { length: Length::Duration(d), .. }) => *d,
        Measure::PingPong(_) => tool_time(spec),
    };
    if tool_time(spec) != asked && tool.takes_time() {
        all.push(format!("The tool runs for whole seconds, here {} in place of {asked}.", tool_time(spec)));
    }
    if let Some(receive) = tool.receive {
        all.push(format!("The tool receives {}.", receives(receive)));
    }
    all.push(match &spec.measure {
        Measure::PingPong(_) => {
            "The tool has its own warm-up, its own timeout and its own rule for late messages.".to_owned()
        }
        Measure::Flow(_) => "The tool has its own ramp-up and drain, and decides when its window ends.".to_owned(),
    });
    all
}

/// Lists the commands of a tool in a trial for a dry run, with placeholders for the addresses.
pub(in crate::controller) fn describe(spec: &TrialSpec) -> Vec<String> {
    let Ok(Some(tool)) = read(spec) else { return Vec::new() };
    let [own_base_s, offset_s] = stream_times(spec, 0);
    // The begin of the schedule of gates is known when they have been set or read.
    let base_s = if spec.stream.is_some() && spec.ping.gates.is_some() { "BASE".into() } else { own_base_s };
    let values = Values {
        payload: spec.payload.0,
        seconds: tool_seconds(spec),
        rate_hz: rate_hz(spec),
        address: "ADDRESS".into(),
        peer: "PEER".into(),
        interface: "INTERFACE".into(),
        port: 0,
        domain: spec.domain,
        priority: priority(spec).unwrap_or_default(),
        base_s,
        offset_s,
    };
    let line = |(end, at): (&ToolEnd, &str)| {
        let command = Tool::command(end, &values).map_or_else(|e| e.to_string(), |(words, _)| words.join(" "));
        format!("  tool at {at}: {command}\n")
    };
    let ends = tool.pong.iter().map(|end| (end, "pong")).chain([(&tool.ping, "ping")]);
    ends.map(line).collect()
}
