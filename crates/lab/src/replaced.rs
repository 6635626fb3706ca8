//! Queue disciplines of interfaces that belong to the user: which ones a study may replace, and how they are put back.
//!
//! Input: an interface of an existing path, and the gates, traffic classes or launch times that a study asks for. Output: a problem, or
//! an entry of the journal with everything that the interface had before.

use crate::error::{LabError, lack};
use crate::existing::Found;
use crate::netlink::converse;
use crate::netns::{NetNs, run_in};
use crate::preemption;
use crate::probe::Side;
use crate::qdisc;
use crate::site::Site;
use crate::spec::LabSpec;
use crate::user_interface::UserInterface;
use crate::wanted::{Wanted, asked_of};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::{Handle, LinkMessageBuilder, LinkVeth};
use std::io;
use std::sync::OnceLock;
use tailbound_host::interface::carries_traffic_of_the_host;
use tailbound_host::{EntryId, Journal, Undone, queues};
use tailbound_model::{Problem, QueueDiscipline, Undo};

/// A problem that prevents this at an interface of the user; `end`: name of the end. Changes nothing at the interface.
pub(crate) fn problem(found: &Found, end: &'static str, wanted: Wanted<'_>) -> Option<Problem> {
    let Site::Here(netns) = &found.site else { return None };
    let (interface, needed) = (&found.interface, wanted.queues());
    let (key, kind) = wanted.names();
    let name = &interface.name;
    if netns.is_own()
        && let Some(why) = carries_traffic_of_the_host(name)
    {
        return Some(lack(
            format!("the queue discipline of {name} ({end}) is never changed, because {why}"),
            "name another interface, or one in a network namespace of its own (`place: { existing-netns: NAME }`)",
        ));
    }
    if let Some(queues) = used_queues(netns, name).filter(|queues| *queues < u32::from(needed)) {
        return Some(lack(
            format!("`{key}` of {name} ({end}) needs {needed} transmit queues, and it uses {queues}"),
            format!(
                "{kind} needs an interface with several transmit queues, and one or more for each class: raise their number \
                 (`ethtool -L`; a veth is made with `numtxqueues`), or write fewer classes"
            ),
        ));
    }
    let of_wanted = match wanted {
        Wanted::Gates(gates, _) if gates.preemptible() != 0 => preemption::problem(netns, (interface.index, name), end),
        Wanted::Shaping(shaping) => asked_of(shaping, (netns, name, end)).err(),
        Wanted::Gates(..) | Wanted::Launch(_) => None,
    };
    of_wanted.or_else(|| problem_of_queues((netns, interface.index), (name, end), wanted))
}

/// A problem of the queue disciplines that an interface (index, name) has now.
fn problem_of_queues((netns, index): (&NetNs, u32), (name, end): (&str, &str), wanted: Wanted<'_>) -> Option<Problem> {
    match foreign(netns, index, wanted.queues()) {
        Ok(None) => None,
        Ok(Some((root, _))) if !wanted.replaces() => Some(lack(
            format!("{name} ({end}) has the queue discipline `{root}`, which is not the kernel's default one"),
            format!(
                "write `replace: yes` in `{}`, so that it is replaced for the trials and restored afterwards, or remove it \
                 (`tc qdisc del dev {name} root`)",
                wanted.names().0
            ),
        )),
        Ok(Some((_, None))) => None,
        Ok(Some((root, Some(why)))) => Some(lack(
            format!("{name} ({end}) has the queue discipline `{root}`, which could not be restored exactly: {why}"),
            "name another interface, or remove the queue discipline and set it up again afterwards",
        )),
        Err(error) => Some(lack(
            format!("the queue discipline of {name} ({end}) cannot be read and tried out: {error}"),
            "run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN)",
        )),
    }
}

/// Number of transmit queues that an interface uses, which can be fewer than it was made with; `None` = it is not known.
fn used_queues(netns: &NetNs, name: &str) -> Option<u32> {
    let name = name.to_owned();
    let facts = run_in(netns, move || tailbound_host::interface_facts(&name)).ok()?.join().ok()?.ok()?;
    facts.tx_queues.ok()
}

/// The queue discipline at the root of an interface if the kernel did not set it by default, and why it could not be restored.
fn foreign(netns: &NetNs, index: u32, queues: u16) -> io::Result<Option<(QueueDiscipline, Option<String>)>> {
    let read = move || {
        let all = queues::read(index)?;
        let beyond = queues::beyond_options(index, &all)?;
        Ok::<_, io::Error>((all, beyond))
    };
    let (all, beyond) = run_in(netns, read)?.join()??;
    let Some(root) = all.first().filter(|root| !root.is_default()).cloned() else { return Ok(None) };
    let why = match beyond {
        None => differs_when_set_again(all, queues)?,
        beyond => beyond,
    };
    Ok(Some((root, why)))
}

/// What differs if these queue disciplines are set again, found by an attempt in a temporary network namespace.
fn differs_when_set_again(all: Vec<QueueDiscipline>, queues: u16) -> io::Result<Option<String>> {
    let most = all.iter().map(|one| one.parent & 0xffff).filter(|class| *class != 0xffff).max().unwrap_or_default();
    let queues = most.clamp(u32::from(queues), 4_096);
    let netns = NetNs::make()?;
    let make = move |handle: Handle| async move {
        let pair = LinkMessageBuilder::<LinkVeth>::new("tb-a", "tb-b").up();
        let pair = pair.append_extra_attribute(LinkAttribute::NumTxQueues(queues)).build();
        handle.link().add(pair).execute().await
    };
    converse(&netns, make)?.join()??;
    let attempt = move || queues::differs_when_set_again(nix::net::if_::if_nametoindex("tb-a")?, &all);
    run_in(&netns, attempt)?.join()?
}

/// Sets the gates, traffic classes and launch times of the ends at interfaces of the user. Each change is in the journal before it is
/// made; `entries` gets its entry.
///
/// # Errors
/// The kernel or a driver refuses; the caller undoes the entries.
pub(crate) async fn set(
    spec: &LabSpec,
    ends: &[Side],
    journal: &Journal,
    entries: &mut Vec<EntryId>,
) -> Result<(), LabError> {
    let second_ns = OnceLock::new();
    let of_end = |(end, side)| Some((spec.wanted(end)?, UserInterface::of(spec, end, side)?));
    let all: Vec<(Wanted, UserInterface)> = ends.iter().enumerate().filter_map(of_end).collect();
    let preempts = |wanted: &Wanted| matches!(wanted, Wanted::Gates(gates, _) if gates.preemptible() != 0);
    let preempting: Vec<&UserInterface> = all.iter().filter(|(wanted, _)| preempts(wanted)).map(|(_, at)| at).collect();
    preemption::switch_on(&preempting, journal, entries).await?;
    for (wanted, at) in &all {
        let (entry, handle) = journaled(at, *wanted, journal).await?;
        entries.push(entry);
        wanted.put((at.netns, at.name, at.end), (&second_ns, handle)).await?;
    }
    preemption::wait_until_active(&preempting).await
}

/// Undoes these entries of the journal, the last one first, and continues after an error.
///
/// # Errors
/// The first error of an entry, which stays in the journal; or an interface was left alone, because another program has changed its
/// queue discipline.
pub(crate) fn put_back(entries: &[EntryId], journal: &Journal) -> Result<(), LabError> {
    let undone = entries.iter().rev().map(|entry| match journal.undo(*entry)? {
        Undone::LeftAlone(why) => Err(LabError::LeftAlone(why)),
        Undone::Did(_) | Undone::AlreadyGone => Ok(()),
    });
    // Every entry is tried.
    let all: Vec<_> = undone.collect();
    all.into_iter().collect()
}

/// Writes into the journal what an interface of the user has, before another queue discipline takes its place. Returns the handle for it.
async fn journaled(at: &UserInterface<'_>, wanted: Wanted<'_>, journal: &Journal) -> Result<(EntryId, u32), LabError> {
    let read = |index| Ok((index, queues::read(index)?));
    let failed = |e| LabError::read(format!("reading the queue disciplines of {}", at.name), "existing path", e);
    let (ifindex, before) = qdisc::at(at.netns, at.name, read).await.map_err(failed)?;
    // Another program may have set one since the check before the run.
    if let Some(problem) = problem_of_queues((at.netns, ifindex), (at.name, at.end), wanted) {
        return Err(LabError::Lacks(vec![problem]));
    }
    let handle = queues::free_handle(&before);
    let (interface, kind) = (at.name.to_owned(), wanted.names().1.to_owned());
    let undo = Undo::RestoreQueues { interface, ifindex, netns: at.id.clone(), before, kind, handle };
    Ok((journal.before(undo)?, handle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::NetnsId;

    #[test]
    fn an_interface_that_another_program_changed_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::create_in(dir.path(), "changed").unwrap();
        // The loopback interface has index 1, and this kind of queue discipline does not exist.
        let netns = NetnsId { inode: NetNs::own().unwrap().inode(), path: String::new() };
        let before = vec![QueueDiscipline { handle: 7 << 16, ..QueueDiscipline::at_root("tb-none", Vec::new()) }];
        let (interface, kind) = ("lo".to_owned(), "taprio".to_owned());
        let undo = Undo::RestoreQueues { interface, ifindex: 1, netns, before, kind, handle: 5 << 16 };
        let entry = journal.before(undo).unwrap();
        let error = put_back(&[entry], &journal).unwrap_err().problem();
        // What the loopback interface has depends on the machine.
        let (has, rest) = error.what.split_once(" now, ").unwrap();
        assert!(has.starts_with("lo has "), "{has}");
        insta::assert_snapshot!(format!("{rest}; {}", error.remedy));
        journal.finish().unwrap();
    }
}
