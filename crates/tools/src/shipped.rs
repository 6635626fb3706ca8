//! The tool files that are part of Tailbound, and tool files of the user.

use crate::{Tool, ToolError};
use std::path::Path;

const SHIPPED: [(&str, &str); 8] = [
    ("ddsperf", include_str!("../tools/ddsperf.yaml")),
    ("sockperf", include_str!("../tools/sockperf.yaml")),
    ("sockperf-throughput", include_str!("../tools/sockperf-throughput.yaml")),
    ("iperf3", include_str!("../tools/iperf3.yaml")),
    ("isochron", include_str!("../tools/isochron.yaml")),
    ("cyclictest", include_str!("../tools/cyclictest.yaml")),
    ("rti-perftest", include_str!("../tools/rti-perftest.yaml")),
    ("performance-test", include_str!("../tools/performance-test.yaml")),
];

/// Names and texts of all tool files that are part of Tailbound.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    &SHIPPED
}

/// Names of all tool files that are part of Tailbound.
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// Finds the tool with this name, or reads the tool file at this path if the name ends in `.yaml` or `.yml`.
///
/// # Errors
/// There is no such tool, or its file is not valid.
pub fn find(name: &str) -> Result<Tool, ToolError> {
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        let bad = |e: std::io::Error| ToolError::File { file: name.into(), reason: format!("cannot be read: {e}") };
        return Tool::read(name, &std::fs::read_to_string(Path::new(name)).map_err(bad)?);
    }
    match SHIPPED.iter().find(|(n, _)| *n == name) {
        Some((file, text)) => Tool::read(&format!("tools/{file}.yaml"), text),
        None => {
            let hint = tailbound_model::nearest(name, names()).map(Into::into);
            Err(ToolError::Unknown { name: name.into(), hint, known: names().join(", ") })
        }
    }
}
