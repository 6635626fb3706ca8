//! Makes the finding about the message at which the run ended (`--until`).

use crate::findings::finding::finding;
use tailbound_document::number::{count, time};
use tailbound_document::{Finding, FindingLevel, Report, UntilMessage, UntilReport};

/// The finding about the message at which the run ended, or that no message fulfilled the condition; `None` if the run
/// has no such condition.
pub(crate) fn findings(report: &Report) -> Option<Finding> {
    let until = report.run.until.as_ref()?;
    let condition = |message: &UntilMessage| report.trial(message.trial).map(|t| t.condition);
    let ids: Vec<usize> = until.found.iter().filter_map(condition).collect();
    let text = match &until.found {
        Some(message) => found(report, until, message),
        None => not_found(report, until),
    };
    Some(Finding { evidence: "legs".into(), ..finding(FindingLevel::Result, "until", text, &ids) })
}

fn found(report: &Report, until: &UntilReport, message: &UntilMessage) -> String {
    let took = match message.value_ns {
        Some(ns) => format!("its {} was {}", message.metric, time(ns as f64)),
        None => "it was sent, and lost".into(),
    };
    let name = report.trial(message.trial).map(|t| report.conditions[t.condition].name.as_str());
    let mut text = format!(
        "The run ended because message {} of trial {} ({}) fulfilled `{}`: {took}.",
        count(message.slot),
        message.trial,
        name.unwrap_or_default(),
        until.condition
    );
    if message.matches > 1 {
        text.push_str(&format!(" It is the first of {} such messages of this trial.", count(message.matches)));
    }
    let of_message = |i: &&tailbound_document::IncidentReport| {
        i.trial == message.trial && (i.begin_ns..=i.end_ns).contains(&message.due_ns)
    };
    if let Some(incident) = report.conditions.iter().flat_map(|c| &c.incidents).find(of_message) {
        text.push_str(&format!(" Its incident: {}", incident.text));
    }
    text.push_str(
        " The length of the run depended on this message, so that shares and quantiles of late messages tend to be too \
         large.",
    );
    text
}

fn not_found(report: &Report, until: &UntilReport) -> String {
    let messages: u64 = report.conditions.iter().map(|c| c.counts.scheduled).sum();
    format!(
        "None of the {} messages fulfilled `{}`, the condition at which the run would have ended.",
        count(messages),
        until.condition
    )
}
