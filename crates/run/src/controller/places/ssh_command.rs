//! The `ssh` command line, and quoting for the shell of another host.

use std::path::Path;
use std::process::{Command, Stdio};

/// Options of every ssh connection. If a host does not accept the connection within 10 s, the host is unreachable; if a
/// connection is silent for three times 5 s, it is closed.
const OPTIONS: [&str; 5] =
    ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3", "ControlPersist=no"];

/// Makes the `ssh` command for a host, through the control socket. The first connection creates the socket.
pub(super) fn ssh(host: &str, control: &Path, first: bool) -> Command {
    let mut command = Command::new("ssh");
    for option in OPTIONS {
        command.args(["-o", option]);
    }
    command.arg("-T").arg("-S").arg(control);
    command.args(["-o", if first { "ControlMaster=yes" } else { "ControlMaster=no" }]);
    // Error messages are parsed, so they must be in English.
    command.env("LC_ALL", "C").arg("--").arg(host);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Quotes a word of a command line for any POSIX shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Makes a shell command that runs a script with /bin/sh, whatever the login shell of the user is.
pub(super) fn script(text: &str) -> String {
    format!("exec /bin/sh -c {}", quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_stays_one_word() {
        for word in ["plain", "two words", "it's", "$HOME; `id`", ""] {
            let output = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
        let nested = script(&format!("printf %s {}", quoted("it's")));
        let output = Command::new("sh").args(["-c", &nested]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's");
    }
}
