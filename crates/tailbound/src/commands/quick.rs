//! Runs `tailbound quick`: the built-in study `quick` with the privileges that this user has.

use super::run;
use crate::cli::Quick;
use crate::failure::{CommandResult, Failure};
use crate::output::errln;
use std::path::{Path, PathBuf};
use tailbound_lab::userns::{self, Privilege};
use tailbound_model::{Severity, Warning};
use tailbound_record::Record;

const DEFAULT_OUT: &str = "tailbound-quick";

pub fn quick(args: &Quick) -> CommandResult {
    let mut settings = args.settings.clone();
    let mut warnings = Vec::new();
    let places_given = settings.iter().any(|s| s.starts_with("path=") || s.starts_with("place="));
    if !places_given {
        let privilege = userns::enter_if_needed(true).map_err(Failure::not_fit)?;
        if let Privilege::None { reason } = privilege {
            settings.extend(["path=loopback".to_owned(), "place=process".to_owned()]);
            warnings.push(Warning::new(
                "loopback_instead",
                Severity::Warning,
                format!("the run measures over loopback in place of two network namespaces: {reason}"),
                "run as root, or allow user namespaces",
            ));
        }
    }
    let plan = run::load(Path::new("quick"), &settings, false)?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => {
            rename_older_record(Path::new(DEFAULT_OUT))?;
            PathBuf::from(DEFAULT_OUT)
        }
    };
    run::execute(plan, run::options(out, warnings), false)
}

/// Renames an older record of `quick`. If the directory contains anything else, the command fails.
fn rename_older_record(out: &Path) -> Result<(), Failure> {
    if out.symlink_metadata().is_err() {
        return Ok(());
    }
    let is_record_of_quick = Record::open(out).is_ok_and(|r| r.manifest.plan.study == "quick");
    if !is_record_of_quick {
        let text = format!("{} exists already and is not a record of `quick`", out.display());
        return Err(Failure::bad_input(text).help("name another directory with --out"));
    }
    let older = (1..).map(|n| PathBuf::from(format!("{}.{n}", out.display()))).find(|p| p.symlink_metadata().is_err());
    let older = older.ok_or_else(|| Failure::unexpected("the older record cannot be renamed: all names are in use"))?;
    std::fs::rename(out, &older)
        .map_err(|e| Failure::bad_input(format!("{} cannot be renamed to {}: {e}", out.display(), older.display())))?;
    errln!("the older record {} was renamed to {}", out.display(), older.display());
    Ok(())
}
