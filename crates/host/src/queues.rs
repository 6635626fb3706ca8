//! Queue disciplines of the interfaces of the calling thread's network namespace (tc(8)): reads, sets and removes them.
//!
//! Input: the index of an interface. Output: [`QueueDiscipline`]s with the bytes of their options, which this module does not
//! interpret. Errors have the words with which the kernel or a driver explains a refusal.

use crate::netlink::ask;
use std::io;
use tailbound_model::{QueueDiscipline, ROOT};

pub use crate::netlink::{attributes, push};

// Attributes of a message about a queue discipline (linux/rtnetlink.h).
pub(crate) const KIND: u16 = 1;
pub(crate) const OPTIONS: u16 = 2;
const STAB: u16 = 8;
const INGRESS_BLOCK: u16 = 13;
const EGRESS_BLOCK: u16 = 14;
/// Parent of the queue disciplines for received packets (TC_H_INGRESS, TC_H_CLSACT).
const INGRESS: u32 = 0xffff_fff1;
pub(crate) const ACK: u16 = libc::NLM_F_ACK as u16;
pub(crate) const CREATE: u16 = libc::NLM_F_CREATE as u16;

/// A message about a queue discipline, a class or a filter: `struct tcmsg` of linux/rtnetlink.h, and attributes.
pub(crate) struct Message {
    pub index: u32,
    pub handle: u32,
    pub parent: u32,
    /// Preference and protocol of a filter; 0 for other objects.
    pub info: u32,
    pub attributes: Vec<u8>,
}

impl Message {
    fn of(body: &[u8]) -> Option<Message> {
        let word = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let attributes = body.get(20..)?.to_vec();
        Some(Message { index: word(4)?, handle: word(8)?, parent: word(12)?, info: word(16)?, attributes })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let words = [0, self.index, self.handle, self.parent, self.info];
        words.into_iter().flat_map(u32::to_ne_bytes).chain(self.attributes.iter().copied()).collect()
    }

    pub fn attribute(&self, kind: u16) -> Option<&[u8]> {
        attributes(&self.attributes).find(|(k, _)| *k == kind).map(|(_, value)| value)
    }
}

/// Lists objects of an interface, which may be those of one parent.
pub(crate) fn list(kind: u16, index: u32, parent: u32) -> io::Result<Vec<Message>> {
    let request = Message { index, handle: 0, parent, info: 0, attributes: Vec::new() };
    let bodies = ask(kind, libc::NLM_F_DUMP as u16, &request.bytes())?;
    Ok(bodies.iter().filter_map(|body| Message::of(body)).filter(|one| one.index == index).collect())
}

fn discipline(message: &Message) -> QueueDiscipline {
    let bytes = |kind| message.attribute(kind).unwrap_or_default().to_vec();
    QueueDiscipline {
        kind: String::from_utf8_lossy(&bytes(KIND)).trim_end_matches('\0').to_owned(),
        parent: message.parent,
        handle: message.handle,
        options: bytes(OPTIONS),
        size_table: bytes(STAB),
    }
}

/// All queue disciplines of an interface for packets that it sends, the one at the root first. The list is empty if the interface
/// is down and never had one.
///
/// # Errors
/// Netlink is not available.
pub fn read(index: u32) -> io::Result<Vec<QueueDiscipline>> {
    let all = list(libc::RTM_GETQDISC, index, 0)?;
    let mut all: Vec<_> = all.iter().filter(|one| one.parent != INGRESS).map(discipline).collect();
    all.sort_by_key(|one| (one.parent != ROOT, one.parent, one.handle));
    Ok(all)
}

/// Sets a queue discipline where the interface has the kernel's own one.
///
/// # Errors
/// The kernel or the driver refuses it, or another queue discipline is there.
pub fn add(index: u32, added: &QueueDiscipline) -> io::Result<()> {
    set(index, added, CREATE | libc::NLM_F_EXCL as u16)
}

/// Sets a queue discipline in the place of any other one, which stays if the new one is refused.
///
/// One with traffic classes at the root does not stay: it is removed first, unless the new one has its handle. When the kernel destroys
/// it, the interface loses its classes, also those that a successor has already set (`mqprio_destroy`, `taprio_destroy`). If the new one
/// is refused, the interface then has the kernel's default one, and the undo journal puts back what was there.
///
/// # Errors
/// The kernel or the driver refuses it, or the handle is in use.
pub fn replace(index: u32, by: &QueueDiscipline) -> io::Result<()> {
    let goes_first = |root: &QueueDiscipline| root.handle != by.handle && has_classes(root);
    if by.parent == ROOT && read(index)?.iter().any(goes_first) {
        remove(index)?;
    }
    set(index, by, CREATE | libc::NLM_F_REPLACE as u16)
}

/// Whether a queue discipline was set at the root of an interface and has traffic classes, which the kernel keeps at the interface.
pub(crate) fn has_classes(one: &QueueDiscipline) -> bool {
    one.parent == ROOT && !one.is_default() && ["mqprio", "taprio"].contains(&one.kind.as_str())
}

fn set(index: u32, one: &QueueDiscipline, flags: u16) -> io::Result<()> {
    let mut bytes = Vec::new();
    push(&mut bytes, KIND, &[one.kind.as_bytes(), &[0]].concat());
    if !one.options.is_empty() {
        push(&mut bytes, OPTIONS, &settable(one));
    }
    if !one.size_table.is_empty() {
        push(&mut bytes, STAB, &one.size_table);
    }
    let request = Message { index, handle: one.handle, parent: one.parent, info: 0, attributes: bytes };
    ask(libc::RTM_NEWQDISC, ACK | flags, &request.bytes()).map(drop)
}

/// Removes the queue discipline at the root of an interface with everything below it: the kernel sets its default one.
///
/// # Errors
/// The interface has the kernel's default one, or the kernel refuses.
pub fn remove(index: u32) -> io::Result<()> {
    let request = Message { index, handle: 0, parent: ROOT, info: 0, attributes: Vec::new() };
    ask(libc::RTM_DELQDISC, ACK, &request.bytes()).map(drop)
}

/// The options with which the kernel reports these options afterwards.
///
/// `codel` and `fq_codel` keep times in units of 1,024 ns, and report them in whole microseconds, rounded down
/// (`codel_time_to_us` of include/net/codel.h); a time that is set as it was reported can be one unit shorter.
fn settable(one: &QueueDiscipline) -> Vec<u8> {
    // Target, interval, and the threshold of congestion marks (linux/pkt_sched.h).
    let times: &[u16] = match one.kind.as_str() {
        "fq_codel" => &[1, 3, 7],
        "codel" => &[1, 3, 5],
        _ => return one.options.clone(),
    };
    let kept = |us: u32| (u64::from(us) * 1_000) >> 10;
    let reported = |us: u32| (kept(us) << 10) / 1_000;
    let mut bytes = Vec::new();
    for (kind, value) in attributes(&one.options) {
        let us = value.try_into().map(u32::from_ne_bytes).ok().filter(|_| times.contains(&kind));
        match us {
            Some(us) if reported(us) != u64::from(us) => push(&mut bytes, kind, &(us + 1).to_ne_bytes()),
            _ => push(&mut bytes, kind, value),
        }
    }
    bytes
}

/// A handle that no queue discipline of an interface has.
pub fn free_handle(all: &[QueueDiscipline]) -> u32 {
    let is_free = |major: &u32| all.iter().all(|one| one.handle >> 16 != *major);
    (1..0x8000).find(is_free).unwrap_or(1) << 16
}

/// Why these queue disciplines of an interface could not be set again, apart from their options: classes with options of their
/// own, filters, and blocks of filters that several interfaces share are not read.
///
/// # Errors
/// Netlink is not available.
pub fn beyond_options(index: u32, all: &[QueueDiscipline]) -> io::Result<Option<String>> {
    let is_shared = |one: &Message| one.attribute(INGRESS_BLOCK).or(one.attribute(EGRESS_BLOCK)).is_some();
    if list(libc::RTM_GETQDISC, index, 0)?.iter().any(|one| one.parent != INGRESS && is_shared(one)) {
        return Ok(Some("it shares a block of filters".to_owned()));
    }
    let classes = list(libc::RTM_GETTCLASS, index, 0)?;
    if let Some(class) = classes.iter().find(|class| class.attribute(OPTIONS).is_some()) {
        return Ok(Some(format!("it has the class {:x}:{:x}", class.handle >> 16, class.handle & 0xffff)));
    }
    for one in all.iter().filter(|one| !one.is_default()) {
        // The kernel does not report the distribution of the delays.
        if one.kind == "netem" {
            return Ok(Some("the kernel does not report all options of `netem`".to_owned()));
        }
        let filters = match list(libc::RTM_GETTFILTER, index, one.handle) {
            // A kernel without filters.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Vec::new(),
            filters => filters?,
        };
        if !filters.is_empty() {
            return Ok(Some(format!("filters are attached to {one}")));
        }
    }
    Ok(None)
}

/// Why these queue disciplines of an interface could not be restored exactly, found by an attempt at the loopback interface of a
/// temporary network namespace; `None` = they can be. The kernel's default one comes by itself.
///
/// # Errors
/// Netlink or a new network namespace is not available.
pub fn beyond_restoring(index: u32, all: &[QueueDiscipline]) -> io::Result<Option<String>> {
    if all.first().is_none_or(QueueDiscipline::is_default) {
        return Ok(None);
    }
    if let Some(why) = beyond_options(index, all)? {
        return Ok(Some(why));
    }
    let attempt = || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)?;
        differs_when_set_again(nix::net::if_::if_nametoindex("lo")?, all)
    };
    // A thread of its own enters the new namespace, so that the caller stays in its own.
    std::thread::scope(|scope| scope.spawn(attempt).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What differs if queue disciplines that were read elsewhere are set at this interface.
///
/// # Errors
/// Netlink is not available.
pub fn differs_when_set_again(index: u32, all: &[QueueDiscipline]) -> io::Result<Option<String>> {
    let set = |all: &[QueueDiscipline]| all.iter().filter(|one| !one.is_default()).cloned().collect::<Vec<_>>();
    Ok(match put_back(index, all).and_then(|()| read(index)) {
        Err(error) => Some(format!("when it was tried out, the kernel refused it ({error})")),
        Ok(again) if set(&again) != set(all) => {
            Some("when it was tried out, the kernel reported other options".to_owned())
        }
        Ok(_) => None,
    })
}

/// Sets queue disciplines of an interface that were read before, in the place of the present ones; those that are there are left.
/// Default ones come by themselves.
///
/// # Errors
/// The kernel or the driver refuses one of them; those before it are set.
pub fn put_back(index: u32, before: &[QueueDiscipline]) -> io::Result<()> {
    let now = read(index)?;
    let is_there = |one: &QueueDiscipline| now.contains(one);
    let mut left: Vec<&QueueDiscipline> = before.iter().filter(|one| !one.is_default()).collect();
    if left.is_empty() {
        return remove(index);
    }
    // A class exists when the queue discipline with its handle does.
    while let Some(at) = left.iter().position(|one| left.iter().all(|other| other.handle != one.parent & 0xffff_0000)) {
        let one = left.remove(at);
        if !is_there(one) {
            replace(index, one)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_codel_are_set_so_that_they_are_reported_as_before() {
        let options = |us: u32| {
            let mut bytes = Vec::new();
            push(&mut bytes, 1, &us.to_ne_bytes());
            push(&mut bytes, 2, &us.to_ne_bytes());
            bytes
        };
        for stored in [1u64, 2, 4_882, 97_656, 3_000_000] {
            let reported = ((stored << 10) / 1_000) as u32;
            let set = settable(&QueueDiscipline::at_root("fq_codel", options(reported)));
            let all: Vec<u32> = attributes(&set).map(|(_, v)| u32::from_ne_bytes(v.try_into().unwrap())).collect();
            assert_eq!(((u64::from(all[0]) * 1_000) >> 10, all[1]), (stored, reported));
        }
        let other = QueueDiscipline::at_root("pfifo", vec![77, 0, 0, 0]);
        assert_eq!(settable(&other), other.options);
    }

    #[test]
    fn a_handle_is_chosen_that_nobody_has() {
        let with = |major: u32| QueueDiscipline { handle: major << 16, ..QueueDiscipline::default() };
        assert_eq!(free_handle(&[]), 0x1_0000);
        assert_eq!(free_handle(&[with(0), with(1), with(2), with(0x8001)]), 0x3_0000);
    }
}
