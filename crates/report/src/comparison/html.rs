//! A comparison as an HTML page: sentences, a figure of the ratios, and one table.

use crate::compared;
use crate::comparison::figure;
use crate::comparison::words::trials_text;
use crate::escape::{escape, prose};
use crate::html::table::{Head, left, right, table};
use tailbound_document::number::three_digits;
use tailbound_document::{Change, Compared, Comparison, Pair, ReportStatus, Side};

/// Formats a comparison as an HTML page: one file that works offline.
pub fn render_comparison_html(comparison: &Comparison) -> String {
    let comparison = &crate::plain::plain(comparison);
    crate::html::render_drawn_frame(&format!("{} against {}", comparison.b.name, comparison.a.name), &main(comparison))
}

/// Makes the HTML of a comparison, without the head and the style sheet of a page. Text that users wrote is escaped.
fn main(comparison: &Comparison) -> String {
    let mut html = format!("<p class=\"lead\">{}<br>{}</p>\n", side("A", &comparison.a), side("B", &comparison.b));
    if let Some(caution) = &comparison.caution {
        html.push_str(&format!("<p class=\"banner\">{}</p>\n", prose(caution)));
    }
    let findings: String = comparison.findings.iter().map(|f| format!("<li>{}</li>\n", prose(f))).collect();
    html.push_str(&format!("<ul class=\"findings plain\">\n{findings}</ul>\n"));
    if let Some((picture, left)) = figure::ratios(comparison) {
        let left = match left {
            0 => String::new(),
            n => format!(" The picture shows the {} largest effects; {n} more are in the table.", figure::MOST),
        };
        html.push_str(&format!(
            "<section><h2>Ratios</h2>\n<p class=\"lead\">B to A with 95 % intervals, the largest effect first. Blue: decided. Dashed: an \
             interval that describes only these runs.{left}</p>\n<figure><div class=\"picture\">{picture}</div></figure>\n</section>\n"
        ));
    }
    let rows: Vec<String> =
        comparison.pairs.iter().flat_map(|p| p.statistics.iter().map(move |c| row(comparison, p, c))).collect();
    let heads =
        [left("condition"), left("metric"), left("statistic"), right("A", ""), right("B", ""), right("ratio", "")];
    let heads: Vec<Head> = heads.into_iter().chain([right("95 %", ""), left("verdict")]).collect();
    html.push_str(&format!(
        "<section><h2>All that was compared</h2>\n{}\
         <p class=\"note\">Ratios of geometric means over trials. The intervals are simultaneous: in 95 % of such \
         tables, every interval contains the true ratio.</p>\n</section>\n",
        table(&heads, &rows)
    ));
    for left in &comparison.not_compared {
        html.push_str(&format!("<p>Not compared: {}: {}</p>\n", escape(&left.condition), prose(&left.why)));
    }
    if !comparison.changed.is_empty() {
        let change = |c: &Change| {
            format!(
                "<tr>{}</tr>\n",
                [&c.what, &c.a, &c.b].map(|t| format!("<td class=\"l wrap\">{}</td>", escape(t))).concat()
            )
        };
        let rows: String = comparison.changed.iter().map(change).collect();
        html.push_str(&format!(
            "<h2>What else changed</h2>\n<div class=\"scroll\"><table><thead><tr><th class=\"l\">what</th>\
             <th class=\"l\">A</th><th class=\"l\">B</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
        ));
    }
    html
}

fn side(which: &str, side: &Side) -> String {
    let (status, bad) = match side.status {
        ReportStatus::Valid => ("valid", ""),
        ReportStatus::Invalid => ("invalid", " bad"),
        ReportStatus::Incomplete => ("incomplete", " bad"),
    };
    format!(
        "{which}: <strong>{}</strong> in <code>{}</code>, {} <span class=\"status{bad}\">{status}</span>",
        escape(&side.name),
        escape(&side.record),
        crate::date::utc(side.began_unix_ns)
    )
}

fn row(comparison: &Comparison, pair: &Pair, c: &Compared) -> String {
    let interval = c.interval.map_or(String::new(), |[low, high]| {
        let only = if c.within_runs { ", these runs only" } else { "" };
        format!("{} to {}{only}", three_digits(low), three_digits(high))
    });
    let why = c.why.as_ref().map_or(String::new(), |w| format!("<span class=\"interval\">{}</span>", prose(w)));
    format!(
        "<tr><td class=\"l\">{}<span class=\"interval\">{}</span></td><td class=\"l\">{}</td><td class=\"l\">{}</td><td>{}</td>\
         <td>{}</td><td>{}</td><td>{interval}</td><td class=\"l wrap\">{}{why}</td></tr>\n",
        escape(&pair.name),
        escape(&trials_text(pair)),
        escape(&c.metric.replace('_', " ")),
        escape(&c.statistic),
        compared::shown(c.a, &c.unit),
        compared::shown(c.b, &c.unit),
        c.ratio.map_or(String::new(), three_digits),
        escape(&compared::verdict(c, comparison.margin)),
    )
}
