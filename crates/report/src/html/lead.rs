//! The first screen of the HTML page: three tiles with the worst condition, the cause of its late messages, and the next
//! step.

use crate::cause_words::cause_words;
use crate::escape::{escape, prose, thin};
use crate::findings::quantile_words::{label_with_share, tail_quantile};
use tailbound_document::number::{THIN, Unit, count, share, time};
use tailbound_document::{CauseShare, ConditionReport, Finding, FindingLevel, LossPlace, QuantileReport, Report};

/// A tile: its heading, its figure, and its words, all as HTML.
struct Tile {
    id: &'static str,
    head: &'static str,
    figure: String,
    words: Vec<String>,
}

/// Codes of the findings about single conditions, the worst condition first.
const CODES: [&str; 3] = ["reliable_lost", "never_answered", "latency"];

/// The condition that the page shows first: the first one that failed, otherwise the one with the worst latencies.
pub fn worst_condition(report: &Report) -> Option<&ConditionReport> {
    let of = |code: &&str| report.findings.iter().find(|f| f.code == **code);
    let finding = CODES.iter().find_map(of)?;
    report.conditions.get(*finding.conditions.first()?)
}

/// HTML of the tiles; empty if the record contains no round trips.
pub(crate) fn tiles(report: &Report) -> String {
    let Some(condition) = worst_condition(report) else { return String::new() };
    let tiles = [Some(result(report, condition)), Some(cause(report, condition)), next_step(report)];
    let tiles: String = tiles.into_iter().flatten().map(html).collect();
    format!("<section id=\"lead\" aria-label=\"Summary\"><div class=\"tiles\">\n{tiles}</div></section>\n")
}

fn html(tile: Tile) -> String {
    let figure = match tile.figure.is_empty() {
        true => String::new(),
        false => format!("<p class=\"figure\">{}</p>\n", tile.figure),
    };
    let words: String = tile.words.iter().map(|words| format!("<p>{words}</p>\n")).collect();
    format!("<div class=\"tile\" id=\"{}\">\n<h2>{}</h2>\n{figure}{words}</div>\n", tile.id, tile.head)
}

/// Number of messages of a condition without an answer.
fn unanswered(condition: &ConditionReport) -> u64 {
    condition.counts.lost + condition.counts.not_sent
}

fn failed(report: &Report, condition: &ConditionReport) -> bool {
    let of = |f: &&Finding| f.level == FindingLevel::Failed && f.conditions.contains(&condition.id);
    report.findings.iter().any(|f| of(&f)) && unanswered(condition) > 0
}

fn result(report: &Report, condition: &ConditionReport) -> Tile {
    let link = format!("<a href=\"#condition-{}\">{}</a>", condition.id, escape(&thin(&condition.name)));
    let head = if report.conditions.len() > 1 { "Worst condition" } else { "Result" };
    let tail = condition.round_trip.as_ref().filter(|m| m.n > 0);
    let (figure, first) = if failed(report, condition) {
        let counts = &condition.counts;
        let word = if counts.not_sent == 0 { "lost" } else { "without an answer" };
        let unanswered = unanswered(condition);
        let of = format!("{} of {} messages", count(unanswered), count(counts.scheduled));
        (format!("{} {word}", escape(&share(unanswered, counts.scheduled))), format!("{of} of {link}."))
    } else {
        match tail.and_then(tail_quantile) {
            Some(QuantileReport::Value { q, value_ns, low_ns, high_ns, too_narrow, .. }) => {
                let unit = Unit::of(*value_ns as f64);
                let high = high_ns.map_or("lost".to_owned(), |high| unit.with(high as f64));
                let narrow = if *too_narrow { ", too narrow" } else { "" };
                let interval = format!("95{THIN}%: {} to {high}{narrow}", unit.number(*low_ns as f64));
                let which = label_with_share(*q);
                (unit.with(*value_ns as f64), format!("{which} of the round trip ({interval}) of {link}."))
            }
            _ => (String::new(), format!("{link}: too few messages for a figure of the tail.")),
        }
    };
    let mut words = vec![first];
    words.extend(tail.and_then(|figures| {
        let median = figures.quantile(0.5).and_then(QuantileReport::value_ns)?;
        let max = figures.max_ns?;
        let lost = match unanswered(condition) {
            0 => " None lost.".to_owned(),
            _ => String::new(),
        };
        Some(format!("Median {}, longest {}.{lost}", time(median as f64), time(max as f64)))
    }));
    Tile { id: "tile-result", head, figure, words }
}

/// The condition whose causes the tile names: the condition itself, otherwise the one whose late messages took the most
/// time.
fn explained<'r>(report: &'r Report, condition: &'r ConditionReport) -> Option<&'r ConditionReport> {
    let known = |c: &&ConditionReport| !c.causes.is_empty() && c.incident_totals.is_some_and(|t| t.covered_ns > 0);
    let excess = |c: &&ConditionReport| c.incident_totals.map_or(0, |t| t.excess_ns);
    Some(condition).filter(known).or_else(|| report.conditions.iter().filter(known).max_by_key(excess))
}

fn cause(report: &Report, condition: &ConditionReport) -> Tile {
    let tile = |figure: String, words| Tile { id: "tile-cause", head: "Cause", figure, words };
    if failed(report, condition)
        && let Some((figure, place)) = loss(condition)
    {
        let reason = condition.losses.iter().filter(|l| l.reason.is_some()).max_by_key(|l| l.count);
        let reason = reason.and_then(|l| Some(format!("Of {}: {}.", count(l.count), prose(l.reason.as_ref()?))));
        let link = "<a href=\"#findings\">Everything known about them</a>".to_owned();
        return tile(figure, [place].into_iter().chain(reason).chain([link]).collect());
    }
    let mut words = Vec::new();
    let Some(of) = explained(report, condition) else {
        let why = condition.incidents.iter().find_map(|i| i.no_ledger.as_deref());
        words.push(match (condition.incident_totals.map_or(0, |t| t.excess_ns), why) {
            (0, _) => "No message was late by the rule of this report.".to_owned(),
            (_, Some(why)) => format!("Not known: {}.", prose(why.trim_end_matches('.'))),
            (_, None) => "Not known: no events were recorded for the late messages.".to_owned(),
        });
        return tile(String::new(), words);
    };
    let excess = of.incident_totals.map_or(0, |t| t.excess_ns);
    let named = |c: &CauseShare| prose(&cause_words(c.cause, c.end.as_deref(), c.by.as_ref()));
    let mut largest = of.causes.iter().filter(|cause| cause.explains);
    let Some(first) = largest.next() else {
        words.push("Not known: the events show where the time passed, and not why.".to_owned());
        return tile(String::new(), words);
    };
    let whose = if of.id == condition.id { String::new() } else { format!(" of {}", escape(&thin(&of.name))) };
    let percent = |share: f64| format!("{:.0}{THIN}%", 100.0 * share);
    let time = time(excess as f64);
    let sentence = format!("of the {time} that late messages{whose} took beyond the usual: {}.", named(first));
    words.push(sentence);
    words.extend(largest.next().map(|next| format!("Next: {}, {}.", percent(next.share), named(next))));
    words.push("<a href=\"#legs\">How it was found</a>".to_owned());
    tile(percent(first.share), words)
}

/// The place at which most of the lost messages were seen last: their number, and words for the place.
fn loss(condition: &ConditionReport) -> Option<(String, String)> {
    let of = |place: LossPlace| condition.losses.iter().filter(|l| l.place == place).map(|l| l.count).sum::<u64>();
    let places = [
        (LossPlace::OnTheWayOut, "lost messages have no record of a receipt by the pong."),
        (LossPlace::AtThePong, "lost messages were received by the pong and not answered."),
        (LossPlace::OnTheWayBack, "lost messages were answered, and the answer did not arrive."),
    ];
    let (most, words) = places.map(|(place, words)| (of(place), words)).into_iter().max_by_key(|(n, _)| *n)?;
    (most > 0).then(|| (format!("{} of {}", count(most), count(condition.counts.lost)), words.to_owned()))
}

/// The next step: how to get figures that the record does not have.
fn next_step(report: &Report) -> Option<Tile> {
    if let Some(step) = crate::tables::next_steps::steps(report).first() {
        let words = prose(&crate::tables::next_steps::sentences(step));
        let link = "<a href=\"#next-step\">How to try it</a>".to_owned();
        return Some(Tile { id: "tile-next", head: "Next step", figure: String::new(), words: vec![words, link] });
    }
    let hint = report.findings.iter().find(|f| f.level == FindingLevel::Hint)?;
    Some(Tile { id: "tile-next", head: "Next step", figure: String::new(), words: vec![prose(&hint.text)] })
}
