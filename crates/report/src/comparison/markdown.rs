//! Formats a comparison of records as Markdown.

use crate::compared;
use crate::comparison::words::trials_text;
use crate::escape::escape_markdown as escape;
use tailbound_document::Comparison;
use tailbound_document::number::three_digits;

/// Formats a comparison as Markdown: sentences, changed circumstances, and one table.
pub fn render_comparison_markdown(comparison: &Comparison) -> String {
    let comparison = &crate::plain::plain(comparison);
    let mut text = format!("# {} against {}\n\n", escape(&comparison.b.name), escape(&comparison.a.name));
    if let Some(caution) = &comparison.caution {
        text.push_str(&format!("**{caution}**\n\n"));
        for c in &comparison.changed {
            text.push_str(&format!("- {}: {} → {}\n", escape(&c.what), escape(&c.a), escape(&c.b)));
        }
        text.push('\n');
    }
    for finding in &comparison.findings {
        text.push_str(&format!("- {}\n", escape(finding)));
    }
    text.push_str("\n| condition | metric | statistic | A | B | ratio | 95 % | verdict |\n");
    text.push_str("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n");
    for pair in &comparison.pairs {
        let name = format!("{} ({})", pair.name, trials_text(pair));
        for c in &pair.statistics {
            let shown = |value: Option<f64>| compared::shown(value, &c.unit);
            let interval = c.interval.map_or(String::new(), |[low, high]| {
                let only = if c.within_runs { ", these runs only" } else { "" };
                format!("{} to {}{only}", three_digits(low), three_digits(high))
            });
            let why = c.why.as_ref().map_or(String::new(), |w| format!(": {}", escape(w)));
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} | {interval} | {}{why} |\n",
                escape(&name),
                c.metric.replace('_', " "),
                c.statistic,
                shown(c.a),
                shown(c.b),
                c.ratio.map_or(String::new(), three_digits),
                compared::verdict(c, comparison.margin),
            ));
        }
    }
    for left in &comparison.not_compared {
        text.push_str(&format!("\nNot compared: {}: {}\n", escape(&left.condition), escape(&left.why)));
    }
    text.push_str(
        "\nRatios are B to A, of geometric means over trials. The intervals are simultaneous: in 95 % of \
        such tables, every interval contains the true ratio.\n",
    );
    text
}
