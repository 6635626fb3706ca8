//! The network stack's limits.

use crate::condition::Condition;
use crate::finding::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "net.core.rmem_max",
        title: "largest receive buffer",
        unit: " B",
        bad: Condition::Below(2_621_440),
        because: "a burst or a large fragmented sample overruns the socket's buffer; reliable messages then wait for a \
                  retransmission, others are lost",
        mend: "sysctl net.core.rmem_max=2621440 or more, and let the middleware ask for it",
        host: "sysctl: { net.core.rmem_max: 2621440 }",
    },
    Rule {
        key: "net.ipv4.ipfrag_high_thresh",
        title: "memory for IP fragments",
        unit: " B",
        bad: Condition::Below(4_194_304),
        because: "fragments of large datagrams are thrown away when it is full, and with them the whole datagram",
        mend: "sysctl net.ipv4.ipfrag_high_thresh=4194304 or more",
        host: "sysctl: { net.ipv4.ipfrag_high_thresh: 4194304 }",
    },
];
