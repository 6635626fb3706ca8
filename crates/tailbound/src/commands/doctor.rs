//! Runs `tailbound doctor`: checks this host, or measures the CPU time of an ordinary thread beside a real-time thread.

use crate::cli::Doctor;
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, out, outln, width};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tailbound_doctor::{Finding, RecordEvidence, Shape, Verdict, ranked, render};
use tailbound_model::{CpuList, ExitCode, HostFacts, RescueSeen, RoleScheduling};
use tailbound_record::Record;
use tailbound_report::wrap;

/// Time after which the process of the rescue test is killed; the test takes three seconds.
const RESCUE_LIMIT: Duration = Duration::from_secs(8);

pub fn doctor(args: &Doctor) -> CommandResult {
    let facts = tailbound_host::facts::collect();
    if args.rescue_test {
        return rescue_test(&facts, args.listed.is_json());
    }
    let hosts = match &args.record {
        Some(record) => of_record(record)?,
        None => vec![(facts.clone(), ranked(tailbound_doctor::diagnose(&facts), None))],
    };
    if args.listed.is_json() {
        print_json(&hosts, args.record.is_some())?;
    } else {
        for (facts, findings) in &hosts {
            if args.record.is_some() {
                outln!("host {}", tailbound_model::plain(&facts.host));
            }
            out!("{}", render(findings, Shape { width: width(), colour: colour(), verbose: args.verbose }));
            let rescue = format!(
                "If a real-time thread never sleeps, ordinary threads of its CPU still get CPU time from: {}.",
                tailbound_doctor::rescue_by_facts(facts)
            );
            outln!("\n{}", wrap(&rescue, width(), 0).join("\n"));
        }
        if args.record.is_none() {
            let text = "`tailbound doctor --rescue-test` measures this on one CPU in three seconds.";
            outln!("{}", wrap(text, width(), 0).join("\n"));
        }
    }
    let widens = hosts.iter().flat_map(|(_, findings)| findings).any(|one| one.verdict == Verdict::WillWidenTail);
    Ok(if args.strict && widens { ExitCode::MachineNotFit } else { ExitCode::Done })
}

/// The hosts of a record with their findings, ranked by the causes of late and lost messages in the record.
fn of_record(path: &Path) -> Result<Vec<(HostFacts, Vec<Finding>)>, Failure> {
    let record = Record::open(path).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let report = tailbound_report::analyse(&record).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let evidence = RecordEvidence::of(&report.conditions);
    let facts: Result<Vec<HostFacts>, _> = record.hosts().into_iter().collect();
    let facts = facts.map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    if facts.is_empty() {
        let text = format!("{}: the record has no facts of a host", path.display());
        return Err(Failure::bad_input(text).help("name a record that a run has written, not one that was imported"));
    }
    let with_findings = |facts: HostFacts| {
        let findings = ranked(tailbound_doctor::diagnose(&facts), Some(&evidence));
        (facts, findings)
    };
    Ok(facts.into_iter().map(with_findings).collect())
}

/// Prints facts and findings as JSON: an object for this host, or a list of objects for the hosts of a record.
fn print_json(hosts: &[(HostFacts, Vec<Finding>)], is_record: bool) -> Result<(), Failure> {
    let of =
        |(facts, findings): &(HostFacts, Vec<Finding>)| serde_json::json!({ "facts": facts, "findings": findings });
    let all: Vec<serde_json::Value> = hosts.iter().map(of).collect();
    let text = match (is_record, all.as_slice()) {
        (false, [this]) => serde_json::to_string_pretty(this),
        _ => serde_json::to_string_pretty(&all),
    };
    outln!("{}", text.map_err(Failure::unexpected)?);
    Ok(())
}

/// Runs the rescue test (CPU time of an ordinary thread beside a real-time thread) in a child process on the last CPU.
/// This process stays on the first CPU, so that it can always kill the child process.
fn rescue_test(facts: &HostFacts, json: bool) -> CommandResult {
    let allowed = tailbound_host::allowed_cpus();
    let [first, .., last] = allowed.as_slice() else {
        let text = "the rescue test needs two CPUs: one for a real-time thread, and one for this program";
        return Err(Failure::not_fit(text));
    };
    let here = RoleScheduling { policy: None, cpus: Some(CpuList::one(*first)) };
    tailbound_host::apply(0, &here).map_err(Failure::not_fit)?;
    let failed = |e: std::io::Error| Failure::run_failed(format!("the rescue test cannot be started: {e}"));
    let mut command = tailbound_host::own_program().map_err(failed)?;
    command.args(["agent", "--rescue-test", &last.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let deadline = Instant::now() + RESCUE_LIMIT;
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                break child.wait().map_err(failed)?;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let (mut answer, mut errors) = (String::new(), String::new());
    let _ = child.stdout.take().map(|mut o| o.read_to_string(&mut answer));
    let _ = child.stderr.take().map(|mut e| e.read_to_string(&mut errors));
    let seen: RescueSeen = serde_json::from_str(&answer).map_err(|_| {
        let why = if errors.trim().is_empty() {
            format!("the test ended with {status}")
        } else {
            errors.trim().trim_start_matches("error: ").to_owned()
        };
        Failure::not_fit(format!(
            "whether ordinary threads get a CPU beside a real-time thread cannot be tested on this host: {why}"
        ))
    })?;
    let text = tailbound_doctor::rescue(facts, &seen);
    if json {
        outln!("{}", serde_json::json!({ "rescue_test": seen, "text": text }));
    } else {
        outln!("{text}");
    }
    Ok(ExitCode::Done)
}

/// Runs the rescue test (CPU time of an ordinary thread beside a real-time thread) in this process and prints the
/// result as JSON.
pub fn rescue_child(cpu: u32) -> CommandResult {
    let seen = tailbound_host::rescue::measure(cpu).map_err(|e| Failure::of(ExitCode::MachineNotFit, e))?;
    outln!("{}", serde_json::to_string(&seen).map_err(Failure::unexpected)?);
    Ok(ExitCode::Done)
}
