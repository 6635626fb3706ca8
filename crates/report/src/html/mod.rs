//! The report as an HTML page: one file that works offline, in light and dark mode, on a phone and in print.
//!
//! Words, tables and charts are part of the HTML, so the page shows them without a script. The script shows the charts
//! that a reader chooses, shows tooltips, and zooms. The page contains the JSON document of the report. All texts that
//! come from users are escaped.

mod against;
mod bins;
mod budget;
mod choices;
mod circumstances;
mod clock_history;
mod conditions;
mod copy;
mod facts;
mod figures;
mod flow;
mod flow_axis;
mod frame;
mod gates;
mod guests;
mod held;
mod host_settings;
mod launch;
mod lead;
mod levels;
mod loads;
mod loops;
mod nav;
mod network_user;
mod next_steps;
mod nodes;
mod path_proof;
mod patterns;
mod published;
mod range;
mod since;
mod stages;
pub(crate) mod table;
mod terms;
mod threads;
mod tools;
mod usual;
mod words;

pub(crate) use frame::render_drawn_frame;
pub use frame::render_frame;
pub use lead::worst_condition;

use crate::escape::escape;
use crate::json::compact;
use tailbound_document::{Report, ReportStatus};

const STYLE: [&str; 5] = [
    include_str!("../../assets/tokens.css"),
    include_str!("../../assets/page.css"),
    include_str!("../../assets/charts.css"),
    include_str!("../../assets/figures.css"),
    include_str!("../../assets/print.css"),
];

/// Script of a page with figures that have no choices.
const DRAWN_SCRIPT: [&str; 2] = [include_str!("../../assets/fit.js"), include_str!("../../assets/drawn.js")];

const SCRIPT: [&str; 11] = [
    include_str!("../../assets/number.js"),
    include_str!("../../assets/marks.js"),
    include_str!("../../assets/data.js"),
    include_str!("../../assets/fit.js"),
    include_str!("../../assets/terms.js"),
    include_str!("../../assets/variants.js"),
    include_str!("../../assets/overtime.js"),
    include_str!("../../assets/worst.js"),
    include_str!("../../assets/rows.js"),
    include_str!("../../assets/save.js"),
    include_str!("../../assets/page.js"),
];

/// Content security policy of the report page: the browser fetches nothing, whatever the page contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Formats the report as an HTML page.
pub fn render_html(report: &Report) -> String {
    render_html_with_files(report, &[])
}

/// Formats the report as an HTML page that also has links to files beside it: the address of each file, and what the
/// file is.
pub fn render_html_with_files(report: &Report, files: &[(&str, &str)]) -> String {
    // In a script element, only the character `<` can end the element or begin a comment.
    let data = compact(report).replace('<', "\\u003c");
    let title = escape(&report.view.title);
    // A record of imported outputs has no conditions, and no data about a run.
    let ran =
        |section: fn(&Report) -> String| if report.conditions.is_empty() { String::new() } else { section(report) };
    let main = [
        lead::tiles(report),
        budget::section(report),
        next_steps::section(report),
        words::findings(report),
        if crate::tables::flow::is_all(report) { String::new() } else { ran(conditions::table) },
        flow::section(report),
        since::section(report),
        flow_axis::section(report),
        against::section(report),
        published::section(report),
        words::warnings(report),
        words::why(report),
        figures::why(report),
        usual::section(report),
        held::section(report),
        patterns::section(report),
        stages::section(report),
        figures::distribution(report),
        levels::section(report),
        network_user::section(report),
        gates::section(report),
        launch::section(report),
        bins::section(report),
        ran(conditions::between_clocks),
        range::section(report),
        ran(conditions::metrics),
        tools::section(report),
        words::how_sure(report, &figures::refused(report)),
        copy::section(report, !files.is_empty()),
        ran(threads::section),
        loads::section(report),
        host_settings::section(report),
        path_proof::section(report),
        ran(circumstances::path),
        clock_history::section(report),
        guests::section(report),
        nodes::section(report),
        ran(circumstances::trials),
        ran(facts::section),
        figures::estimate(report),
        loops::section(report),
        words::definitions(),
        ran(circumstances::study),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n\
         {}\n{}<main>\n{}\n</main>\n{}\n\
         <script type=\"application/json\" id=\"report\">{data}</script>\n\
         <script type=\"application/json\" id=\"choices\">{}</script>\n\
         <script type=\"application/json\" id=\"terms\">{}</script>\n\
         <script>\n(() => {{\n\"use strict\";\n{}}})();\n</script>\n</body>\n</html>\n",
        STYLE.concat(),
        header(report, files),
        nav::nav(report),
        main.concat(),
        footer(report),
        crate::picture::variants::choices(report),
        terms::json(),
        SCRIPT.concat(),
    )
}

fn header(report: &Report, files: &[(&str, &str)]) -> String {
    let (status, class) = match report.status {
        ReportStatus::Valid => ("valid", ""),
        ReportStatus::Invalid => ("invalid", " bad"),
        ReportStatus::Incomplete => ("incomplete", " bad"),
    };
    let hosts: Vec<String> = report.facts.iter().map(host_words).collect();
    let file = |(at, name): &(&str, &str)| format!("<a href=\"{}\" download>{}</a>", escape(at), escape(name));
    let files = match files {
        [] => String::new(),
        _ => format!(
            "<p class=\"note files\">Save as: {}</p>\n",
            files.iter().map(file).collect::<Vec<_>>().join(" \u{b7} ")
        ),
    };
    let banner = report.functional_only.as_ref().map_or(String::new(), |why| {
        format!("<p class=\"banner\"><strong>Functional only.</strong> {}</p>\n", escape(why))
    });
    format!(
        "<header>\n<p class=\"product\"><strong>Tailbound</strong> \u{b7} study {} \u{b7} {} \u{b7} {} \
         <span class=\"status{class}\">{status}</span></p>\n<h1>{}</h1>\n{}{banner}{files}</header>\n",
        escape(&report.study),
        crate::date::utc(report.run.began_unix_ns),
        escape(&hosts.join(", ")),
        escape(&report.view.title),
        if report.view.title == report.question {
            String::new()
        } else {
            format!("<p class=\"lead\">{}</p>\n", escape(&report.question))
        },
    )
}

/// Short description of a host, for example `bench-1, Linux 6.1`.
fn host_words(host: &tailbound_document::Host) -> String {
    let release = host.facts.iter().find(|f| f.key == "kernel.release").and_then(|f| f.value.as_str());
    release.map_or(host.host.clone(), |r| format!("{}, Linux {r}", host.host))
}

fn footer(report: &Report) -> String {
    let command = report.run.command.join(" ");
    format!(
        "<footer>Measured by tailbound {} with <code>{}</code>, run {}; reported by tailbound {}. \
         The page carries its data: the element <code>#report</code> is what \
         <code>tailbound report --format json</code> prints.</footer>",
        escape(&report.run.recorded_by),
        escape(&command),
        escape(&report.run.id),
        escape(&report.tailbound),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn scripts_and_styles_end_no_element_early() {
        for part in super::SCRIPT.iter().chain(&super::DRAWN_SCRIPT).chain(&super::STYLE) {
            assert!(!part.contains("</"), "{part}");
        }
    }
}
