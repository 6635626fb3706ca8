//! Runs `tailbound driver`: lists drivers, checks them, exports their configuration and creates the files of a new
//! driver.

use super::export::export;
use super::{driver_build, driver_template};
use crate::cli::{Buildable, DriverSub};
use crate::drivers;
use crate::failure::{CommandResult, Failure};
use crate::output::{outln, width};
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use tailbound_driver::{Driver, Kv, LoadError, conformance};
use tailbound_model::ExitCode;
use tailbound_report::wrap;

pub fn driver(command: Option<&DriverSub>) -> CommandResult {
    match command {
        None => list(false),
        Some(DriverSub::List(listed)) => list(listed.is_json()),
        Some(DriverSub::Export(args)) => export(args),
        Some(DriverSub::Build { driver: Buildable::Rclcpp, into }) => driver_build::rclcpp(into.as_deref()),
        Some(DriverSub::New { directory, cxx }) => driver_template::write(directory, *cxx),
        Some(DriverSub::Check { driver, options, here: true }) => check(driver, options),
        Some(DriverSub::Check { driver, options, here: false }) => check_in_child(driver, options),
    }
}

fn list(as_json: bool) -> CommandResult {
    let found: Vec<(String, Result<Driver, LoadError>)> =
        drivers::known().into_iter().map(|name| (name.clone(), drivers::find(&name))).collect();
    if as_json {
        let of = |(name, driver): &(String, Result<Driver, LoadError>)| match driver {
            Ok(driver) => json!({ "driver": name, "path": driver.path(), "description": driver.description() }),
            Err(e) => json!({ "driver": name, "cannot_be_used": e.to_string() }),
        };
        let all: Vec<_> = found.iter().map(of).collect();
        outln!("{}", serde_json::to_string_pretty(&json!({ "drivers": all })).map_err(Failure::unexpected)?);
        return Ok(ExitCode::Done);
    }
    for (name, driver) in &found {
        match driver {
            Ok(driver) => describe(driver),
            Err(e) => outln!("{name}\n  cannot be used: {e}\n"),
        }
    }
    Ok(ExitCode::Done)
}

/// Columns of the names of lines in a description: `  receive modes  `.
const WIDTH_OF_KEYS: usize = 17;

fn describe(driver: &Driver) {
    let d = driver.description();
    let versions: Vec<String> = d.versions.iter().map(|(k, v)| format!("{k} {v}")).collect();
    let from = driver.path().map_or("linked in".to_owned(), |p| p.display().to_string());
    outln!("{}  ({}; {from})", d.name, versions.join(", "));
    let line = |key: &str, text: &str| {
        let text = format!("  {key:<14} {text}");
        outln!("{}", wrap(&text, width(), WIDTH_OF_KEYS).join("\n"));
    };
    if let Some(why) = &d.lacks {
        line("cannot be used", why);
    }
    line("receive modes", &d.receive_modes.iter().map(|m| m.name()).collect::<Vec<_>>().join(" "));
    line("payload", &format!("up to {} B", d.limits.max_payload_bytes));
    if !d.capabilities.is_empty() {
        line("capabilities", &d.capabilities.join(" "));
    }
    let mut roles: Vec<&str> = d.roles.iter().map(|r| r.role.as_str()).collect();
    roles.dedup();
    if !roles.is_empty() {
        line("thread roles", &roles.join(" "));
    }
    for q in &d.qos {
        line("qos", &format!("{}: {}", q.policy, q.values.join(" ")));
    }
    for o in &d.options {
        let default = o.default.as_ref().map_or(String::new(), |d| format!(" [default: {d}]"));
        line("option", &format!("{}: {}{default}", o.key, o.help));
    }
    outln!("");
}

/// Runs the conformance suite in a child process, so that a driver that crashes does not end this process.
fn check_in_child(name: &str, options: &[(String, String)]) -> CommandResult {
    let unexpected = |e: std::io::Error| Failure::unexpected(format!("the conformance suite cannot be started: {e}"));
    let mut me = tailbound_host::own_program().map_err(unexpected)?;
    me.args(["driver", "check", "--here", name]);
    me.args(options.iter().map(|(key, value)| format!("--option={key}={value}")));
    let status = me.status().map_err(unexpected)?;
    match status.signal() {
        Some(signal) => {
            let name = nix::sys::signal::Signal::try_from(signal).map_or("a signal", |s| s.as_str());
            let text = format!("the driver crashed ({name}) in the check that follows the last check listed");
            Err(Failure::run_failed(text).help("run `tailbound driver check --here` in a debugger"))
        }
        None if status.success() => Ok(ExitCode::Done),
        None => Ok(ExitCode::RunFailed),
    }
}

fn check(name: &str, options: &[(String, String)]) -> CommandResult {
    let driver = drivers::find(name).map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let options = options.iter().fold(Kv::new(), |all, (key, value)| all.with(key, value));
    let report = conformance::run_with(&driver, &options, &mut |check| {
        let word = match check.outcome {
            conformance::CheckOutcome::Passed => "pass",
            conformance::CheckOutcome::Failed => "FAIL",
            conformance::CheckOutcome::NotApplicable => "n/a ",
        };
        outln!("{word}  {:<28} {} ({} ms)", check.name, check.detail, check.took_ms);
        if check.outcome == conformance::CheckOutcome::Failed {
            outln!("      rule: {}", check.proves);
        }
    });
    let failed = report.failed().count();
    outln!(
        "{}: {}",
        report.driver,
        match failed {
            0 => "keeps the rules".to_owned(),
            1 => "breaks 1 rule".to_owned(),
            _ => format!("breaks {failed} rules"),
        }
    );
    Ok(if report.passed() { ExitCode::Done } else { ExitCode::RunFailed })
}
