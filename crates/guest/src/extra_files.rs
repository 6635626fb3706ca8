//! Programs and files of this host that are copied into a guest.

use crate::error::{file_error, guest_error};
use crate::initramfs::LINKS;
use std::path::{Component, Path, PathBuf};
use tailbound_bundle::{BundleError, Contents};
use tailbound_model::Problem;

/// Directories over which a guest mounts file systems: files that are copied into these directories could not be seen.
const HIDDEN: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// Paths of the files that the first process of a guest writes: a file that is copied to such a path would be lost.
const WRITTEN: [&str; 3] = ["etc/passwd", "etc/group", "etc/hosts"];

/// Adds the programs of `programs` that are installed on this host.
///
/// # Errors
/// A program needs a library that this host does not have.
pub fn with_programs(mut contents: Contents, programs: &[&str]) -> Result<Contents, Problem> {
    for program in programs {
        if let Some(found) = find(program) {
            contents.add(&format!("bin/{program}"), &found).map_err(bundle_error)?;
        }
    }
    Ok(contents)
}

/// Adds to the guest a program, a file or a directory that a user names: a program by its name, a file or a whole
/// directory by its path. The path is the same in the guest. A program is added with its libraries.
///
/// # Errors
/// The program or file does not exist, would be hidden in the guest, or needs a library that this host does not have.
pub fn with_named(mut contents: Contents, named: &[String]) -> Result<Contents, Problem> {
    for word in named {
        if word.contains('/') {
            let path = std::path::absolute(word).map_err(file_error("find", Path::new(word)))?;
            add_path(&mut contents, &plain(&path))?;
        } else {
            let missing = || {
                guest_error(
                    format!("there is no program {word} on this host in PATH, /usr/sbin or /sbin"),
                    "install the program, or give the path of a file, with a `/` in the path",
                )
            };
            contents.add(&format!("bin/{word}"), &find(word).ok_or_else(missing)?).map_err(bundle_error)?;
        }
    }
    Ok(contents)
}

fn add_path(contents: &mut Contents, path: &Path) -> Result<(), Problem> {
    let at = place(path);
    let first = at.split('/').next().unwrap_or_default();
    if HIDDEN.contains(&first) {
        return Err(guest_error(
            format!("{} would be hidden in a guest, which mounts its own file system at /{first}", path.display()),
            "copy the file to another directory",
        ));
    }
    if WRITTEN.contains(&at.as_str()) {
        let what = format!("{} would be hidden in a guest, where Tailbound writes its own /{at}", path.display());
        return Err(guest_error(what, "remove the file from the study"));
    }
    if !path.is_dir() {
        let file = path.canonicalize().map_err(file_error("read", path))?;
        return contents.add(&at, &file).map_err(bundle_error);
    }
    let read = || std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut entries = read().map_err(file_error("read", path))?;
    entries.sort();
    // Broken links, pipes, sockets and devices are skipped, and so are links to a parent directory, which would never
    // end.
    let whole = path.canonicalize().map_err(file_error("read", path))?;
    let above = |entry: &Path| entry.canonicalize().is_ok_and(|to| whole.starts_with(to));
    let taken = |entry: &&PathBuf| entry.is_file() || entry.is_dir() && !above(entry);
    entries.iter().filter(taken).try_for_each(|entry| add_path(contents, entry))
}

/// The path `path` without its parts `.` and `..`.
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

/// Path in the guest's initramfs for a path of this host: in a guest, some usual directories are links.
fn place(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = text.trim_start_matches('/');
    let linked = LINKS.iter().find_map(|(link, target)| {
        let rest = text.strip_prefix(link)?.strip_prefix('/')?;
        Some(format!("{}/{rest}", target.trim_start_matches("../")))
    });
    linked.unwrap_or_else(|| text.to_owned())
}

/// Finds the file of a program in PATH, /usr/sbin or /sbin.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut directories = std::env::split_paths(&path).chain(usual);
    directories.find_map(|d| d.join(program).canonicalize().ok().filter(|p| p.is_file()))
}

fn bundle_error(e: BundleError) -> Problem {
    let problem = e.problem();
    guest_error(problem.what, problem.remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Contents {
        // Here the program of this test takes the place of Tailbound.
        Contents::gather(&std::env::current_exe().unwrap(), "0", &[]).unwrap()
    }

    fn paths(contents: &Contents) -> Vec<&str> {
        contents.files().map(|(file, _)| file.path.as_str()).collect()
    }

    #[test]
    fn named_files_are_added_where_the_guest_looks_for_them() {
        // A directory that is not hidden in guests; /tmp is.
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
    fn files_that_cannot_be_added_are_reported() {
        let refused = |word: &str| with_named(empty(), &[word.to_owned()]).map(drop).unwrap_err().paragraph();
        let words = ["no-such-program", "/usr/no/such/file", "/run/file", "/usr/../run/file", "/etc/hosts"];
        insta::assert_snapshot!(words.map(refused).join("\n"));
    }
}
