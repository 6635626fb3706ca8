//! Parsers of the values of command-line flags.

use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tailbound_model::{Nanos, Problem, RangeSpec};
use tailbound_report::MetricsFormat;

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// Text for people
    Text,
    /// One JSON document
    Json,
}

/// Makes the problem of a value of a flag that is not valid.
fn bad(what: impl Into<String>) -> Problem {
    Problem::new("bad_value", what, "")
}

/// A file of metrics, whose name says the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of the metrics.
    pub format: MetricsFormat,
}

/// Parses the path of a file of metrics.
pub fn metrics_file(text: &str) -> Result<MetricsFile, Problem> {
    let path = PathBuf::from(text);
    let format = match path.extension().and_then(|end| end.to_str()) {
        Some("prom") => MetricsFormat::Prometheus,
        Some("json") => MetricsFormat::Otlp,
        _ => return Err(bad("expected a file name that ends with .prom (Prometheus) or .json (OpenTelemetry)")),
    };
    Ok(MetricsFile { path, format })
}

/// What `tune --for` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// Name of a figure, e.g. `p99`.
    Figure(String),
    /// A budget file.
    Budget(PathBuf),
}

/// Parses a figure or the path of a budget file.
pub fn declared(text: &str) -> Result<Declared, Problem> {
    let path = Path::new(text);
    if ["p50", "p99", "p99.9", "mean"].contains(&text) {
        return Ok(Declared::Figure(text.to_owned()));
    }
    let is_file = path.extension().is_some_and(|end| end == "yaml" || end == "yml") || path.exists();
    if is_file {
        Ok(Declared::Budget(path.to_owned()))
    } else {
        Err(bad("expected p50, p99, p99.9, mean or a budget file (.yaml)"))
    }
}

/// Parses a range of a trial such as `60s..360s`: two times, the first before the second.
pub fn range(text: &str) -> Result<RangeSpec, Problem> {
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| bad("expected two times with `..` between them, for example `60s..360s`"))?;
    let (from, to): (Nanos, Nanos) = (from.parse()?, to.parse()?);
    let has_messages = Nanos(0) <= from && from < to;
    if has_messages {
        return Ok(RangeSpec { from, to });
    }
    Err(bad(format!("the range from {from} to {to} is empty: the start must be before the end")))
}

/// Parses a time above 0 s, such as `90s` or `2 h`.
pub fn time(text: &str) -> Result<Nanos, Problem> {
    match text.parse()? {
        Nanos(..=0) => Err(bad("the time must be longer than 0 s")),
        time => Ok(time),
    }
}

/// The host in `ssh:HOST`.
pub fn ssh_host(text: &str) -> Result<String, Problem> {
    match text.strip_prefix("ssh:") {
        Some(host) if !host.is_empty() && !host.starts_with('-') => Ok(host.to_owned()),
        _ => Err(bad("expected `ssh:HOST`, where `ssh HOST` reaches the host")),
    }
}

/// Parses a percentage above 0 %, such as `5%` or `5 %`, to a fraction.
pub fn share(text: &str) -> Result<f64, Problem> {
    let number = text.trim().strip_suffix('%').map(str::trim).and_then(|n| n.parse::<f64>().ok());
    match number {
        Some(n) if n > 0.0 && n <= 1_000.0 => Ok(n / 100.0),
        _ => Err(bad("expected a percentage such as `5%`, above 0 % and at most 1000 %")),
    }
}

/// Parses a guard such as `cpu=20%` to the largest permitted ratio of CPU times, here 1.2.
pub fn cpu_guard(text: &str) -> Result<f64, Problem> {
    match text.split_once('=') {
        Some(("cpu", more)) => Ok(1.0 + share(more)?),
        _ => Err(bad("expected the permitted rise of the CPU time per message, for example `cpu=20%`")),
    }
}

/// Parses the lease of a holder of agents: the time without messages from clients after which the holder ends.
pub fn lease(text: &str) -> Result<Duration, Problem> {
    match text.parse::<Nanos>() {
        Ok(Nanos(ns)) if ns > 0 => Ok(Duration::from_nanos(ns as u64)),
        Ok(_) => Err(bad("a lease must be longer than 0 s")),
        Err(problem) => Err(problem),
    }
}
