//! `tailbound quick`: the built-in study, on whatever this machine offers.

use super::run;
use crate::cli::Quick;
use crate::exit::{Failure, Outcome};
use crate::say::errln;
use std::path::{Path, PathBuf};
use tailbound_lab::userns::{self, Privilege};
use tailbound_model::{ExitCode, Severity, Warning};
use tailbound_record::Record;

const DEFAULT_OUT: &str = "tailbound-quick";

pub fn quick(args: &Quick) -> Outcome {
    let mut settings = args.settings.clone();
    let mut warnings = Vec::new();
    let places_given = settings.iter().any(|s| s.starts_with("path=") || s.starts_with("place="));
    if !places_given {
        let privilege = userns::enter_if_needed(true).map_err(|e| Failure::new(ExitCode::MachineNotFit, e))?;
        if let Privilege::None { reason } = privilege {
            settings.extend(["path=loopback".to_owned(), "place=process".to_owned()]);
            warnings.push(Warning::new(
                "loopback_instead",
                Severity::Warning,
                format!("measured over loopback in place of two network namespaces: {reason}"),
                "run as root, or allow user namespaces",
            ));
        }
    }
    let plan = run::load(Path::new("quick"), &settings, false)?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => {
            make_room(Path::new(DEFAULT_OUT))?;
            PathBuf::from(DEFAULT_OUT)
        }
    };
    run::execute(plan, out, warnings, false)
}

/// Renames an older record that `quick` made; anything else under this name stays, and is in the way.
fn make_room(out: &Path) -> Result<(), Failure> {
    if out.symlink_metadata().is_err() {
        return Ok(());
    }
    let ours = Record::open(out).is_ok_and(|r| r.manifest.plan.study == "quick");
    if !ours {
        let text = format!("{} exists already and `quick` did not make it; give another --out", out.display());
        return Err(Failure::new(ExitCode::BadInput, text));
    }
    let older = (1..).map(|n| PathBuf::from(format!("{}.{n}", out.display()))).find(|p| p.symlink_metadata().is_err());
    let older = older.ok_or_else(|| Failure::new(ExitCode::Unexpected, "no free name"))?;
    std::fs::rename(out, &older).map_err(|e| {
        Failure::new(ExitCode::BadInput, format!("{} cannot be renamed to {}: {e}", out.display(), older.display()))
    })?;
    errln!("tailbound: the older {} is now {}", out.display(), older.display());
    Ok(())
}
