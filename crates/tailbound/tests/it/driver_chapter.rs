//! Tests of the chapter "Write a driver", followed word by word in an empty directory: its commands succeed in their
//! order, and print what the chapter shows.
//!
//! The rule: every block `sh` is run, all in one shell, which ends at the first command that fails. A block `text` is
//! the output (standard output and standard error) of the block `sh` before it: the same lines, in which numbers may
//! differ, `...` matches any text, and a line `...` matches any lines.

use crate::support::Bench;
use std::process::Command;

const CHAPTER: &str = include_str!("../../../../docs/src/write-a-driver.md");

/// A block of commands in the chapter, with the output that the chapter shows for these commands.
struct Step {
    line: usize,
    commands: String,
    shown: Option<String>,
}

fn steps(chapter: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block: Option<(usize, &str, String)> = None;
    for (number, line) in (1..).zip(chapter.lines()) {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((number, language, String::new())),
            (Some((_, _, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (Some(_), Some(_)) => match block.take() {
                Some((line, "sh", commands)) => steps.push(Step { line, commands, shown: None }),
                Some((line, "text", text)) => {
                    let step = steps.last_mut().expect("a block `text` stands below a block `sh`");
                    assert!(step.shown.replace(text).is_none(), "line {line}: a second `text` for one `sh`");
                }
                _ => {}
            },
            (None, None) => {}
        }
    }
    assert!(block.is_none(), "a block without an end");
    steps
}

/// Runs the command blocks of the chapter in one bash. Returns the output of each block up to the first block that
/// failed, and whether all blocks succeeded.
fn run(steps: &[Step]) -> (Vec<String>, bool) {
    let (tools, scripts, empty) = (Bench::new(), Bench::new(), Bench::new());
    // The binary is copied to a directory of its own, so that it finds no drivers of this build next to it.
    let binary = tools.path("tailbound");
    let built = env!("CARGO_BIN_EXE_tailbound");
    std::fs::hard_link(built, &binary).or_else(|_| std::fs::copy(built, &binary).map(drop)).expect("a copy");
    let name = |kind: &str, i: usize| scripts.path(&format!("{kind}-{i}"));
    let mut session = String::from("set -eo pipefail\n");
    for (i, step) in steps.iter().enumerate() {
        std::fs::write(name("sh", i), &step.commands).unwrap();
        let (sh, out, done) = (name("sh", i), name("out", i), name("done", i));
        session.push_str(&format!("source '{}' >'{}' 2>&1\ntouch '{}'\n", sh.display(), out.display(), done.display()));
    }
    let path = format!("{}:{}", tools.dir.path().display(), std::env::var("PATH").unwrap_or_default());
    let status = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", &session])
        .current_dir(empty.dir.path())
        .env_clear()
        .envs([("PATH", path.as_str()), ("LC_ALL", "C"), ("NO_COLOR", "1")])
        .env("HOME", scripts.dir.path())
        .env("TAILBOUND_STATE_DIR", scripts.path("state"))
        .status()
        .expect("bash");
    let ran = (0..steps.len()).take_while(|i| name("out", *i).exists());
    let printed = ran.map(|i| std::fs::read_to_string(name("out", i)).unwrap_or_default()).collect();
    (printed, status.success() && name("done", steps.len() - 1).exists())
}

/// A line with every number replaced by `#` and every run of spaces by one space, because columns are as wide as their
/// numbers.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.trim().chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '0'..='9' => {
                while rest.next_if(|c| c.is_ascii_digit() || *c == '.' || *c == ',').is_some() {}
                out.push('#');
            }
            c if c.is_whitespace() => {
                while rest.next_if(|c| c.is_whitespace()).is_some() {}
                out.push(' ');
            }
            c => out.push(c),
        }
    }
    out
}

/// Whether a printed line matches the line `shown` of the chapter, in which `...` matches any text.
fn same(shown: &str, line: &str) -> bool {
    // `...` is split off before numbers are replaced, because a number may end with a full stop.
    let parts: Vec<String> = shown.split("...").map(plain_within).collect();
    let line = plain(line);
    let (first, rest) = parts.split_first().expect("a split has a part");
    let Some(mut at) = line.strip_prefix(first.trim_start()) else { return false };
    let Some((last, middle)) = rest.split_last() else { return at.is_empty() };
    for part in middle {
        let Some(found) = at.find(part.as_str()) else { return false };
        at = &at[found + part.len()..];
    }
    at.ends_with(last.trim_end())
}

/// Replaces numbers and runs of spaces like `plain`, but keeps a space at either end of the text.
fn plain_within(part: &str) -> String {
    let space = |is: bool| if is { " " } else { "" };
    let inner = plain(part);
    match inner.is_empty() {
        true => String::new(),
        false => {
            format!(
                "{}{inner}{}",
                space(part.starts_with(char::is_whitespace)),
                space(part.ends_with(char::is_whitespace))
            )
        }
    }
}

/// First line of `shown` (text of the chapter) that is not in `printed`; `None` if `printed` contains all lines.
fn missing(shown: &str, printed: &str) -> Option<String> {
    let mut lines = printed.lines().filter(|l| !l.trim().is_empty());
    let mut any = false;
    for wanted in shown.lines().filter(|l| !l.trim().is_empty()) {
        if wanted.trim() == "..." {
            any = true;
            continue;
        }
        let found = if any { lines.any(|l| same(wanted, l)) } else { lines.next().is_some_and(|l| same(wanted, l)) };
        if !found {
            return Some(wanted.to_owned());
        }
        any = false;
    }
    match lines.next() {
        Some(more) if !any => Some(format!("(the chapter ends before: {more})")),
        _ => None,
    }
}

/// Description of the first error of the chapter; `None` if the chapter is correct.
fn wrong(chapter: &str) -> Option<String> {
    let steps = steps(chapter);
    let (printed, all) = run(&steps);
    for (i, (step, text)) in steps.iter().zip(&printed).enumerate() {
        let at = format!("docs/src/write-a-driver.md:{}:\n{}\nprinted:\n{text}", step.line, step.commands);
        if !all && i + 1 == printed.len() {
            return Some(format!("a command failed: {at}"));
        }
        if let Some(line) = step.shown.as_ref().and_then(|shown| missing(shown, text)) {
            return Some(format!("`{line}` was not printed: {at}"));
        }
    }
    None
}

/// Test: if one word of the chapter is changed, in a command or in the output, the error is found.
#[test]
fn a_wrong_word_is_found() {
    for (word, other, told) in [
        ("tailbound driver new mine\n", "tailbound driver knew mine\n", "a command failed"),
        ("-o libtailbound_driver_skeleton.so skeleton.c\ntail", "-o elsewhere.so skeleton.c\ntail", "a command failed"),
        ("pass  match  ", "pass  meets  ", "was not printed"),
        ("\nskeleton: keeps the rules", "\nskeleton: keeps some rules", "was not printed"),
        ("\nmine/loopback.h\n", "\n", "was not printed"),
    ] {
        let (begin, _) = CHAPTER.split_once("## A first change").expect("the heading");
        assert!(begin.contains(word), "{word}");
        let text =
            wrong(&begin.replacen(word, other, 1)).unwrap_or_else(|| panic!("{word:?} as {other:?} is not found"));
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn the_chapter_is_true() {
    if let Some(text) = wrong(CHAPTER) {
        panic!("{text}");
    }
}
