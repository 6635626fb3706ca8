//! Settings written back, and unfinished records removed.

use super::Undone;
use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::Path;

/// The value in force as a setting's file shows it: white space made one, and of a list with its choice in brackets
/// (`always [madvise] never`) the choice.
pub fn normalised(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    let text: Cow<'_, str> = chosen.unwrap_or(text).into();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

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
        return Ok(Undone::LeftAlone(format!("{path} is not named as an unfinished record is; it stays")));
    }
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::AlreadyGone),
        Err(error) => return Err(error),
        Ok(meta) if !meta.is_dir() => return Ok(Undone::LeftAlone(format!("{path} is not a directory; it stays"))),
        Ok(_) => {}
    }
    if dir.join("manifest.json").exists() {
        return Ok(Undone::LeftAlone(format!("{path} holds a manifest: it can be reported on, so it stays")));
    }
    fs::remove_dir_all(dir)?;
    Ok(Undone::Did(format!("removed the unfinished record {path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_in_force_is_read_from_every_form() {
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
}
