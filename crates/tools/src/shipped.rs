//! The tool files that come along, and those of the user.

use crate::{Tool, ToolError};
use std::path::Path;

const SHIPPED: [(&str, &str); 7] = [
    ("ddsperf", include_str!("../../../tools/ddsperf.yaml")),
    ("sockperf", include_str!("../../../tools/sockperf.yaml")),
    ("sockperf-throughput", include_str!("../../../tools/sockperf-throughput.yaml")),
    ("iperf3", include_str!("../../../tools/iperf3.yaml")),
    ("cyclictest", include_str!("../../../tools/cyclictest.yaml")),
    ("rti-perftest", include_str!("../../../tools/rti-perftest.yaml")),
    ("performance-test", include_str!("../../../tools/performance-test.yaml")),
];

/// Name and text of each tool file that comes along.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    &SHIPPED
}

/// Their names.
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// The tool of this name, or of this file where it ends in `.yaml`.
///
/// # Errors
/// There is none, or its file is wrong.
pub fn find(name: &str) -> Result<Tool, ToolError> {
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        let bad = |e: std::io::Error| ToolError::File { file: name.into(), reason: format!("cannot be read: {e}") };
        return Tool::read(name, &std::fs::read_to_string(Path::new(name)).map_err(bad)?);
    }
    match SHIPPED.iter().find(|(n, _)| *n == name) {
        Some((file, text)) => Tool::read(&format!("tools/{file}.yaml"), text),
        None => {
            let near = names().into_iter().max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
            Err(ToolError::Unknown {
                name: name.into(),
                hint: near.filter(|n| strsim::jaro(n, name) > 0.7).map(Into::into),
                known: names().join(", "),
            })
        }
    }
}
