//! Delays packets by the queueing discipline netem (tc-netem(8)) at the sending interface.
//!
//! The options of netem are `struct tc_netem_qopt` of linux/pkt_sched.h, followed by attributes.

use crate::netns::NetNs;
use crate::qdisc::{self, attributes, push};
use std::io;
use tailbound_host::queues;
use tailbound_model::{Nanos, Problem, QueueDiscipline, ROOT};

const KIND: &str = "netem";
const TCA_NETEM_LATENCY64: u16 = 10;
/// Length of `struct tc_netem_qopt` in bytes: latency, limit, loss, gap, duplicate and jitter have 32 bits each.
const QOPT: usize = 24;
/// Maximum number of packets that netem delays at the same time, which is more than any rate sends within the longest
/// delay.
pub(crate) const LIMIT: u32 = 1_000_000;

/// Sets the delay of the packets that an interface sends, and reads the delay back.
pub(crate) async fn put(netns: &NetNs, name: String, delay: Nanos) -> io::Result<()> {
    let job = move |index| {
        queues::add(index, &QueueDiscipline::at_root(KIND, options(delay)))?;
        Ok(qdisc::found(index, KIND, ROOT)?.and_then(|found| latency(&found.options)))
    };
    match qdisc::at(netns, &name, job).await? {
        Some(found) if found == delay => Ok(()),
        Some(found) => {
            Err(io::Error::other(format!("the kernel set a delay of {found} instead of the requested delay")))
        }
        None => Err(io::Error::other("the interface has no delay when it is read back")),
    }
}

fn options(delay: Nanos) -> Vec<u8> {
    let mut bytes = vec![0; QOPT];
    bytes[4..8].copy_from_slice(&LIMIT.to_ne_bytes());
    push(&mut bytes, TCA_NETEM_LATENCY64, &delay.0.to_ne_bytes());
    bytes
}

fn latency(bytes: &[u8]) -> Option<Nanos> {
    let (_, value) = attributes(bytes.get(QOPT..)?).find(|(kind, _)| *kind == TCA_NETEM_LATENCY64)?;
    value.try_into().ok().map(i64::from_ne_bytes).map(Nanos)
}

/// Returns a problem if this kernel cannot delay packets.
pub(crate) fn problem() -> Option<Problem> {
    qdisc::is_missing(KIND).then(|| qdisc::lack_of(KIND, "delays packets", "delay"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_as_they_were_written() {
        assert_eq!(latency(&options(Nanos(20_000_001))), Some(Nanos(20_000_001)));
        assert_eq!(latency(&[0; QOPT]), None);
        assert_eq!(latency(&[]), None);
        // The kernel puts other attributes before the latency.
        let mut bytes = options(Nanos(7));
        let own = bytes.split_off(QOPT);
        bytes.extend(8u16.to_ne_bytes().into_iter().chain(1u16.to_ne_bytes()).chain([0; 4]));
        bytes.extend(own);
        assert_eq!(latency(&bytes), Some(Nanos(7)));
    }
}
