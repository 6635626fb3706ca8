//! `tailbound doctor`.

use super::report::width;
use crate::cli::Doctor;
use crate::exit::{Failure, Outcome};
use crate::say::{out, outln};
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tailbound_model::{CpuList, ExitCode, HostFacts, RescueSeen, RoleScheduling};

/// The test takes three seconds; a child that takes longer is ended.
const RESCUE_LIMIT: Duration = Duration::from_secs(8);

pub fn doctor(args: &Doctor) -> Outcome {
    let facts = tailbound_host::facts::collect();
    if args.rescue_test {
        return rescue_test(&facts, args.json);
    }
    let findings = tailbound_doctor::diagnose(&facts);
    if args.json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "facts": facts, "findings": findings }))
            .map_err(|e| Failure::new(ExitCode::Unexpected, e))?;
        outln!("{text}");
    } else {
        out!("{}", tailbound_doctor::render(&findings, width()));
        outln!(
            "\nOrdinary threads beside a real-time thread that never sleeps are rescued by: {}.",
            tailbound_doctor::rescue_by_facts(&facts)
        );
        outln!("`tailbound doctor --rescue-test` tries it on one CPU, in three seconds.");
    }
    Ok(ExitCode::Done)
}

/// Runs the self-test in a child on the last CPU, and stays on another one to end it whatever happens.
fn rescue_test(facts: &HostFacts, json: bool) -> Outcome {
    let not_fit = |text: String| Failure::new(ExitCode::MachineNotFit, text);
    let allowed = tailbound_host::allowed_cpus();
    let [first, .., last] = allowed.as_slice() else {
        let text = "the test needs two CPUs: a real-time thread takes one, and this program watches from another";
        return Err(not_fit(text.into()));
    };
    let here = RoleScheduling { policy: None, cpus: Some(CpuList::one(*first)) };
    tailbound_host::apply(0, &here).map_err(|e| not_fit(e.to_string()))?;
    let failed = |e: std::io::Error| Failure::new(ExitCode::RunFailed, format!("the test cannot be started: {e}"));
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
    let (mut said, mut why) = (String::new(), String::new());
    let _ = child.stdout.take().map(|mut o| o.read_to_string(&mut said));
    let _ = child.stderr.take().map(|mut e| e.read_to_string(&mut why));
    let seen: RescueSeen = serde_json::from_str(&said).map_err(|_| {
        let why = if why.trim().is_empty() {
            format!("it ended with {status}")
        } else {
            why.trim().trim_start_matches("tailbound: ").to_owned()
        };
        not_fit(format!("the test of the rescue is not possible here: {why}"))
    })?;
    let text = tailbound_doctor::rescue(facts, &seen);
    if json {
        outln!("{}", serde_json::json!({ "rescue_test": seen, "text": text }));
    } else {
        outln!("{text}");
    }
    Ok(ExitCode::Done)
}

/// The child of the self-test: its finding as JSON.
pub fn rescue_child(cpu: u32) -> Outcome {
    let seen = tailbound_host::rescue::measure(cpu).map_err(|why| Failure::new(ExitCode::MachineNotFit, why))?;
    outln!("{}", serde_json::to_string(&seen).map_err(|e| Failure::new(ExitCode::Unexpected, e))?);
    Ok(ExitCode::Done)
}
