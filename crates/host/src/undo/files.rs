//! Undoes changes to files: writes host settings back, and removes directories and unfinished records.

use super::outcome::Undone;
use crate::setting_text::normalised;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub(super) fn restore(path: &str, before: &str, set: &str) -> io::Result<Undone> {
    let now = match fs::read_to_string(path) {
        Ok(text) => normalised(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::AlreadyGone),
        Err(error) => return Err(error),
    };
    if now == normalised(before) {
        return Ok(Undone::AlreadyGone);
    }
    if now != normalised(set) {
        return Ok(Undone::LeftAlone(format!(
            "{path} is `{now}` now, not `{set}` as this run set it: somebody else changed it, so it stays (it was \
             `{before}` before)"
        )));
    }
    fs::write(path, before)?;
    let now = normalised(&fs::read_to_string(path)?);
    if now != normalised(before) {
        return Err(io::Error::other(format!("{path} is still `{now}` after `{before}` was written to it")));
    }
    Ok(Undone::Did(format!("wrote `{before}` back to {path}")))
}

pub(super) fn remove_partial(path: &str) -> io::Result<Undone> {
    let dir = Path::new(path);
    let named_so = dir.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.contains(".partial-"));
    if !named_so || !dir.is_absolute() {
        return Ok(Undone::LeftAlone(format!("{path} does not have the name of an unfinished record; it stays")));
    }
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::AlreadyGone),
        Err(error) => return Err(error),
        Ok(meta) if !meta.is_dir() => return Ok(Undone::LeftAlone(format!("{path} is not a directory; it stays"))),
        Ok(_) => {}
    }
    if dir.join("manifest.json").exists() {
        return Ok(Undone::LeftAlone(format!("{path} contains a manifest, so reports can be made from it; it stays")));
    }
    fs::remove_dir_all(dir)?;
    Ok(Undone::Did(format!("removed the unfinished record {path}")))
}

pub(super) fn remove_directory(path: &str, inode: Option<u64>) -> io::Result<Undone> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::AlreadyGone),
        other => other?,
    };
    if !found.is_dir() || inode.is_some_and(|known| known != found.ino()) {
        return Ok(Undone::LeftAlone(format!("{path} is another directory now; it stays")));
    }
    let removed = if inode.is_some() { fs::remove_dir_all(path) } else { fs::remove_dir(path) };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(Undone::LeftAlone(format!(
            "{path} is not empty, and it is not known whether this run made it; it stays"
        ))),
        other => other.map(|()| Undone::Did(format!("removed the directory {path}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_in_force_is_read_from_each_format() {
        assert_eq!(normalised("always [madvise] never\n"), "madvise");
        assert_eq!(normalised("4096\t131072\t6291456\n"), "4096 131072 6291456");
        assert_eq!(normalised("0\n"), "0");
    }

    #[test]
    fn a_setting_is_restored_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rmem_max");
        let path = file.to_str().unwrap();
        fs::write(&file, "8388608\n").unwrap();
        assert_eq!(restore(path, "212992", "8388608").unwrap(), Undone::Did(format!("wrote `212992` back to {path}")));
        assert_eq!(fs::read_to_string(&file).unwrap(), "212992");
        assert_eq!(restore(path, "212992", "8388608").unwrap(), Undone::AlreadyGone);
    }

    #[test]
    fn a_setting_changed_by_somebody_else_stays_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rmem_max");
        let path = file.to_str().unwrap();
        fs::write(&file, "1\n").unwrap();
        match restore(path, "212992", "8388608").unwrap() {
            Undone::LeftAlone(text) => assert!(text.contains("somebody else changed it"), "{text}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
        assert_eq!(restore("/proc/sys/net/no/such", "0", "1").unwrap(), Undone::AlreadyGone);
    }

    #[test]
    fn only_an_unfinished_record_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.join("samples")).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let partial = at("out.partial-7");
        assert!(matches!(remove_partial(&partial).unwrap(), Undone::Did(_)));
        assert_eq!(remove_partial(&partial).unwrap(), Undone::AlreadyGone);
        let readable = at("out.partial-8");
        fs::write(format!("{readable}/manifest.json"), "{}").unwrap();
        let finished = at("out");
        for path in [readable.as_str(), finished.as_str(), "out.partial-9"] {
            assert!(matches!(remove_partial(path).unwrap(), Undone::LeftAlone(_)), "{path}");
        }
        assert!(Path::new(&readable).exists() && Path::new(&finished).exists());
    }

    #[test]
    fn a_directory_is_removed_when_it_is_the_one_that_was_made() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("under");
        let path = at.to_str().unwrap();
        let make = || {
            fs::create_dir(&at).unwrap();
            fs::write(at.join("socket"), "").unwrap();
            fs::metadata(&at).unwrap().ino()
        };
        let inode = make();
        for other in [None, Some(inode + 1)] {
            assert!(matches!(remove_directory(path, other).unwrap(), Undone::LeftAlone(_)), "{other:?}");
        }
        assert_eq!(remove_directory(path, Some(inode)).unwrap(), Undone::Did(format!("removed the directory {path}")));
        assert_eq!(remove_directory(path, Some(inode)).unwrap(), Undone::AlreadyGone);
        fs::create_dir(&at).unwrap();
        assert!(matches!(remove_directory(path, None).unwrap(), Undone::Did(_)));
    }
}
