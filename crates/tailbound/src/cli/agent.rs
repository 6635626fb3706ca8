//! `tailbound agent`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Agent {
    #[command(subcommand)]
    pub command: Option<AgentSub>,
    /// Name by which a clean-up finds this process
    #[arg(long)]
    pub run_token: Option<String>,
    /// Be the measuring process, with this many sample memories
    #[arg(long)]
    pub measure: Option<usize>,
    /// Be a load of this kind until SIGTERM
    #[arg(long, conflicts_with = "measure", value_parser = ["cpu", "memory", "cache", "syscall", "udp-stream", "topic"])]
    pub load: Option<String>,
    /// Try on this CPU what an ordinary thread gets beside a real-time thread
    #[arg(long, value_name = "CPU")]
    pub rescue_test: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub enum AgentSub {
    /// Stay where agents run, and keep them and what they say while the connections to them are cut
    Hold(Hold),
    /// Join standard input and output to the holder of this place
    Relay(Relay),
    /// Be a discovery server until SIGTERM
    Discovery(Discovery),
}

#[derive(Debug, Args)]
pub struct Hold {
    /// Socket to listen on; its directory is made
    #[arg(long, value_name = "PATH", default_value = HOLDER)]
    pub socket: PathBuf,
    /// End when nobody was heard for so long; clients are heard every 5 s
    #[arg(long, value_name = "DURATION", default_value = "30 s", value_parser = crate::commands::lease)]
    pub lease: std::time::Duration,
}

#[derive(Debug, Args)]
pub struct Discovery {
    /// Driver whose participants it brings together
    #[arg(long, value_name = "NAME")]
    pub driver: String,
    /// IPv4 address and port where it listens; 0.0.0.0 is all interfaces
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: std::net::SocketAddrV4,
    /// Serve nobody after this time, seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    pub until: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Relay {
    /// The holder's socket
    #[arg(long, value_name = "PATH", default_value = HOLDER)]
    pub socket: PathBuf,
}

/// Where the holder of a place is found: /tmp can be written to in the image and is not shared with other containers.
const HOLDER: &str = "/tmp/tailbound/agent.sock";
