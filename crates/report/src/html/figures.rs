//! Makes each figure of the HTML page with its heading, its explanation, and space for its controls.

use crate::escape::escape;
use crate::html::choices;
use crate::picture::variants::{picture, variants};
use tailbound_document::Report;

/// True if at least one message of the report was answered.
pub(crate) fn are_there(report: &Report) -> bool {
    report.conditions.iter().any(|c| c.round_trip.as_ref().is_some_and(|m| m.n > 0))
}

/// True if the report has a tail estimate, or a reason why there is no tail estimate.
pub(crate) fn has_estimate(report: &Report) -> bool {
    report.conditions.iter().any(|c| c.round_trip.as_ref().is_some_and(|m| m.n > 0 && m.tail.is_some()))
}

struct Figure {
    id: &'static str,
    title: String,
    note: String,
}

pub(crate) fn sections(report: &Report) -> String {
    if !are_there(report) {
        return String::new();
    }
    let head = format!(
        "<section id=\"shown\" class=\"only-screen\"><h2>What is shown</h2>\n<p class=\"lead\">These choices apply to \
            all figures below.\
         </p>\n{}</section>\n",
        choices::for_all(report)
    );
    let there = |f: &&Figure| f.id != "tail-estimate" || has_estimate(report);
    head + &figures(report).iter().filter(there).map(|f| section(report, f)).collect::<String>() + WORST
}

/// HTML of the section about the worst messages. The section consists of table rows and not of a chart.
const WORST: &str = "<section id=\"worst\"><h2>The worst messages</h2>\n<figure><div class=\"rows\"><noscript>The table \
                     needs JavaScript.</noscript></div></figure></section>\n";

fn section(report: &Report, figure: &Figure) -> String {
    let Figure { id, title, note } = figure;
    // The bars of a trial are the script's.
    let lack = if *id == "time" { "<noscript><p>The bars need JavaScript.</p></noscript>\n" } else { "" };
    format!(
        "<section id=\"{id}\"><h2>{title}</h2>\n<p class=\"lead\">{note}</p>\n{}{lack}{}</section>\n",
        choices::over(report, id),
        picture(variants(report, id))
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
    let figure = |id, title: &str, note: String| Figure { id, title: title.to_owned(), note };
    vec![
        figure(
            "latency",
            &format!("Latency against <span data-shows=\"x\">{x}</span>"),
            format!(
                "{metric}: the median as a line with its 95\u{202f}% interval, p99 thin, the maximum as a hollow triangle.\
                 <span class=\"note narrow-keys\"></span>"
            ),
        ),
        figure(
            "tail",
            "The tail",
            format!(
                "The share of messages whose {metric} takes longer than a given time, with the 95\u{202f}% interval of \
                    each quantile as a band. A line ends in a hollow dot at the latest message; the line continues \
                    horizontally if some messages were lost."
            ),
        ),
        figure(
            "tail-estimate",
            "Beyond what was measured",
            format!(
                "An estimate, not a bound. Grey: the measured share of messages whose {metric} took longer than a \
                 given time. Blue: the generalised Pareto distribution that was fitted to the messages above the \
                 threshold, where the blue line begins, with its 95\u{202f}% interval; the dot at its end is the \
                 estimate. If a diagnostic contradicts the fit, the reason is shown in place of the estimate."
            ),
        ),
        figure(
            "ladder",
            "Percentile ladder",
            format!(
                "{metric}: every quantile with its 95\u{202f}% interval (dashed: too narrow, messages depend on each other). \
                 An open dot has no number, and says why."
            ),
        ),
        figure(
            "histogram",
            "Histogram",
            format!(
                "{metric}: number of messages in each bucket. Each doubling of the latency has 16 buckets. The scale \
                 of counts is logarithmic, so that a single message is visible."
            ),
        ),
        figure(
            "time",
            "Over time",
            "One trial: each column spans its lowest to its highest message; the medians of the columns are darker. \
                No maximum is left out. Grey: warm-up. Hatched: a clock was stepped. Numbers: the worst messages. \
                Drag over the picture of the whole trial below the plot to choose a range; with the keyboard: arrows \
                to move, + and - to zoom, 0 for the whole trial."
                .into(),
        ),
        figure(
            "legs",
            "Where the time went",
            format!(
                "The message that took the median, beside the worst ones, from due to answered.\
                 <span class=\"keys\">{keys}</span>"
            ),
        ),
    ]
}
