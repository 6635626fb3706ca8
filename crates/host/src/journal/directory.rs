//! The directory that contains the journals of this user's runs.

use super::JournalError;
use std::env;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Environment variable that sets another directory for Tailbound's state, for tests.
pub const STATE_DIR_VARIABLE: &str = "TAILBOUND_STATE_DIR";

/// Directory of this user's journals; the directory may not exist yet.
///
/// `$TAILBOUND_STATE_DIR/journal`, else `/var/lib/tailbound/journal` for root, else
/// `$XDG_STATE_HOME/tailbound/journal`, else `~/.local/state/tailbound/journal`. Root inside a user namespace is
/// treated as an ordinary user, because it cannot write to `/var/lib`.
///
/// # Errors
/// The user has no home directory, or the environment variable is not an absolute path.
pub fn journal_dir() -> Result<PathBuf, JournalError> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    if let Some(state) = env::var_os(STATE_DIR_VARIABLE).map(PathBuf::from) {
        if !state.is_absolute() {
            let why = format!("{STATE_DIR_VARIABLE} is `{}`, which is not an absolute path", state.display());
            return Err(JournalError::NoPlace(why));
        }
        return Ok(state.join("journal"));
    }
    if nix::unistd::geteuid().is_root() && in_first_user_namespace() {
        return Ok("/var/lib/tailbound/journal".into());
    }
    if let Some(state) = variable("XDG_STATE_HOME") {
        return Ok(state.join("tailbound/journal"));
    }
    let home = variable("HOME")
        .or_else(|| nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.dir))
        .ok_or_else(|| JournalError::NoPlace("this user has no home directory; set XDG_STATE_HOME".into()))?;
    Ok(home.join(".local/state/tailbound/journal"))
}

fn in_first_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

/// Makes the directory of journals accessible to this user only, because a cleanup carries out what the files in the
/// directory say.
pub(super) fn make(dir: &Path) -> Result<(), JournalError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(JournalError::file("create", dir))
}

/// Reason why the journals in a directory cannot be trusted: another user could have written them.
pub(super) fn distrust(dir: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(dir).ok()?;
    if meta.uid() != nix::unistd::geteuid().as_raw() {
        return Some(format!("{} belongs to another user (uid {})", dir.display(), meta.uid()));
    }
    (meta.permissions().mode() & 0o022 != 0).then(|| format!("{} can be written to by other users", dir.display()))
}
