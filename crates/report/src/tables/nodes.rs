//! Lines of text of a report about cluster nodes.

use std::collections::BTreeSet;
use tailbound_document::number::{count, three_digits};
use tailbound_document::{NodeCostReport, NodeProgramReport, Report};

/// Lines about cluster nodes for the terminal, Markdown and the HTML page: the name of the node, and the text.
pub(crate) fn lines(report: &Report) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for node in &report.nodes {
        lines.extend(node.ways.iter().map(|way| (format!("{} ({})", node.node, way.end), way.text.clone())));
        lines.extend(node.cost.as_ref().map(|cost| (format!("{} while measuring", node.node), cost_words(cost))));
    }
    // Trials of different conditions may have the same text about a node.
    let mut told = BTreeSet::new();
    lines.retain(|line| told.insert(line.clone()));
    let mut unseen: Vec<&str> = report.nodes.iter().filter(|n| n.cost.is_none()).map(|n| n.node.as_str()).collect();
    unseen.sort_unstable();
    unseen.dedup();
    if !unseen.is_empty() {
        let text = "not known; set `pod: { observe: on }` in the study to observe the node".to_owned();
        lines.push((format!("{} while measuring", unseen.join(", ")), text));
    }
    lines
}

/// Formats the CPU time and traffic of a node, for example `kubelet 2.1 %, 3 shims 0.40 % of a CPU; eth0 sent 1,200 B
/// and received 1,100 B in 2.0 s`.
fn cost_words(cost: &NodeCostReport) -> String {
    let program = |(name, p): (&String, &NodeProgramReport)| {
        let name = if p.processes > 1 { format!("{} {name}s", p.processes) } else { name.clone() };
        format!("{name} {} %", three_digits(100.0 * p.cpu_share))
    };
    let programs: Vec<String> = cost.programs.iter().map(program).collect();
    let programs = match programs.is_empty() {
        true => "no program of the cluster itself was found on the node".to_owned(),
        false => format!("{} of a CPU", programs.join(", ")),
    };
    let bytes = |n: Option<i64>| count(n.unwrap_or(0).unsigned_abs());
    let carried = cost.interface.as_ref().map_or(String::new(), |name| {
        format!("; {name} sent {} B and received {} B", bytes(cost.sent_bytes), bytes(cost.received_bytes))
    });
    format!("{programs}{carried} in {:.1} s", cost.span_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::cost_words;
    use tailbound_document::{NodeCostReport, NodeProgramReport};

    #[test]
    fn a_cost_names_programs_and_traffic() {
        let program = |name: &str, processes, cpu_share| (name.to_owned(), NodeProgramReport { processes, cpu_share });
        let cost = NodeCostReport {
            span_ns: 2_000_000_000,
            programs: [program("kubelet", 1, 0.02), program("shim", 3, 0.001)].into(),
            interface: Some("eth0".into()),
            sent_bytes: Some(1_400),
            received_bytes: Some(2_600),
        };
        assert_eq!(
            cost_words(&cost),
            "kubelet 2 %, 3 shims 0.100 % of a CPU; eth0 sent 1,400 B and received 2,600 B in 2.0 s"
        );
    }
}
