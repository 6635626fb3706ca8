//! `tailbound agent`: hidden commands that `run` starts at the places of a trial.

use super::values::lease;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Agent {
    #[command(subcommand)]
    pub command: Option<AgentSub>,
    /// Text that marks this process as part of a run, so that a clean-up of the run finds it
    #[arg(long)]
    pub run_token: Option<String>,
    /// Run as the measuring process, with this number of sample memories
    #[arg(long)]
    pub measure: Option<usize>,
    /// Run as a load of this kind until SIGTERM
    #[arg(long, conflicts_with = "measure", value_parser = ["cpu", "memory", "cache", "syscall", "udp-stream", "topic"])]
    pub load: Option<String>,
    /// Measure on this CPU how much CPU time an ordinary thread gets while a real-time thread on the same CPU never
    /// sleeps
    #[arg(long, value_name = "CPU")]
    pub rescue_test: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub enum AgentSub {
    /// Start agents at this place, and keep the agents and their output while connections to them are broken (holder of
    /// agents)
    Hold(Hold),
    /// Connect standard input and output to the holder of agents at this place
    Relay(Relay),
    /// Run a discovery server until SIGTERM
    Discovery(Discovery),
}

#[derive(Debug, Args)]
pub struct Hold {
    /// Unix socket to listen on; its directory is created
    #[arg(long, value_name = "PATH", default_value = HOLDER)]
    pub socket: PathBuf,
    /// Time without any client after which the holder of agents ends; clients send something every 5 s
    #[arg(long, value_name = "DURATION", default_value = "30 s", value_parser = lease)]
    pub lease: std::time::Duration,
}

#[derive(Debug, Args)]
pub struct Discovery {
    /// Driver whose participants find each other through the discovery server
    #[arg(long, value_name = "NAME")]
    pub driver: String,
    /// IPv4 address and port on which the discovery server listens; 0.0.0.0 means all interfaces
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: std::net::SocketAddrV4,
    /// Time at which the discovery server ends, in seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    pub until: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Relay {
    /// Unix socket of the holder of agents
    #[arg(long, value_name = "PATH", default_value = HOLDER)]
    pub socket: PathBuf,
}

/// Default socket of a holder of agents. /tmp is writable in the image, and is not shared with other containers.
const HOLDER: &str = "/tmp/tailbound/agent.sock";
