//! Flags of `tailbound watch`.

use super::values::{MetricsFile, TextFormat, metrics_file, share, ssh_host, time};
use clap::Args;
use std::path::PathBuf;
use tailbound_model::Nanos;

/// Watch the messages that other programs send with DDS: which topics, how late they are on the wire, what is sent again
///
/// Packets are captured at the interfaces of a network namespace; nothing is sent, unless --ask is given. The lateness of a sample
/// is the time from its source timestamp until the end of its first transmission was captured. It is no end-to-end latency, and
/// traffic between other hosts is not seen. Needs root, or CAP_NET_RAW.
#[derive(Debug, Args)]
pub struct Watch {
    /// Capture at this network interface only [default: all interfaces of the network namespace]
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Capture in this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Capture in the network namespace of this running container of podman or containerd
    #[arg(long, value_name = "NAME", conflicts_with = "netns")]
    pub container: Option<String>,
    /// Capture in the network namespace of this pod, which runs on this node: NAME or NAMESPACE/NAME
    #[arg(long, value_name = "POD", conflicts_with_all = ["netns", "container"])]
    pub pod: Option<String>,
    /// How long to capture; Ctrl-C ends the capture earlier
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = time)]
    pub duration: Nanos,
    /// Join the DDS domain, so that all participants announce their writers and readers again. This sends messages of discovery
    #[arg(long)]
    pub ask: bool,
    /// Number of the DDS domain that --ask joins
    #[arg(long, value_name = "N", default_value_t = 0, requires = "ask")]
    pub domain: u32,
    /// Read a capture of another program in place of capturing: a file of tcpdump, dumpcap or Wireshark (pcap, pcapng)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interface", "netns", "container", "pod", "duration", "ask", "live", "cpu", "uprobes", "cost", "also"])]
    pub read: Option<PathBuf>,
    /// Show the topics on this terminal while packets are captured. Keys: up, down, Enter (one topic), Esc (back), s (order), q (end).
    /// With --format json: print a line of JSON every second in place of it
    #[arg(long)]
    pub live: bool,
    /// Link the messages of these topics, from causes to effects: how old the data of the last topic are, and which hop makes them late.
    /// Messages are linked by the time in their headers, where their types have one, else by time
    #[arg(long, value_name = "TOPIC,TOPIC...", value_delimiter = ',', num_args = 1)]
    pub chain: Vec<String>,
    /// Record also the calls with which programs of ROS 2 publish, take and execute messages (uprobes): how long a message was under
    /// way from call to call, also in shared memory. Each call takes the programs some microseconds more; it needs the tracer, and root
    #[arg(long)]
    pub uprobes: bool,
    /// Most CPU time that reading packets may take, such as 5% of one CPU: if it takes more for a second, the topic with most packets is
    /// no longer read, which the report says
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub cpu: Option<f64>,
    /// Capture at another host too, ssh:HOST, at the same time: how long samples took from one to the other, and which did not arrive. It
    /// needs the same version of Tailbound there, and a login without a question that may capture
    #[arg(long, value_name = "ssh:HOST", value_parser = ssh_host)]
    pub also: Option<String>,
    /// Capture at this network interface of the other host only
    #[arg(long, value_name = "NAME", requires = "also")]
    pub also_interface: Option<String>,
    /// The program on the other host
    #[arg(long, value_name = "PATH", requires = "also", default_value = "tailbound")]
    pub also_program: String,
    /// Capture for a Tailbound on another host, which is at the standard input and output
    #[arg(long, hide = true)]
    pub along: bool,
    /// Measure first, for 10 s, what the capture costs the programs that send and receive: ten pairs of times with and without one
    #[arg(long)]
    pub cost: bool,
    /// Write each sample whose first transmission was captured into a new CSV file: its writer, its number, when it was written,
    /// when it was captured (ns since 1970)
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Make a new directory with what was seen, its page and each sample: `report` shows it again, `compare` shows two of them side by side
    #[arg(long, value_name = "DIR", conflicts_with = "samples")]
    pub out: Option<PathBuf>,
    /// Make a new study file of what was seen: one topic is measured, the others are loads of the same sizes and rates
    #[arg(long, value_name = "FILE")]
    pub save_study: Option<PathBuf>,
    /// The topic that the study of --save-study measures, by its name in ROS 2 or on the wire [default: the topic with the latest
    /// message]
    #[arg(long, value_name = "NAME", requires = "save_study")]
    pub topic: Option<String>,
    /// File of metrics to write or replace every 5 s and at the end: NAME.prom for Prometheus (a textfile collector reads it),
    /// NAME.json for OpenTelemetry
    #[arg(long, value_name = "FILE", value_parser = metrics_file)]
    pub metrics: Option<MetricsFile>,
    /// Output format of what was seen
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
}
