//! What a guest has beside Tailbound: programs and files of this host.

use crate::error::GuestError;
use crate::initramfs::LINKS;
use std::path::{Component, Path, PathBuf};
use tailbound_bundle::{BundleError, Contents};

/// Where a guest mounts file systems of its own: what lay there would not be seen.
const HIDDEN: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// Files that a guest's first process writes.
const WRITTEN: [&str; 3] = ["etc/passwd", "etc/group", "etc/hosts"];

/// Takes those of `programs` along that this host has.
///
/// # Errors
/// One of them needs a library that is not to be found.
pub fn with_programs(mut contents: Contents, programs: &[&str]) -> Result<Contents, GuestError> {
    for program in programs {
        if let Some(found) = find(program) {
            contents.add(&format!("bin/{program}"), &found).map_err(told)?;
        }
    }
    Ok(contents)
}

/// Takes along what a user names: a program by its name, or a file or all of a directory by its path, which it has in the
/// guest, too. A program comes with its libraries.
///
/// # Errors
/// This host has no such thing, or the guest would not see it; a library is not to be found.
pub fn with_named(mut contents: Contents, named: &[String]) -> Result<Contents, GuestError> {
    for word in named {
        if word.contains('/') {
            let path = std::path::absolute(word).map_err(GuestError::file("find", Path::new(word)))?;
            add_path(&mut contents, &plain(&path))?;
        } else {
            let missing = || {
                GuestError::new(
                    format!("there is no program {word} on this host, neither in PATH nor in /usr/sbin or /sbin"),
                    "install it, or name a file by its path, with a `/` in it",
                )
            };
            contents.add(&format!("bin/{word}"), &find(word).ok_or_else(missing)?).map_err(told)?;
        }
    }
    Ok(contents)
}

fn add_path(contents: &mut Contents, path: &Path) -> Result<(), GuestError> {
    let at = place(path);
    let first = at.split('/').next().unwrap_or_default();
    if HIDDEN.contains(&first) {
        return Err(GuestError::new(
            format!("{} would not be seen in a guest: it has a file system of its own at /{first}", path.display()),
            "copy it to another directory",
        ));
    }
    if WRITTEN.contains(&at.as_str()) {
        let what = format!("{} would not be seen in a guest: Tailbound writes its own /{at} there", path.display());
        return Err(GuestError::new(what, "leave it out"));
    }
    if !path.is_dir() {
        let file = path.canonicalize().map_err(GuestError::file("read", path))?;
        return contents.add(&at, &file).map_err(told);
    }
    let read = || std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut entries = read().map_err(GuestError::file("read", path))?;
    entries.sort();
    // A link that leads nowhere is nothing that can be taken along.
    // Nor is a pipe, a socket or a device; and a link to a directory above would lead in circles.
    let whole = path.canonicalize().map_err(GuestError::file("read", path))?;
    let above = |entry: &Path| entry.canonicalize().is_ok_and(|to| whole.starts_with(to));
    let taken = |entry: &&PathBuf| entry.is_file() || entry.is_dir() && !above(entry);
    entries.iter().filter(taken).try_for_each(|entry| add_path(contents, entry))
}

/// Without `.` and `..`, as one would read it.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
}

/// Where a path of this host leads in a guest, whose usual directories are links.
fn place(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = text.trim_start_matches('/');
    let led = LINKS.iter().find_map(|(link, target)| {
        let rest = text.strip_prefix(link)?.strip_prefix('/')?;
        Some(format!("{}/{rest}", target.trim_start_matches("../")))
    });
    led.unwrap_or_else(|| text.to_owned())
}

/// The file of a program.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut directories = std::env::split_paths(&path).chain(usual);
    directories.find_map(|d| d.join(program).canonicalize().ok().filter(|p| p.is_file()))
}

fn told(e: BundleError) -> GuestError {
    GuestError::new(e.to_string(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Contents {
        // A file that needs nothing stands for this program.
        Contents::gather(&std::env::current_exe().unwrap(), "0", &[]).unwrap()
    }

    fn paths(contents: &Contents) -> Vec<&str> {
        contents.files().map(|(file, _)| file.path.as_str()).collect()
    }

    #[test]
    fn what_is_named_comes_along_where_the_guest_looks_for_it() {
        // A directory that guests see: /tmp is their own.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        std::fs::write(dir.path().join("below/data"), "x").unwrap();
        std::os::unix::fs::symlink("gone", dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink(".", dir.path().join("below/again")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("below/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let named = ["cat".to_owned(), dir.path().display().to_string()];
        let before = paths(&empty()).len();
        let contents = with_named(empty(), &named).unwrap();
        let below = format!("{}/below/data", dir.path().display());
        let paths = paths(&contents);
        assert!(paths.contains(&"bin/cat") && paths.contains(&&below[1..]), "{paths:?}");
        assert_eq!(paths.len() - before, 2, "{paths:?}");
        assert_eq!(place(Path::new("/usr/lib/x/y.so")), "lib/x/y.so");
        assert_eq!(place(Path::new("/usr/sbin/x")), "bin/x");
        assert_eq!(place(Path::new("/usr/share/x")), "usr/share/x");
    }

    #[test]
    fn what_cannot_come_along_is_told() {
        let told = |word: &str| with_named(empty(), &[word.to_owned()]).map(drop).unwrap_err().to_string();
        let words = ["no-such-program", "/usr/no/such/file", "/run/file", "/usr/../run/file", "/etc/hosts"];
        insta::assert_snapshot!(words.map(told).join("\n"));
    }
}
