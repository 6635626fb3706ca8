//! The section of the HTML page about cluster nodes: the interfaces between the pods and the physical network, and the
//! CPU time of the cluster's own programs.

use crate::escape::escape;
use tailbound_document::Report;

/// One line for the path through each node and one line for its CPU time; empty if no end ran in a cluster.
pub(crate) fn section(report: &Report) -> String {
    let line = |(of, text): (String, String)| format!("<li>{}: {}</li>\n", escape(&of), escape(&text));
    let lines: String = crate::tables::nodes::lines(report).into_iter().map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"nodes\"><h2>Nodes of the cluster</h2>\n<p class=\"lead\">The interfaces between each end and \
            the physical network, the CPUs of its pod, and the CPU time of the cluster's own programs and the traffic \
            of the node's interface, from just before to just after the \
            measurement.</p>\n<ul>{lines}</ul>\n</section>\n"
    )
}
