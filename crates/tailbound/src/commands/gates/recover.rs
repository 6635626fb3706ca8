//! Runs `tailbound gates recover`: prints the gate schedules that the messages of a record met.

use crate::cli::{GatesFormat, GatesRecover};
use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use serde::Serialize;
use std::fmt::Write;
use tailbound_gates::{ConfiguredGate, NotRecovered, Recovered, Recovery};
use tailbound_model::{ExitCode, Nanos};
use tailbound_record::Record;
use tailbound_report::number::count;
use tailbound_report::{RecoveredGate, recover_gates};

pub fn recover(args: &GatesRecover) -> CommandResult {
    let record = Record::open(&args.record).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let found = recover_gates(&record).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let dir = args.record.display();
    if found.ways.is_empty() && found.other_clocks > 0 {
        let what = format!("{dir}: the ends have different clocks, so that the ways of single messages are not known");
        return Err(Failure::bad_input(what).help("let both ends run on one host"));
    }
    if found.ways.is_empty() {
        let what = format!("{dir}: no trial has messages whose times of sending and receipt are known");
        return Err(Failure::bad_input(what).help("record a study with `measure: ping-pong` and a driver"));
    }
    if found.ways.iter().all(|way| way.found.is_err()) {
        let reasons: Vec<String> = found.ways.iter().map(|way| format!("{}: {}", name(way), text(way))).collect();
        let what = format!("{dir}: no schedule was recovered\n  {}", reasons.join("\n  "));
        let help = found.ways.first().and_then(|way| way.found.as_ref().err()).map(help).unwrap_or_default();
        return Err(Failure::bad_input(what).help(help));
    }
    match args.format {
        GatesFormat::Json => {
            let all = Json { ways: found.ways.iter().map(JsonWay::from).collect(), other_clocks: found.other_clocks };
            outln!("{}", serde_json::to_string_pretty(&all).map_err(Failure::unexpected)?);
        }
        GatesFormat::Text => {
            for way in &found.ways {
                outln!("{}\n  {}", name(way), text(way));
            }
            if found.other_clocks > 0 {
                outln!("{} trials were left out, because their ends have different clocks.", found.other_clocks);
            }
        }
    }
    Ok(ExitCode::Done)
}

#[derive(Serialize)]
struct Json<'a> {
    ways: Vec<JsonWay<'a>>,
    other_clocks: usize,
}

/// The gate on a way, as JSON.
#[derive(Serialize)]
struct JsonWay<'a> {
    condition: &'a str,
    trial: usize,
    end: &'static str,
    used_s: u64,
    lost: u64,
    left_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a Recovery>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_recovered: Option<&'a NotRecovered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    configured: Option<&'a ConfiguredGate>,
}

impl<'a> From<&'a RecoveredGate> for JsonWay<'a> {
    fn from(way: &'a RecoveredGate) -> JsonWay<'a> {
        JsonWay {
            condition: &way.condition,
            trial: way.trial,
            end: way.end,
            used_s: way.used_s,
            lost: way.lost,
            left_out: way.left_out,
            schedule: way.found.as_ref().ok(),
            not_recovered: way.found.as_ref().err(),
            configured: way.configured.as_ref(),
        }
    }
}

fn name(way: &RecoveredGate) -> String {
    format!("{}, trial {}, messages of the {}", way.condition, way.trial, way.end)
}

fn text(way: &RecoveredGate) -> String {
    let used = match way.left_out {
        0 => String::new(),
        left_out => format!(
            "\nOnly messages that were sent in the first {} s were used, also for the number of lost ones. {} messages that were sent \
             later arrived, too.",
            way.used_s,
            count(left_out)
        ),
    };
    let found = match &way.found {
        Ok(recovery) => schedule(recovery, way.configured.as_ref(), way.lost),
        Err(reason) => sentence(reason),
    };
    (found + &used).replace('\n', "\n  ")
}

fn sentence(reason: &NotRecovered) -> String {
    match reason {
        NotRecovered::TooFewProbes { probes, needs } => {
            format!("{} messages arrived, and {needs} are needed", count(*probes))
        }
        NotRecovered::NoGate { probes } => {
            format!("the waits of {} messages depend on no cycle of 1 to 100 ms", count(*probes))
        }
        NotRecovered::TooFewCycles { cycle_ns, span_ns } => format!(
            "a cycle of about {} ms explains the waits, but {} have too few cycles in which messages waited to find how exact it is",
            ms(*cycle_ns, 3),
            Nanos(*span_ns as i64)
        ),
        NotRecovered::PhasesNotCovered { cycle_ns, largest_gap_ns } => format!(
            "in a cycle of {} ms, no message was sent in a part of {} ms",
            ms(*cycle_ns, 3),
            ms(*largest_gap_ns, 3)
        ),
    }
}

fn help(reason: &NotRecovered) -> &'static str {
    match reason {
        NotRecovered::TooFewProbes { .. } => "measure longer, so that more messages are sent",
        NotRecovered::TooFewCycles { .. } => {
            "measure longer, or send more messages per second, so that messages wait in more cycles"
        }
        NotRecovered::NoGate { .. } => {
            "if a gate is on the way, send more messages, at all phases of its cycle, so that its waits differ from other delays"
        }
        NotRecovered::PhasesNotCovered { .. } => {
            "choose a rate whose period does not beat with the cycle, so that messages are sent at all of its phases"
        }
    }
}

fn schedule(recovery: &Recovery, configured: Option<&ConfiguredGate>, lost: u64) -> String {
    let cycle = recovery.cycle;
    let [at, low, high] = [cycle.ns, cycle.low_ns, cycle.high_ns].map(|ns| ms(ns, 6));
    let mut text = format!(
        "{} messages arrived, and {} were lost. The cycle is {at} ms (95 %: {low} to {high} ms)",
        count(recovery.probes),
        count(lost)
    );
    if let Some(gate) = configured {
        let _ = write!(text, "; configured: {}, {}", Nanos(gate.cycle_ns), holds(gate.cycle_holds));
    }
    let _ = write!(
        text,
        ".\nThe shortest way is {}: the gate is somewhere on it. The longest part of the cycle without a message is {} ms.\n\
         Times at which messages may pass, in ms after {:.9} s of the clock of the messages, with 95 % intervals:\n\
         window  from                configured            to                  configured",
        Nanos(recovery.shortest_way_ns),
        ms(recovery.largest_gap_ns, 3),
        recovery.reference_ns as f64 / 1e9,
    );
    let compared = configured.filter(|gate| gate.launch_delay_ns.is_none());
    let nearest = compared.map_or(&[][..], |gate| &gate.nearest);
    for (number, window) in recovery.windows.iter().enumerate() {
        let beside = |of: Option<(f64, bool)>| of.map_or("-".into(), |(ns, is)| format!("{} {}", ms(ns, 3), holds(is)));
        let nearest = nearest.get(number);
        let row = format!(
            "{:<8}{:<20}{:<22}{:<20}{}",
            number + 1,
            interval(&window.opens),
            beside(nearest.map(|n| (n.opens_ns, n.opens_holds))),
            interval(&window.closes),
            beside(nearest.map(|n| (n.closes_ns, n.closes_holds))),
        );
        let _ = write!(text, "\n{row}");
    }
    if let Some(delay_ns) = configured.and_then(|gate| gate.launch_delay_ns) {
        let _ = write!(
            text,
            "\nThe configured windows are not compared: frames have launch times, {} after they were sent or later, so that they leave \
             at other times.",
            Nanos(delay_ns)
        );
    }
    if let Some(gate) = compared.filter(|gate| gate.windows.len() != recovery.windows.len()) {
        let _ = write!(text, "\nThe configured schedule has {} windows for these messages.", gate.windows.len());
    }
    text
}

fn holds(is_within: bool) -> &'static str {
    if is_within { "within" } else { "outside" }
}

fn interval(edge: &Recovered) -> String {
    format!("{} to {}", ms(edge.low_ns, 3), ms(edge.high_ns, 3))
}

fn ms(ns: f64, digits: usize) -> String {
    format!("{:.digits$}", ns / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_gates::{NearestWindow, RecoveredWindow};

    fn around(ms: f64) -> Recovered {
        Recovered { ns: ms * 1e6, low_ns: (ms - 0.1) * 1e6, high_ns: (ms + 0.1) * 1e6 }
    }

    #[test]
    fn a_schedule_is_shown_beside_the_configured_one() {
        let window = |opens, closes| RecoveredWindow { opens: around(opens), closes: around(closes) };
        let recovery = Recovery {
            reference_ns: 411_000_000,
            cycle: around(40.0),
            windows: vec![window(0.03, 7.96), window(20.02, 24.8)],
            probes: 1_998,
            shortest_way_ns: 226_000,
            largest_gap_ns: 130_000.0,
        };
        let near =
            |opens_ns, closes_ns, closes_holds| NearestWindow { opens_ns, opens_holds: true, closes_ns, closes_holds };
        let configured = ConfiguredGate {
            cycle_ns: 40_000_000,
            cycle_holds: true,
            windows: vec![(0, 7_999_896), (20_000_000, 24_999_896), (30_000_000, 30_100_000)],
            nearest: vec![near(0.0, 7_999_896.0, true), near(20e6, 24_999_896.0, false)],
            launch_delay_ns: None,
        };
        let launched = ConfiguredGate { nearest: Vec::new(), launch_delay_ns: Some(500_000), ..configured.clone() };
        let way = |found, left_out, configured| RecoveredGate {
            condition: "udp".into(),
            trial: 0,
            end: "ping",
            used_s: 250,
            lost: 2,
            left_out,
            found,
            configured,
        };
        let reasons = [
            NotRecovered::PhasesNotCovered { cycle_ns: 20e6, largest_gap_ns: 5e6 },
            NotRecovered::TooFewCycles { cycle_ns: 90.02e6, span_ns: 518e6 },
        ];
        let helps = reasons.each_ref().map(help);
        let [gaps, cycles] = reasons;
        let ways = [
            way(Ok(recovery.clone()), 0, Some(configured)),
            way(Ok(recovery), 1_234, Some(launched)),
            way(Err(gaps), 0, None),
            way(Err(cycles), 43, None),
        ];
        insta::assert_snapshot!(format!("{}\n\n{}", ways.each_ref().map(text).join("\n\n"), helps.join("\n")));
    }
}
