//! Flags of `tailbound lab`, `tailbound doctor` and `tailbound clock`: the commands about this host.

use super::values::{TextFormat, time};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use tailbound_model::Nanos;

#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    pub command: Option<LabSub>,
}

/// Output format of a command that lists things.
#[derive(Debug, Clone, Copy, Args)]
pub struct Listed {
    /// Output format of the list
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
    #[arg(long, hide = true)]
    pub json: bool,
}

impl Listed {
    /// Text, for a command without a subcommand.
    pub const TEXT: Listed = Listed { format: TextFormat::Text, json: false };

    /// Whether JSON is asked for. `--json` is the spelling of earlier releases.
    pub fn is_json(self) -> bool {
        self.json || self.format == TextFormat::Json
    }
}

#[derive(Debug, Subcommand)]
pub enum LabSub {
    /// List active runs, and the changes that killed runs left on this host
    List(Listed),
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
    /// Show all findings, and not only the five settings that matter most
    #[arg(short, long)]
    pub verbose: bool,
    /// End with exit code 3 if a setting widens the tail
    #[arg(long)]
    pub strict: bool,
    /// Check the hosts of a record in place of this host, and rank the settings by the causes that the record shows
    #[arg(long, value_name = "DIR", conflicts_with = "rescue_test")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub listed: Listed,
    /// Measure for three seconds how much CPU time an ordinary thread gets on a CPU where a real-time thread never
    /// sleeps; check nothing else
    #[arg(long)]
    pub rescue_test: bool,
}

#[derive(Debug, Args)]
pub struct Advice {
    /// Print the table of rules; this is also the default
    #[arg(long)]
    pub list: bool,
    /// Output format of the table
    #[arg(long, value_enum, default_value = "text")]
    pub format: AdviceFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AdviceFormat {
    /// Lines for a terminal
    Text,
    /// All members of all rules, as JSON
    Json,
    /// The tables of the page of the documentation
    Markdown,
}

#[derive(Debug, Args)]
pub struct Clock {
    /// Device of the only hardware clock to read, for example /dev/ptp0
    #[arg(long, value_name = "PATH", conflicts_with = "interface")]
    pub device: Option<PathBuf>,
    /// Network interface whose hardware clock is the only one to read
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// For how long each clock is read, once a second
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = time)]
    pub duration: Nanos,
    /// Output format of the readings
    #[arg(long, value_enum, default_value = "text")]
    pub format: ClockFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockFormat {
    /// A line for each reading, then sentences
    Text,
    /// One JSON object at the end
    Json,
}
