//! The page: one file that works offline, in light and dark, on a phone and on paper.
//!
//! Words and tables are set here, so that they are there without a script; figures are drawn by the script from the
//! same JSON document, which the page carries. Whatever a user named is escaped.

mod against;
mod bins;
mod chosen;
mod circumstances;
mod conditions;
mod escape;
mod facts;
mod figures;
mod flow;
mod flow_axis;
mod frame;
mod guests;
mod host_settings;
mod loads;
mod loops;
mod nodes;
mod patterns;
mod proof;
mod threads;
mod tools;
mod words;

use crate::document::{Report, ReportStatus};
use crate::json::compact;
use escape::escape;
pub(crate) use escape::prose;
pub use frame::{escape_html, render_frame};

const STYLE: [&str; 4] = [
    include_str!("../../assets/tokens.css"),
    include_str!("../../assets/page.css"),
    include_str!("../../assets/figures.css"),
    include_str!("../../assets/print.css"),
];
const SCRIPT: [&str; 14] = [
    include_str!("../../assets/scale.js"),
    include_str!("../../assets/marks.js"),
    include_str!("../../assets/data.js"),
    include_str!("../../assets/latency.js"),
    include_str!("../../assets/tail.js"),
    include_str!("../../assets/estimate.js"),
    include_str!("../../assets/ladder.js"),
    include_str!("../../assets/histogram.js"),
    include_str!("../../assets/overtime.js"),
    include_str!("../../assets/legs.js"),
    include_str!("../../assets/worst.js"),
    include_str!("../../assets/loop.js"),
    include_str!("../../assets/save.js"),
    include_str!("../../assets/page.js"),
];

/// Nothing is fetched, whatever the page holds.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The whole page.
pub fn render_html(report: &Report) -> String {
    // In a script element only `<` can end it or begin a comment.
    let data = compact(report).replace('<', "\\u003c");
    let title = escape(&report.view.title);
    // A record of imported outputs has no conditions, and nothing to say of how they came about.
    let ran =
        |section: fn(&Report) -> String| if report.conditions.is_empty() { String::new() } else { section(report) };
    let main = [
        words::findings(report),
        words::warnings(report),
        flow::section(report),
        flow_axis::section(report),
        against::section(report),
        figures::sections(report),
        loops::section(report),
        patterns::section(report),
        bins::section(report),
        if crate::flow::is_all(report) { String::new() } else { ran(conditions::table) },
        ran(conditions::between_clocks),
        chosen::section(report),
        ran(conditions::metrics),
        tools::section(report),
        ran(threads::section),
        loads::section(report),
        host_settings::section(report),
        proof::section(report),
        ran(circumstances::path),
        guests::section(report),
        nodes::section(report),
        ran(circumstances::trials),
        ran(facts::section),
        words::definitions(),
        ran(circumstances::study),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n\
         {}\n<main>\n{}\n</main>\n{}\n\
         <script type=\"application/json\" id=\"report\">{data}</script>\n\
         <script>\n(() => {{\n\"use strict\";\n{}}})();\n</script>\n</body>\n</html>\n",
        STYLE.concat(),
        header(report),
        main.concat(),
        footer(report),
        SCRIPT.concat(),
    )
}

fn header(report: &Report) -> String {
    let (status, class) = match report.status {
        ReportStatus::Valid => ("valid", ""),
        ReportStatus::Invalid => ("invalid", " bad"),
        ReportStatus::Incomplete => ("incomplete", " bad"),
    };
    let hosts: Vec<String> = report.facts.iter().map(host_words).collect();
    let sections = [
        ("findings", "Findings"),
        ("flow", "Flow"),
        ("flow-axis", "Flow figures"),
        ("against", "Against"),
        ("latency", "Latency"),
        ("tail", "Tail"),
        ("tail-estimate", "Estimate"),
        ("ladder", "Percentiles"),
        ("histogram", "Histogram"),
        ("time", "Over time"),
        ("legs", "Legs"),
        ("worst", "Worst"),
        ("loop", "Loop"),
        ("patterns", "Patterns"),
        ("bins", "Bins"),
        ("conditions", "Conditions"),
        ("between-clocks", "One way"),
        ("chosen", "Range"),
        ("tools", "Other programs"),
        ("threads", "Threads"),
        ("loads", "Loads"),
        ("host-settings", "Settings"),
        ("proof", "Way"),
        ("path", "Path"),
        ("guests", "Guests"),
        ("nodes", "Nodes"),
        ("facts", "Facts"),
        ("definitions", "Definitions"),
    ];
    let is_there = |id: &str| match id {
        "latency" | "tail" | "ladder" | "histogram" | "time" | "legs" | "worst" => figures::are_there(report),
        "tail-estimate" => figures::has_estimate(report),
        "flow-axis" => crate::flow::axis(report).is_some(),
        "flow" => flow::is_there(report),
        "against" => report.against.is_some(),
        "patterns" => patterns::is_there(report),
        "bins" => bins::is_there(report),
        "loop" => loops::is_there(report),
        "between-clocks" => report.conditions.iter().any(|c| c.out_range.is_some() || c.back_range.is_some()),
        "chosen" => chosen::is_there(report),
        "conditions" => !report.conditions.is_empty() && !crate::flow::is_all(report),
        "threads" | "path" | "facts" => !report.conditions.is_empty(),
        "tools" => !report.tools.is_empty(),
        "loads" => !report.loads.is_empty(),
        "host-settings" => !report.host_settings.is_empty(),
        "guests" => guests::are_there(report),
        "nodes" => !report.nodes.is_empty(),
        "proof" => report.conditions.iter().any(|c| c.path_proof.is_some()),
        _ => true,
    };
    let link = |(id, name)| format!("<a href=\"#{id}\">{name}</a> ");
    let links: String = sections.into_iter().filter(|(id, _)| is_there(id)).map(link).collect();
    let banner = report.functional_only.as_ref().map_or(String::new(), |why| {
        format!("<p class=\"banner\"><strong>Functional only.</strong> {}</p>\n", escape(why))
    });
    format!(
        "<header>\n<p class=\"product\"><strong>Tailbound</strong> \u{b7} study {} \u{b7} {} \u{b7} {} \
         <span class=\"status{class}\">{status}</span></p>\n<h1>{}</h1>\n{}{banner}<nav>{links}</nav>\n</header>",
        escape(&report.study),
        crate::calendar::utc(report.run.began_unix_ns),
        escape(&hosts.join(", ")),
        escape(&report.view.title),
        if report.view.title == report.question {
            String::new()
        } else {
            format!("<p class=\"lead\">{}</p>\n", escape(&report.question))
        },
    )
}

/// `bench-1, Linux 6.1`.
fn host_words(host: &crate::circumstances::Host) -> String {
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
        for part in super::SCRIPT.iter().chain(&super::STYLE) {
            assert!(!part.contains("</"), "{part}");
        }
    }
}
