//! The flag table: help, man pages and completions all come from here.

mod agent;
mod guest;

pub use agent::*;
pub use guest::*;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use tailbound_model::{Nanos, RangeSpec};

/// How late can a message be on exactly this deployment, why was it that late, and what to change.
///
/// Exit codes: 0 done and valid; 1 unexpected; 2 bad arguments or study file; 3 machine not fit; 4 agent, driver or lab
/// failed; 5 a budget is broken; 6 finished but the record is invalid or incomplete; 7 not enough data to judge a budget.
#[derive(Debug, Parser)]
#[command(name = "tailbound", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine in about 20 seconds: UDP and Cyclone DDS between two network namespaces
    Quick(Quick),
    /// Run a study and write its record
    Run(Run),
    /// Show a record
    Report(Report),
    /// Compare two records, or two levels of a factor inside one: which is faster, and how sure that is
    Compare(Compare),
    /// Take over what another benchmark program printed, as a record that says so
    Import(Import),
    /// Show the records of a folder as local pages
    Serve(Serve),
    /// Check whether a record keeps its limits, as far as its messages can tell
    Budget(Budget),
    /// The studies that are built in
    Studies(Studies),
    /// The drivers: what they can do, whether one keeps the rules, and a skeleton of one
    Driver(DriverCommand),
    /// Put this program, its drivers and all libraries into one directory that runs on other distributions
    Bundle(Bundle),
    /// Write the bundle as an image for containers and pods: an archive for podman, docker, containerd, kind and registries
    Image(Image),
    /// What a Kubernetes cluster is given before Tailbound measures in it
    K8s {
        #[command(subcommand)]
        command: K8sSub,
    },
    /// Virtual machines of this host, by QEMU: what they boot, a shell in one, a study that is run within one
    Guest {
        #[command(subcommand)]
        command: GuestSub,
    },
    /// What runs have changed on this host and not yet taken back
    Lab(Lab),
    /// Check whether this machine is set up for short tails; changes nothing
    Doctor(Doctor),
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Directory to write them to
        directory: PathBuf,
    },
    /// The measuring side; started by `run`, speaks on standard input and output
    #[command(hide = true)]
    Agent(Agent),
    /// Speaks with a cluster for `run`, on standard input and output
    #[command(hide = true)]
    Pod {
        #[command(subcommand)]
        command: PodSub,
    },
}

impl Command {
    /// The command starts no other process and changes nothing.
    pub fn only_prints(&self) -> bool {
        !matches!(
            self,
            Command::Quick(_) | Command::Run(_) | Command::Agent(_) | Command::Pod { .. } | Command::Guest { .. }
        )
    }
}

#[derive(Debug, Args)]
pub struct Quick {
    /// Directory of the record; an older tailbound-quick that `quick` made is renamed
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
    /// Refuse a study of which some conditions are impossible
    #[arg(long)]
    pub strict: bool,
    /// No progress and no table; errors and warnings only
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for the terminal
    Terminal,
    /// One page that works offline
    Html,
    /// The document of schema/report.json
    Json,
    /// One line per condition, metric and quantile
    Csv,
    /// Markdown
    Md,
    /// One figure as a vector picture
    Svg,
    /// One figure as pixels
    #[cfg(feature = "png")]
    Png,
}

/// Figures that can stand alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// The study's main factor against the round trip
    Latency,
    /// How rare a round trip is
    Tail,
    /// The tail estimate: what was measured, the fitted tail with its interval, and where it is refused
    TailEstimate,
    /// Every quantile of every condition with its interval
    Ladder,
    /// Messages in each bucket, of six conditions at most
    Histogram,
    /// The trial of the worst message over time
    Time,
    /// The parts of the median message and of the ten worst, of the condition with the worst
    Legs,
    /// Every slot of the sender's loop, of the condition with the longest call that publishes
    Loop,
    /// Samples of flows, second by second
    Flow,
    /// What each level costs against that of report.against
    Overhead,
}

#[derive(Debug, Args)]
pub struct Report {
    /// The record
    pub record: PathBuf,
    /// Form of the report
    #[arg(long, value_enum, default_value = "terminal")]
    pub format: Format,
    /// Which figure, for a picture [default: latency; of flows without round trips flow]
    #[arg(long, value_enum)]
    pub figure: Option<Picture>,
    /// A range of every trial with figures of its own, in place of the study's: `60s..360s`
    #[arg(long, value_name = "FROM..TO", value_parser = range)]
    pub range: Option<RangeSpec>,
    /// File to write to in place of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Two durations, the first before the second.
fn range(text: &str) -> Result<RangeSpec, String> {
    let (from, to) = text.split_once("..").ok_or("two times with `..` between them, for example `60s..360s`")?;
    let [from, to] = [from, to].map(|time| time.parse::<Nanos>().map_err(|e| e.to_string()));
    let (from, to) = (from?, to?);
    let holds = Nanos(0) <= from && from < to;
    if holds { Ok(RangeSpec { from, to }) } else { Err(format!("a range from {from} to {to} holds nothing")) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Words and a table for the terminal
    Terminal,
    /// One page that works offline
    Html,
    /// The document of schema/compare.json
    Json,
    /// Markdown
    Md,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The record that ratios are taken to
    pub a: PathBuf,
    /// The record that ratios are taken of; without it two levels of a factor of A are compared
    #[arg(conflicts_with_all = ["factor", "levels"])]
    pub b: Option<PathBuf>,
    /// Factor whose levels are compared, e.g. payload [default: the only one that varies]
    #[arg(long)]
    pub factor: Option<String>,
    /// Its two levels, e.g. "64 B" "1 KiB" [default: the only two]
    #[arg(long, num_args = 2, value_names = ["A", "B"], requires = "factor")]
    pub levels: Option<Vec<String>>,
    /// Metric; may be given more than once
    #[arg(long = "metric", default_value = "round_trip")]
    pub metrics: Vec<String>,
    /// Sides that differ by no more than this are called equal, e.g. 5%
    #[arg(long, value_name = "SHARE", value_parser = crate::commands::share)]
    pub margin: Option<f64>,
    /// Form of the comparison
    #[arg(long, value_enum, default_value = "terminal")]
    pub format: CompareFormat,
    /// File to write to in place of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// As what a limit counts that cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Undecided {
    /// As one that holds: exit code 0
    Pass,
    /// As one that is broken: exit code 5
    Fail,
}

#[derive(Debug, Args)]
pub struct Budget {
    /// The record
    pub record: PathBuf,
    /// The budget file
    pub budget: PathBuf,
    /// Record to compare with, in place of the one that the budget names
    #[arg(long, value_name = "RECORD")]
    pub baseline: Option<PathBuf>,
    /// As what limits count that cannot be judged from this many messages [default: exit code 7]
    #[arg(long, value_enum)]
    pub undecided: Option<Undecided>,
    /// JUnit XML file to write: one test case for each limit and condition
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Markdown file to write, e.g. "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Import {
    /// The program: ddsperf, sockperf, sockperf-throughput, iperf3, cyclictest, rti-perftest, performance-test, or a tool file of your own (NAME.yaml)
    pub tool: String,
    /// Files that hold its output
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Directory of the record; must not exist [default: tailbound-TOOL]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What you know of how it was run: payload, rate, path, place, scheduling, host, version or date
    #[arg(long = "known", value_name = "KEY=VALUE")]
    pub known: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Bundle {
    /// Directory of the bundle; must not exist [default: tailbound-bundle]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// A driver to take along beside those that are linked in, by name or path; may be given more than once [default: all that are found]
    #[arg(long = "driver", value_name = "DRIVER")]
    pub drivers: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Image {
    /// File of the image; must not exist [default: tailbound-image.tar]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Name of the image; without a registry it is localhost, without a tag the release [default: localhost/tailbound]
    #[arg(long, value_name = "NAME[:TAG]")]
    pub name: Option<String>,
    /// Take a bundle that is there, in place of one made of this program
    #[arg(long, value_name = "DIR", conflicts_with = "drivers")]
    pub bundle: Option<PathBuf>,
    /// A driver to take along beside those that are linked in, by name or path; may be given more than once [default: all that are found]
    #[arg(long = "driver", value_name = "DRIVER")]
    pub drivers: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum K8sSub {
    /// Print a namespace, the rights that Tailbound needs, and an example Job, for `kubectl apply -f -`
    Manifest(Manifest),
}

#[derive(Debug, Args)]
pub struct Manifest {
    /// Namespace of all objects; printed as an object too, unless it is `default` or begins with `kube-`
    #[arg(long, default_value = "tailbound")]
    pub namespace: String,
    /// Name of the objects: another one for a second set in the namespace
    #[arg(long, default_value = "tailbound")]
    pub name: String,
    /// Image of the Job, as the nodes name it [default: localhost/tailbound:RELEASE]
    #[arg(long)]
    pub image: Option<String>,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Folder of records; folders within it are looked into, links are not followed
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Address to listen on; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8077")]
    pub listen: std::net::SocketAddr,
    /// Another name under which the pages may be asked for, beside addresses and `localhost`
    #[arg(long = "host", value_name = "NAME")]
    pub names: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Studies {
    #[command(subcommand)]
    pub command: Option<StudiesCommand>,
}

#[derive(Debug, Subcommand)]
pub enum StudiesCommand {
    /// Names and questions
    List,
    /// The text of one
    Show {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct DriverCommand {
    #[command(subcommand)]
    pub command: Option<DriverSub>,
}

#[derive(Debug, Subcommand)]
pub enum DriverSub {
    /// Drivers with versions, receive modes, options and limits
    List,
    /// Run the conformance suite over a shared object or a linked driver
    Check {
        /// Path of a shared object, or the name of a driver
        driver: String,
        /// In this process, which a driver that crashes takes along
        #[arg(long, hide = true)]
        here: bool,
    },
    /// Print a condition of a study as the vendor's own configuration: transport, and threads where it has settings for them
    Export(Export),
    /// Write the header and a skeleton to begin a driver of your own with
    New {
        /// Directory to write them to; no file in it is written over
        directory: PathBuf,
        /// The skeleton in C++17 in place of C
        #[arg(long)]
        cxx: bool,
    },
}

/// Vendors with a configuration of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Vendor {
    /// Cyclone DDS 11: a file for CYCLONEDDS_URI
    Cyclonedds,
    /// Fast DDS 2.9: profiles
    Fastdds,
}

/// The ends of a ping-pong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum End {
    /// The end that sends first
    Ping,
    /// The end that answers
    Pong,
}

#[derive(Debug, Args)]
pub struct Export {
    /// Whose configuration
    #[arg(long = "for", value_enum, value_name = "VENDOR")]
    pub vendor: Vendor,
    /// Study file or built-in study, and one of its conditions: STUDY#3, or STUDY#payload=1KiB,rate=1kHz
    #[arg(value_name = "STUDY#CONDITION")]
    pub condition: String,
    /// Which end
    #[arg(long, value_enum, default_value = "ping")]
    pub end: End,
    /// Set a value of the study, e.g. measure.slots=40000 or payload=[64 B, 1 KiB]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    pub command: Option<LabSub>,
}

#[derive(Debug, Subcommand)]
pub enum LabSub {
    /// Runs that go on, and what dead ones left
    List,
    /// Take back what dead runs left; live ones are not touched
    Cleanup,
    /// Write the guests of a study (place vm) as others start them
    Export(LabExport),
}

#[derive(Debug, Args)]
pub struct LabExport {
    /// For whom
    #[arg(long, value_enum)]
    pub format: LabFormat,
    /// Study file, or the name of a built-in study
    pub study: PathBuf,
    /// Directory to write files to; files that are there are not overwritten. Without it all is printed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Set a value of the study
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

/// Who starts guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabFormat {
    /// libvirt: a description of each, and variables for the real-time profiles of tuned
    Libvirt,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print facts and verdicts as JSON
    #[arg(long)]
    pub json: bool,
    /// Find out in three seconds what an ordinary thread gets beside a real-time thread that never sleeps; nothing else
    #[arg(long)]
    pub rescue_test: bool,
}

#[derive(Debug, Subcommand)]
pub enum PodSub {
    /// Make a pod; the order comes on standard input
    Make,
    /// Delete the pods with a label; how the cluster is reached comes on standard input
    Delete {
        /// Value of the label
        #[arg(long)]
        token: String,
    },
    /// Make a discovery server for the pods of a run; the order comes on standard input
    Serve,
    /// Make a name for the pods of a run, a headless Service; the order comes on standard input
    Name,
    /// Say why it does not serve; the order by which it was made comes on standard input
    Unserved,
    /// Delete the Services with a label and what serves them; how the cluster is reached comes on standard input
    Unserve {
        /// Value of the label
        #[arg(long)]
        token: String,
    },
    /// Start Tailbound in a pod and carry its standard input and output
    Stream {
        /// How the cluster is reached, as JSON
        #[arg(long)]
        spec: String,
        /// Namespace of the pod
        #[arg(long)]
        namespace: String,
        /// Name of the pod
        #[arg(long)]
        name: String,
        /// Arguments there
        #[arg(last = true)]
        words: Vec<String>,
    },
}
