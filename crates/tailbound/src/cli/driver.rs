//! Flags of `tailbound driver`: list, check, export and begin drivers.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DriverCommand {
    #[command(subcommand)]
    pub command: Option<DriverSub>,
}

#[derive(Debug, Subcommand)]
pub enum DriverSub {
    /// List drivers with versions, receive modes, options and limits
    List(super::Listed),
    /// Run the conformance suite on a shared object or a built-in driver
    Check {
        /// Path of a shared object, or the name of a driver
        driver: String,
        /// Option of the driver for all checks; can be repeated
        #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_and_value)]
        options: Vec<(String, String)>,
        /// Run the conformance suite in this process; if the driver crashes, this process crashes too
        #[arg(long, hide = true)]
        here: bool,
    },
    /// Compile the part of a driver that needs the headers of its middleware, on this machine
    Build {
        /// Name of the driver
        driver: Buildable,
        /// Directory of drivers to put it into; the default is ~/.local/lib/tailbound/drivers, which is always searched
        #[arg(long, value_name = "DIRECTORY")]
        into: Option<PathBuf>,
    },
    /// Print a condition of a study as a configuration file of the vendor: transport, and threads if the vendor has settings for them
    Export(Export),
    /// Write the C header and the source of an example driver, as the start of a new driver
    New {
        /// Directory to write the example driver to; existing files are not overwritten
        directory: PathBuf,
        /// Write the example driver in C++17 in place of C
        #[arg(long)]
        cxx: bool,
    },
}

/// Reads `KEY=VALUE`.
fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("KEY=VALUE is expected, for example executor=events".into()),
    }
}

/// Drivers with a part that is compiled on the user's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Buildable {
    /// The driver rclcpp, against the ROS 2 that is sourced
    Rclcpp,
}

/// Vendors whose configuration format can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Vendor {
    /// Write a configuration of Cyclone DDS 11: a file for CYCLONEDDS_URI
    Cyclonedds,
    /// Write a configuration of Fast DDS 2.9: an XML file of profiles
    Fastdds,
}

/// The two ends of a ping-pong measurement, ping and pong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum End {
    /// The end that sends first (ping)
    Ping,
    /// The end that answers (pong)
    Pong,
}

#[derive(Debug, Args)]
pub struct Export {
    /// Vendor whose configuration format is written
    #[arg(long = "for", value_enum, value_name = "VENDOR")]
    pub vendor: Vendor,
    /// Study file or built-in study, and one of its conditions: STUDY#3, or STUDY#payload=1KiB,rate=1kHz
    #[arg(value_name = "STUDY#CONDITION")]
    pub condition: String,
    /// End (ping or pong) whose configuration is written
    #[arg(long, value_enum, default_value = "ping")]
    pub end: End,
    /// Set a value of the study, e.g. measure.slots=40000 or payload=[64 B, 1 KiB]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}
