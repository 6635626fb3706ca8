//! Flows: the tables of the terminal, and samples second by second.

use super::conditions::row_head;
use super::escape::{Head, escape, left, number, right, table};
use crate::condition::ConditionReport;
use crate::document::Report;
use crate::flow::{FlowSecond, is_all, tables};
use crate::number::three_digits;

/// Size of one figure in its own units.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 90.0;

pub(super) fn is_there(report: &Report) -> bool {
    !tables(report).is_empty()
}

pub(super) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let summary = crate::summary::summary(report);
    let mut html = String::from("<section id=\"flow\">\n<h2>Flow</h2>\n");
    // Where there is no table of round trips, this one is what findings link to, and says why a row is empty.
    let alone = is_all(report);
    for (nth, (title, columns)) in tables(report).into_iter().enumerate() {
        let first = alone && nth == 0;
        let mut heads: Vec<Head> = vec![left("condition")];
        heads.extend(columns.iter().map(|c| right(c.head.as_str(), c.unit)));
        let row = |c: &ConditionReport| {
            let cells = columns.iter().map(|column| match &column.cells[c.id] {
                (value, below) if below.is_empty() => number(value),
                (value, below) => format!(
                    "<td>{}<span class=\"interval\">{}</span></td>",
                    escape(value),
                    escape(below).replace('-', "\u{2013}")
                ),
            });
            let id = if first { format!(" id=\"condition-{}\"", c.id) } else { String::new() };
            let reason = c.not_possible.as_ref().or(c.finding.as_ref()).filter(|_| first);
            let reason = reason.map_or_else(String::new, |r| {
                let width = columns.len() + 1;
                format!(
                    "<tr><td class=\"l wrap\" colspan=\"{width}\"><span class=\"interval\">{}</span></td></tr>\n",
                    escape(r)
                )
            });
            format!("<tr{id}>{}{}</tr>\n{reason}", row_head(&summary, c), cells.collect::<String>())
        };
        let rows: Vec<String> = report.conditions.iter().map(row).collect();
        html.push_str(&format!("<p class=\"note\">{}</p>\n{}", escape(title), table(&heads, &rows)));
    }
    let notes: String = crate::flow::notes(report).iter().map(|n| format!("<li>{}</li>\n", escape(n))).collect();
    if !notes.is_empty() {
        html.push_str(&format!("<ul class=\"note\">\n{notes}</ul>\n"));
    }
    let figures: String = report.conditions.iter().filter_map(figure).collect();
    if !figures.is_empty() {
        html.push_str(
            "<p class=\"note\">Samples in each whole second of the window, of the first trial: sent (dashed) and received \
             by each subscriber.</p>\n",
        );
        html.push_str(&figures);
    }
    html + "</section>\n"
}

/// Samples second by second, drawn here: there without a script, and on paper.
fn figure(condition: &ConditionReport) -> Option<String> {
    let trial = condition.flow.as_ref()?.trials.first()?;
    let all = || trial.subscribers.iter().map(|s| &s.seconds).chain([&trial.seconds]).flatten();
    let most = all().map(|s| s.samples).max().filter(|_| trial.seconds.len() > 1)? as f64;
    let span = all().map(|s| s.after_ns).max()?.max(1) as f64;
    let line = |seconds: &[FlowSecond], style: &str| {
        let point = |s: &FlowSecond| {
            let (x, y) = (s.after_ns as f64 / span * WIDTH, HEIGHT - s.samples as f64 / most.max(1.0) * HEIGHT);
            format!("{x:.1},{y:.1}")
        };
        let points: Vec<String> = seconds.iter().map(point).collect();
        format!("<polyline fill=\"none\" stroke=\"currentColor\" {style} points=\"{}\"/>", points.join(" "))
    };
    let received: String =
        trial.subscribers.iter().map(|s| line(&s.seconds, "stroke-width=\"1.5\" stroke-opacity=\"0.8\"")).collect();
    let sent = line(&trial.seconds, "stroke-dasharray=\"4 3\"");
    let label = format!(
        "{}: at most {} samples in a second, over {} s",
        condition.name,
        three_digits(most),
        three_digits(span / 1e9)
    );
    Some(format!(
        "<figure><div class=\"picture\"><svg viewBox=\"-2 -2 {} {}\" role=\"img\" aria-label=\"{label}\" width=\"100%\" \
         style=\"max-width:40rem\"><line x1=\"0\" y1=\"{HEIGHT}\" x2=\"{WIDTH}\" y2=\"{HEIGHT}\" \
         stroke=\"currentColor\" stroke-opacity=\"0.4\"/>{received}{sent}</svg></div><figcaption>{label}</figcaption></figure>\n",
        WIDTH + 4.0,
        HEIGHT + 4.0,
        label = escape(&label),
    ))
}
