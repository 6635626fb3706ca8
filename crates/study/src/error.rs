//! What is wrong with a study: where, why, and what to write instead.

use crate::source::{Pos, Sources, line_column};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, NamedSource, SourceSpan};
use std::fmt;

/// A fault found at a place, before the place has a line and a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub at: Pos,
    pub reason: String,
    pub help: Option<String>,
}

impl Fault {
    pub fn new(at: Pos, reason: impl Into<String>) -> Self {
        Fault { at, reason: reason.into(), help: None }
    }
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    pub fn in_sources(self, sources: &Sources) -> StudyError {
        let source = sources.of(self.at);
        StudyError::new(&source.name, &source.text, self.at, self.reason, self.help)
    }
}

/// Why a study cannot be used. Always the user's to mend: exit code 2.
///
/// `Display` is plain text (`file:line:column: reason`, then a line with the advice); [`StudyError::render`] adds the
/// line of the file with a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyError {
    /// Name of the file, or the `--set` argument.
    pub name: String,
    /// Line from 1; 0 when the file could not be read at all.
    pub line: usize,
    /// Column from 1, in characters; 0 as above.
    pub column: usize,
    /// What is wrong.
    pub reason: String,
    /// What to do; often the nearest valid word.
    pub help: Option<String>,
    snippet: Box<Snippet>,
}

/// The text and the bytes of it that are wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Snippet {
    text: String,
    span: (usize, usize),
}

impl StudyError {
    fn new(name: &str, text: &str, at: Pos, reason: String, help: Option<String>) -> Self {
        let start = (at.start as usize).min(text.len());
        let (line, column) = line_column(text, start);
        // A marker over several lines would hide what it points at.
        let rest = text.get(start..).unwrap_or("");
        let len = (at.len as usize).min(rest.find(['\n', '\r']).unwrap_or(rest.len()));
        StudyError {
            name: name.into(),
            line,
            column,
            reason,
            help,
            snippet: Box::new(Snippet { text: text.into(), span: (start, len) }),
        }
    }

    /// An error about a file that could not be read: it has no line.
    pub(crate) fn unreadable(name: &str, reason: String, help: Option<String>) -> Self {
        StudyError { name: name.into(), line: 0, column: 0, reason, help, snippet: Box::default() }
    }

    /// The error with the line of the file and a marker, for a terminal of `width` columns.
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

    /// The error as a miette diagnostic.
    pub fn report(&self) -> StudyReport {
        StudyReport {
            reason: self.reason.clone(),
            help: self.help.clone(),
            text: NamedSource::new(&self.name, self.snippet.text.clone()),
            span: self.snippet.span.into(),
        }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.name, self.reason)?,
            _ => write!(f, "{}:{}:{}: {}", self.name, self.line, self.column, self.reason)?,
        }
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StudyError {}

/// [`StudyError`] in the form that miette prints.
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

/// The candidate that was probably meant, if one is near enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word.to_lowercase(), &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= limit || (c.len() > 3 && word.len() > 3 && c.starts_with(word)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Advice that names the nearest candidate and all of them.
pub(crate) fn advice(word: &str, candidates: &[&str]) -> String {
    let all = candidates.join(", ");
    if let Some((key, value)) = word.split_once(' ')
        && candidates.contains(&key)
    {
        return format!(
            "the value of `{key}` stands behind a colon: `{{ {key}: {} }}`. Known here: {all}",
            value.trim()
        );
    }
    match nearest(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? Known here: {all}"),
        None => format!("known here: {all}"),
    }
}
