//! The navigation of the HTML page: groups of links that stay at the top of the window.

use crate::html::figures;
use crate::html::{
    bins, clock_history, flow, gates, guests, held, launch, levels, loops, network_user, next_steps, patterns,
    published, range, stages, usual,
};
use tailbound_document::Report;

/// Sections of the page in groups: the name of each group, and the id and the name of each section.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: [Group; 5] = [
    (
        "Result",
        &[
            ("lead", "Summary"),
            ("budget", "Budget"),
            ("next-step", "Next step"),
            ("findings", "Findings"),
            ("warnings", "Warnings"),
            ("conditions", "All conditions"),
            ("flow", "Flow"),
            ("since", "Since the last run"),
            ("flow-axis", "Flow against a factor"),
            ("against", "Against the baseline"),
            ("published", "Published numbers"),
            ("tools", "Other programs"),
            ("copy", "Copy and repeat"),
        ],
    ),
    (
        "Why",
        &[
            ("why", "Causes"),
            ("legs", "Where the time went"),
            ("worst", "Worst messages"),
            ("usual", "Ordinary messages"),
            ("held", "Held and released together"),
            ("patterns", "Effects of loads"),
            ("stages", "Stages of a message"),
        ],
    ),
    (
        "Figures",
        &[
            ("latency", "Latency"),
            ("tail", "Tail"),
            ("ladder", "Percentiles"),
            ("histogram", "Histogram"),
            ("time", "Over time"),
            ("levels", "Over time, side by side"),
            ("network-user", "Network and user"),
            ("gates", "Gates"),
            ("launch", "Launch times"),
            ("bins", "Bins"),
            ("between-clocks", "One way"),
            ("chosen", "Chosen range"),
        ],
    ),
    (
        "Set-up",
        &[
            ("threads", "Threads"),
            ("loads", "Loads"),
            ("host-settings", "Host settings"),
            ("proof", "Proof of the path"),
            ("path", "Path"),
            ("clock", "Clock"),
            ("guests", "Guests"),
            ("nodes", "Nodes"),
            ("facts", "Facts of the hosts"),
            ("study", "Study file"),
        ],
    ),
    (
        "Method",
        &[
            ("how-sure", "How sure"),
            ("tail-estimate", "Beyond what was measured"),
            ("loop", "The sender's loop"),
            ("definitions", "Definitions"),
        ],
    ),
];

/// HTML of the navigation; sections that the page does not have are left out.
pub(crate) fn nav(report: &Report) -> String {
    let link = |(id, name): &&(&str, &str)| format!("<a href=\"#{id}\">{name}</a>\n");
    let group = |(name, sections): &Group| {
        let links: String = sections.iter().filter(|(id, _)| is_there(report, id)).map(|s| link(&s)).collect();
        match links.is_empty() {
            true => String::new(),
            false => format!("<details name=\"sections\"><summary>{name}</summary><div>{links}</div></details>\n"),
        }
    };
    let groups: String = GROUPS.iter().map(group).collect();
    format!("<nav aria-label=\"Sections\">\n{groups}</nav>\n")
}

fn is_there(report: &Report, id: &str) -> bool {
    let ran = !report.conditions.is_empty();
    match id {
        "lead" => crate::html::lead::worst_condition(report).is_some(),
        "budget" => report.budget.is_some(),
        "next-step" => next_steps::are_there(report),
        "since" => report.since.is_some(),
        "warnings" => !report.warnings.is_empty(),
        "latency" | "tail" | "ladder" | "histogram" | "time" | "legs" | "worst" => figures::are_there(report),
        "why" => crate::html::words::has_why(report),
        "how-sure" => crate::html::words::has_doubts(report) || figures::has_refused_estimate(report),
        "tail-estimate" => figures::has_estimate(report),
        "flow-axis" => crate::tables::flow_axis::axis(report).is_some(),
        "flow" => flow::is_there(report),
        "against" => report.against.is_some(),
        "patterns" => patterns::is_there(report),
        "published" => published::is_there(report),
        "bins" => bins::is_there(report),
        "gates" => gates::is_there(report),
        "launch" => launch::is_there(report),
        "levels" => levels::is_there(report),
        "network-user" => network_user::is_there(report),
        "stages" => stages::is_there(report),
        "usual" => usual::is_there(report),
        "clock" => clock_history::is_there(report),
        "held" => held::is_there(report),
        "loop" => loops::is_there(report),
        "between-clocks" => report.conditions.iter().any(|c| c.out_range.is_some() || c.back_range.is_some()),
        "chosen" => range::is_there(report),
        "conditions" => ran && !crate::tables::flow::is_all(report),
        "threads" => !report.threads.is_empty(),
        "path" => !report.path.is_empty(),
        "facts" | "study" => ran,
        "tools" => !report.tools.is_empty(),
        "loads" => !report.loads.is_empty(),
        "host-settings" => !report.host_settings.is_empty(),
        "guests" => guests::are_there(report),
        "nodes" => !report.nodes.is_empty(),
        "proof" => report.conditions.iter().any(|c| c.path_proof.is_some()),
        _ => true,
    }
}
