//! The section of the HTML page about flows: tables, and the number of samples in each second.

use crate::escape::escape;
use crate::html::conditions::row_head;
use crate::html::table::{Head, left, number, right, table};
use crate::picture::canvas::{Canvas, Medium};
use crate::picture::flow::draw;
use crate::tables::flow::{is_all, tables};
use tailbound_document::{ConditionReport, Report};

pub(crate) fn is_there(report: &Report) -> bool {
    !tables(report).is_empty()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let summary = crate::tables::summary::summary(report);
    let mut html = String::from("<section id=\"flow\">\n<h2>Flow</h2>\n");
    // If there is no table of round trips, findings link to this table, and it says why a row is empty.
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
    let recorded = crate::tables::causes::recordings_of_flows(report);
    let notes = crate::tables::writer::notes(report).into_iter().chain(recorded);
    let notes: String = notes.map(|note| format!("<li>{}</li>\n", escape(&note))).collect();
    if !notes.is_empty() {
        html.push_str(&format!("<ul class=\"note\">\n{notes}</ul>\n"));
    }
    let figures: String = draw(report, Medium::Page).into_iter().map(Canvas::embed).collect();
    if !figures.is_empty() {
        html.push_str(&format!(
            "<p class=\"note\">Samples in each whole second of the window, of the first trial: sent (dashed) and received \
             by each subscriber.</p>\n<figure><div class=\"picture\">{figures}</div></figure>\n"
        ));
    }
    html + "</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Tests that the section says how events were recorded while a flow ran, and how many records the kernel dropped.
    #[test]
    fn the_recording_of_a_flow_is_in_its_section() {
        let mut report: Report = serde_json::from_str(include_str!("../../fixtures/report-d26457f.json")).unwrap();
        let counts = json!({
            "subscribers": 1, "pack": 1, "sent": 7, "lost": 0, "out_of_order": 0, "duplicates": 0, "trials": []
        });
        report.conditions[0].flow = Some(serde_json::from_value(counts).unwrap());
        let recording = json!({
            "ends": ["ping"], "level": "machine", "by": "bpf", "trials": 1, "records": 1_234, "records_dropped": 56
        });
        report.conditions[0].recordings = vec![serde_json::from_value(recording).unwrap()];
        let html = section(&report).replace('\u{202f}', " ");
        let sentence = html.lines().find(|line| line.contains("1,234")).unwrap_or_else(|| panic!("{html}"));
        assert!(sentence.starts_with("<li>") && sentence.contains("56"), "{sentence}");
    }
}
