//! What a guest wrote to its console: the reason, when it does not boot.

use std::path::{Path, PathBuf};

/// Lines that an error shows.
const SHOWN: usize = 12;

/// The file that QEMU writes it to.
pub(crate) fn file(directory: &Path) -> PathBuf {
    directory.join("console.log")
}

/// What QEMU itself says.
pub(crate) fn qemu_log(directory: &Path) -> PathBuf {
    directory.join("qemu.log")
}

/// The end of what QEMU and the console said, to be put behind a sentence.
pub(crate) fn said(directory: &Path) -> String {
    let mut text = String::new();
    for (who, file) in [("QEMU says", qemu_log(directory)), ("the end of its console", file(directory))] {
        let lines = last_lines(&std::fs::read(file).unwrap_or_default());
        if !lines.is_empty() {
            text.push_str(&format!("; {who}:"));
            lines.iter().for_each(|line| text.push_str(&format!("\n    {line}")));
        }
    }
    if text.is_empty() { "; its console is empty".into() } else { text }
}

/// The last lines, without what only moves a cursor.
fn last_lines(octets: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(octets);
    let plain = |line: &str| -> String {
        let mut kept = String::new();
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            match c {
                // ESC [ parameters letter (ECMA-48).
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
        assert_eq!(said(dir.path()), "; its console is empty");
        let text: String = (1..20).map(|n| format!("\u{1b}[1;31mline {n}\u{1b}[0m\r\n\r\n")).collect();
        std::fs::write(file(dir.path()), text).unwrap();
        std::fs::write(qemu_log(dir.path()), "qemu: no\n").unwrap();
        let said = said(dir.path());
        assert!(said.starts_with("; QEMU says:\n    qemu: no; the end of its console:\n    line 8\n"), "{said}");
        assert!(said.ends_with("\n    line 19"), "{said}");
    }
}
