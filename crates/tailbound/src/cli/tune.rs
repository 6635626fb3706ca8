//! Flags of `tailbound tune`: tries changes that answer a cause, and keeps what is proved to help.

use super::values::Declared;
use super::{End, values};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use tailbound_model::Nanos;

/// Try changes that answer the causes of late messages, one at a time, and keep what is proved to help
///
/// `tune` measures the study as it is, finds causes that were seen or counted, and tries changes that answer them, the most
/// promising first, in pairs of trials in random order. A change is kept only if it makes one figure smaller, which you declare
/// with --for; each kept change is then left out in turn. At the end the kept set is measured against the original on fresh
/// trials: only this gain is reported. Settings of this host are changed during the trials only. Exit codes: 0 the receipt is
/// written and says what was found; 7 the figure varies too much, or no cause was seen or counted.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, verbatim_doc_comment)]
pub struct Tune {
    #[command(subcommand)]
    pub command: Option<TuneSub>,
    /// Study file, or the name of a built-in study; it must have one condition (choose levels with --set)
    #[arg(required = true)]
    pub study: Option<PathBuf>,
    /// The figure that shall become smaller: p50, p99, p99.9 or mean of the time from due to answered; or a budget file, whose
    /// first limit of p50, p99 or p99.9 names the figure
    #[arg(long = "for", value_name = "FIGURE", value_parser = values::declared, default_value = "p99")]
    pub figure: Declared,
    /// Set a value of the study, e.g. measure.duration=2s or driver=udp
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Directory for the receipt and all records; must not exist [default: tailbound-tune-STUDY]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Begin no further candidate if the confirmation would then end after this time, e.g. 30min
    #[arg(long, value_name = "DURATION", value_parser = values::time)]
    pub budget: Option<Nanos>,
    /// Try only changes of these keys of the study, e.g. scheduling, cpus or host
    #[arg(long, value_name = "KEY")]
    pub only: Vec<String>,
    /// Also try this setting of the study, after the changes that answer a cause, e.g. ends.pong.cpus=3; may be repeated
    #[arg(long = "try", value_name = "KEY=VALUE")]
    pub tries: Vec<String>,
    /// Largest number of changes that answer a cause and are tried
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=40))]
    pub candidates: u8,
    /// Keep no change with which the ends clearly use more CPU time per message than this, e.g. cpu=20%; without it, such a change
    /// is kept with a warning
    #[arg(long, value_name = "cpu=SHARE", value_parser = values::cpu_guard)]
    pub guard: Option<f64>,
    /// How a change is decided: `looks` after 4, 6, 9 and 12 pairs of trials; `long-looks` after 6, 9, 12, 16 and 20;
    /// `symmetry` after each pair, which needs no assumption about the noise
    #[arg(long, value_enum, default_value = "looks")]
    pub rule: TuneRule,
    /// Seed of the order within the pairs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Measure although tuned, irqbalance or bpftune runs, which changes settings too
    #[arg(long)]
    pub beside: bool,
    /// Print what would be done and which rules exist; measure nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before the first trial
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TuneRule {
    Looks,
    LongLooks,
    Symmetry,
}

/// Forms in which `tune export` prints kept changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TuneFormat {
    /// Lines for a file in /etc/sysctl.d
    Sysctl,
    /// Drop-in for a unit of systemd
    Systemd,
    /// Profile of TuneD
    Tuned,
    /// Words for the kernel command line, as text
    Cmdline,
    /// Configuration of Cyclone DDS 11
    Cyclonedds,
    /// Profile of Fast DDS 2.9
    Fastdds,
    /// QoS profile of RTI Connext (never run)
    Connext,
    /// Lines for a pod of Kubernetes
    Kubernetes,
    /// Elements for a domain of libvirt
    Libvirt,
}

#[derive(Debug, Subcommand)]
pub enum TuneSub {
    /// Go on with a run of `tune` that was interrupted
    Resume {
        /// Directory of the run
        directory: PathBuf,
        /// Go on although the kernel, its command line or another circumstance changed with a reboot of this host
        #[arg(long)]
        changed: bool,
    },
    /// Measure the kept changes of a receipt against the original again, here or on another machine
    Replay {
        /// File receipt.json of `tailbound tune`
        receipt: PathBuf,
        /// Directory for the records; must not exist [default: tailbound-replay-STUDY]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Measure although tuned, irqbalance or bpftune runs, which changes settings too
        #[arg(long)]
        beside: bool,
        /// Do not ask before the first trial
        #[arg(long, short)]
        yes: bool,
    },
    /// Print the kept changes of a receipt in the form of another program; changes nothing
    Export {
        /// File receipt.json of `tailbound tune`
        receipt: PathBuf,
        /// Form of the output
        #[arg(long, value_enum)]
        format: TuneFormat,
        /// End whose program the output is for; needed only if kept changes concern both ends
        #[arg(long, value_enum)]
        end: Option<End>,
    },
    /// Set the kept host settings of a receipt on this host, with a lease: without `tune confirm`, they are put back when it ends
    Apply {
        /// File receipt.json of `tailbound tune`
        receipt: PathBuf,
        /// Time after which the settings are put back unless they are confirmed
        #[arg(long, value_name = "DURATION", value_parser = values::time, default_value = "10min")]
        lease: Nanos,
        /// Set although tuned, irqbalance or bpftune runs, which changes settings too
        #[arg(long)]
        beside: bool,
        /// Print what would be set, and what is set now; change nothing
        #[arg(long)]
        dry_run: bool,
        /// Do not ask before the first change
        #[arg(long, short)]
        yes: bool,
    },
    /// End the lease of `tune apply` and keep the settings until the next boot
    Confirm,
    /// Put back the settings of `tune apply`, confirmed or not
    Revert,
    /// Hold the settings of `tune apply` until the lease ends; `tune apply` starts this command
    #[command(hide = true)]
    Lease {
        /// Length of the lease, ns
        ns: i64,
    },
    /// Measure the pairs of a plan; `tune` starts this command
    #[command(hide = true)]
    Trials {
        /// File with the plan, as JSON
        plan: PathBuf,
        /// Directory of the record
        out: PathBuf,
    },
    /// Undo what a killed run of `tune` changed, when standard input ends; `tune` starts this command
    #[command(hide = true)]
    Watchdog,
}
