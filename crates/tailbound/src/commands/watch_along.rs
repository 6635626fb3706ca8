//! The other end of `watch --also`: captures on this host for a Tailbound on another one, which asks for the clock of this host.
//!
//! Lines of the standard input: `clock` asks for CLOCK_REALTIME, which is answered at once; `end`, or the end of the input, ends the
//! capture. Lines of the standard output: `watching VERSION`, `clock NS`, then `report JSON`, `sample GUID,NUMBER,SOURCE,STAMP` for each
//! sample, and `end`.

use super::watch_capture::{ENDED, TURN, failed, own_addresses, place, read_rest, seen};
use crate::cli::Watch;
use crate::failure::{CommandResult, Failure};
use std::io::{BufRead, BufWriter, Write};
use std::sync::atomic::Ordering::SeqCst;
use tailbound_host::{Capture, process_cpu_ns, realtime_ns};
use tailbound_model::ExitCode;
use tailbound_watch::{Captured, Watch as State, guid_words};

/// Largest number of samples that are kept until the end.
const MOST_SAMPLES: usize = 5_000_000;

/// Captures in the network namespace of this thread until the other Tailbound ends it.
pub fn along(args: &Watch) -> CommandResult {
    let mut capture = Capture::open(args.interface.as_deref()).map_err(failed)?;
    let begin_ns = realtime_ns();
    let mut state = State::new(place(args), begin_ns, own_addresses());
    state.keep_samples();
    say(&format!("watching {}", crate::cli::BUILD))?;
    std::thread::spawn(answer);
    let cpu_before_ns = process_cpu_ns();
    let mut samples: Vec<Captured> = Vec::new();
    let mut ended_early = None;
    while !ENDED.load(SeqCst) {
        if let Err(error) = capture.read(TURN, |packet| state.packet(seen(packet))) {
            ended_early = Some(format!("the capture ended early: {error}"));
            break;
        }
        samples.extend(state.take_samples());
        if samples.len() > MOST_SAMPLES {
            ended_early = Some(format!("the capture ended early, after {MOST_SAMPLES} samples"));
            break;
        }
    }
    let end_ns = realtime_ns();
    if ended_early.is_none() {
        read_rest(&mut capture, &mut state, end_ns);
    }
    samples.extend(state.take_samples());
    let mut report = state.report(end_ns, capture.dropped().unwrap_or(0), Default::default());
    drop(capture);
    report.warnings.extend(ended_early);
    report.cpu_ns = Some(process_cpu_ns() - cpu_before_ns);
    tell(&report, &samples).map_err(lost)?;
    Ok(ExitCode::Done)
}

/// Answers the questions of the other Tailbound.
fn answer() {
    for line in std::io::stdin().lock().lines() {
        match line.as_deref() {
            Ok("clock") if say(&format!("clock {}", realtime_ns())).is_ok() => {}
            _ => break,
        }
    }
    ENDED.store(true, SeqCst);
}

fn say(line: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(lost)
}

fn tell(report: &tailbound_report::WatchReport, samples: &[Captured]) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    writeln!(out, "report {}", serde_json::to_string(report)?)?;
    for Captured { writer, number, source_ns, stamp_ns } in samples {
        let source = source_ns.map(|ns| ns.to_string()).unwrap_or_default();
        writeln!(out, "sample {},{number},{source},{stamp_ns}", guid_words(*writer))?;
    }
    writeln!(out, "end")?;
    out.flush()
}

fn lost(e: std::io::Error) -> Failure {
    Failure::not_fit(format!("the Tailbound that asked for this capture cannot be reached: {e}"))
        .help("this is the other end of `tailbound watch --also`, which starts it")
}
