//! Rules that check the limits of a host's network stack.

use crate::condition::Condition;
use crate::finding::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "net.core.rmem_max",
        title: "largest receive buffer",
        unit: " B",
        bad: Condition::Below(2_621_440),
        because: "a burst or a large fragmented message overruns the socket's buffer; reliable messages then wait \
                  for a retransmission, other messages are lost",
        remedy: "sysctl net.core.rmem_max=2621440 or more, and configure the middleware to request a receive buffer of \
                 this size",
        host: "sysctl: { net.core.rmem_max: 2621440 }",
    },
    Rule {
        key: "net.ipv4.ipfrag_high_thresh",
        title: "memory for IP fragments",
        unit: " B",
        bad: Condition::Below(4_194_304),
        because: "if the memory for IP fragments is full, fragments of large datagrams are dropped, and each datagram \
                  with a dropped fragment is lost",
        remedy: "sysctl net.ipv4.ipfrag_high_thresh=4194304 or more",
        host: "sysctl: { net.ipv4.ipfrag_high_thresh: 4194304 }",
    },
];
