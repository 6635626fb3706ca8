//! Makes the tooltips of charts.

use crate::picture::canvas::Mark;
use tailbound_document::number::{THIN, Unit, count, label, one_in, time};
use tailbound_document::{ConditionReport, MetricReport, QuantileReport};

/// Tooltip of a quantile: its value and interval, or the reason why it has no value.
pub(crate) fn of_quantile(metric: &str, quantile: &QuantileReport, figures: &MetricReport) -> Mark {
    let q = quantile.q();
    let (name, rare) = (label(q), one_in(q));
    let rare = if q > 0.5 && rare != name { format!(" ({rare} is later)") } else { String::new() };
    let mut mark = Mark { lines: vec![format!("{metric}, {name}{rare}")], data: Vec::new() }.with("quantile", q);
    match quantile {
        QuantileReport::Needs { needs, .. } => {
            let words = format!("needs {} messages, has {}", count(*needs), count(figures.scheduled));
            mark.lines.push(words);
            mark.with("needs", needs)
        }
        QuantileReport::Beyond { beyond, .. } => {
            mark.lines.push(format!("later than every answer: {}", beyond.words()));
            mark.with("beyond", beyond.words().replace(' ', "_"))
        }
        QuantileReport::Value { value_ns, low_ns, high_ns, effective_n, too_narrow, .. } => {
            let unit = Unit::of(*value_ns as f64);
            let high = high_ns.map_or("lost".into(), |h| unit.with(h as f64));
            let [value, low] = [value_ns, low_ns].map(|v| unit.with(*v as f64));
            mark.lines.push(format!("{value} (95{THIN}%: {low} to {high})"));
            if *effective_n < figures.scheduled {
                mark.lines.push(format!(
                    "neighbouring messages resemble each other: the interval is as wide as that of {} independent messages",
                    count(*effective_n)
                ));
            }
            if *too_narrow {
                mark.lines.push("the interval is still too narrow".into());
            }
            mark.lines.push(format!("n = {}", count(figures.scheduled)));
            mark = mark.with("value-ns", value_ns).with("low-ns", low_ns);
            if let Some(high) = high_ns { mark.with("high-ns", high) } else { mark }
        }
    }
}

/// Tooltip of a maximum: the number of messages among which it is the latest, and how often a message may be later.
pub(crate) fn of_max(metric: &str, max_ns: i64, figures: &MetricReport) -> Mark {
    let mut lines = vec![format!("{metric}, the worst of {}", count(figures.n)), time(max_ns as f64)];
    if let Some(share) = figures.rule_of_three {
        lines.push(format!("at most 1 in {} is later (95{THIN}%)", count((1.0 / share).floor() as u64)));
    }
    Mark { lines, data: Vec::new() }.with("quantile", "max").with("value-ns", max_ns)
}

/// Formats a share as a rarity, for example `1 in 400`; `all` for a share of 1.
pub(crate) fn share(share: f64) -> String {
    match 1.0 / share {
        n if n <= 1.0 => "all".into(),
        n if n < 10.0 => format!("1 in {}", tailbound_document::number::three_digits(n)),
        n => format!("1 in {}", count(n.round() as u64)),
    }
}

/// Words for the outcomes of the slots without an answer.
pub(crate) fn beyond(condition: &ConditionReport) -> &'static str {
    match (condition.counts.lost, condition.counts.not_sent) {
        (_, 0) => "lost",
        (0, _) => "not sent",
        _ => "lost or not sent",
    }
}

/// Shortens a text to a maximum number of characters; the last character then shows that the text was cut.
pub(crate) fn cut(words: &str, most: usize) -> String {
    match words.chars().count() {
        long if long > most => words.chars().take(most - 1).chain(['…']).collect(),
        _ => words.to_owned(),
    }
}
