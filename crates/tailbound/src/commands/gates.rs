//! Runs `tailbound gates`: predicts how long frames wait for the gates of a schedule.

mod advise;
mod recover;

use super::run;
use crate::cli::{GatesCheck, GatesFormat, GatesPredict, GatesSub};
use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use std::io::Read;
use std::path::Path;
use tailbound_gates::{Configured, Frame, Prediction, Rule, Schedule, check, predict, priority_of_messages, schedules};
use tailbound_model::{ExitCode, GatesBy, GatesSpec, Nanos, PathSpec, Severity, TrialSpec, Warning};
use tailbound_run::priorities_behind;

/// Path that stands for standard input.
const STANDARD_INPUT: &str = "-";

pub fn gates(command: &GatesSub) -> CommandResult {
    match command {
        GatesSub::Predict(args) => predict_waits(args),
        GatesSub::Check(args) => check_study(args),
        GatesSub::Advise(args) => advise::advise(args),
        GatesSub::Recover(args) => recover::recover(args),
    }
}

fn predict_waits(args: &GatesPredict) -> CommandResult {
    let is_input = args.file == Path::new(STANDARD_INPUT);
    let file = if is_input { "standard input".to_owned() } else { args.file.display().to_string() };
    let found = match args.file.extension().and_then(|name| name.to_str()) {
        Some("yaml" | "yml") => of_study(args, &file)?,
        _ => schedules(&text(&args.file, &file)?, args.device.as_deref())
            .map_err(|problem| Failure::of(ExitCode::BadInput, problem.context(&file)))?,
    };
    let Configured { device, classes, names, schedule } = only(found, &file)?;
    let of_device = device.map_or_else(String::new, |device| format!(" of `{device}`"));
    let named = names.iter().position(|name| *name == args.class);
    let class = named.or_else(|| args.class.parse().ok()).filter(|class| *class < classes as usize);
    let Some(class) = class.and_then(|class| u32::try_from(class).ok()) else {
        let what = format!("{file}: the schedule{of_device} has no class {}", args.class);
        let help = match names.as_slice() {
            [] => format!("its classes are 0 to {}", classes - 1),
            names => format!("its classes are {}", names.join(", ")),
        };
        return Err(Failure::bad_input(what).help(help));
    };
    let rule = rule(args, &schedule, &file)?;
    let frame = Frame { bytes: args.bytes, speed: args.speed };
    let prediction = predict(&schedule.windows(class, rule), frame);
    match args.format {
        GatesFormat::Json => outln!("{}", serde_json::to_string_pretty(&prediction).map_err(Failure::unexpected)?),
        GatesFormat::Text => {
            let wire = Nanos(frame.wire_ns() as i64);
            outln!("A frame of {} bytes of class {}{of_device} needs the wire for {wire}.", args.bytes, args.class);
            outln!("{}", sentences(&prediction));
        }
    }
    Ok(ExitCode::Done)
}

/// The gates of the ends of a study: of the end that `--device` names, or of both. If conditions differ in them, each one
/// counts.
fn of_study(args: &GatesPredict, file: &str) -> Result<Vec<Configured>, Failure> {
    let plan = run::load(&args.file, &[], false)?;
    let mut found: Vec<Configured> = Vec::new();
    for condition in &plan.conditions {
        let ends = [("ping", &condition.spec.ping.gates), ("pong", &condition.spec.pong.gates)];
        let known = |gates: &&GatesSpec| gates.by != GatesBy::Existing;
        for (end, gates) in ends.into_iter().filter_map(|(end, gates)| Some((end, gates.as_ref().filter(known)?))) {
            let one = Configured {
                device: Some(end.to_owned()),
                classes: gates.classes.len() as u32,
                names: gates.classes.iter().map(|class| class.name.clone()).collect(),
                schedule: gates.into(),
            };
            if !found.contains(&one) {
                found.push(one);
            }
        }
    }
    if found.is_empty() {
        let what = format!("{file}: no end of the study has gates with a schedule");
        let help = "give an end the key `gates`; of existing gates, predict from the output of `tc -j qdisc show`";
        return Err(Failure::bad_input(what).help(help));
    }
    if let Some(device) = &args.device {
        found.retain(|one| one.device.as_ref() == Some(device));
        if found.is_empty() {
            let what = format!("{file}: the end `{device}` has no gates");
            return Err(Failure::bad_input(what).help("the ends are `ping` and `pong`"));
        }
    }
    Ok(found)
}

fn check_study(args: &GatesCheck) -> CommandResult {
    let plan = run::load(&args.study, &args.settings, false)?;
    let has_gates = |spec: &TrialSpec| spec.ping.gates.is_some() || spec.pong.gates.is_some() || spec.stream.is_some();
    // The gates of an interface that the study does not name need the priority of its messages too.
    let by_priority =
        |spec: &TrialSpec| matches!(spec.path, PathSpec::Existing { .. }) && priority_of_messages(spec) != 0;
    if !plan.conditions.iter().any(|condition| has_gates(&condition.spec) || by_priority(&condition.spec)) {
        let what = format!("{}: the study has neither gates nor a stream", args.study.display());
        return Err(Failure::bad_input(what).help("give an end the key `gates`, or the study the key `stream`"));
    }
    let mut found: Vec<Warning> = tai_unset().into_iter().collect();
    for condition in &plan.conditions {
        for warning in check(&condition.spec).into_iter().chain(priorities_behind(&condition.spec)) {
            if !found.contains(&warning) {
                found.push(warning);
            }
        }
    }
    for warning in &found {
        let word = match warning.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Invalid => "error",
        };
        let end = warning.end.as_deref().map_or_else(String::new, |end| format!("{end}: "));
        outln!("{word}: {end}{}\n  help: {}", warning.problem.what, warning.problem.remedy);
    }
    let impossible = found.iter().any(|warning| warning.severity == Severity::Invalid);
    if found.iter().all(|warning| warning.severity == Severity::Note) {
        outln!("The gates of the study have no problem that is known before it runs.");
    }
    Ok(if impossible { ExitCode::BadInput } else { ExitCode::Done })
}

/// Note if nobody has set the difference between CLOCK_TAI and CLOCK_REALTIME of this machine.
fn tai_unset() -> Option<Warning> {
    // An offset that the kernel does not report is not taken for 0.
    if !matches!(tailbound_host::clock::tai_offset_s(), Ok(0)) {
        return None;
    }
    let what = "CLOCK_TAI of this machine is equal to CLOCK_REALTIME: nobody has set the leap seconds, so that schedules and launch \
                times are whole seconds away from the times of a clock that keeps TAI";
    let help = "this does no harm between ends of one machine; with others, let ptp4l or chrony set the difference, or `adjtimex --tai`";
    Some(Warning::new("tai_unset", Severity::Note, what, help))
}

fn text(path: &Path, file: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match path == Path::new(STANDARD_INPUT) {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(path).map(|found| text = found),
    };
    let help = "write it by `tc -j qdisc show dev DEVICE > FILE`";
    read.map_err(|e| Failure::bad_input(format!("{file} cannot be read: {e}")).help(help))?;
    Ok(text)
}

/// The only schedule.
fn only(found: Vec<Configured>, file: &str) -> Result<Configured, Failure> {
    let name = |one: &Configured| one.device.as_ref().map(|device| format!("`{device}`"));
    let names = found.iter().filter_map(name).collect::<Vec<_>>().join(", ");
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(Failure::bad_input(format!("{file}: there are several schedules: {names}"))
            .help("choose one by `--device NAME`")),
    }
}

fn rule(args: &GatesPredict, schedule: &Schedule, file: &str) -> Result<Rule, Failure> {
    match args.rule {
        Some(rule) => Ok(rule.into()),
        None if schedule.differs() => {
            let sum = schedule.entries.iter().map(|entry| entry.interval_ns).sum::<u64>();
            let [sum, cycle] = [sum, schedule.cycle_ns].map(|ns| Nanos(ns as i64));
            let what = format!("{file}: the entries last {sum} and the cycle {cycle}, which rules treat differently");
            let help = "give `--as kernel` (Linux: the list begins again, or is cut off) or `--as standard` (IEEE 802.1Q: \
                        the last entry is extended, or the list is cut off)";
            Err(Failure::bad_input(what).help(help))
        }
        None => Ok(Rule::Kernel),
    }
}

fn sentences(prediction: &Prediction) -> String {
    let time = |ns: Option<u64>| Nanos(ns.unwrap_or_default() as i64);
    let share = prediction.share_without_wait.unwrap_or_default();
    match prediction {
        Prediction { fits: false, .. } => "It does not fit: no window of the class is as long.".into(),
        Prediction { worst_wait_ns: Some(0), .. } => "It never waits for the gate.".to_owned(),
        Prediction { worst_wait_ns, worst_arrival_ns, mean_wait_ns, .. } => format!(
            "It waits for the gate for at most {}, namely if it is ready {} after the schedule begins again. If it is ready at \
             any time, it waits for {} on average, and does not wait at {:.1} % of the times.",
            time(*worst_wait_ns),
            time(*worst_arrival_ns),
            time(mean_wait_ns.map(|ns| ns.round() as u64)),
            100.0 * share,
        ),
    }
}
