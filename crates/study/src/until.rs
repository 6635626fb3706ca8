//! Reads the condition of a message at which a run ends, e.g. `round_trip > 20 ms or lost`.

use crate::error::{Fault, StudyError, advice};
use crate::source::{MAX_TEXT, Pos, Source, Sources};
use tailbound_model::{LOST, Metric, Nanos, UntilCondition, UntilTerm};

/// Name of the text in error messages.
const NAME: &str = "--until";
/// The word between two terms.
const OR: &str = " or ";
const EXAMPLE: &str = "for example `round_trip > 20 ms`, `lost`, or both with `or` between them";

/// Reads the condition of `tailbound run --until`.
///
/// # Errors
/// The text is not a condition; the error has the position.
pub fn parse_until(text: &str) -> Result<UntilCondition, StudyError> {
    if text.len() > MAX_TEXT {
        return Err(StudyError::unreadable(NAME, "too long for a condition", ""));
    }
    let sources = Sources(vec![Source { name: NAME.into(), text: text.into() }]);
    condition(text).map_err(|fault| fault.in_sources(&sources))
}

fn condition(text: &str) -> Result<UntilCondition, Fault> {
    let mut begin = 0;
    let mut terms = Vec::new();
    for part in text.split(OR) {
        terms.push(term(Part { begin, text: part })?);
        begin += part.len() + OR.len();
    }
    Ok(UntilCondition(terms))
}

/// A part of the condition with the position of its first byte.
#[derive(Clone, Copy)]
struct Part<'a> {
    begin: usize,
    text: &'a str,
}

impl<'a> Part<'a> {
    fn at(self) -> Pos {
        if self.word().is_empty() && self.begin >= OR.len() {
            // The word `or` before the missing condition.
            return Pos { source: 0, start: (self.begin - OR.len() + 1) as u32, len: 2 };
        }
        let lead = self.text.len() - self.text.trim_start().len();
        Pos { source: 0, start: (self.begin + lead) as u32, len: self.word().len() as u32 }
    }

    fn word(self) -> &'a str {
        self.text.trim()
    }

    fn fault(self, reason: impl Into<String>) -> Fault {
        Fault::new(self.at(), reason)
    }
}

fn term(part: Part<'_>) -> Result<UntilTerm, Fault> {
    let words = || UntilTerm::METRICS.iter().map(|m| m.key()).chain([LOST]).collect::<Vec<_>>();
    let Some((left, right)) = part.text.split_once('>') else {
        return match part.word() {
            LOST => Ok(UntilTerm::Lost),
            "" => Err(part.fault("a condition is missing here").help(EXAMPLE)),
            word if UntilTerm::METRICS.iter().any(|m| m.key() == word) => {
                Err(part.fault(format!("`{word}` has no limit")).help(format!("for example `{word} > 20 ms`")))
            }
            word if word.contains('<') => Err(part.fault("a run can end at a value above a limit only").help(EXAMPLE)),
            word => Err(part.fault(format!("`{word}` is not a condition of a message")).help(advice(word, &words()))),
        };
    };
    let metric = Part { text: left, ..part };
    let known = |m: &Metric| m.key() == metric.word();
    let Some(found) = UntilTerm::METRICS.into_iter().find(known) else {
        return Err(match metric.word() {
            "" => part.fault("the metric is missing").help(EXAMPLE),
            LOST => metric.fault("`lost` has no limit").help("write `lost` alone"),
            word => metric.fault(format!("`{word}` is not a metric of a condition")).help(advice(word, &words())),
        });
    };
    let limit = Part { begin: part.begin + left.len() + 1, text: right };
    match limit.word() {
        "" => Err(part.fault("the limit is missing").help(format!("for example `{} > 20 ms`", metric.word()))),
        word if word.starts_with('=') => Err(limit.fault("a limit is compared with `>` only").help(EXAMPLE)),
        word => match word.parse::<Nanos>() {
            Ok(Nanos(..0)) => Err(limit.fault("a limit must not be negative")),
            Ok(limit) => Ok(UntilTerm::Above { metric: found, limit }),
            Err(problem) => Err(Fault { at: limit.at(), problem }),
        },
    }
}
