//! Runs `tailbound lab`: lists and undoes changes of runs to this host, and exports guests.

use super::run;
use crate::cli::{LabExport, LabFormat, LabSub};
use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use tailbound_host::journal::{self, JournalState};
use tailbound_model::{ExitCode, PlaceSpec, VmSpec};

pub fn lab(command: Option<&LabSub>) -> CommandResult {
    let failed = |e: journal::JournalError| Failure::of(ExitCode::RunFailed, e);
    match command {
        None => list(false),
        Some(LabSub::List(listed)) => list(listed.is_json()),
        Some(LabSub::Cleanup) => {
            let report = journal::cleanup(&mut |line| outln!("{line}")).map_err(failed)?;
            if report.undone.is_empty() && report.failed.is_empty() {
                outln!("nothing to undo");
            }
            for alive in &report.alive {
                outln!("left alone: {alive}");
            }
            Ok(if report.is_clean() { ExitCode::Done } else { ExitCode::RunFailed })
        }
        Some(LabSub::Export(args)) => export(args),
    }
}

fn list(as_json: bool) -> CommandResult {
    let states = journal::list().map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    if as_json {
        let of = |state: &JournalState| {
            let undone: Vec<String> = state.entries.iter().map(|e| tailbound_host::undo::describe(&e.undo)).collect();
            json!({
                "run": state.run, "active": state.owner_alive, "of_earlier_boot": state.stale_boot,
                "being_cleaned_up": state.busy, "changes": undone, "problem": state.problem,
                "process": state.header.as_ref().map(|h| h.owner.pid),
                "command": state.header.as_ref().map(|h| h.command.clone()),
            })
        };
        let all: Vec<_> = states.iter().map(of).collect();
        outln!("{}", serde_json::to_string_pretty(&json!({ "runs": all })).map_err(Failure::unexpected)?);
        return Ok(ExitCode::Done);
    }
    let kept = journal::kept().map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    if states.is_empty() && kept.is_empty() {
        outln!("nothing: no run is active, and no run left changes on this host");
    }
    for state in states {
        let life = match (state.owner_alive, state.stale_boot, state.busy) {
            (_, true, _) => "this run belongs to an earlier boot; `tailbound lab cleanup` removes what is left of it",
            (true, ..) if state.has_lease() => "holds settings of `tailbound tune apply` until its lease ends",
            (true, ..) => "is active",
            (_, _, true) => "is being cleaned up",
            _ => "this run was killed: `tailbound lab cleanup` undoes its changes",
        };
        outln!("run {} {life}", state.run);
        for entry in &state.entries {
            outln!("  {}", tailbound_host::undo::describe(&entry.undo));
        }
        if let Some(problem) = &state.problem {
            outln!("  problem: {problem}");
        }
    }
    for state in kept {
        outln!("{}: confirmed settings of `tailbound tune apply`; `tailbound tune revert` would:", state.run);
        for entry in &state.entries {
            outln!("  {}", tailbound_host::undo::describe(&entry.undo));
        }
    }
    Ok(ExitCode::Done)
}

fn export(args: &LabExport) -> CommandResult {
    let plan = run::load(&args.study, &args.settings, false)?;
    let mut guests: Vec<VmSpec> = Vec::new();
    for place in plan.conditions.iter().flat_map(|c| [&c.spec.ping.place, &c.spec.pong.place]) {
        if let PlaceSpec::Vm(spec) = place
            && !guests.contains(spec)
        {
            guests.push((**spec).clone());
        }
    }
    if guests.is_empty() {
        return Err(Failure::bad_input(format!("study {} has no virtual machines", plan.study))
            .help("name a study with `place: vm`, such as vm-latency"));
    }
    let files = match args.format {
        LabFormat::Libvirt => tailbound_guest::libvirt(&guests),
    };
    let Some(directory) = &args.out else {
        files.iter().for_each(|file| outln!("==> {} <==\n{}", file.name, file.text));
        return Ok(ExitCode::Done);
    };
    let failed = |path: &std::path::Path, e: std::io::Error| {
        let failure = Failure::bad_input(format!("cannot write {}: {e}", path.display()));
        match e.kind() {
            std::io::ErrorKind::AlreadyExists => failure.help("name another directory, or remove the file"),
            _ => failure,
        }
    };
    fs::create_dir_all(directory).map_err(|e| failed(directory, e))?;
    for file in &files {
        let path = directory.join(&file.name);
        let written = OpenOptions::new().write(true).create_new(true).open(&path);
        written.and_then(|mut f| f.write_all(file.text.as_bytes())).map_err(|e| failed(&path, e))?;
        outln!("{}", path.display());
    }
    Ok(ExitCode::Done)
}
