//! Flags of `tailbound ping`, `quick`, `run`, `studies` and `import`: the commands that write records, and the studies that
//! they run.

use super::values::{self, TextFormat};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tailbound_model::{ByteSize, Nanos, Rate};

/// Flags about the record of a run.
#[derive(Debug, Args)]
pub struct NewRecord {
    /// Directory of the record [default: tailbound-STUDY-TIME, with a link `latest` to it]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the record that `--out` names
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Run although another run of Tailbound is active on this host; the record says so
    #[arg(long)]
    pub allow_concurrent: bool,
}

#[derive(Debug, Args)]
pub struct Quick {
    #[command(flatten)]
    pub record: NewRecord,
    /// Set a value of the study, e.g. measure.slots=40000 or payload=[64 B, 1 KiB]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Print the whole report, not only the answer, one table and causes
    #[arg(long, short)]
    pub verbose: bool,
}

/// Measure round trips between two processes without a study file: one driver, one payload, one rate.
///
/// Without --to, the ends are in two network namespaces of this host, which a veth pair joins; if the kernel does not allow
/// this, they use loopback. Ctrl-C ends the measurement and shows the figures so far; the exit code is then 6, because the
/// record is incomplete.
#[derive(Debug, Args)]
pub struct Ping {
    /// Driver that sends the messages: udp, cyclonedds, fastdds, ros2, or another driver of `tailbound driver list`
    #[arg(default_value = "udp")]
    pub driver: String,
    /// Host that answers, as ssh knows it: HOST or USER@HOST. Tailbound is copied there
    #[arg(long, value_name = "HOST")]
    pub to: Option<String>,
    /// Rate of the messages, e.g. 100Hz; `max` sends each message when the answer to the previous one has arrived
    #[arg(long, value_name = "RATE", default_value = "1kHz")]
    pub rate: Rate,
    /// Payload of the messages, e.g. 60kB
    #[arg(long, value_name = "SIZE", default_value = "64B")]
    pub size: ByteSize,
    /// Length of the measurement, e.g. 1min
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = values::time)]
    pub duration: Nanos,
    #[command(flatten)]
    pub record: NewRecord,
    /// File to write the study of this measurement to; it must not exist
    #[arg(long, value_name = "FILE")]
    pub save_study: Option<PathBuf>,
    /// Print the whole report, not only the answer, one table and causes
    #[arg(long, short)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct Run {
    /// Study file, or the name of a built-in study
    pub study: PathBuf,
    #[command(flatten)]
    pub record: NewRecord,
    /// Set a value of the study, e.g. measure.slots=40000 or payload=[64 B, 1 KiB]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Print conditions, order, commands, knobs, privileges and duration; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Output format of the description, with --dry-run
    #[arg(long, value_enum)]
    pub format: Option<TextFormat>,
    #[arg(long, hide = true)]
    pub json: bool,
    /// Refuse the study if some of its conditions are not possible
    #[arg(long)]
    pub strict: bool,
    /// Print only errors and warnings, and neither progress nor a table
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the answer, one table and causes in place of the whole report
    #[arg(long, conflicts_with = "quiet")]
    pub short: bool,
    /// End the run at the first message that fulfils a condition, e.g. 'round_trip > 20 ms or lost', and keep the
    /// events around it
    #[arg(long, value_name = "CONDITION")]
    pub until: Option<String>,
    /// Repeat the trials of the study until the condition of --until is fulfilled, but at most for this time, e.g. 2h
    #[arg(long, value_name = "DURATION", value_parser = values::time, requires = "until")]
    pub at_most: Option<Nanos>,
    /// Repeat the trials of the study for this time, e.g. 8h; the report states the times without a measurement
    #[arg(long = "for", value_name = "DURATION", value_parser = values::time, conflicts_with = "until")]
    pub repeat_for: Option<Nanos>,
    /// Begin no further trial once the record takes this much disk, e.g. 2GiB
    #[arg(long, value_name = "SIZE", requires = "repeat_for")]
    pub disk: Option<ByteSize>,
    /// Remove the oldest trials once the record takes this much disk, in place of the end of the run; trials with the
    /// worst incidents are kept
    #[arg(long, requires = "disk")]
    pub rolling: bool,
}

#[derive(Debug, Args)]
pub struct Import {
    /// Program that printed the output: ddsperf, sockperf, sockperf-throughput, iperf3, isochron, cyclictest, rti-perftest, performance-test, or a tool file of your own (NAME.yaml)
    #[arg(required_unless_present_any = ["bag", "ros2_trace"])]
    pub tool: Option<String>,
    /// Files with the output of the program
    #[arg(required_unless_present_any = ["bag", "ros2_trace"])]
    pub files: Vec<PathBuf>,
    /// Read a recording of ROS 2 in place of an output: the directory of `ros2 bag record`, or one of its files (.mcap, .db3)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["tool", "files", "out", "known"])]
    pub bag: Option<PathBuf>,
    /// Make a new study file of the recording: one topic is measured, the others are loads of the same sizes and rates
    #[arg(long, value_name = "FILE", requires = "bag")]
    pub save_study: Option<PathBuf>,
    /// The topic that the study of --save-study measures [default: the topic with most messages]
    #[arg(long, value_name = "NAME", requires = "save_study")]
    pub topic: Option<String>,
    /// Read a trace of `ros2 trace` in place of an output: how long messages were under way from publish to take, and callbacks took
    #[arg(long, value_name = "DIR", conflicts_with_all = ["tool", "files", "out", "known", "bag"])]
    pub ros2_trace: Option<PathBuf>,
    /// Find the messages of the trace in this capture of the same time, made by `tailbound watch --out`: when they were on the wire
    #[arg(long, value_name = "DIR", requires = "ros2_trace")]
    pub capture: Option<PathBuf>,
    /// Output format of what the trace has
    #[arg(long, value_enum, default_value = "text", requires = "ros2_trace")]
    pub format: TextFormat,
    /// Directory of the record; must not exist [default: tailbound-TOOL]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// State what you know about the run of the program: payload, rate, path, place, scheduling, host, version or date
    #[arg(long = "known", value_name = "KEY=VALUE")]
    pub known: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Studies {
    #[command(subcommand)]
    pub command: Option<StudiesCommand>,
}

#[derive(Debug, Subcommand)]
pub enum StudiesCommand {
    /// List the built-in studies: question, length, and what this machine lacks
    List(super::Listed),
    /// Print the text of a built-in study
    Show {
        /// Name of the built-in study
        name: String,
    },
}
