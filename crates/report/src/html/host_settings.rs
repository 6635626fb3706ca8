//! Makes the section of the HTML page about host settings.

use crate::html::table::{left, table, words};
use tailbound_document::Report;

/// Makes the HTML table of the host settings; empty if the study set none.
pub(crate) fn section(report: &Report) -> String {
    if report.host_settings.is_empty() {
        return String::new();
    }
    let heads = ["trials", "setting", "of", "asked", "found before", "read back", "afterwards"].map(left);
    let rows = report.host_settings.iter().flat_map(|block| {
        let trials = block.trials.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        block.settings.iter().map(move |s| {
            let place = match s.at.as_str() {
                "" => s.what.clone(),
                host if host.starts_with("host ") => format!("{} ({host})", s.what),
                end => format!("{} (namespace of {end})", s.what),
            };
            let cells = [
                words(&trials),
                words(&s.key),
                words(&place),
                words(&s.wanted),
                words(&s.before),
                words(&s.found),
                words(s.restored.as_deref().unwrap_or("not known")),
            ];
            format!("<tr>{}</tr>\n", cells.concat())
        })
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "<section id=\"host-settings\"><h2>Settings of the host</h2>\n<p class=\"lead\">Settings that the study \
            changed for its trials, read back after the change and after every trial. The facts of the host below \
            were read before the changes.</p>\n{}</section>\n",
        table(&heads, &rows)
    )
}
