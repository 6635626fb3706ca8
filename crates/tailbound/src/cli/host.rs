//! Flags of `tailbound lab` and `tailbound doctor`: the commands about this host.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    pub command: Option<LabSub>,
}

#[derive(Debug, Subcommand)]
pub enum LabSub {
    /// List active runs, and the changes that killed runs left on this host
    List,
    /// Undo the changes that killed runs left on this host; active runs are not touched
    Cleanup,
    /// Write the guests of a study (place vm) as configuration for another program that starts guests
    Export(LabExport),
}

#[derive(Debug, Args)]
pub struct LabExport {
    /// Program that will start the guests: the configuration is written for this program
    #[arg(long, value_enum)]
    pub format: LabFormat,
    /// Study file, or the name of a built-in study
    pub study: PathBuf,
    /// Directory to write files to; existing files are not overwritten [default: print all files]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Set a value of the study, e.g. measure.slots=40000
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

/// Programs other than Tailbound that start guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabFormat {
    /// libvirt: one libvirt domain description per guest, and variables for the real-time profiles of tuned
    Libvirt,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print the facts of this host and the verdicts on them as JSON
    #[arg(long)]
    pub json: bool,
    /// Measure for three seconds how much CPU time an ordinary thread gets on a CPU where a real-time thread never
    /// sleeps; check nothing else
    #[arg(long)]
    pub rescue_test: bool,
}
