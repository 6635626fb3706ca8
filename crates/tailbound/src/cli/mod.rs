//! The table of commands and flags. Help texts, manual pages, shell completions and docs/src/cli.md are generated from it.

mod agent;
mod driver;
mod gates;
mod grouped_help;
mod guest;
mod host;
mod measure;
mod package;
mod pod;
mod results;
mod tune;
mod values;
mod watch;

pub use agent::*;
pub use driver::*;
pub use gates::*;
pub use grouped_help::command;
pub use guest::*;
pub use host::*;
pub use measure::*;
pub use package::*;
pub use pod::*;
pub use results::*;
pub use tune::*;
pub use values::{Declared, MetricsFile, TextFormat};
pub use watch::*;

use crate::output::Color;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// The version and the build: `dev/release` names the commit.
pub const BUILD: &str = match option_env!("TAILBOUND_BUILD") {
    Some(build) => build,
    None => concat!(env!("CARGO_PKG_VERSION"), " (built from a checkout)"),
};

/// Measure how late messages can be on exactly this deployment, why they were late, and what to change.
///
/// Exit codes: 0 done and valid; 1 unexpected error; 2 wrong arguments or study file; 3 this machine cannot run the
/// command; 4 an agent, a driver or the lab failed; 5 a limit of a budget was exceeded; 6 finished, but the record is
/// invalid or incomplete; 7 not enough messages to decide a budget, or no message fulfilled the condition of `--until`.
#[derive(Debug, Parser)]
#[command(name = "tailbound", version, long_version = BUILD, max_term_width = 100)]
pub struct Cli {
    /// When output has colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: Color,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Ping(Ping),
    /// Measure this machine in about 20 seconds: UDP and Cyclone DDS between two network namespaces
    Quick(Quick),
    /// Run a study and write its record
    Run(Run),
    /// Show the results of a record
    Report(Report),
    /// Compare two records, or two levels of a factor in one record: which side is faster, and how certain that is
    Compare(Compare),
    /// Convert the output of another benchmark program to a record that names the program
    Import(Import),
    /// Show the records of a folder as web pages on this machine
    Serve(Serve),
    /// Check whether a record or a capture keeps the limits of a budget file, as far as its number of messages allows
    Budget(Budget),
    /// List the records and captures of a folder, one line each, with p99 and status
    Ls(Ls),
    /// List the built-in studies, or print one of them
    Studies(Studies),
    Tune(Tune),
    /// Check a study or a budget file, and run nothing
    Validate(Validate),
    /// Print the JSON schema of a file format
    Schema {
        /// File format whose schema is printed
        #[arg(value_enum, default_value = "study")]
        of: SchemaOf,
    },
    /// List drivers, check a driver against the rules, export a configuration, or begin a new driver
    Driver(DriverCommand),
    /// Predict how long frames wait for the gates of a schedule (IEEE 802.1Q, taprio)
    Gates {
        #[command(subcommand)]
        command: GatesSub,
    },
    /// Copy this program, its drivers and all libraries to one directory that runs on other distributions
    Bundle(Bundle),
    /// Write the bundle as a container image: an archive for podman, docker, containerd, kind and registries
    Image(Image),
    /// Print the objects that a Kubernetes cluster needs before Tailbound can measure in the cluster
    K8s {
        #[command(subcommand)]
        command: K8sSub,
    },
    /// Use virtual machines of this host with QEMU: build their boot files, open a shell, run a study in a guest
    Guest {
        #[command(subcommand)]
        command: GuestSub,
    },
    /// List the changes that runs made to this host, and undo the changes of runs that were killed
    Lab(Lab),
    /// Print the rules of advice: which setting answers which cause of late messages, what it gains, and its risk
    Advice(Advice),
    /// Check whether this machine is set up for low latency in the worst case; changes nothing
    Doctor(Doctor),
    /// Read the hardware clocks of network cards (PTP) beside the system's clock: offset, rate, steps; sets nothing
    Clock(Clock),
    Watch(Watch),
    /// Print the completions for a shell
    Completions {
        /// Name of the shell for which completions are printed
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands
    Man {
        /// Directory for the manual pages
        directory: PathBuf,
    },
    /// Measure at one place; `run` starts this command and talks to it over standard input and output
    #[command(hide = true)]
    Agent(Agent),
    /// Send requests of `run` to a Kubernetes cluster; orders and answers use standard input and output
    #[command(hide = true)]
    Pod {
        #[command(subcommand)]
        command: PodSub,
    },
}

impl Command {
    /// Whether the command only prints: it starts no other process and changes nothing.
    pub fn only_prints(&self) -> bool {
        !matches!(
            self,
            Command::Ping(_)
                | Command::Quick(_)
                | Command::Run(_)
                | Command::Tune(_)
                | Command::Agent(_)
                | Command::Pod { .. }
                | Command::Guest { .. }
        )
    }
}
