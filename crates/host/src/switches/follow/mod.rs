//! Follows the messages of one process through the kernel: joins the tracer's records of packets with the sequence
//! numbers of the messages, and keeps the hops until the trial is over.
//!
//! Input: records of datagrams that were sent from the ports of the process. Output: hops of messages. Only messages that
//! begin with their sequence number, as those of the driver `udp`, or RTPS samples that do, have hops.

mod follower;
mod identity;
mod ports;
mod recent;

pub(super) use follower::Follower;
pub(super) use ports::Sockets;
