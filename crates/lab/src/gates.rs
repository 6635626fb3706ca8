//! Gates of an interface by the queue discipline `taprio` (tc-taprio(8)).

use crate::error::lack;
use crate::launch;
use crate::netlink::{converse, index};
use crate::netns::{NetNs, run_in};
use crate::qdisc::{self, Discipline, Found, attributes, priority_map, push};
use nix::time::{ClockId, clock_gettime};
use rtnetlink::packet_route::tc::TcHandle;
use rtnetlink::{Error, Handle};
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tailbound_host::clock;
use tailbound_host::ptp_clock::{PtpClock, PtpError, ptp_device_of};
use tailbound_model::{GateEntry, GatesBy, GatesFact, GatesSpec, MOST_CLASSES, Nanos, Problem};

const KIND: &str = "taprio";
/// The handle of `taprio`, by which its queues are named.
const HANDLE: TcHandle = TcHandle { major: 1, minor: 0 };
const SECOND_NS: i64 = 1_000_000_000;
/// Number of bytes on the wire that the kernel does not count: preamble, checksum, and the gap to the next frame (IEEE 802.3).
pub(crate) const WIRE_BYTES: i32 = 24;
/// Longest time after its begin until the kernel reports the schedule as the one in force.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);

// Attributes of taprio (linux/pkt_sched.h).
const PRIOMAP: u16 = 1;
const ENTRY_LIST: u16 = 2;
const BASE_TIME: u16 = 3;
const CLOCKID: u16 = 5;
const ADMIN_SCHED: u16 = 7;
const CYCLE_TIME: u16 = 8;
const FLAGS: u16 = 10;
const TXTIME_DELAY: u16 = 11;
/// Flag of taprio: frames have launch times (TCA_TAPRIO_ATTR_FLAG_TXTIME_ASSIST).
const ASSIST: u32 = 1;
/// Flag of taprio: the network card opens and closes the gates (TCA_TAPRIO_ATTR_FLAG_FULL_OFFLOAD).
const OFFLOAD: u32 = 2;
const ENTRY: u16 = 1;
const ENTRY_INDEX: u16 = 1;
const ENTRY_CMD: u16 = 2;
const ENTRY_GATE_MASK: u16 = 3;
const ENTRY_INTERVAL: u16 = 4;
/// Attribute of a size table with its parameters, `struct tc_sizespec`.
const STAB_BASE: u16 = 1;

/// Gives an interface these gates, waits until they are in force, and compares them with what the kernel reports.
///
/// `second_ns` is the whole second of CLOCK_TAI to which the begins of all schedules of a lab refer, so that their phases fit
/// together; it is chosen with the first one.
pub(crate) async fn put(netns: &NetNs, name: String, gates: &GatesSpec, second_ns: &OnceLock<i64>) -> io::Result<()> {
    let now_ns = clock::tai_ns();
    // A second that is still to come when the kernel gets the first schedule.
    let base_ns = second_ns.get_or_init(|| ((now_ns + SECOND_NS / 10) / SECOND_NS + 1) * SECOND_NS) + gates.base.0;
    let (options, of_job) = (options(gates, base_ns), name.clone());
    let (by, queues) = (gates.by, gates.queues());
    let job = move |handle: Handle| async move {
        let index = index(&handle, &of_job).await?;
        let gates = Discipline { handle: HANDLE, size_table: Some(size_table()), ..Discipline::at_root(KIND, options) };
        qdisc::add(handle.clone(), index, gates).await?;
        if let GatesBy::Assist { ahead } = by {
            for number in 1..=queues {
                let queue = TcHandle { major: HANDLE.major, minor: number };
                qdisc::add(handle.clone(), index, launch::of_all_sockets(queue, ahead.0)).await?;
            }
        }
        Ok::<_, Error>(())
    };
    converse(netns, job)?.wait().await??;
    tokio::time::sleep(Duration::from_nanos((base_ns - now_ns).max(0).unsigned_abs())).await;
    // A schedule whose begin is over begins with its next cycle.
    let end = Instant::now() + BEGINS_WITHIN + cycle(gates).duration();
    if let GatesBy::Assist { ahead } = gates.by {
        launched_ahead(netns, name.clone(), (gates.queues(), ahead)).await?;
    }
    let found = loop {
        match read(netns, name.clone()).await? {
            Some((found, false)) => break found,
            None => return Err(io::Error::other("the interface has no gates when it is read back")),
            Some(_) if Instant::now() > end => {
                return Err(io::Error::other("the schedule of the gates has not begun at its time"));
            }
            Some(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let asked = GatesFact {
        ahead_ns: found.ahead_ns,
        within_ns: found.within_ns,
        read_at_ns: found.read_at_ns,
        ..asked(gates, base_ns, found.tai_offset_s)
    };
    if found == asked {
        return Ok(());
    }
    Err(io::Error::other(format!("the kernel set other gates: {}", difference(&asked, &found))))
}

/// Checks that each of the queues gives frames to the device this time before their launch time of CLOCK_TAI.
async fn launched_ahead(netns: &NetNs, name: String, (count, ahead): (u16, Nanos)) -> io::Result<()> {
    let job = move |handle: Handle| async move {
        let index = index(&handle, &name).await?;
        launch::all_queues(&handle, index, (HANDLE, count)).await
    };
    let asked = launch::strict(ahead.0);
    match converse(netns, job)?.wait().await?? {
        Some(found) if found == (asked, count) => Ok(()),
        found => Err(io::Error::other(format!("the kernel set other queues with launch times: {found:?}"))),
    }
}

/// What differs between the gates that were asked for and those that the kernel reports.
fn difference(asked: &GatesFact, found: &GatesFact) -> String {
    let entries = |all: &[GateEntry]| {
        let text = all.iter().map(|entry| format!("{:x} {}", entry.open, entry.time));
        text.collect::<Vec<_>>().join(", ")
    };
    let of = |fact: &GatesFact| {
        [
            ("classes of the priorities", format!("{:?}", fact.class_of_priority)),
            ("entries", entries(&fact.entries)),
            ("cycle", Nanos(fact.cycle_ns).to_string()),
            ("begin", format!("{} ns", fact.base_ns)),
            ("clock", fact.clock.to_string()),
            ("size table", format!("{} bytes", fact.overhead_bytes)),
            ("launch times", format!("{} ns after {} ns (flags {})", fact.launch_ahead_ns, fact.delay_ns, fact.flags)),
        ]
    };
    let differing = of(asked).into_iter().zip(of(found)).filter(|(asked, found)| asked != found);
    let texts = differing.map(|((what, asked), (_, found))| format!("{what} {found} instead of {asked}"));
    texts.collect::<Vec<_>>().join("; ")
}

/// The gates of an interface, and whether their schedule has not begun yet; `None` if the interface has none.
pub(crate) async fn read(netns: &NetNs, name: String) -> io::Result<Option<(GatesFact, bool)>> {
    let of_clock = name.clone();
    let job = |handle: Handle| async move {
        let index = index(&handle, &name).await?;
        let found = qdisc::found(&handle, index, (KIND, TcHandle::ROOT)).await?;
        // Only frames with launch times have queues that keep them.
        let queues = match found.as_ref().map_or(0, |found| word_of(&found.options, FLAGS)) & ASSIST {
            0 => None,
            _ => launch::all_queues(&handle, index, (HANDLE, MOST_CLASSES as u16)).await?,
        };
        Ok::<_, Error>((found, queues.map(|(queue, _)| queue.ahead_ns)))
    };
    let (found, launch_ahead_ns) = converse(netns, job)?.wait().await??;
    let Some(found) = found else { return Ok(None) };
    let is_by_card = word_of(&found.options, FLAGS) & OFFLOAD != 0;
    let clock = match is_by_card {
        true => run_in(netns, move || Reading::of_card(&of_clock))?.wait().await??,
        false => Reading::of_clock(word_of(&found.options, CLOCKID) as i32)?,
    };
    let incomplete = || io::Error::other("the kernel's answer about the gates is incomplete");
    let (fact, is_pending) = parsed(&found, clock).ok_or_else(incomplete)?;
    let launch_ahead_ns = launch_ahead_ns.map_or(0, |ns| ns as u32);
    Ok(Some((GatesFact { launch_ahead_ns, ..fact }, is_pending)))
}

/// The clock of the gates in comparison with CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    tai_offset_s: i32,
    ahead_ns: i64,
    within_ns: i64,
    /// Number of the hardware clock, if the clock is one.
    hardware: Option<u32>,
    read_at_ns: i64,
}

impl Reading {
    /// The hardware clock of the card with this interface, in comparison with CLOCK_MONOTONIC by CLOCK_REALTIME.
    fn of_card(interface: &str) -> io::Result<Reading> {
        let failed = |error: PtpError| io::Error::other(error.problem().what);
        let number = ptp_device_of(interface).map_err(failed)?;
        let clock = PtpClock::open(Path::new(&format!("/dev/ptp{number}"))).map_err(failed)?;
        let reading = clock.read().map_err(failed)?;
        let realtime = clock::read_offset();
        Ok(Reading {
            tai_offset_s: clock::tai_offset_s().unwrap_or_default(),
            ahead_ns: reading.middle_ns() + realtime.offset_ns,
            within_ns: reading.half_width_ns() + realtime.width_ns / 2 + 1,
            hardware: Some(number),
            read_at_ns: realtime.at_ns,
        })
    }

    /// A clock of the kernel with this number (clock_gettime(2)). Schedules that others have set up may be on other clocks than
    /// CLOCK_TAI.
    fn of_clock(number: i32) -> io::Result<Reading> {
        let id = ClockId::from_raw(number);
        clock_gettime(id)?;
        // A clock that could be read once can be read again.
        let now_ns = || clock_gettime(id).map_or(0, |time| time.tv_sec() * SECOND_NS + time.tv_nsec());
        let ahead = clock::read_offset_with(clock::monotonic_ns, now_ns);
        Ok(Reading {
            tai_offset_s: clock::tai_offset_s().unwrap_or_default(),
            ahead_ns: ahead.offset_ns,
            within_ns: ahead.width_ns / 2 + 1,
            hardware: None,
            read_at_ns: ahead.at_ns,
        })
    }
}

/// Time after which the list begins again.
fn cycle(gates: &GatesSpec) -> Nanos {
    gates.cycle.unwrap_or_else(|| Nanos(gates.entries.iter().map(|entry| entry.time.0).sum()))
}

/// The gates as the kernel should report them.
fn asked(gates: &GatesSpec, base_ns: i64, tai_offset_s: i32) -> GatesFact {
    GatesFact {
        class_of_priority: gates.class_of_priority().to_vec(),
        entries: gates.entries.clone(),
        cycle_ns: cycle(gates).0,
        base_ns,
        clock: libc::CLOCK_TAI,
        tai_offset_s,
        overhead_bytes: WIRE_BYTES,
        flags: if matches!(gates.by, GatesBy::Assist { .. }) { ASSIST } else { 0 },
        delay_ns: gates.by.delay().0 as u32,
        launch_ahead_ns: match gates.by {
            GatesBy::Software | GatesBy::Existing => 0,
            GatesBy::Assist { ahead } => ahead.0 as u32,
        },
        ..GatesFact::default()
    }
}

/// The options of taprio.
fn options(gates: &GatesSpec, base_ns: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let counts: Vec<u16> = gates.classes.iter().map(|class| class.queues).collect();
    push(&mut bytes, PRIOMAP, &priority_map(gates.class_of_priority(), &counts));
    push(&mut bytes, BASE_TIME, &base_ns.to_ne_bytes());
    push(&mut bytes, CLOCKID, &libc::CLOCK_TAI.to_ne_bytes());
    if let Some(cycle) = gates.cycle {
        push(&mut bytes, CYCLE_TIME, &cycle.0.to_ne_bytes());
    }
    if matches!(gates.by, GatesBy::Assist { .. }) {
        push(&mut bytes, FLAGS, &ASSIST.to_ne_bytes());
        push(&mut bytes, TXTIME_DELAY, &(gates.by.delay().0 as u32).to_ne_bytes());
    }
    let mut list = Vec::new();
    for (index, entry) in gates.entries.iter().enumerate() {
        let mut one = Vec::new();
        push(&mut one, ENTRY_INDEX, &(index as u32).to_ne_bytes());
        // Command 0: set the gates.
        push(&mut one, ENTRY_CMD, &[0]);
        push(&mut one, ENTRY_GATE_MASK, &entry.open.to_ne_bytes());
        push(&mut one, ENTRY_INTERVAL, &(entry.time.0 as u32).to_ne_bytes());
        push(&mut list, ENTRY, &one);
    }
    push(&mut bytes, ENTRY_LIST, &list);
    bytes
}

/// A size table that adds [`WIRE_BYTES`] to each frame: `struct tc_sizespec` (cell log, size log, cell alignment, overhead,
/// link layer, MPU, MTU, number of table entries).
fn size_table() -> Vec<u8> {
    let mut spec = vec![0, 0, 0, 0];
    spec.extend(WIRE_BYTES.to_ne_bytes());
    spec.extend([0; 16]);
    let mut bytes = Vec::new();
    push(&mut bytes, STAB_BASE, &spec);
    bytes
}

/// The number of this attribute; 0 = there is none.
fn word_of(options: &[u8], kind: u16) -> u32 {
    let found = attributes(options).find(|(k, _)| *k == kind);
    found.and_then(|(_, value)| value.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The schedule that comes next, if there is one, otherwise the schedule in force; and whether it comes next.
fn parsed(found: &Found, clock: Reading) -> Option<(GatesFact, bool)> {
    let of = |bytes: &'_ [u8], kind: u16| attributes(bytes).find(|(k, _)| *k == kind).map(|(_, value)| value.to_vec());
    let whole = &found.options;
    let pending = of(whole, ADMIN_SCHED);
    let is_pending = pending.is_some();
    let schedule = pending.unwrap_or_else(|| whole.clone());
    let time = |kind| Some(i64::from_ne_bytes(of(&schedule, kind)?.try_into().ok()?));
    let word = |bytes: &[u8], kind| Some(u32::from_ne_bytes(of(bytes, kind)?.try_into().ok()?));
    let list = of(&schedule, ENTRY_LIST)?;
    let entries = attributes(&list).filter(|(kind, _)| *kind == ENTRY).map(|(_, entry)| {
        let time = Nanos(i64::from(word(entry, ENTRY_INTERVAL)?));
        Some(GateEntry { open: word(entry, ENTRY_GATE_MASK)?, time })
    });
    let overhead =
        of(&found.size_table, STAB_BASE).and_then(|spec| Some(i32::from_ne_bytes(spec.get(4..8)?.try_into().ok()?)));
    let fact = GatesFact {
        class_of_priority: of(whole, PRIOMAP)?.get(1..17)?.to_vec(),
        entries: entries.collect::<Option<_>>()?,
        cycle_ns: time(CYCLE_TIME)?,
        base_ns: time(BASE_TIME)?,
        // The kernel names no clock if the card opens and closes the gates.
        clock: match word_of(whole, FLAGS) & OFFLOAD {
            0 => word(whole, CLOCKID)? as i32,
            _ => -1,
        },
        hardware_clock: clock.hardware,
        read_at_ns: clock.read_at_ns,
        tai_offset_s: clock.tai_offset_s,
        ahead_ns: clock.ahead_ns,
        within_ns: clock.within_ns,
        overhead_bytes: overhead.unwrap_or_default(),
        flags: word_of(whole, FLAGS),
        delay_ns: word_of(whole, TXTIME_DELAY),
        launch_ahead_ns: 0,
    };
    Some((fact, is_pending))
}

/// The gates as a command for an interface. The begin of the schedule is known only when it is set.
pub(crate) fn command(name: &str, gates: &GatesSpec) -> String {
    let words = |all: Vec<String>| all.join(" ");
    let map = words(gates.class_of_priority().iter().map(u8::to_string).collect());
    let mut first = 0;
    let queues = gates.classes.iter().map(|class| {
        let text = format!("{}@{first}", class.queues);
        first += class.queues;
        text
    });
    let entries = gates.entries.iter().map(|entry| format!("sched-entry S {:x} {}", entry.open, entry.time.0));
    let cycle = gates.cycle.map(|cycle| format!(" cycle-time {}", cycle.0)).unwrap_or_default();
    let assist = match gates.by {
        GatesBy::Software | GatesBy::Existing => String::new(),
        GatesBy::Assist { ahead } => format!(
            " flags 0x1 txtime-delay {}; tc qdisc add dev {name} parent 1:QUEUE etf clockid CLOCK_TAI delta {} skip_sock_check",
            gates.by.delay().0,
            ahead.0
        ),
    };
    format!(
        "tc qdisc add dev {name} root handle 1: stab overhead {WIRE_BYTES} taprio num_tc {} map {map} queues {} base-time SECOND+{} {}{cycle} clockid CLOCK_TAI{assist}",
        gates.classes.len(),
        words(queues.collect()),
        gates.base.0,
        words(entries.collect()),
    )
}

/// Returns a problem if this kernel cannot open and close gates, found by an attempt in a temporary network namespace. If no
/// namespace can be made, another check of the lab reports that.
pub(crate) fn problem() -> Option<Problem> {
    let tried = NetNs::make().and_then(|netns| {
        // The loopback interface always has index 1. It has one queue, so that the kernel refuses the options.
        converse(&netns, |handle| qdisc::add(handle, 1, Discipline::at_root(KIND, Vec::new())))?.join()?
    });
    match tried.err()?.raw_os_error()? {
        // The kernel does not know the queue discipline.
        libc::ENOENT => Some(lack(
            "this kernel has no taprio, which opens and closes gates: it was built without CONFIG_NET_SCH_TAPRIO, or the \
             module is missing",
            "load the module (`modprobe sch_taprio`), remove `gates`, or run the study in a guest whose kernel has taprio (`tailbound guest run`)",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::GateClass;

    fn gates() -> GatesSpec {
        let class = |name: &str, priorities: &[u8], queues| GateClass {
            name: name.into(),
            priorities: priorities.iter().copied().collect(),
            queues,
        };
        let entry = |open, us: i64| GateEntry { open, time: Nanos(us * 1_000) };
        let others: Vec<u8> = (0..7).chain(8..16).collect();
        GatesSpec {
            by: GatesBy::Software,
            classes: vec![class("stream", &[7], 1), class("rest", &others, 3)],
            entries: vec![entry(1, 101), entry(2, 402)],
            cycle: Some(Nanos(503_000)),
            base: Nanos(250_000),
        }
    }

    #[test]
    fn the_kernel_reports_what_was_asked_for() {
        let options = options(&gates(), 7);
        let found = Found { options: options.clone(), size_table: size_table() };
        assert_eq!(
            parsed(&found, Reading { tai_offset_s: 37, ..Reading::default() }),
            Some((asked(&gates(), 7, 37), false))
        );
        let map = attributes(&options).find(|(kind, _)| *kind == PRIOMAP).unwrap().1;
        assert_eq!(map.len(), 82);
        assert_eq!(map[..9], [2, 1, 1, 1, 1, 1, 1, 1, 0]);
        // Counts of queues, then offsets.
        assert_eq!((&map[18..22], &map[50..54]), (&[1, 0, 3, 0][..], &[0, 0, 1, 0][..]));
    }

    #[test]
    fn a_schedule_that_has_not_begun_is_read() {
        let ours = options(&gates(), 9);
        let mut options = Vec::new();
        for (kind, value) in attributes(&ours).filter(|(kind, _)| [PRIOMAP, CLOCKID].contains(kind)) {
            push(&mut options, kind, value);
        }
        let mut schedule = Vec::new();
        for (kind, value) in attributes(&ours).filter(|(kind, _)| ![PRIOMAP, CLOCKID].contains(kind)) {
            push(&mut schedule, kind, value);
        }
        push(&mut options, ADMIN_SCHED, &schedule);
        let found = Found { options: options.clone(), size_table: Vec::new() };
        let expected = GatesFact { overhead_bytes: 0, ..asked(&gates(), 9, 0) };
        assert_eq!(parsed(&found, Reading::default()), Some((expected, true)));
        let cut = Found { options: options[..options.len() - 4].to_vec(), size_table: Vec::new() };
        assert_eq!(parsed(&cut, Reading::default()), None);
    }
}
