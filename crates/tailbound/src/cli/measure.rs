//! Flags of `tailbound quick`, `run`, `studies` and `import`: the commands that write records, and the studies that
//! they run.

use super::values;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tailbound_model::{ByteSize, Nanos};

#[derive(Debug, Args)]
pub struct Quick {
    /// Directory of the record [default: tailbound-quick; an older record of this name is renamed]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Set a value of the study, e.g. measure.slots=40000 or payload=[64 B, 1 KiB]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Run {
    /// Study file, or the name of a built-in study
    pub study: PathBuf,
    /// Directory of the record; must not exist [default: tailbound-STUDY]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Set a value of the study, e.g. measure.slots=40000 or payload=[64 B, 1 KiB]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Print conditions, order, commands, knobs, privileges and duration; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Refuse the study if some of its conditions are not possible
    #[arg(long)]
    pub strict: bool,
    /// Print only errors and warnings, and neither progress nor a table
    #[arg(long, short)]
    pub quiet: bool,
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
    pub tool: String,
    /// Files with the output of the program
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
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
    /// List the names and questions of the built-in studies
    List,
    /// Print the text of a built-in study
    Show {
        /// Name of the built-in study
        name: String,
    },
}
