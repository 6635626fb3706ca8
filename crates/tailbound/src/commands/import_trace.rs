//! Runs `tailbound import --ros2-trace`: reads a trace of `ros2_tracing` by the program `babeltrace2`.

use super::capture_dir;
use crate::cli::{Import, TextFormat};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, errln, out, outln, width};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tailbound_model::ExitCode;
use tailbound_report::number::{count, time};
use tailbound_watch::{Trace, TraceCounts};

/// The program that reads traces of the form CTF.
const READER: &str = "babeltrace2";
/// Captured messages are given to the trace before the calls of this time after them, ns.
const AHEAD_NS: i64 = 1_000_000_000;

pub fn import_trace(args: &Import, path: &Path) -> CommandResult {
    if !path.is_dir() {
        return Err(
            refused(path, &"there is no such directory").help("name the directory that `ros2 trace` has written")
        );
    }
    let mut captured =
        args.capture.as_deref().map(capture_dir::on_wire).transpose()?.unwrap_or_default().into_iter().peekable();
    let mut trace = Trace::default();
    read(path, |line| {
        if let Some(at_ns) = trace.line(line) {
            while let Some(sample) = captured.next_if(|sample| sample.stamp_ns <= at_ns + AHEAD_NS) {
                trace.on_wire(&sample.topic, sample.source_ns, sample.stamp_ns);
            }
        }
    })?;
    let (calls, counts) = trace.end().map_err(|e| {
        refused(path, &e)
            .help("trace with `ros2 trace`, which records the events `ros2:*` with vpid, vtid and procname")
    })?;
    match args.format {
        TextFormat::Json => outln!("{}", serde_json::to_string_pretty(&calls).map_err(Failure::unexpected)?),
        TextFormat::Text => {
            let length = time(counts.length_ns as f64);
            outln!("{} events of ROS 2 in {length} of {}", count(counts.events), path.display());
            out!("{}", tailbound_report::render_watched_calls(&calls, width(), colour()));
        }
    }
    warn(&counts, calls.topics.is_empty());
    Ok(ExitCode::Done)
}

fn warn(counts: &TraceCounts, is_empty: bool) {
    if is_empty {
        errln!("warning: no message was published, taken or executed in the trace, as far as its topic is known");
    }
    let about = [
        (counts.unread, "events could not be read"),
        (counts.without_thread, "events do not say which process and thread they belong to, and were left out"),
        (
            counts.without_topic,
            "calls were left out, because the trace does not have the begin of their nodes: start the trace before the nodes",
        ),
    ];
    for (number, what) in about.into_iter().filter(|(number, _)| *number > 0) {
        errln!("warning: {} {what}", count(number));
    }
}

/// Gives each line that the program prints to `each`.
fn read(path: &Path, mut each: impl FnMut(&str)) -> Result<(), Failure> {
    let mut command = Command::new(READER);
    command.args(["--clock-seconds", "--no-delta"]).arg(path).env("LC_ALL", "C.UTF-8");
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|e| {
        Failure::not_fit(format!(
            "{}: the program {READER}, which reads traces, cannot be started: {e}",
            path.display()
        ))
        .help("install it, in Debian and Ubuntu by `apt install babeltrace2`")
    })?;
    // The program must be able to write all its errors while its lines are read.
    let said = child
        .stderr
        .take()
        .map(|stderr| std::thread::spawn(move || std::io::read_to_string(stderr).unwrap_or_default()));
    if let Some(out) = child.stdout.take() {
        let mut lines = BufReader::new(out);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(|e| refused(path, &e))? > 0 {
            each(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    let status = child.wait().map_err(|e| refused(path, &e))?;
    if !status.success() {
        let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
        // Its lines of errors name the cause first, and then who called whom.
        let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim();
        // Before the text stand a time, ids, and a place in its source: `... function@file.c:12 TEXT`.
        let place = first.split_once('@').and_then(|(_, rest)| rest.split_once(':'));
        let text = place.and_then(|(_, rest)| rest.split_once(' ')).map_or(first, |(_, text)| text);
        return Err(refused(path, &format!("{READER} cannot read it: {text}"))
            .help("name the directory that `ros2 trace` has written, with its files `metadata`"));
    }
    Ok(())
}

fn refused(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::bad_input(format!("{}: {what}", path.display()))
}
