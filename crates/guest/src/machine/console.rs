//! Reads the output of QEMU and of the guest's console; if a guest does not boot, the output contains the reason.

use std::path::{Path, PathBuf};

/// Maximum number of lines of a guest's console or of QEMU's output in an error message.
const SHOWN: usize = 12;

/// Path of the file to which QEMU writes the console of the guest.
pub(crate) fn file(directory: &Path) -> PathBuf {
    directory.join("console.log")
}

/// Path of the file with the output of QEMU itself.
pub(crate) fn qemu_log(directory: &Path) -> PathBuf {
    directory.join("qemu.log")
}

/// Last lines of the output of QEMU and of the guest's console, to be appended to an error message.
pub(crate) fn last_output(directory: &Path) -> String {
    let mut text = String::new();
    for (who, file) in [("output of QEMU", qemu_log(directory)), ("end of the console", file(directory))] {
        let lines = last_lines(&std::fs::read(file).unwrap_or_default());
        if !lines.is_empty() {
            text.push_str(&format!("; {who}:"));
            lines.iter().for_each(|line| text.push_str(&format!("\n    {line}")));
        }
    }
    if text.is_empty() { "; the console is empty".into() } else { text }
}

/// The last lines of a console's output, without control sequences.
fn last_lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let plain = |line: &str| -> String {
        let mut kept = String::new();
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            match c {
                // A control sequence is ESC [ parameters letter (ECMA-48).
                '\u{1b}' => drop(rest.find(|c| c.is_ascii_alphabetic())),
                c if c.is_control() => {}
                c => kept.push(c),
            }
        }
        kept.trim_end().to_owned()
    };
    let lines: Vec<String> = text.lines().map(plain).filter(|l| !l.is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_console_is_shown_without_its_colours() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last_output(dir.path()), "; the console is empty");
        let text: String = (1..20).map(|n| format!("\u{1b}[1;31mline {n}\u{1b}[0m\r\n\r\n")).collect();
        std::fs::write(file(dir.path()), text).unwrap();
        std::fs::write(qemu_log(dir.path()), "qemu: no\n").unwrap();
        let shown = last_output(dir.path());
        assert!(shown.starts_with("; output of QEMU:\n    qemu: no; end of the console:\n    line 8\n"), "{shown}");
        assert!(shown.ends_with("\n    line 19"), "{shown}");
    }
}
