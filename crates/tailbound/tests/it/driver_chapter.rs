//! Tests of the chapter "Write a driver", followed word by word in an empty directory: its commands succeed in their
//! order, and print what the chapter shows.
//!
//! The rule: every block `sh` is run, all in one shell, which ends at the first command that fails. A block `text` is
//! the output (standard output and standard error) of the block `sh` before it: the same lines, in which numbers may
//! differ, `...` matches any text, and a line `...` matches any lines.

use crate::support::Bench;
use crate::support::chapter::{Step, run_in, steps};

const CHAPTER: &str = include_str!("../../../../docs/src/write-a-driver.md");

/// Runs the command blocks of the chapter in an empty directory, see [`run_in`].
fn run(steps: &[Step]) -> (Vec<String>, bool) {
    run_in(Bench::new().dir.path(), steps)
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
