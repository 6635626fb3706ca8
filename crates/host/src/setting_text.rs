//! Converts the text of a kernel setting to a normal form, so that two values of the setting can be compared.

use std::borrow::Cow;

/// Value in force, taken from the text of a setting's file: the word in brackets if the file lists choices (`always
/// [madvise] never`), else the text with single spaces.
pub(crate) fn normalised(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    let text: Cow<'_, str> = chosen.unwrap_or(text).into();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
