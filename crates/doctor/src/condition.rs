//! Conditions under which a fact of a host is bad: the forms that most rules share, and a form for rules over several
//! facts.

use tailbound_model::{FactValue, HostFacts};

/// The condition under which a rule reports that a fact is bad.
pub(crate) enum Condition {
    /// A fact that is a text is bad if it is none of these texts.
    NotOneOf(&'static [&'static str]),
    /// A fact that is a text is bad if it is one of these texts.
    OneOf(&'static [&'static str]),
    /// A fact that is a list in text form is bad if the list is empty.
    Empty,
    /// A fact that is true or false is bad if it has this value.
    Flag(bool),
    /// A fact that is a number is bad if it has this value.
    Is(i64),
    /// A fact that is a number is bad if it is above this limit.
    Above(i64),
    /// A fact that is a number is bad if it is below this limit.
    Below(i64),
    /// A function judges several facts of the host together, for rules that need more than one fact.
    Judge(fn(&HostFacts) -> Judgement),
}

/// Result of applying a condition to the facts of a host: whether the fact is bad, with the value to show or the reason
/// why the fact is not known.
pub(crate) enum Judgement {
    Fine(String),
    Bad(String),
    NotKnown(NotKnown),
}

/// Reason why a fact of the host is not known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotKnown(pub String);

impl std::fmt::Display for NotKnown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
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

/// The value of a fact of the host, or the reason why the fact is not known.
fn value<'a>(facts: &'a HostFacts, key: &str) -> Result<&'a FactValue, NotKnown> {
    match facts.get(key) {
        Some(FactValue::Unknown(why)) => Err(NotKnown(why.clone())),
        Some(value) => Ok(value),
        None => Err(NotKnown(format!("the facts contain no {key}"))),
    }
}

pub(crate) fn text<'a>(facts: &'a HostFacts, key: &str) -> Result<&'a str, NotKnown> {
    match value(facts, key)? {
        FactValue::Text(text) => Ok(text),
        other => Err(NotKnown(format!("{key} is not a text: {other:?}"))),
    }
}

pub(crate) fn number(facts: &HostFacts, key: &str) -> Result<i64, NotKnown> {
    match value(facts, key)? {
        FactValue::Number(number) => Ok(*number),
        other => Err(NotKnown(format!("{key} is not a number: {other:?}"))),
    }
}

pub(crate) fn flag(facts: &HostFacts, key: &str) -> Result<bool, NotKnown> {
    match value(facts, key)? {
        FactValue::Flag(flag) => Ok(*flag),
        other => Err(NotKnown(format!("{key} is not a flag: {other:?}"))),
    }
}

/// Value of a resource limit of the host's processes; `None` means unlimited.
pub(crate) fn limit(facts: &HostFacts, key: &str) -> Result<Option<i64>, NotKnown> {
    match value(facts, key)? {
        FactValue::Text(text) if text == "unlimited" => Ok(None),
        _ => number(facts, key).map(Some),
    }
}
