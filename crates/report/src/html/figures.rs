//! Makes each figure of the HTML page with its heading, its explanation, and space for its controls.

use crate::escape::{escape, prose};
use crate::html::choices;
use crate::picture::limits;
use crate::picture::variants::{picture, variants};
use tailbound_document::{ConditionReport, Report, TailReport};

/// True if at least one message of the report was answered.
pub(crate) fn are_there(report: &Report) -> bool {
    report.conditions.iter().any(|c| c.round_trip.as_ref().is_some_and(|m| m.n > 0))
}

/// Tail estimates of the conditions, or reasons why there is none.
fn tails(report: &Report) -> impl Iterator<Item = (&ConditionReport, &TailReport)> {
    report.conditions.iter().filter_map(|c| Some((c, c.round_trip.as_ref().filter(|m| m.n > 0)?.tail.as_ref()?)))
}

/// True if the report has a tail estimate.
pub(crate) fn has_estimate(report: &Report) -> bool {
    tails(report).any(|(_, tail)| matches!(tail, TailReport::Estimate { .. }))
}

/// True if the report has no tail estimate, and a reason for it.
pub(crate) fn has_refused_estimate(report: &Report) -> bool {
    tails(report).next().is_some() && !has_estimate(report)
}

struct Figure {
    id: &'static str,
    title: String,
    note: String,
}

/// The figure of the parts of the time of messages with the causes of incidents, and the table of the worst messages.
pub(crate) fn why(report: &Report) -> String {
    if are_there(report) { some(report, &["legs"]) + WORST } else { String::new() }
}

/// The figures of the distribution of the latency, with the choices that apply to all of them.
pub(crate) fn distribution(report: &Report) -> String {
    if !are_there(report) {
        return String::new();
    }
    let limits = limits::sentence(report)
        .map_or(String::new(), |text| format!("<p class=\"lead\" id=\"limits\">{}</p>\n", prose(&text)));
    let head = format!(
        "<section id=\"shown\" class=\"only-screen\"><h2>Figures</h2>\n<p class=\"lead\">These choices apply to \
            all figures below.\
         </p>\n{}</section>\n{limits}",
        choices::for_all(report)
    );
    head + &some(report, &["latency", "tail", "ladder", "histogram", "time"])
}

/// The figure of the tail estimate, if there is one.
pub(crate) fn estimate(report: &Report) -> String {
    if has_estimate(report) { some(report, &["tail-estimate"]) } else { String::new() }
}

/// The reasons why the tail of no condition could be estimated, each once; empty if there is an estimate.
pub(crate) fn refused(report: &Report) -> String {
    if !has_refused_estimate(report) {
        return String::new();
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (condition, tail) in tails(report) {
        let TailReport::NotApplicable { not_applicable, .. } = tail else { continue };
        match reasons.iter_mut().find(|(reason, _)| reason == not_applicable) {
            Some((_, names)) => names.push(&condition.name),
            None => reasons.push((not_applicable, vec![&condition.name])),
        }
    }
    let item = |(reason, names): &(&str, Vec<&str>)| {
        let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
        format!("<p class=\"not-applicable\">Not applicable to {}{more}: {}.</p>\n", escape(names[0]), escape(reason))
    };
    let items: String = reasons.iter().map(item).collect();
    format!("<div id=\"tail-estimate\"><h3>Why nothing is estimated beyond what was measured</h3>\n{items}</div>\n")
}

fn some(report: &Report, ids: &[&str]) -> String {
    figures(report).iter().filter(|f| ids.contains(&f.id)).map(|f| section(report, f)).collect()
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
                "{metric}: the median as a thick line with its 95\u{202f}% interval, p99 as a thin line, the maximum as a hollow \
                 triangle. If p99 is later than every answer because messages were lost, the thin line ends, and \
                 an open dot stands in the row \u{201c}lost\u{201d} above.\
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
            "One trial: each column spans its lowest to its highest message, above a light area that reaches up to \
                the highest; the medians are darker. No maximum is left out. Grey: warm-up. Hatched: a clock was stepped. \
                Numbers: the worst messages. \
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
