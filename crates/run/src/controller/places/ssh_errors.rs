//! Translates error messages of ssh and of the other host into causes and remedies.

use super::not_fit;
use crate::controller::RunError;

/// Makes the error for a host to which ssh cannot connect, from the text that `ssh` wrote.
pub(super) fn unreachable(host: &str, written: &str) -> RunError {
    let has = |words: &[&str]| words.iter().any(|w| written.contains(w));
    let by_hand = format!("run `ssh {host}` by hand to see the problem");
    let (why, remedy) = if has(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
        let remedy = format!(
            "either another machine answers, or the host was reinstalled; if the new key is right, remove the old key with \
             `ssh-keygen -R` and accept the new key with `ssh {host}`"
        );
        ("the host's key differs from the known key".to_owned(), remedy)
    } else if has(&["Host key verification failed", "host key is known"]) {
        (
            "ssh does not know the host's key".to_owned(),
            format!("run `ssh {host}` by hand once, and accept the host key"),
        )
    } else if has(&["Permission denied"]) {
        let remedy =
            format!("ssh cannot ask for a password during a run: use a key (ssh-copy-id {host}) and an ssh agent");
        ("the host refuses the login".to_owned(), remedy)
    } else if has(&["Could not resolve hostname"]) {
        (
            "the name of the host is not known".to_owned(),
            "check the spelling of the name, ~/.ssh/config and DNS".to_owned(),
        )
    } else if has(&["Connection refused"]) {
        (
            "the host refuses connections to the ssh port".to_owned(),
            "start the ssh server of the host, or check the port".to_owned(),
        )
    } else if has(&["timed out", "No route to host", "Network is unreachable"]) {
        (
            "the host does not answer".to_owned(),
            "check whether the host is up, and check routes and firewalls".to_owned(),
        )
    } else {
        ("ssh ended before the connection was open".to_owned(), by_hand)
    };
    not_fit(format!("host {host} cannot be reached: {why}{}", last_line(written)), remedy)
}

/// Makes the error for the case that Tailbound's bundle could not be copied to a host, from the text that was written
/// on the host.
pub(super) fn not_copied(host: &str, directory: &str, written: &str) -> RunError {
    if written.contains("No space left on device") || written.contains("Disk quota exceeded") {
        let text = format!("host {host}: there is no space for the bundle in {directory}");
        return not_fit(text, "free disk space on the host, or name a `directory` on another file system");
    }
    if written.contains("Permission denied") || written.contains("Read-only file system") {
        let text = format!("host {host}: {directory} cannot be written{}", last_line(written));
        return not_fit(text, "name a `directory` that you may write to");
    }
    not_fit(format!("host {host}: the bundle cannot be copied to {directory}{}", last_line(written)), "")
}

/// The last non-empty line of a text, in brackets after a space; empty if the text has no such line.
pub(super) fn last_line(written: &str) -> String {
    let line = written.lines().map(str::trim).rfind(|l| !l.is_empty());
    line.map_or_else(String::new, |l| format!(" ({})", l.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_ssh_are_reported_with_a_remedy() {
        let text = |written: &str| unreachable("guest-1", written).to_string();
        assert_eq!(
            text("ssh: Could not resolve hostname guest-1: Name or service not known\n"),
            "host guest-1 cannot be reached: the name of the host is not known (ssh: Could not resolve hostname \
             guest-1: Name or service not known)\n  help: check the spelling of the name, ~/.ssh/config and DNS"
        );
        let refused = text("root@guest-1: Permission denied (publickey).");
        assert!(refused.contains("the host refuses the login (root@guest-1: "));
        assert!(text("").ends_with("run `ssh guest-1` by hand to see the problem"));
        let full = not_copied("guest-1", "/small", "tar: lib/libc.so.6: Cannot write: No space left on device\n");
        assert!(full.to_string().starts_with("host guest-1: there is no space for the bundle in /small\n"), "{full}");
    }
}
