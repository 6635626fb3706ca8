//! Errors in a study file: the position, the reason, and what to write instead.

use crate::source::{Pos, Sources, line_column};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, NamedSource, SourceSpan};
use std::fmt;
use tailbound_model::{Problem, nearest};

/// Longest line of a file that a message repeats, in bytes. Of a longer line, the part around the error is repeated.
const LONGEST_LINE: usize = 200;
/// What stands for the parts of a line that are left out.
const DOTS: &str = "...";

/// An error at a byte position of the study, before the line and the column are computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub at: Pos,
    pub problem: Problem,
}

impl Fault {
    pub fn new(at: Pos, reason: impl Into<String>) -> Self {
        Fault { at, problem: Problem::new("study", reason, "") }
    }
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.problem.remedy = help.into();
        self
    }
    pub fn in_sources(self, sources: &Sources) -> StudyError {
        let source = sources.of(self.at);
        StudyError::new(&source.name, &source.text, self.at, self.problem)
    }
}

/// Reason why a study or budget file cannot be used. The user can always fix the problem; the exit code is 2.
///
/// `Display` writes plain text (`file:line:column: reason`, then a line with the remedy); [`StudyError::render`] also
/// writes the wrong line of the file with a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyError {
    /// Line of the error, from 1; 0 if the file could not be read at all.
    pub line: usize,
    /// Column of the error in characters, from 1; 0 if the file could not be read at all.
    pub column: usize,
    /// What is wrong with the study, the place (`file:line:column`), and what the user can do, which often names the
    /// most similar valid word.
    pub problem: Problem,
    snippet: Box<Snippet>,
}

/// Name and text of the file or `--set` argument with the error, and the byte range of the error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Snippet {
    name: String,
    text: String,
    span: (usize, usize),
}

impl StudyError {
    fn new(name: &str, text: &str, at: Pos, problem: Problem) -> Self {
        let start = (at.start as usize).min(text.len());
        let (line, column) = line_column(text, start);
        // A marker over several lines would hide the marked text.
        let rest = text.get(start..).unwrap_or("");
        let len = (at.len as usize).min(rest.find(['\n', '\r']).unwrap_or(rest.len()));
        StudyError {
            line,
            column,
            problem: problem.at(format!("{name}:{line}:{column}")),
            snippet: Box::new(Snippet { name: name.into(), text: text.into(), span: (start, len) }),
        }
    }

    /// Makes an error about a file that could not be read, so the error has no line.
    pub(crate) fn unreadable(name: &str, reason: impl Into<String>, help: impl Into<String>) -> Self {
        let problem = Problem::new("study_unreadable", reason, help).at(name);
        StudyError { line: 0, column: 0, problem, snippet: Box::default() }
    }

    /// Writes the error with the wrong line of the file and a marker, for a terminal of `width` columns.
    pub fn render(&self, colour: bool, width: usize) -> String {
        if self.line == 0 {
            return format!("{self}\n");
        }
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(width).with_links(false);
        let mut out = String::new();
        match handler.render_report(&mut out, &self.cropped().report()) {
            Ok(()) => out,
            Err(fmt::Error) => format!("{self}\n"),
        }
    }

    /// The error with short lines: of a long line, only the part around the error is left.
    fn cropped(&self) -> StudyError {
        let Snippet { text, span: (start, length), .. } = &*self.snippet;
        if text.lines().all(|line| line.len() <= LONGEST_LINE) {
            return self.clone();
        }
        let (mut short, mut at, mut begin) = (String::new(), *start, 0);
        for line in text.split_inclusive('\n') {
            let body = line.trim_end_matches(['\n', '\r']);
            let is_here = (begin..begin + line.len().max(1)).contains(start) || begin + line.len() == *start;
            let from = if is_here { start.saturating_sub(begin + LONGEST_LINE / 2) } else { 0 };
            let from = (from..=body.len()).find(|i| body.is_char_boundary(*i)).unwrap_or(0);
            let until = (from + LONGEST_LINE).min(body.len());
            let until = (until..=body.len()).find(|i| body.is_char_boundary(*i)).unwrap_or(body.len());
            if is_here {
                let dots = if from > 0 { DOTS.len() } else { 0 };
                at = short.len() + dots + (start - begin).saturating_sub(from);
            }
            short.push_str(if from > 0 { DOTS } else { "" });
            short.push_str(&body[from..until]);
            short.push_str(if until < body.len() { DOTS } else { "" });
            short.push_str(&line[body.len()..]);
            begin += line.len();
        }
        let length = (*length).min(short.len().saturating_sub(at)).min(LONGEST_LINE / 2);
        let name =
            format!("{} (line {}, column {}; long lines are cut off here)", self.snippet.name, self.line, self.column);
        let snippet = Snippet { name, text: short, span: (at, length) };
        StudyError { snippet: Box::new(snippet), ..self.clone() }
    }

    /// Converts the error of a study to a miette diagnostic.
    pub fn report(&self) -> StudyReport {
        StudyReport {
            reason: self.problem.what.clone(),
            help: Some(self.problem.remedy.clone()).filter(|remedy| !remedy.is_empty()),
            text: NamedSource::new(&self.snippet.name, self.snippet.text.clone()),
            span: self.snippet.span.into(),
        }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.paragraph())
    }
}

impl std::error::Error for StudyError {}

/// A [`StudyError`] as a miette diagnostic.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{reason}")]
pub struct StudyReport {
    reason: String,
    #[help]
    help: Option<String>,
    #[source_code]
    text: NamedSource<String>,
    #[label("here")]
    span: SourceSpan,
}

/// Text of a remedy that names the candidate most similar to `word`, and all candidates.
pub(crate) fn advice(word: &str, candidates: &[&str]) -> String {
    let all = candidates.join(", ");
    if let Some((key, value)) = word.split_once(' ')
        && candidates.contains(&key)
    {
        return format!(
            "the value of `{key}` must follow a colon: `{{ {key}: {} }}`. Allowed words: {all}",
            value.trim()
        );
    }
    match nearest(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? Allowed words: {all}"),
        None => format!("allowed words: {all}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::load_str;
    use std::path::Path;

    #[test]
    fn of_a_long_line_only_the_part_around_the_error_is_shown() {
        let deep = format!("study: s\nload: {}\n", "[".repeat(5_000));
        let wide = format!("{{ study: s, question: {}, nosuch: 1, note: {} }}\n", "q".repeat(2_000), "n".repeat(900));
        for text in [deep, wide] {
            let error = load_str("s.yaml", &text, Path::new(""), &[]).unwrap_err();
            let shown = error.render(false, 80);
            assert!(shown.lines().all(|line| line.chars().count() < 230) && shown.contains("..."), "{shown}");
        }
        let text = format!("{{ study: s, question: {}, nosuch: 1 }}\n", "q".repeat(2_000));
        let error = load_str("s.yaml", &text, Path::new(""), &[]).unwrap_err();
        assert!(error.render(false, 80).contains("q, nosuch: 1 }"), "{}", error.render(false, 80));
    }
}
