//! Derives from packet counts which path the messages took, and whether it is the path that the study asks for.

use std::collections::BTreeSet;
use tailbound_model::*;

/// Number of packets on an interface, as a share of the messages, below which the packets do not prove that messages
/// use the interface.
const SHARE: f64 = 0.05;

/// Answer to the question whether the packet counters of interfaces show that the messages went over these interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Yes,
    No,
    /// The answer is unclear: there are too few messages, or too many other packets.
    Unclear,
}

/// Number of packets with messages minus the number of packets without messages, and the part of the difference that
/// may be chance.
#[derive(Debug, Clone, Copy)]
struct Excess {
    raw: f64,
    without: f64,
    packets: f64,
    noise: f64,
}

impl Excess {
    /// Sums, over all network namespaces, the packets that `sent` returns for a namespace.
    fn of(spaces: &[Space], messages: f64, sent: impl Fn(&Space, &Counted) -> i64) -> Excess {
        let mut all = Excess { raw: 0.0, without: 0.0, packets: 0.0, noise: SHARE * messages };
        for space in spaces {
            let (with, without) = space.pair(|c| sent(space, c));
            let seen = space.quiet.as_ref().map_or(0.0, |q| sent(space, q) as f64);
            all.raw += with;
            all.without += without;
            all.packets += with - without;
            // A count of rare events is uncertain by its square root; if none was counted, up to 3 may be missed (rule
            // of three).
            all.noise += if space.quiet.is_some() { space.scale() * (3.0 + 3.0 * seen.sqrt()) } else { 3.0 };
        }
        all
    }

    fn flow(&self, messages: f64) -> Flow {
        if self.packets > self.noise {
            Flow::Yes
        } else if messages > 2.0 * self.noise {
            Flow::No
        } else {
            Flow::Unclear
        }
    }
}

/// Number of packets that all interfaces of a network namespace sent.
fn anywhere(_: &Space, counted: &Counted) -> i64 {
    counted.interfaces.values().map(|i| i.tx_packets).sum()
}

/// Number of packets that the interfaces of the path sent.
fn on_path(space: &Space, counted: &Counted) -> i64 {
    space.path.iter().filter_map(|name| counted.interfaces.get(name)).map(|i| i.tx_packets).sum()
}

/// Fills in the path that the messages took, and the contradiction to the study if there is one.
pub(super) fn judge(proof: &mut PathProof) {
    let n = proof.answered as f64;
    let path = Excess::of(&proof.spaces, n, on_path);
    let all = Excess::of(&proof.spaces, n, anywhere);
    let no_sockets = !proof.processes.is_empty() && proof.processes.iter().all(|p| p.sockets == Some(0));
    let flow = if no_sockets { Flow::No } else { all.flow(n) };
    let inside = proof.processes.len() == 1 && proof.processes[0].ends.len() > 1;
    let memory = memory(proof);
    let packets = |e: Excess, where_: &str| format!("{:.0} packets {where_} in {n} answered messages", e.raw);
    if flow == Flow::Unclear {
        proof.unclear = Some(too_little(n, &all));
        return;
    }
    if flow == Flow::Yes && proof.loads_send {
        // Packets of loads cannot be distinguished from packets of the messages.
        proof.unclear =
            Some("loads of this trial send, or may send, over the interfaces whose packets are counted".into());
        return;
    }
    proof.found = match (flow, memory) {
        (Flow::Yes, _) => Some(Way::Packets),
        // Shared memory that only one process maps proves nothing, so the path gets the name from the study.
        (_, _) if inside => Some(proof.asked.filter(|way| *way != Way::Packets).unwrap_or(Way::InsideProcess)),
        (_, memory) => memory,
    };
    let names: Vec<&str> = proof.spaces.iter().flat_map(|s| &s.path).map(String::as_str).collect();
    let names = names.join(" and ");
    match proof.asked {
        None => {}
        Some(Way::Packets) if no_sockets || path.flow(n) == Flow::No => {
            let elsewhere = match (flow, memory) {
                (Flow::Yes, _) => format!("; the packets were on {}", others(proof)),
                (_, Some(way)) if !inside => format!("; both ends have mapped the same memory ({way})"),
                _ => String::new(),
            };
            let text = format!("packets over {names}; there were {}{elsewhere}", packets(path, "on this path"));
            proof.contradiction = Some(text);
        }
        Some(Way::Packets) => {}
        Some(way) if flow == Flow::Yes => {
            let told = proof.spaces.iter().all(|s| s.made) || (all.without <= 0.2 * n && all.packets >= 0.5 * n);
            let counted = format!("{way}; there were {}", packets(all, "on the interfaces"));
            if told {
                proof.contradiction = Some(counted);
            } else {
                proof.unclear = Some(format!("{counted}, but other programs send in this network namespace too"));
                proof.found = None;
            }
        }
        Some(Way::InsideProcess) if !inside => {
            proof.contradiction = Some("delivery inside the process, although the ends are in two processes".into());
        }
        Some(_) if inside => {}
        Some(way) => {
            if proof.processes.len() < 2 || proof.processes.iter().any(|p| p.segments.is_none()) {
                proof.unclear = Some("the memory that the ends have mapped cannot be read".into());
            } else if memory != Some(way) {
                let found = memory.map_or("both ends have mapped no common memory".to_owned(), |way| {
                    format!("the memory that both ends have mapped is for {way} only")
                });
                proof.contradiction = Some(format!("{way}; {found}"));
            }
        }
    }
    if proof.found.is_none() && proof.unclear.is_none() && proof.contradiction.is_none() {
        proof.unclear = Some("there is neither a packet nor a file of shared memory that both ends have mapped".into());
    }
}

/// Kind of the shared memory that each process has mapped in common with another one; `None` = a process has no common memory.
fn memory(proof: &PathProof) -> Option<Way> {
    let all: Vec<&[Segment]> = proof.processes.iter().map(|p| p.segments.as_deref()).collect::<Option<_>>()?;
    let shared = |own: usize| {
        let others = all.iter().enumerate().filter(move |(other, _)| *other != own).flat_map(|(_, segments)| *segments);
        let others: BTreeSet<&str> = others.map(|s| s.name.as_str()).collect();
        all[own].iter().map(|s| s.name.as_str()).filter(|name| others.contains(name)).collect::<Vec<_>>()
    };
    let common: Vec<Vec<&str>> = (0..all.len()).map(shared).collect();
    if common.len() < 2 || common.iter().any(Vec::is_empty) {
        return None;
    }
    let data_sharing = common.iter().flatten().any(|name| name.contains("datasharing"));
    Some(if data_sharing { Way::DataSharing } else { Way::SharedMemory })
}

/// Lists the interfaces that sent packets and do not belong to the path, with their numbers of packets.
fn others(proof: &PathProof) -> String {
    let of = |space: &Space| -> Vec<String> {
        let foreign = space.data.interfaces.iter().filter(|(name, i)| !space.path.contains(name) && i.tx_packets > 0);
        foreign.map(|(name, i)| format!("{name} ({})", i.tx_packets)).collect()
    };
    proof.spaces.iter().flat_map(of).collect::<Vec<_>>().join(", ")
}

fn too_little(messages: f64, all: &Excess) -> String {
    if all.without > 0.25 * messages {
        format!(
            "without messages, there would be {:.0} packets, too many to recognise the packets of {messages} messages",
            all.without
        )
    } else {
        format!("{messages} answered messages are too few to distinguish their packets from other packets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const MS: i64 = 1_000_000;

    fn counted(ms: i64, packets: i64) -> Counted {
        let lo = Traffic { tx_packets: packets, ..Traffic::default() };
        Counted { ns: ms * MS, interfaces: BTreeMap::from([("lo".into(), lo)]), ..Counted::default() }
    }

    fn process(end: &str, sockets: usize, segment: &str) -> ProcessSeen {
        let segments = Some(vec![Segment { name: segment.into(), bytes: 4096 }]);
        ProcessSeen { ends: vec![end.into()], segments, sockets: Some(sockets) }
    }

    /// Judges two processes that share the interface lo: `packets` packets are sent in 1 s with messages. `quiet` is an
    /// interval without messages: its length in ms, and its number of packets.
    fn judged(asked: Way, messages: u64, packets: i64, quiet: Option<(i64, i64)>, sockets: usize) -> PathProof {
        let mut proof = PathProof {
            asked: Some(asked),
            sent: messages,
            answered: messages,
            spaces: vec![Space {
                ends: vec!["ping".into(), "pong".into()],
                path: vec!["lo".into()],
                made: false,
                quiet: quiet.map(|(ms, packets)| counted(ms, packets)),
                data: counted(1000, packets),
            }],
            processes: vec![process("ping", sockets, "s"), process("pong", sockets, "s")],
            ..PathProof::default()
        };
        judge(&mut proof);
        proof
    }

    #[test]
    fn packets_of_others_are_told_apart_by_the_quiet_interval() {
        let proof = judged(Way::SharedMemory, 1000, 10_000, Some((1000, 10_000)), 0);
        assert_eq!((proof.found, proof.contradiction), (Some(Way::SharedMemory), None), "no socket, no packet");
        // With sockets, the path cannot be decided, because the difference is within chance.
        let proof = judged(Way::SharedMemory, 100, 10_050, Some((1000, 10_000)), 2);
        assert_eq!((proof.found, proof.contradiction.is_none()), (None, true));
        assert!(proof.unclear.unwrap().contains("too many to recognise the packets of 100 messages"));
        let proof = judged(Way::SharedMemory, 1000, 30, Some((1000, 20)), 2);
        assert_eq!(proof.found, Some(Way::SharedMemory), "20 without messages, 30 with");
        let proof = judged(Way::Packets, 1000, 2_030, Some((1000, 20)), 2);
        assert_eq!((proof.found, proof.contradiction), (Some(Way::Packets), None));
    }

    #[test]
    fn a_burst_of_others_makes_no_trial_invalid() {
        // There are many packets without messages and more with messages: in a shared namespace, their senders are
        // unknown.
        let proof = judged(Way::SharedMemory, 1000, 9_000, Some((1000, 3_000)), 2);
        assert_eq!((proof.found, proof.contradiction.is_none()), (None, true));
        assert!(proof.unclear.unwrap().contains("other programs send in this network namespace too"));
        // There are as many packets as messages and answers, and no other packets, so these are the messages.
        let proof = judged(Way::SharedMemory, 1000, 2_000, Some((1000, 0)), 2);
        assert!(proof.contradiction.unwrap().contains("2000 packets on the interfaces in 1000 answered messages"));
    }

    #[test]
    fn a_short_quiet_interval_is_scaled_with_what_it_may_have_missed() {
        // 3 packets in 100 ms are about 30 in a second, so 40 packets do not show messages.
        let proof = judged(Way::SharedMemory, 1000, 40, Some((100, 3)), 2);
        assert_eq!(proof.found, Some(Way::SharedMemory));
        let few = judged(Way::Packets, 1, 2, Some((1000, 0)), 2);
        assert!(few.unclear.unwrap().contains("1 answered messages are too few"));
    }

    #[test]
    fn packets_that_are_asked_for_and_missing_are_a_contradiction_everywhere() {
        let proof = judged(Way::Packets, 1000, 4, Some((1000, 0)), 2);
        let text = proof.contradiction.unwrap();
        assert!(text.contains("packets over lo; there were 4 packets on this path"), "{text}");
        assert!(text.contains("both ends have mapped the same memory"), "{text}");
    }

    #[test]
    fn each_of_several_subscribers_must_share_memory() {
        let mut proof = judged(Way::SharedMemory, 1000, 0, Some((1000, 0)), 0);
        proof.processes.push(process("pong2", 0, "s"));
        judge(&mut proof);
        assert_eq!((proof.found, &proof.contradiction), (Some(Way::SharedMemory), &None));
        proof.processes.push(process("pong3", 0, "other"));
        (proof.found, proof.contradiction) = (None, None);
        judge(&mut proof);
        assert!(proof.contradiction.unwrap().contains("no common memory"));
    }

    #[test]
    fn loads_that_send_are_no_proof_against_shared_memory() {
        let mut proof = judged(Way::SharedMemory, 1000, 2_000, Some((1000, 0)), 2);
        (proof.contradiction, proof.found, proof.loads_send) = (None, None, true);
        judge(&mut proof);
        assert_eq!((proof.contradiction, proof.found), (None, None));
        let unclear = "loads of this trial send, or may send, over the interfaces whose packets are counted";
        assert_eq!(proof.unclear.as_deref(), Some(unclear));
    }
}
