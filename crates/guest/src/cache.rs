//! Cache of files for guests: unpacked packages, kernel images, initramfs files, and the result of testing whether KVM
//! runs a kernel.

use crate::error::{file_error, guest_error};
use sha2::{Digest, Sha256};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};
use tailbound_model::Problem;

/// Time after which a file of the cache that was not used is removed, when a new file is made.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// Begin of the names of snapshots of guests, which are large and depend on the program.
pub(crate) const SNAPSHOT: &str = "snapshot-";
/// Time after which a snapshot that was not used is removed, when a new file is made.
const SNAPSHOT_KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

/// A directory of cached files whose names are computed from their input.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The cache directory of this user: `$XDG_CACHE_HOME/tailbound/guests`, else `~/.cache/tailbound/guests`.
    ///
    /// # Errors
    /// The user has no home directory.
    pub fn of_user() -> Result<Cache, Problem> {
        let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        let base = base.ok_or_else(|| {
            guest_error("this user has no home directory for the files of guests", "set XDG_CACHE_HOME")
        })?;
        Ok(Cache::at(base.join("tailbound/guests")))
    }

    /// The cache of files for guests in the directory `directory`.
    pub fn at(directory: PathBuf) -> Cache {
        Cache { directory }
    }

    /// Path of the file or directory `name` in the cache, if it exists.
    pub(crate) fn there(&self, name: &str) -> Option<PathBuf> {
        let path = self.directory.join(name);
        // If the time cannot be set, the file is only removed earlier.
        let _ = File::open(&path).ok()?.set_modified(SystemTime::now());
        Some(path)
    }

    /// Path of the file or directory `name` in the cache. If this file or directory does not exist, `make` creates it
    /// under a temporary name, and it is renamed to `name` once it is complete.
    pub(crate) fn keep(&self, name: &str, make: impl FnOnce(&Path) -> Result<(), Problem>) -> Result<PathBuf, Problem> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        if let Some(path) = self.there(name) {
            return Ok(path);
        }
        let path = self.directory.join(name);
        std::fs::create_dir_all(&self.directory).map_err(file_error("make", &self.directory))?;
        self.tidy();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let partial = self.directory.join(format!("{name}.partial-{}-{number}", std::process::id()));
        let used = |()| {
            // An unpacked directory has the time stored in its package.
            let set = File::open(&partial).and_then(|made| made.set_modified(SystemTime::now()));
            set.map_err(file_error("set the time of", &partial))
        };
        let made = make(&partial).and_then(used).and_then(|()| match std::fs::rename(&partial, &path) {
            // Another process has made the same directory meanwhile.
            Err(_) if path.is_dir() => remove(&partial).map_err(file_error("remove", &partial)),
            renamed => renamed.map_err(file_error("name", &path)),
        });
        if made.is_err() {
            // The first error is the one that is reported.
            let _ = remove(&partial);
        }
        made.map(|()| path)
    }

    /// Removes cached files that were not used for a long time. A running machine is not affected, because it keeps its
    /// files open.
    fn tidy(&self) {
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            // The modification time of a directory that is being unpacked can come from the package; the time of the
            // last status change cannot.
            let name = entry.file_name().to_string_lossy().into_owned();
            let partial = name.contains(".partial-");
            let kept_for = if name.starts_with(SNAPSHOT) { SNAPSHOT_KEPT_FOR } else { KEPT_FOR };
            let used = entry.metadata().and_then(|m| if partial { changed(&m) } else { m.modified() });
            if used.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > kept_for)) {
                // A failed removal is tried again the next time.
                let _ = remove(&entry.path());
            }
        }
    }
}

/// Time of the last change of a file's status (ctime).
fn changed(metadata: &Metadata) -> io::Result<SystemTime> {
    let seconds = u64::try_from(metadata.ctime()).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Name of a cached file, computed from `content`: the first 16 hexadecimal digits of the SHA-256 hash of `content`.
pub(crate) fn name_of(content: impl AsRef<[u8]>) -> String {
    short(Sha256::new_with_prefix(content))
}

/// Name of a cached file, computed from the content of another file: the first 16 hexadecimal digits of the SHA-256
/// hash of this content.
pub(crate) fn name_of_file(path: &Path) -> Result<String, Problem> {
    let read = || {
        let (mut file, mut hasher, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 18]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(short(hasher)),
                n => hasher.update(&buffer[..n]),
            }
        }
    };
    read().map_err(file_error("read", path))
}

fn short(hasher: Sha256) -> String {
    hasher.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_not_made_again_and_failed_ones_do_not_appear() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("new"));
        let failed = cache.keep("a", |path| {
            std::fs::write(path, "half").unwrap();
            Err(guest_error("it broke", ""))
        });
        assert_eq!(failed, Err(guest_error("it broke", "")));
        assert_eq!(std::fs::read_dir(dir.path().join("new")).unwrap().count(), 0);
        let whole = |path: &Path| std::fs::write(path, "whole").map_err(file_error("write", path));
        let path = cache.keep("a", whole).unwrap();
        assert_eq!(cache.keep("a", |_| panic!("it is made again")), Ok(path.clone()));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "whole");
    }

    #[test]
    fn files_that_were_not_used_for_long_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        let file = File::create(&old).unwrap();
        file.set_modified(SystemTime::now() - KEPT_FOR - Duration::from_secs(60)).unwrap();
        std::fs::write(&new, "").unwrap();
        Cache::at(dir.path().into())
            .keep("next", |path| std::fs::write(path, "").map_err(file_error("write", path)))
            .unwrap();
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn a_directory_that_another_process_is_unpacking_stays() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().into());
        let unpack = |path: &Path| {
            std::fs::create_dir(path).unwrap();
            File::open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
            cache.keep("other", |other| std::fs::write(other, "").map_err(file_error("write", other)))?;
            std::fs::write(path.join("module"), "").map_err(file_error("write", path))
        };
        assert!(cache.keep("kernel", unpack).unwrap().join("module").exists());
    }

    #[test]
    fn a_directory_from_an_old_package_stays() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().into());
        let unpack = |path: &Path| {
            std::fs::create_dir(path).unwrap();
            File::open(path).unwrap().set_modified(SystemTime::now() - 2 * KEPT_FOR).unwrap();
            Ok(())
        };
        let unpacked = cache.keep("package", unpack).unwrap();
        cache.keep("next", |path| std::fs::write(path, "").map_err(file_error("write", path))).unwrap();
        assert!(unpacked.exists());
    }
}
