//! Checks whether a program exists on this host.

/// True if `name` is the path of an executable file, or if an executable file with this name is found in PATH.
pub(super) fn is_program(name: &str) -> bool {
    use nix::unistd::{AccessFlags, access};
    let is_file = |path: &std::path::Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if name.contains('/') {
        return is_file(name.as_ref());
    }
    std::env::var_os("PATH").is_some_and(|dirs| std::env::split_paths(&dirs).any(|dir| is_file(&dir.join(name))))
}
