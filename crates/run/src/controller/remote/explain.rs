//! What ssh and the other host say when something fails, in words that say what to do.

use super::not_fit;
use crate::controller::RunError;

/// Why a host cannot be reached, from what `ssh` wrote.
pub(super) fn unreachable(host: &str, said: &str) -> RunError {
    let has = |words: &[&str]| words.iter().any(|w| said.contains(w));
    let by_hand = format!("`ssh {host}` by hand shows what it wants");
    let (why, mend) = if has(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
        let mend = format!(
            "another machine answers, or it was set up anew: find out which; if its new key is right, `ssh-keygen -R` \
             removes the old one and `ssh {host}` takes the new one"
        );
        ("its host key is not the one that is known".to_owned(), mend)
    } else if has(&["Host key verification failed", "host key is known"]) {
        ("its host key is not known here".to_owned(), format!("`ssh {host}` by hand once, and accept its key"))
    } else if has(&["Permission denied"]) {
        let mend = format!("nothing is asked during a run: use a key (ssh-copy-id {host}) and an ssh agent");
        ("it does not let you in".to_owned(), mend)
    } else if has(&["Could not resolve hostname"]) {
        ("its name is not known".to_owned(), "look at the spelling, at ~/.ssh/config, at DNS".to_owned())
    } else if has(&["Connection refused"]) {
        ("nothing listens for ssh there".to_owned(), "start its ssh server, or look at the port".to_owned())
    } else if has(&["timed out", "No route to host", "Network is unreachable"]) {
        ("it does not answer".to_owned(), "look whether it is up, and at routes and firewalls".to_owned())
    } else {
        ("ssh ended before it was there".to_owned(), by_hand)
    };
    not_fit(format!("host {host} cannot be reached: {why}{}", last(said)), mend)
}

/// Why the bundle did not get there, from what was written there.
pub(super) fn not_copied(host: &str, directory: &str, said: &str) -> RunError {
    if said.contains("No space left on device") || said.contains("Disk quota exceeded") {
        let text = format!("host {host}: no space for the bundle in {directory}");
        return not_fit(text, "make room there, or name a `directory` on another file system");
    }
    if said.contains("Permission denied") || said.contains("Read-only file system") {
        let text = format!("host {host}: {directory} cannot be written{}", last(said));
        return not_fit(text, "name a `directory` that you may write to");
    }
    not_fit(format!("host {host}: the bundle cannot be copied to {directory}{}", last(said)), "")
}

/// The last line that says something, in brackets.
pub(super) fn last(said: &str) -> String {
    let line = said.lines().map(str::trim).rfind(|l| !l.is_empty());
    line.map_or_else(String::new, |l| format!(" ({})", l.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_writes_is_told_with_what_to_do() {
        let text = |said: &str| unreachable("guest-1", said).to_string();
        assert_eq!(
            text("ssh: Could not resolve hostname guest-1: Name or service not known\n"),
            "host guest-1 cannot be reached: its name is not known (ssh: Could not resolve hostname guest-1: Name or \
             service not known)\n  what to do: look at the spelling, at ~/.ssh/config, at DNS"
        );
        assert!(
            text("root@guest-1: Permission denied (publickey).").contains("it does not let you in (root@guest-1: ")
        );
        assert!(text("").ends_with("`ssh guest-1` by hand shows what it wants"));
        let full = not_copied("guest-1", "/small", "tar: lib/libc.so.6: Cannot write: No space left on device\n");
        assert!(full.to_string().starts_with("host guest-1: no space for the bundle in /small\n"), "{full}");
    }
}
