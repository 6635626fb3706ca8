//! An action on the IPv4 packets that an interface receives, or on those to one UDP port (tc-matchall(8), tc-flower(8), tc-actions(8)):
//! sets it, reads its options and counters, and removes it. The interface belongs to the calling thread's network namespace.
//!
//! Input: the index of an interface, the kind of the action and the bytes of its options, which this module does not interpret.
//! Errors have the words with which the kernel explains a refusal.

use crate::netlink::{ask, attributes, push};
use crate::queues::{ACK, CREATE, KIND, Message, OPTIONS, list};
use std::io;

/// The queue discipline for filters, its handle and its parent (TC_H_CLSACT), and the place of its filters for received packets
/// (TC_H_MIN_INGRESS), of linux/pkt_sched.h.
const PLACE: &str = "clsact";
const HANDLE: u32 = 0xffff_0000;
const PARENT: u32 = 0xffff_fff1;
const RECEIVED: u32 = 0xffff_fff2;
/// Kinds of filters: of all packets, and by headers.
const ALL: &str = "matchall";
const BY_HEADERS: &str = "flower";
/// Preference of the filter in the upper half, ETH_P_IP in network order in the lower half.
const IPV4_FIRST: u32 = (1 << 16) | (libc::ETH_P_IP as u16).to_be() as u32;
/// Attributes of both kinds with their actions (TCA_MATCHALL_ACT and TCA_FLOWER_ACT of linux/pkt_cls.h), whose number is the type of an
/// attribute each.
const ACTIONS_OF_ALL: u16 = 2;
const ACTIONS_BY_HEADERS: u16 = 3;
// Attributes of `flower`: type of the frame and UDP port (both in network order), protocol.
const ETH_TYPE: u16 = 8;
const IP_PROTO: u16 = 9;
const UDP_DST: u16 = 21;
const FIRST: u16 = 1;
// Attributes of an action (linux/pkt_cls.h).
const ACTION_KIND: u16 = 1;
const ACTION_OPTIONS: u16 = 2;
const ACTION_STATS: u16 = 4;
// Attributes of statistics (linux/gen_stats.h): bytes (u64) and packets (u32); length, backlog, drops, requeues, overlimits (u32).
const BASIC: u16 = 1;
const QUEUE: u16 = 3;
/// Flag of the type of an attribute that contains attributes, on which newer parts of the kernel insist (NLA_F_NESTED).
pub const NESTED: u16 = libc::NLA_F_NESTED as u16;

/// An action as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiveAction {
    /// Kind of the action, for example `gate`.
    pub kind: String,
    /// Attributes of the action.
    pub options: Vec<u8>,
    /// Number of packets that reached the action.
    pub packets: u64,
    /// Number of packets that the action dropped.
    pub drops: u64,
    /// Number of packets beyond a limit of the action.
    pub overlimits: u64,
    /// UDP port to which the packets are sent; `None` = the action applies to all IPv4 packets.
    pub port: Option<u16>,
}

/// Applies an action to the IPv4 packets that an interface receives: to all, or to UDP packets to this port. The interface must have no
/// `clsact` yet.
///
/// # Errors
/// The kernel refuses the queue discipline, the filter or the action; nothing is left.
pub fn add(index: u32, (kind, options): (&str, &[u8]), port: Option<u16>) -> io::Result<()> {
    let mut bytes = Vec::new();
    push(&mut bytes, KIND, &text(PLACE));
    let place = Message { index, handle: HANDLE, parent: PARENT, info: 0, attributes: bytes };
    let excl = libc::NLM_F_EXCL as u16;
    ask(libc::RTM_NEWQDISC, ACK | CREATE | excl, &place.bytes())?;
    let filter =
        Message { index, handle: 0, parent: RECEIVED, info: IPV4_FIRST, attributes: filter((kind, options), port) };
    ask(libc::RTM_NEWTFILTER, ACK | CREATE | excl, &filter.bytes()).map(drop).inspect_err(|_| {
        // The first error is the one that is reported.
        let _ = remove(index);
    })
}

/// The action that [`add`] has set; `None` = the interface has none.
///
/// # Errors
/// Netlink is not available.
pub fn read(index: u32) -> io::Result<Option<ReceiveAction>> {
    let filters = list(libc::RTM_GETTFILTER, index, RECEIVED)?;
    Ok(filters.iter().find_map(|filter| parsed(filter.attribute(KIND)?, filter.attribute(OPTIONS)?)))
}

/// Removes all actions on packets that an interface receives or sends.
///
/// # Errors
/// The interface has none.
pub fn remove(index: u32) -> io::Result<()> {
    let place = Message { index, handle: HANDLE, parent: PARENT, info: 0, attributes: Vec::new() };
    ask(libc::RTM_DELQDISC, ACK, &place.bytes()).map(drop)
}

fn text(word: &str) -> Vec<u8> {
    [word.as_bytes(), &[0]].concat()
}

/// The attributes of a filter with one action.
fn filter((kind, options): (&str, &[u8]), port: Option<u16>) -> Vec<u8> {
    let [mut action, mut actions, mut all, mut bytes] = [const { Vec::new() }; 4];
    push(&mut action, ACTION_KIND, &text(kind));
    push(&mut action, ACTION_OPTIONS | NESTED, options);
    push(&mut actions, FIRST | NESTED, &action);
    if let Some(port) = port {
        push(&mut all, ETH_TYPE, &(libc::ETH_P_IP as u16).to_be_bytes());
        push(&mut all, IP_PROTO, &[libc::IPPROTO_UDP as u8]);
        push(&mut all, UDP_DST, &port.to_be_bytes());
    }
    let (filter, place) = if port.is_some() { (BY_HEADERS, ACTIONS_BY_HEADERS) } else { (ALL, ACTIONS_OF_ALL) };
    push(&mut all, place | NESTED, &actions);
    push(&mut bytes, KIND, &text(filter));
    push(&mut bytes, OPTIONS | NESTED, &all);
    bytes
}

/// The first action of the options of a filter of this kind.
fn parsed(kind: &[u8], filter: &[u8]) -> Option<ReceiveAction> {
    let of = |bytes: &'_ [u8], kind: u16| attributes(bytes).find(|(k, _)| *k == kind).map(|(_, value)| value.to_vec());
    let is_by_headers = kind == text(BY_HEADERS);
    if !is_by_headers && kind != text(ALL) {
        return None;
    }
    let port = of(filter, UDP_DST).filter(|_| is_by_headers).and_then(|bytes| bytes.try_into().ok());
    let place = if is_by_headers { ACTIONS_BY_HEADERS } else { ACTIONS_OF_ALL };
    let action = of(&of(filter, place)?, FIRST)?;
    let stats = of(&action, ACTION_STATS)?;
    let count = |kind, at: usize| {
        let bytes = of(&stats, kind)?.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_ne_bytes(bytes)))
    };
    Some(ReceiveAction {
        kind: String::from_utf8_lossy(&of(&action, ACTION_KIND)?).trim_end_matches('\0').to_owned(),
        options: of(&action, ACTION_OPTIONS)?,
        packets: count(BASIC, 8)?,
        drops: count(QUEUE, 8)?,
        overlimits: count(QUEUE, 16)?,
        port: port.map(u16::from_be_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_action_of_a_filter_is_read_with_its_counters() {
        let gate: (&str, &[u8]) = ("gate", &[8, 0, 4, 0, 11, 0, 0, 0]);
        for port in [None, Some(7_411)] {
            let asked = filter(gate, port);
            let of = |kind: u16| attributes(&asked).find(|(k, _)| *k == kind).unwrap().1;
            assert_eq!(parsed(of(KIND), of(OPTIONS & !NESTED)), None, "a request has no counters");
        }
        let [mut stats, mut action, mut actions, mut all, mut by_headers] = [const { Vec::new() }; 5];
        push(&mut stats, BASIC, &[&900u64.to_ne_bytes()[..], &20u32.to_ne_bytes(), &[0; 4]].concat());
        push(&mut stats, QUEUE, &[0u32, 0, 15, 0, 3].map(u32::to_ne_bytes).concat());
        push(&mut action, ACTION_KIND, b"gate\0");
        push(&mut action, ACTION_STATS, &stats);
        push(&mut action, ACTION_OPTIONS, &[8, 0, 4, 0, 11, 0, 0, 0]);
        push(&mut actions, FIRST, &action);
        push(&mut all, ACTIONS_OF_ALL, &actions);
        let (kind, options) = ("gate".to_owned(), vec![8, 0, 4, 0, 11, 0, 0, 0]);
        let expected = ReceiveAction { kind, options, packets: 20, drops: 15, overlimits: 3, port: None };
        assert_eq!(parsed(b"matchall\0", &all), Some(expected.clone()));
        // struct nlattr (linux/netlink.h): length with its header, kind. TCA_FLOWER_KEY_UDP_DST = 21, 7411 = 0x1cf3 in network order.
        by_headers.extend([6, 0, 21, 0, 0x1c, 0xf3, 0, 0]);
        push(&mut by_headers, ACTIONS_BY_HEADERS, &actions);
        assert_eq!(parsed(b"flower\0", &by_headers), Some(ReceiveAction { port: Some(7_411), ..expected }));
        assert_eq!(parsed(b"u32\0", &all), None);
    }
}
