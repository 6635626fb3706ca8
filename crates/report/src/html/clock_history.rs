//! The section of the HTML page about the clocks of hosts during the trials.

use crate::escape::prose;
use crate::html::table::{left, number, right, table, words};
use crate::picture::clock_strip;
use crate::tables::clock_history::{HEADS, rows, sentences, windows};
use tailbound_document::{ClockHistoryReport, Report};

/// Explains the figures of the histories.
const FIGURE: &str = "Each figure shows the offset of the clock from its master over a trial (bars: smallest to largest), with the \
                      bound of the study (dashed). In the hatched times, the clock was not known to be in step.";

pub(crate) fn is_there(report: &Report) -> bool {
    !report.clock_history.is_empty()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    format!(
        "<section id=\"clock\"><h2>Clock</h2>\n<p class=\"lead\">The time services of the hosts reported their clocks. \
         Messages in times in which the clock was not known to be in step remain in every figure of this \
         page; a table shows them apart. {FIGURE}</p>\n{}</section>\n",
        report.clock_history.iter().map(|of| of_trial(report, of)).collect::<String>()
    )
}

fn of_trial(report: &Report, of: &ClockHistoryReport) -> String {
    let condition = report.conditions.iter().find(|condition| condition.id == of.condition);
    let figure = condition
        .and_then(|condition| clock_strip::draw(condition, of))
        .map_or(String::new(), |canvas| format!("<figure><div class=\"picture\">{}</div></figure>\n", canvas.embed()));
    let lines: String = windows(of).iter().map(|line| format!("<p class=\"lead\">{}</p>\n", prose(line))).collect();
    let [first, rest @ ..] = HEADS;
    let mut heads = vec![left(first)];
    heads.extend(rest.map(|head| right(head, "")));
    let row = |[name, numbers @ ..]: [String; 6]| {
        format!("<tr>{}{}</tr>\n", words(&name), numbers.iter().map(|text| number(text)).collect::<String>())
    };
    let rows: Vec<String> = rows(of).into_iter().map(row).collect();
    let messages = if rows.is_empty() { String::new() } else { table(&heads, &rows) };
    format!("<p class=\"lead\">{}</p>\n{figure}{lines}{messages}", prose(&sentences(of)))
}
