//! `tailbound lab`.

use super::run;
use crate::cli::{LabExport, LabFormat, LabSub};
use crate::exit::{Failure, Outcome};
use crate::say::outln;
use std::fs::{self, OpenOptions};
use std::io::Write;
use tailbound_host::journal;
use tailbound_model::{ExitCode, PlaceSpec, VmSpec};

pub fn lab(command: Option<&LabSub>) -> Outcome {
    let failed = |e: journal::JournalError| Failure::new(ExitCode::RunFailed, e);
    match command {
        None | Some(LabSub::List) => {
            let states = journal::list().map_err(failed)?;
            if states.is_empty() {
                outln!("nothing: no run is going on, and none left anything behind");
            }
            for state in states {
                let life = match (state.owner_alive, state.stale_boot, state.busy) {
                    (_, true, _) => "of an earlier boot: void",
                    (true, ..) => "goes on",
                    (_, _, true) => "is being cleaned up",
                    _ => "is dead: `tailbound lab cleanup` takes this back",
                };
                outln!("run {} {life}", state.run);
                for entry in &state.entries {
                    outln!("  {}", tailbound_host::undo::describe(&entry.undo));
                }
                if let Some(problem) = &state.problem {
                    outln!("  problem: {problem}");
                }
            }
            Ok(ExitCode::Done)
        }
        Some(LabSub::Cleanup) => {
            let report = journal::cleanup(&mut |line| outln!("{line}")).map_err(failed)?;
            if report.undone.is_empty() && report.failed.is_empty() {
                outln!("nothing to take back");
            }
            for alive in &report.alive {
                outln!("left alone: {alive}");
            }
            Ok(if report.is_clean() { ExitCode::Done } else { ExitCode::RunFailed })
        }
        Some(LabSub::Export(args)) => export(args),
    }
}

fn export(args: &LabExport) -> Outcome {
    let plan = run::load(&args.study, &args.settings, false)?;
    let mut guests: Vec<VmSpec> = Vec::new();
    for place in plan.conditions.iter().flat_map(|c| [&c.spec.ping.place, &c.spec.pong.place]) {
        if let PlaceSpec::Vm(spec) = place
            && !guests.contains(spec)
        {
            guests.push((**spec).clone());
        }
    }
    let refused = |text: String| Failure::new(ExitCode::BadInput, text);
    if guests.is_empty() {
        return Err(refused(format!(
            "study {} has no virtual machines\n  what to do: name a study with `place: vm`, such as vm-latency",
            plan.study
        )));
    }
    let files = match args.format {
        LabFormat::Libvirt => tailbound_guest::libvirt(&guests),
    };
    let Some(directory) = &args.out else {
        files.iter().for_each(|file| outln!("==> {} <==\n{}", file.name, file.text));
        return Ok(ExitCode::Done);
    };
    let failed = |path: &std::path::Path, e: std::io::Error| {
        let mend = match e.kind() {
            std::io::ErrorKind::AlreadyExists => "\n  what to do: name another directory, or remove it",
            _ => "",
        };
        refused(format!("cannot write {}: {e}{mend}", path.display()))
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
