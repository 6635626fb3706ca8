//! Flags of `tailbound gates`, the commands about gate schedules.

use clap::{Args, Subcommand, ValueEnum};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use tailbound_gates::{Rule, Speed};
use tailbound_stats::Quantile;

#[derive(Debug, Subcommand)]
pub enum GatesSub {
    /// Predict how long a frame of a class waits for its gate, at the worst time and at any time of the cycle
    Predict(GatesPredict),
    /// Check the gates of a study before anything runs
    Check(GatesCheck),
    /// Recover the gate schedule on the way of the messages of a record, also of a bridge that nobody can ask
    Recover(GatesRecover),
    /// Advise how early messages must be due, so that a stated share of them reaches the kernel in time
    Advise(GatesAdvise),
}

#[derive(Debug, Args)]
pub struct GatesAdvise {
    /// Directory of the record. Its conditions with a rate show how long wake-ups and send calls take
    pub record: PathBuf,
    /// Largest share of messages that may be late, for example `1e-3`: from 1e-9 to 0.1
    #[arg(long, value_name = "SHARE", default_value = "1e-3")]
    pub miss_rate: MissRate,
    /// Output format of the advice
    #[arg(long, value_enum, default_value = "text")]
    pub format: GatesFormat,
}

/// A share of messages that may be late, as the quantile that is at most as late as the limit.
#[derive(Debug, Clone, Copy)]
pub struct MissRate(pub Quantile);

impl FromStr for MissRate {
    type Err = MissRateError;

    fn from_str(text: &str) -> Result<MissRate, MissRateError> {
        let share: f64 = text.parse().map_err(|_| MissRateError)?;
        let parts = (1e15 * (1.0 - share)).round();
        let quantile = (1e-9..=0.1).contains(&share).then(|| Quantile::from_parts(parts as u64));
        quantile.and_then(Result::ok).map(MissRate).ok_or(MissRateError)
    }
}

/// Error: the text is no share of messages.
#[derive(Debug)]
pub struct MissRateError;

impl fmt::Display for MissRateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a miss rate is a number from 1e-9 to 0.1, for example 1e-3 for one message in 1,000")
    }
}

impl std::error::Error for MissRateError {}

#[derive(Debug, Args)]
pub struct GatesRecover {
    /// Directory of the record. Its messages must have been sent at all phases of the cycle
    pub record: PathBuf,
    /// Output format of the schedules
    #[arg(long, value_enum, default_value = "text")]
    pub format: GatesFormat,
}

#[derive(Debug, Args)]
pub struct GatesCheck {
    /// Study file, or the name of a built-in study
    pub study: PathBuf,
    /// Set a value of the study, e.g. payload=[64 B, 1 KiB]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

#[derive(Debug, Args)]
pub struct GatesPredict {
    /// Study file (`.yaml`), or the output of `tc -j qdisc show`; `-` = this output on standard input
    pub file: PathBuf,
    /// Device, or end of the study, with the schedule; needed if the file has several schedules
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Traffic class of the frame: its number, from 0, or its name in the study
    #[arg(long, value_name = "CLASS")]
    pub class: String,
    /// Length of the frame as the kernel counts it: with the Ethernet header, without the checksum. On the wire, the frame needs
    /// 24 bytes more
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=65_575))]
    pub bytes: u64,
    /// Speed of the link, for example `1Gbps` or `100Mbps`
    #[arg(long, value_name = "SPEED")]
    pub speed: Speed,
    /// What happens if the entries are shorter than the cycle: Linux begins with the first entry again, and IEEE 802.1Q extends the
    /// last one. Needed if entries and cycle differ
    #[arg(long = "as", value_name = "RULE")]
    pub rule: Option<GatesRule>,
    /// Output format of the prediction
    #[arg(long, value_enum, default_value = "text")]
    pub format: GatesFormat,
}

/// Whose rule holds if the entries of a schedule are shorter than its cycle.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GatesRule {
    /// Linux (taprio without offload)
    Kernel,
    /// IEEE 802.1Q
    Standard,
}

impl From<GatesRule> for Rule {
    fn from(rule: GatesRule) -> Rule {
        match rule {
            GatesRule::Kernel => Rule::Kernel,
            GatesRule::Standard => Rule::Standard,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GatesFormat {
    /// Sentences
    Text,
    /// One JSON object
    Json,
}
