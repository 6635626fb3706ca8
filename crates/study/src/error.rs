//! Errors in a study file: the position, the reason, and what to write instead.

use crate::source::{Pos, Sources, line_column};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, NamedSource, SourceSpan};
use std::fmt;
use tailbound_model::{Problem, nearest};

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
        match handler.render_report(&mut out, &self.report()) {
            Ok(()) => out,
            Err(fmt::Error) => format!("{self}\n"),
        }
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
