//! Rules that check the limits of a host's network stack.

use crate::condition::Condition;
use crate::finding::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "net.core.rmem_max",
        advice: "receive-buffer-limit",
        weight: 5,
        title: "largest receive buffer",
        unit: " B",
        bad: Condition::Below(2_621_440),
        because: "a burst or a large fragmented message overruns the socket's buffer; reliable messages then wait \
                  for a retransmission, other messages are lost",
    },
    Rule {
        key: "net.ipv4.ipfrag_high_thresh",
        advice: "fragment-memory",
        weight: 5,
        title: "memory for IP fragments",
        unit: " B",
        bad: Condition::Below(4_194_304),
        because: "if the memory for IP fragments is full, fragments of large datagrams are dropped, and each datagram \
                  with a dropped fragment is lost",
    },
];
