//! Policing of the packets that an interface receives: the action `gate` of the kernel (IEEE 802.1Qci; net/sched/act_gate.c).
//!
//! It is in force only while messages are measured, so that the path check, discovery, and the agreement of clocks are not policed.

use crate::error::lack;
use crate::netns::{NetNs, run_in};
use crate::qdisc::{self, attributes, push};
use std::io;
use std::time::Duration;
use tailbound_host::clock;
use tailbound_host::ingress::{self, NESTED, ReceiveAction};
use tailbound_model::{Nanos, PoliceEntry, PoliceFact, PoliceOnly, PoliceSpec, Problem};

const KIND: &str = "gate";
// Attributes of the action (linux/tc_act/tc_gate.h).
const PARMS: u16 = 2;
const ENTRY_LIST: u16 = 5;
const BASE_TIME: u16 = 6;
const CYCLE_TIME: u16 = 7;
const CLOCKID: u16 = 10;
const ENTRY: u16 = 1;
const ENTRY_INDEX: u16 = 1;
const ENTRY_OPEN: u16 = 2;
const ENTRY_INTERVAL: u16 = 3;
const ENTRY_MOST_BYTES: u16 = 5;
/// A packet that passed goes to the next action, of which there is none (TC_ACT_PIPE of linux/pkt_cls.h).
const PIPE: i32 = 3;

/// Polices the packets that an interface receives, from a begin of the gate control list on, and compares the gate with what the
/// kernel reports. `second_ns`: the whole second of CLOCK_TAI to which the schedules of the lab refer; `port`: the UDP port of the policed
/// packets, `None` = all IPv4 packets.
pub(crate) async fn put(
    netns: &NetNs,
    name: &str,
    (police, port): (&PoliceSpec, Option<u16>),
    second_ns: i64,
) -> io::Result<()> {
    let base_ns = second_ns + police.base.0;
    let bytes = options(police, base_ns);
    let job = move |index| {
        ingress::add(index, (KIND, &bytes), port)?;
        ingress::read(index)
    };
    let found = qdisc::at(netns, name, job).await?.as_ref().and_then(parsed);
    let asked = PoliceFact { port, ..asked(police, base_ns) };
    let uncounted = |found: &PoliceFact| PoliceFact { packets: 0, dropped: 0, overfull: 0, ..found.clone() };
    let is_same = found.as_ref().is_some_and(|found| uncounted(found) == asked);
    if !is_same {
        return Err(io::Error::other(format!("the kernel set {found:?} instead of {asked:?}")));
    }
    // Before its first cycle begins, the gate lets everything pass; after a base in the past, that is the next cycle.
    let wait_ns = (base_ns - clock::tai_ns()).max(0) + police.cycle().0;
    tokio::time::sleep(Duration::from_nanos(wait_ns.unsigned_abs())).await;
    Ok(())
}

/// Ends the policing of an interface; returns what the kernel counted since it began.
pub(crate) async fn end(netns: &NetNs, name: &str) -> io::Result<PoliceFact> {
    let job = |index| {
        let found = ingress::read(index)?;
        if found.is_some() {
            ingress::remove(index)?;
        }
        Ok(found)
    };
    let gone = || io::Error::other("another program removed the gate for received packets (tc filter show)");
    qdisc::at(netns, name, job).await?.as_ref().and_then(parsed).ok_or_else(gone)
}

/// The gate as the kernel should report it, without what it counts.
fn asked(police: &PoliceSpec, base_ns: i64) -> PoliceFact {
    PoliceFact { entries: police.entries.clone(), cycle_ns: police.cycle().0, base_ns, ..PoliceFact::default() }
}

fn options(police: &PoliceSpec, base_ns: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // `struct tc_gate`: index (0 = a free one), capabilities, verdict, and two numbers of references.
    push(&mut bytes, PARMS, &[0, 0, PIPE, 0, 0].map(i32::to_ne_bytes).concat());
    push(&mut bytes, BASE_TIME, &base_ns.to_ne_bytes());
    push(&mut bytes, CYCLE_TIME, &police.cycle().0.to_ne_bytes());
    push(&mut bytes, CLOCKID, &libc::CLOCK_TAI.to_ne_bytes());
    let mut list = Vec::new();
    for (index, entry) in police.entries.iter().enumerate() {
        let mut one = Vec::new();
        push(&mut one, ENTRY_INDEX, &(index as u32).to_ne_bytes());
        if entry.open {
            push(&mut one, ENTRY_OPEN, &[]);
        }
        push(&mut one, ENTRY_INTERVAL, &(entry.time.0 as u32).to_ne_bytes());
        if let Some(most) = entry.most_bytes {
            push(&mut one, ENTRY_MOST_BYTES, &most.to_ne_bytes());
        }
        push(&mut list, ENTRY | NESTED, &one);
    }
    push(&mut bytes, ENTRY_LIST | NESTED, &list);
    bytes
}

/// `None` = another action, or one on another clock.
fn parsed(found: &ReceiveAction) -> Option<PoliceFact> {
    let of = |bytes: &'_ [u8], kind: u16| attributes(bytes).find(|(k, _)| *k == kind).map(|(_, value)| value.to_vec());
    let word = |bytes: &[u8], kind| Some(u32::from_ne_bytes(of(bytes, kind)?.try_into().ok()?));
    let time = |kind| Some(i64::from_ne_bytes(of(&found.options, kind)?.try_into().ok()?));
    if found.kind != KIND || word(&found.options, CLOCKID)? as i32 != libc::CLOCK_TAI {
        return None;
    }
    let list = of(&found.options, ENTRY_LIST)?;
    let entries = attributes(&list).filter(|(kind, _)| *kind == ENTRY).map(|(_, one)| {
        let time = Nanos(i64::from(word(one, ENTRY_INTERVAL)?));
        // The kernel reports -1 for an entry without a limit.
        let most_bytes = word(one, ENTRY_MOST_BYTES).filter(|most| i32::try_from(*most).is_ok());
        Some(PoliceEntry { open: of(one, ENTRY_OPEN).is_some(), time, most_bytes })
    });
    Some(PoliceFact {
        entries: entries.collect::<Option<_>>()?,
        cycle_ns: time(CYCLE_TIME)?,
        base_ns: time(BASE_TIME)?,
        packets: found.packets,
        dropped: found.drops,
        overfull: found.overlimits,
        port: found.port,
    })
}

/// The gate as commands for an interface. The begin is known only when the gate is set.
pub(crate) fn command(name: &str, police: &PoliceSpec) -> String {
    let entries = police.entries.iter().map(|entry| {
        let word = if entry.open { "open" } else { "close" };
        let most = entry.most_bytes.map_or_else(|| "-1".to_owned(), |most| most.to_string());
        format!(" sched-entry {word} {} -1 {most}", entry.time.0)
    });
    let filter = match police.only {
        None => "matchall".to_owned(),
        Some(PoliceOnly::Messages) => "flower ip_proto udp dst_port PORT-OF-MESSAGES".to_owned(),
        Some(PoliceOnly::Port(port)) => format!("flower ip_proto udp dst_port {port}"),
    };
    format!(
        "tc qdisc add dev {name} clsact; tc filter add dev {name} ingress protocol ip {filter} action gate clockid CLOCK_TAI base-time \
         SECOND+{}{}",
        police.base.0,
        entries.collect::<String>()
    )
}

/// Returns a problem if this kernel cannot police received packets, found by an attempt in a temporary network namespace. If no
/// namespace can be made, another check of the lab reports that.
pub(crate) fn problem(police: &PoliceSpec) -> Option<Problem> {
    let netns = NetNs::make().ok()?;
    let entry = |open| PoliceEntry { open, time: Nanos::from_millis(1), most_bytes: None };
    let tried = PoliceSpec { entries: vec![entry(true), entry(false)], base: Nanos(0), only: police.only };
    let (filter, port) = police.only.map_or(("matchall", None), |_| ("flower", Some(1)));
    // The loopback interface always has index 1.
    let attempt = move || ingress::add(1, (KIND, &options(&tried, 0)), port);
    let attempt = run_in(&netns, attempt).and_then(|job| job.join()?);
    attempt.err().map(|error| lack_of(filter, &error))
}

fn lack_of(filter: &str, error: &io::Error) -> Problem {
    lack(
        format!(
            "this kernel cannot police received packets, which `police` needs (clsact, {filter}, act_gate): {error}"
        ),
        format!(
            "load the modules (`modprobe -a sch_ingress cls_{filter} act_gate`), remove `police`, or run the study in a guest whose \
             kernel has them (`tailbound guest run`)"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn police() -> PoliceSpec {
        let entry = |open, ms, most_bytes| PoliceEntry { open, time: Nanos::from_millis(ms), most_bytes };
        PoliceSpec {
            entries: vec![entry(true, 5, Some(900)), entry(false, 15, None)],
            base: Nanos(250_000),
            only: None,
        }
    }

    #[test]
    fn the_kernel_reports_what_was_asked_for() {
        let options = options(&police(), 7_250_000);
        let found = ReceiveAction { kind: KIND.into(), options: options.clone(), ..ReceiveAction::default() };
        assert_eq!(parsed(&found), Some(asked(&police(), 7_250_000)));
        let counted = ReceiveAction { packets: 20, drops: 15, overlimits: 2, ..found.clone() };
        assert_eq!(parsed(&counted).map(|fact| (fact.packets, fact.dropped, fact.overfull)), Some((20, 15, 2)));
        assert_eq!(parsed(&ReceiveAction { kind: "mirred".into(), ..found.clone() }), None);
        assert_eq!(parsed(&ReceiveAction { options: options[..options.len() - 4].to_vec(), ..found }), None);
    }

    #[test]
    fn the_commands_and_the_lack_of_an_action_are_written() {
        let words = io::Error::other("No such file or directory (os error 2): Failed to load TC action module");
        let only = |only| command("tbx-p1", &PoliceSpec { only: Some(only), ..police() });
        let commands = [command("tbx-p1", &police()), only(PoliceOnly::Messages), only(PoliceOnly::Port(7_411))];
        insta::assert_snapshot!(format!("{}\n{}", commands.join("\n"), lack_of("matchall", &words)));
    }
}
