//! Words for the shell of another host, and the commands that `ssh` is called with.

use std::path::Path;
use std::process::{Command, Stdio};

/// Seconds until a host that does not answer counts as out of reach; then three silent spans of five.
const OPTIONS: [&str; 5] =
    ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3", "ControlPersist=no"];

/// `ssh` to a host through the control socket; the first one makes it.
pub(super) fn ssh(host: &str, control: &Path, first: bool) -> Command {
    let mut command = Command::new("ssh");
    for option in OPTIONS {
        command.args(["-o", option]);
    }
    command.arg("-T").arg("-S").arg(control);
    command.args(["-o", if first { "ControlMaster=yes" } else { "ControlMaster=no" }]);
    // Messages are read: they are to be in English.
    command.env("LC_ALL", "C").arg("--").arg(host);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A word as any shell takes it.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A script for the plain shell, whatever the user's own is.
pub(super) fn script(text: &str) -> String {
    format!("exec /bin/sh -c {}", quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word_whatever_is_in_it() {
        for word in ["plain", "two words", "it's", "$HOME; `id`", ""] {
            let output = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
        let nested = script(&format!("printf %s {}", quoted("it's")));
        let output = Command::new("sh").args(["-c", &nested]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's");
    }
}
