//! Chooses the directory of a new record, replaces an older one, and removes the record of a run that measured nothing.

use crate::failure::Failure;
use crate::output::errln;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tailbound_model::ExitCode;
use tailbound_record::{Record, Status};
use tailbound_report::date_of_name;

/// Name of the symbolic link to the newest record whose directory was not named by the user.
const LATEST: &str = "latest";

/// The directory of a new record.
#[derive(Debug)]
pub struct RecordDir {
    pub path: PathBuf,
    /// Whether `latest` becomes a link to the record.
    is_default: bool,
    /// Where the record that is replaced is kept until the new one is there.
    replaced: Option<PathBuf>,
}

impl RecordDir {
    /// The directory that the user names (`--out`), or a new one for the study in the current directory. With `force`, an
    /// existing record is replaced when [`RecordDir::begin`] is called.
    ///
    /// # Errors
    /// Something else than a record is there, or no directory can be made there.
    pub fn choose(out: Option<&Path>, study: &str, force: bool) -> Result<RecordDir, Failure> {
        let Some(path) = out else {
            return Ok(RecordDir { path: unused(study), is_default: true, replaced: None });
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            let why = if parent.exists() { "is not a directory" } else { "does not exist" };
            let text = format!("--out {}: the directory {} {why}", path.display(), parent.display());
            return Err(Failure::bad_input(text).help("create it, or name another directory with --out"));
        }
        if path.symlink_metadata().is_ok() {
            check_replaceable(path, force)?;
        }
        Ok(RecordDir { path: path.to_owned(), is_default: false, replaced: None })
    }

    /// Moves the record that is replaced out of the way. `finish` removes it, or puts it back.
    ///
    /// # Errors
    /// The record cannot be renamed.
    pub fn begin(&mut self) -> Result<(), Failure> {
        if self.path.symlink_metadata().is_err() {
            return Ok(());
        }
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".replaced-{}", std::process::id()));
        let kept = self.path.with_file_name(name);
        fs::rename(&self.path, &kept).map_err(|e| {
            let text = format!("{} cannot be replaced: {e}", self.path.display());
            Failure::bad_input(text).help("name another directory with --out")
        })?;
        self.replaced = Some(kept);
        Ok(())
    }

    /// Ends a run. A record without a sample is removed, and the record that it was to replace is put back. Where none is replaced
    /// and the exit code is one that `logs` explain, it stays; it does not prevent a later run. Returns whether the record of the
    /// run is there.
    pub fn finish(&self, failed: Option<ExitCode>) -> bool {
        let is_explained = failed.is_some_and(|exit| !matches!(exit, ExitCode::BadInput | ExitCode::MachineNotFit));
        let replaced = self.replaced.as_ref().filter(|kept| !has_measured_nothing(kept));
        if has_measured_nothing(&self.path) && (!is_explained || replaced.is_some()) {
            let _ = fs::remove_dir_all(&self.path);
        }
        let is_there = self.path.exists();
        if let Some(kept) = &self.replaced {
            let ended = if is_there { fs::remove_dir_all(kept) } else { fs::rename(kept, &self.path) };
            if let Err(e) = ended {
                errln!("warning: the record that was replaced is left at {}: {e}", kept.display());
            }
        }
        if is_there && self.is_default {
            link_latest(&self.path);
        }
        is_there
    }
}

/// A directory that does not exist yet, for example `tailbound-quick-20261128-231043`: the time is UTC.
fn unused(study: &str) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("tailbound-{study}-{}", date_of_name(now.as_nanos() as i64));
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let mut names = std::iter::once(name.clone()).chain(numbered).map(PathBuf::from);
    names.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name.into())
}

/// Refuses what must not be replaced. A record that measured nothing never prevents a later run.
fn check_replaceable(path: &Path, force: bool) -> Result<(), Failure> {
    let is_record = path.join("manifest.json").is_file();
    if is_record && (force || has_measured_nothing(path)) {
        return Ok(());
    }
    let (text, help) = match (is_record, force) {
        (true, _) => ("exists already", "name another directory with --out, or add --force to replace the record"),
        (false, false) => ("exists already", "name another directory with --out"),
        (false, true) => (
            "exists already and is not a record, and --force replaces only records",
            "name another directory with --out",
        ),
    };
    Err(Failure::bad_input(format!("{} {text}", path.display())).help(help))
}

/// Whether the directory is an unfinished record without any sample.
fn has_measured_nothing(path: &Path) -> bool {
    let is_unfinished = Record::open(path).is_ok_and(|record| {
        record.status() == Status::Incomplete && record.manifest.trials.iter().all(|t| t.summary.is_none())
    });
    let has_entries = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().next().is_some();
    let mut trials = fs::read_dir(path.join("samples")).into_iter().flatten().flatten();
    is_unfinished && !trials.any(|trial| has_entries(trial.path()))
}

/// Makes `latest` a link to the record. Something else with this name stays as it is.
fn link_latest(record: &Path) {
    let latest = Path::new(LATEST);
    if latest.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
        errln!("note: `{LATEST}` is no link of Tailbound, and does not name the new record");
        return;
    }
    // A link is renamed over the old one, so that `latest` is never missing.
    let new = PathBuf::from(format!("{LATEST}.new-{}", std::process::id()));
    let made = std::os::unix::fs::symlink(record, &new).and_then(|()| fs::rename(&new, latest));
    if let Err(e) = made {
        let _ = fs::remove_file(&new);
        errln!("note: `{LATEST}` cannot be made a link to the new record: {e}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let mine = dir.path().join("mine");
        fs::create_dir(&mine).unwrap();
        assert!(RecordDir::choose(Some(&mine), "s", true).is_err());
        assert!(RecordDir::choose(Some(&dir.path().join("no/such")), "s", true).is_err());
        let mut new = RecordDir::choose(Some(&dir.path().join("new")), "s", false).unwrap();
        new.begin().unwrap();
        assert!(!new.finish(None), "nothing was made");
    }
}
