//! Flags of `tailbound report`, `compare`, `budget`, `ls`, `serve`, `validate` and `schema`: the commands that read records and
//! files.

use super::values::{range, share};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tailbound_model::RangeSpec;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Write the report as a table for the terminal
    Terminal,
    /// Write the report as one HTML page that works offline
    Html,
    /// Write the report as a JSON document, described by schema/report.json
    Json,
    /// Write CSV with one line per condition, metric and quantile
    Csv,
    /// Write the report as Markdown
    Md,
    /// Write one figure of the report as SVG
    Svg,
    /// Write one figure of the report as PNG
    #[cfg(feature = "png")]
    Png,
    /// Write messages, incidents and events of the kernel as a trace that https://ui.perfetto.dev opens
    Perfetto,
}

/// Figures of the report that can be drawn alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// Round trip for each level of the study's main factor
    Latency,
    /// Share of messages whose round trip takes at least a given time
    Tail,
    /// Tail estimate: the measured tail, the fitted tail with its interval, and the range in which no estimate is given
    TailEstimate,
    /// Every quantile of every condition with its interval
    Ladder,
    /// Number of messages in each bucket of the histogram, for at most six conditions
    Histogram,
    /// Messages of the trial with the worst message, over time
    Time,
    /// Legs of the median message and of the ten worst messages, for the condition with the worst message
    Legs,
    /// Every slot of the sender's loop, for the condition with the longest send call
    Loop,
    /// Messages of flows in each second
    Flow,
    /// Overhead of each level in %, compared with the level that the study names as `report.against`
    Overhead,
    /// Ways of messages through a gate over its cycle, and the predicted wait, for the gate with the longest way
    GateWaits,
    /// Gates of the classes over their cycle, and the messages that waited longest, for the gate with the longest way
    GateTimeline,
    /// Times of messages to the kernel and to the thread that receives them
    NetworkUser,
    /// Round trips over time of each level of a factor, small and side by side
    Levels,
    /// CPUs that threads, virtual CPUs and interrupts may use
    Layout,
}

#[derive(Debug, Args)]
pub struct Report {
    /// Directory of the record to report on
    pub record: PathBuf,
    /// Output format of the report
    #[arg(long, value_enum, default_value = "terminal")]
    pub format: Format,
    /// Figure to draw, for the formats svg and png [default: latency; flow if no condition has round trips]
    #[arg(long, value_enum)]
    pub figure: Option<Picture>,
    /// Trial to write, for the format perfetto; may be given more than once [default: every trial with recorded events]
    #[arg(long = "trial", value_name = "ID")]
    pub trials: Vec<usize>,
    /// Range of every trial for which figures are computed separately, in place of the study's range: `60s..360s`
    #[arg(long, value_name = "FROM..TO", value_parser = range)]
    pub range: Option<RangeSpec>,
    /// Budget file: the page and the JSON say for each limit whether the record keeps it; figures show limits for latencies as lines
    #[arg(long, value_name = "BUDGET", conflicts_with = "short")]
    pub budget: Option<PathBuf>,
    /// File to write the report to, in place of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the page of the record again and open it in a browser; without a display, its path is printed
    #[arg(long, conflicts_with_all = ["format", "out", "figure", "trials", "short"])]
    pub open: bool,
    /// Print the answer, one table and causes in place of the whole report
    #[arg(long, conflicts_with_all = ["format", "figure", "trials"])]
    pub short: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Write the comparison as sentences and a table for the terminal
    Terminal,
    /// Write the comparison as one HTML page that works offline
    Html,
    /// Write the comparison as a JSON document, described by schema/compare.json
    Json,
    /// Write the comparison as Markdown
    Md,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// Baseline record, or a directory of `watch --out`: the denominator of all ratios
    pub a: PathBuf,
    /// Record to compare with the baseline: the numerator of all ratios; if it is left out, two levels of a factor of A are compared
    #[arg(conflicts_with_all = ["factor", "levels"])]
    pub b: Option<PathBuf>,
    /// Factor whose levels are compared, e.g. payload [default: the only factor with several levels]
    #[arg(long)]
    pub factor: Option<String>,
    /// Two levels of the factor to compare, e.g. "64 B" "1 KiB" [default: the only two levels of the factor]
    #[arg(long, num_args = 2, value_names = ["A", "B"], requires = "factor")]
    pub levels: Option<Vec<String>>,
    /// Metric to compare; may be given more than once
    #[arg(long = "metric", default_value = "round_trip")]
    pub metrics: Vec<String>,
    /// Largest difference at which both sides are called equal, e.g. 5%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub margin: Option<f64>,
    /// Output format of the comparison
    #[arg(long, value_enum, default_value = "terminal")]
    pub format: CompareFormat,
    /// File to write the comparison to, in place of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// How to treat limits of a budget that cannot be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Undecided {
    /// Treat an undecided limit as kept: exit code 0
    Pass,
    /// Treat an undecided limit as exceeded: exit code 5
    Fail,
}

#[derive(Debug, Args)]
pub struct Budget {
    /// Directory of the record to check
    pub record: PathBuf,
    /// Budget file with the limits to check
    pub budget: PathBuf,
    /// Baseline record to compare with, in place of the baseline that the budget names
    #[arg(long, value_name = "RECORD")]
    pub baseline: Option<PathBuf>,
    /// How to treat limits that the number of messages in the record cannot decide [default: exit code 7]
    #[arg(long, value_enum)]
    pub undecided: Option<Undecided>,
    /// JUnit XML file to write, with one test case for each limit and condition
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Markdown file to write, e.g. "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// File of metrics to write or replace: NAME.prom for Prometheus (a textfile collector reads it), NAME.json for OpenTelemetry
    #[arg(long, value_name = "FILE", value_parser = super::values::metrics_file)]
    pub metrics: Option<super::values::MetricsFile>,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Folder of records; subfolders are searched, symbolic links are not followed
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8077")]
    pub listen: std::net::SocketAddr,
    /// Host name by which browsers may request the pages, in addition to IP addresses and `localhost`; may be given more than once
    #[arg(long = "host", value_name = "NAME")]
    pub names: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Ls {
    /// Folder of records, or a record; folders below it are not searched
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    #[command(flatten)]
    pub listed: super::Listed,
}

#[derive(Debug, Args)]
pub struct Validate {
    /// Study file, name of a built-in study, or budget file
    #[arg(value_name = "STUDY|BUDGET")]
    pub file: PathBuf,
    /// Set a value of the study, e.g. measure.slots=40000
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

/// File formats that have a JSON schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// Study file
    Study,
    /// Budget file
    Budget,
    /// Document of `tailbound report --format json`
    Report,
    /// Document of `tailbound compare --format json`
    Compare,
    /// Document of `tailbound watch --format json`
    Watch,
}
