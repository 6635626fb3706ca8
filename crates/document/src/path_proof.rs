//! Proof of the path: the transport that messages used, from the counters of interfaces with and without messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailbound_model::PortCounted;

/// Proof of the path of a condition, over the trials from which the condition's figures are computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathProofReport {
    /// The transport that messages used, in words, with the figures of the proof.
    pub text: String,
    /// The transport that the study asks for: `packets`, `shared-memory`, `data-sharing`, `inside-process`; absent if
    /// the study names no transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The transport that messages used, as one of the words of `asked`; absent if the transport is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Sentence about a contradiction between the counters and the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// Sentence about what is not known about the transport, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unclear: Option<String>,
    /// Number of messages that the ping end sent, including the warm-up.
    pub sent: u64,
    /// Number of the ping end's messages that were answered.
    pub answered: u64,
    /// Traffic of each interface that had traffic or that belongs to the path.
    pub interfaces: Vec<InterfaceProof>,
    /// Counters of the path between guests, at the path's interfaces on the host, summed over the trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortCounted>,
    /// Names of the shared memory files that both ends' processes had mapped, or that the common process of both ends
    /// had mapped; from the first trial.
    pub shared_segments: Vec<String>,
    /// Number of network sockets of the measuring processes in the first trial; absent if the number could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_sockets: Option<usize>,
    /// Names of the transports that the drivers of the ends report.
    pub transports: Vec<String>,
}

/// Traffic of one network interface in the network namespace of an end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceProof {
    /// Names of the ends in the network namespace of the interface.
    pub ends: Vec<String>,
    /// Name of the network interface.
    pub interface: String,
    /// True if the network interface belongs to the path between the ends.
    pub path: bool,
    /// Number of packets that the interface sent while messages were sent.
    pub packets: i64,
    /// Number of bytes that the interface sent while messages were sent, including frame headers.
    #[serde(rename = "octets")]
    pub bytes: i64,
    /// Number of packets that the interface sent for each sent message, without the packets that the interface also
    /// sends while no messages are sent.
    pub packets_per_message: f64,
    /// Number of bytes that the interface sent for each sent message, without the bytes that the interface also sends
    /// while no messages are sent.
    #[serde(rename = "octets_per_message")]
    pub bytes_per_message: f64,
    /// Number of packets per second that the interface sent while no messages were sent; absent if this number was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_packets_per_s: Option<f64>,
    /// Number of fragments that IP created in the network namespace of the interface, per sent message.
    pub fragments_per_message: f64,
    /// Number of multicast packets that were sent from the network namespace of the interface, per sent message.
    pub multicast_per_message: f64,
    /// Number of failed reassemblies of fragmented datagrams in the network namespace of the interface.
    pub reassembly_failures: i64,
}
