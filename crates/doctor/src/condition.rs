//! When a fact is bad: a few shapes that most rules share, and a function for those that look at several facts.

use tailbound_model::{FactValue, HostFacts};

/// The bad case of a rule.
pub(crate) enum Condition {
    /// A text that is none of these.
    NotOneOf(&'static [&'static str]),
    /// A text that is one of these.
    OneOf(&'static [&'static str]),
    /// A list without an element.
    Empty,
    /// This flag.
    Flag(bool),
    /// This number.
    Is(i64),
    /// A number above.
    Above(i64),
    /// A number below.
    Below(i64),
    /// Several facts together.
    Judge(fn(&HostFacts) -> Judgement),
}

/// What became of a condition; with the value to show, or the reason.
pub(crate) enum Judgement {
    Fine(String),
    Bad(String),
    NotKnown(String),
}

impl Judgement {
    pub fn bad_if(bad: bool, value: impl Into<String>) -> Judgement {
        if bad { Judgement::Bad(value.into()) } else { Judgement::Fine(value.into()) }
    }
}

impl Condition {
    pub fn judge(&self, key: &str, facts: &HostFacts) -> Judgement {
        let result = match self {
            Condition::NotOneOf(good) => text(facts, key).map(|t| Judgement::bad_if(!good.contains(&t), t)),
            Condition::OneOf(bad) => text(facts, key).map(|t| Judgement::bad_if(bad.contains(&t), t)),
            Condition::Empty => {
                text(facts, key).map(|t| Judgement::bad_if(t.is_empty(), if t.is_empty() { "none" } else { t }))
            }
            Condition::Flag(bad) => {
                flag(facts, key).map(|f| Judgement::bad_if(f == *bad, if f { "yes" } else { "no" }))
            }
            Condition::Is(bad) => number(facts, key).map(|n| Judgement::bad_if(n == *bad, n.to_string())),
            Condition::Above(limit) => number(facts, key).map(|n| Judgement::bad_if(n > *limit, n.to_string())),
            Condition::Below(limit) => number(facts, key).map(|n| Judgement::bad_if(n < *limit, n.to_string())),
            Condition::Judge(judge) => Ok(judge(facts)),
        };
        result.unwrap_or_else(Judgement::NotKnown)
    }
}

/// The fact, or why there is none.
fn value<'a>(facts: &'a HostFacts, key: &str) -> Result<&'a FactValue, String> {
    match facts.get(key) {
        Some(FactValue::Unknown(why)) => Err(why.clone()),
        Some(value) => Ok(value),
        None => Err(format!("the facts hold no {key}")),
    }
}

pub(crate) fn text<'a>(facts: &'a HostFacts, key: &str) -> Result<&'a str, String> {
    match value(facts, key)? {
        FactValue::Text(text) => Ok(text),
        other => Err(format!("{key} is not a text: {other:?}")),
    }
}

pub(crate) fn number(facts: &HostFacts, key: &str) -> Result<i64, String> {
    match value(facts, key)? {
        FactValue::Number(number) => Ok(*number),
        other => Err(format!("{key} is not a number: {other:?}")),
    }
}

pub(crate) fn flag(facts: &HostFacts, key: &str) -> Result<bool, String> {
    match value(facts, key)? {
        FactValue::Flag(flag) => Ok(*flag),
        other => Err(format!("{key} is not yes or no: {other:?}")),
    }
}

/// A limit; `None` = unlimited.
pub(crate) fn limit(facts: &HostFacts, key: &str) -> Result<Option<i64>, String> {
    match value(facts, key)? {
        FactValue::Text(text) if text == "unlimited" => Ok(None),
        _ => number(facts, key).map(Some),
    }
}
