//! The nodes of a cluster: what lies between pods and the wire, and what it cost.

use super::escape::escape;
use crate::document::Report;

/// A line for each way and for what each node took; nothing where no end was in a cluster.
pub(super) fn section(report: &Report) -> String {
    let line = |(of, text): (String, String)| format!("<li>{}: {}</li>\n", escape(&of), escape(&text));
    let lines: String = crate::nodes::lines(report).into_iter().map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"nodes\"><h2>Nodes of the cluster</h2>\n<p class=\"lead\">The interfaces between each end and the \
         wire, the CPUs that its pod was given, and what the cluster's own programs and the interface of the node took \
         from just before to just after the ends measured.</p>\n<ul>{lines}</ul>\n</section>\n"
    )
}
