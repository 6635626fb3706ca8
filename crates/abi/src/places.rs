//! Where drivers and their parts are on the disk.

use std::path::{Path, PathBuf};

/// Directories in which drivers and their parts are searched: the directory of this binary, `../lib/tailbound/drivers` relative
/// to it, the directories in `TAILBOUND_DRIVER_PATH`, and [`own_directory`].
pub fn search_directories() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(beside) = std::env::current_exe().ok().and_then(|e| e.parent().map(Path::to_owned)) {
        places.push(beside.clone());
        places.push(beside.join("../lib/tailbound/drivers"));
    }
    places.extend(
        std::env::var_os("TAILBOUND_DRIVER_PATH")
            .iter()
            .flat_map(std::env::split_paths)
            .filter(|p| !p.as_os_str().is_empty()),
    );
    places.extend(own_directory());
    places
}

/// Directory of the user's own drivers, `~/.local/lib/tailbound/drivers`; `None` if the user has no home directory.
pub fn own_directory() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(PathBuf::from(home).join(".local/lib/tailbound/drivers"))
}
