//! An action on the IPv4 packets that an interface receives (tc-matchall(8), tc-actions(8)): sets it, reads its options and counters,
//! and removes it. The interface belongs to the calling thread's network namespace.
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
const FILTER: &str = "matchall";
/// Preference of the filter in the upper half, ETH_P_IP in network order in the lower half.
const IPV4_FIRST: u32 = (1 << 16) | (libc::ETH_P_IP as u16).to_be() as u32;
/// Attribute of `matchall` with its actions (TCA_MATCHALL_ACT of linux/pkt_cls.h), whose number is the type of an attribute each.
const ACTIONS: u16 = 2;
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
}

/// Applies an action to all IPv4 packets that an interface receives. The interface must have no `clsact` yet.
///
/// # Errors
/// The kernel refuses the queue discipline, the filter or the action; nothing is left.
pub fn add(index: u32, kind: &str, options: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::new();
    push(&mut bytes, KIND, &text(PLACE));
    let place = Message { index, handle: HANDLE, parent: PARENT, info: 0, attributes: bytes };
    let excl = libc::NLM_F_EXCL as u16;
    ask(libc::RTM_NEWQDISC, ACK | CREATE | excl, &place.bytes())?;
    let filter = Message { index, handle: 0, parent: RECEIVED, info: IPV4_FIRST, attributes: filter(kind, options) };
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
    Ok(filters.iter().filter_map(|filter| filter.attribute(OPTIONS)).find_map(parsed))
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
fn filter(kind: &str, options: &[u8]) -> Vec<u8> {
    let [mut action, mut actions, mut all, mut bytes] = [const { Vec::new() }; 4];
    push(&mut action, ACTION_KIND, &text(kind));
    push(&mut action, ACTION_OPTIONS | NESTED, options);
    push(&mut actions, FIRST | NESTED, &action);
    push(&mut all, ACTIONS | NESTED, &actions);
    push(&mut bytes, KIND, &text(FILTER));
    push(&mut bytes, OPTIONS | NESTED, &all);
    bytes
}

/// The first action of the options of a filter.
fn parsed(filter: &[u8]) -> Option<ReceiveAction> {
    let of = |bytes: &'_ [u8], kind: u16| attributes(bytes).find(|(k, _)| *k == kind).map(|(_, value)| value.to_vec());
    let action = of(&of(filter, ACTIONS)?, FIRST)?;
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_action_of_a_filter_is_read_with_its_counters() {
        let asked = filter("gate", &[8, 0, 4, 0, 11, 0, 0, 0]);
        let options = attributes(&asked).find(|(kind, _)| *kind == OPTIONS).unwrap().1;
        assert_eq!(parsed(options), None, "a request has no counters");
        let [mut stats, mut action, mut actions, mut all] = [const { Vec::new() }; 4];
        push(&mut stats, BASIC, &[&900u64.to_ne_bytes()[..], &20u32.to_ne_bytes(), &[0; 4]].concat());
        push(&mut stats, QUEUE, &[0u32, 0, 15, 0, 3].map(u32::to_ne_bytes).concat());
        push(&mut action, ACTION_KIND, b"gate\0");
        push(&mut action, ACTION_STATS, &stats);
        push(&mut action, ACTION_OPTIONS, &[8, 0, 4, 0, 11, 0, 0, 0]);
        push(&mut actions, FIRST, &action);
        push(&mut all, ACTIONS, &actions);
        let expected =
            ReceiveAction { kind: "gate".into(), options: vec![8, 0, 4, 0, 11, 0, 0, 0], packets: 20, drops: 15 };
        assert_eq!(parsed(&all), Some(expected));
    }
}
