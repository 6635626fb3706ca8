//! What surrounds each figure: its heading, what it shows, and the choices over it. The script draws it.

use super::escape::escape;
use crate::document::Report;

/// Some message was answered.
pub(super) fn are_there(report: &Report) -> bool {
    report.conditions.iter().any(|c| c.round_trip.as_ref().is_some_and(|m| m.n > 0))
}

/// Some tail was estimated, or there is a reason why not.
pub(super) fn has_estimate(report: &Report) -> bool {
    report.conditions.iter().any(|c| c.round_trip.as_ref().is_some_and(|m| m.n > 0 && m.tail.is_some()))
}

struct Figure {
    id: &'static str,
    title: String,
    note: String,
    /// Classes of the boxes that the script fills with choices.
    choices: &'static [&'static str],
}

pub(super) fn sections(report: &Report) -> String {
    if !are_there(report) {
        return String::new();
    }
    let head = "<section id=\"shown\" class=\"only-screen\"><h2>What is shown</h2>\n<p class=\"lead\">For all \
                figures below.</p>\n<div class=\"choose-levels\"></div><div class=\"choose choose-metric\" \
                role=\"radiogroup\" aria-label=\"Metric\"></div></section>\n";
    let there = |f: &&Figure| f.id != "tail-estimate" || has_estimate(report);
    head.to_owned() + &figures(report).iter().filter(there).map(section).collect::<String>() + WORST
}

/// Rows, not a drawing.
const WORST: &str = "<section id=\"worst\"><h2>The worst messages</h2>\n<figure><div class=\"rows\"><noscript>The table \
                     needs JavaScript.</noscript></div></figure></section>\n";

fn section(figure: &Figure) -> String {
    let Figure { id, title, note, choices } = figure;
    let boxes: String = choices.iter().map(|c| format!("<div class=\"choose {c}\"></div>\n")).collect();
    format!(
        "<section id=\"{id}\"><h2>{title}</h2>\n<p class=\"lead\">{note}</p>\n{boxes}<figure><div class=\"picture\">\
         <noscript>The figure needs JavaScript; the table below holds its numbers.</noscript></div></figure></section>\n"
    )
}

fn figures(report: &Report) -> Vec<Figure> {
    let x = escape(&report.view.x);
    let metric = "<span data-shows=\"metric\">round trip</span>";
    let mut messages = report.conditions.iter().flat_map(|c| c.worst.iter().chain(&c.median_message));
    let keys = match messages.all(|m| m.out_ns.is_some()) {
        true => {
            "<span class=\"key late\"></span>sent late<span class=\"key out\"></span>out\
             <span class=\"key turn\"></span>turnaround<span class=\"key back\"></span>back"
        }
        false => {
            "<span class=\"key late\"></span>sent late<span class=\"key out\"></span>out, or the round trip where its \
             legs are not known<span class=\"key turn\"></span>turnaround<span class=\"key back\"></span>back"
        }
    };
    let figure = |id, title: &str, note: String, choices| Figure { id, title: title.to_owned(), note, choices };
    vec![
        figure(
            "latency",
            &format!("Latency against <span data-shows=\"x\">{x}</span>"),
            format!(
                "{metric}: the median as a line with its 95\u{202f}% interval, p99 thin, the maximum as a hollow triangle.\
                 <span class=\"note narrow-keys\"></span>"
            ),
            &["choose-x"],
        ),
        figure(
            "tail",
            "The tail",
            format!(
                "How rare it is that the {metric} takes longer, with the 95\u{202f}% interval of each quantile as a band. A line \
                 ends in a hollow dot where its messages end; it goes on flat where some were lost."
            ),
            &["choose-overlay"],
        ),
        figure(
            "tail-estimate",
            "Beyond what was measured",
            format!(
                "An estimate, never a bound: grey, how rare it was that the {metric} took longer; blue, the generalised Pareto \
                 distribution fitted above the threshold, with its 95\u{202f}% interval, up to the dot. Where a diagnostic \
                 speaks against it there is no figure but the reason."
            ),
            &["choose-estimate"],
        ),
        figure(
            "ladder",
            "Percentile ladder",
            format!(
                "{metric}: every quantile with its 95\u{202f}% interval (dashed: too narrow, messages depend on each other). \
                 An open dot has no number, and says why."
            ),
            &[],
        ),
        figure(
            "histogram",
            "Histogram",
            format!(
                "{metric}: messages in each bucket, 16 to an octave, so that buckets grow with the latency. The scale of \
                 counts is logarithmic: one message is seen."
            ),
            &["choose-overlay"],
        ),
        figure(
            "time",
            "Over time",
            "One trial: from the lowest to the highest of each column's messages, the columns' medians darker. No maximum \
             is left out. Grey: warm-up. Hatched: a clock was stepped. Numbers: the worst messages. Drag over the whole \
             below to choose a range; with the keyboard: arrows, + and - to zoom, 0 for the whole."
                .into(),
            &["choose-time"],
        ),
        figure(
            "legs",
            "Where the time went",
            format!(
                "The message that took the median, beside the worst ones, from due to answered.\
                 <span class=\"keys\">{keys}</span>"
            ),
            &["choose-legs"],
        ),
    ]
}
