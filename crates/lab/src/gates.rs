//! Gates of an interface by the queue discipline `taprio` (tc-taprio(8)).

use crate::launch;
use crate::netns::{NetNs, run_in};
use crate::qdisc::{self, attributes, priority_map, push};
use nix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tailbound_host::clock;
use tailbound_host::ptp_clock::{PtpClock, PtpError, ptp_device_of};
use tailbound_host::queues;
use tailbound_model::{GateEntry, GatesBy, GatesFact, GatesSpec, LaunchSpec, Nanos, Problem, QueueDiscipline, ROOT};

pub(crate) const KIND: &str = qdisc::TAPRIO;
/// The handle of `taprio` of an interface that Tailbound makes, by which its queues are named.
pub(crate) const HANDLE: u32 = 1 << 16;
const SECOND_NS: i64 = 1_000_000_000;
/// Number of bytes on the wire that the kernel does not count: preamble, checksum, and the gap to the next frame (IEEE 802.3).
pub(crate) const WIRE_BYTES: i32 = 24;
/// Longest time after its begin until the kernel reports the schedule as the one in force.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);

// Attributes of taprio (linux/pkt_sched.h).
const PRIOMAP: u16 = qdisc::TAPRIO_MAP;
const ENTRY_LIST: u16 = 2;
const BASE_TIME: u16 = 3;
const CLOCKID: u16 = 5;
const ADMIN_SCHED: u16 = 7;
const CYCLE_TIME: u16 = 8;
const FLAGS: u16 = 10;
const TXTIME_DELAY: u16 = 11;
const TC_ENTRY: u16 = 12;
const TC_ENTRY_INDEX: u16 = 1;
const TC_ENTRY_FP: u16 = 3;
/// Values of the attribute TCA_TAPRIO_TC_ENTRY_FP of a class.
const FP_EXPRESS: u32 = 1;
const FP_PREEMPTIBLE: u32 = 2;
/// Bit of an attribute whose value consists of attributes (linux/netlink.h).
const NESTED: u16 = 0x8000;
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

/// When and as what the gates of an interface begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// The whole second of CLOCK_TAI to which the begins of all schedules of a lab refer, so that their phases fit together; it is
    /// chosen with the first one.
    pub second_ns: &'a OnceLock<i64>,
    /// Handle of the queue discipline.
    pub handle: u32,
    /// Launch times of the messages, for the queues of their class.
    pub launch: Option<LaunchSpec>,
}

/// Gives an interface these gates in the place of its queue discipline, waits until they are in force, and compares them with what
/// the kernel reports.
pub(crate) async fn put(netns: &NetNs, name: String, gates: &GatesSpec, start: Start<'_>) -> io::Result<()> {
    let Start { second_ns, handle, launch } = start;
    let second_ns = reference_ns(second_ns);
    let tai = Reading::of_clock(libc::CLOCK_TAI)?;
    let (is_by_card, of_card) = (gates.by == GatesBy::Offload, name.clone());
    let own = if is_by_card { run_in(netns, move || Reading::of_card(&of_card))?.wait().await? } else { Ok(tai) };
    // Without a hardware clock, the kernel refuses the schedule in its own words.
    let base_ns = begin_ns(second_ns, tai, *own.as_ref().unwrap_or(&tai)) + gates.base.0;
    let root =
        QueueDiscipline { handle, size_table: size_table(), ..QueueDiscipline::at_root(KIND, options(gates, base_ns)) };
    let (by, queues) = (gates.by, gates.queues());
    // With `assist`, all queues have launch times.
    let launch = launch.filter(|_| gates.by == GatesBy::Software);
    let launching = launch.map_or_else(Vec::new, |launch| launch::below(gates, launch, handle));
    let job = move |index| {
        queues::replace(index, &root)?;
        launching.iter().try_for_each(|queue| queues::add(index, queue))?;
        if !launching.is_empty() {
            // The kernel stops the timer of the schedule when it gets another queue (`taprio_reset` of net/sched/sch_taprio.c).
            queues::replace(index, &root)?;
        }
        if let GatesBy::Assist { ahead } = by {
            let all = (1..=u32::from(queues)).map(|number| launch::of_all_sockets(handle | number, ahead.0));
            all.into_iter().try_for_each(|queue| queues::add(index, &queue))?;
        }
        Ok(())
    };
    qdisc::at(netns, &name, job).await?;
    let wait_ns = (base_ns - own?.ahead_ns - clock::monotonic_ns()).max(0);
    tokio::time::sleep(Duration::from_nanos(wait_ns.unsigned_abs())).await;
    if let GatesBy::Assist { ahead } = gates.by {
        launched_ahead(netns, &name, (handle, queues, ahead)).await?;
    }
    if let Some(launch) = launch {
        let all = qdisc::at(netns, &name, queues::read).await?;
        if let Some(text) = launch::difference(&all, gates, launch, handle) {
            return Err(io::Error::other(format!("the kernel set other queues with launch times: {text}")));
        }
    }
    let found = in_force(netns, &name, gates).await?;
    let asked = GatesFact {
        ahead_ns: found.ahead_ns,
        within_ns: found.within_ns,
        read_at_ns: found.read_at_ns,
        hardware_clock: found.hardware_clock,
        ..asked(gates, base_ns, found.tai_offset_s)
    };
    if found == asked {
        return Ok(());
    }
    Err(io::Error::other(format!("the kernel set other gates: {}", difference(&asked, &found))))
}

/// The whole second of CLOCK_TAI to which all schedules of a lab refer. If none has been chosen, it is one that is still to come
/// when the kernel gets the first schedule.
pub(crate) fn reference_ns(second_ns: &OnceLock<i64>) -> i64 {
    *second_ns.get_or_init(|| ((clock::tai_ns() + SECOND_NS / 10) / SECOND_NS + 1) * SECOND_NS)
}

/// The whole second of the clock `own` that is nearest to a second of CLOCK_TAI if both are nearly the same, otherwise the next one.
fn begin_ns(second_ns: i64, tai: Reading, own: Reading) -> i64 {
    /// Largest difference of two clocks of which one follows the other.
    const FOLLOWS_NS: i64 = 10_000_000;
    let at_ns = second_ns - tai.ahead_ns + own.ahead_ns - FOLLOWS_NS;
    at_ns.div_euclid(SECOND_NS) * SECOND_NS + SECOND_NS
}

/// The gates of an interface as soon as their schedule is in force.
async fn in_force(netns: &NetNs, name: &str, gates: &GatesSpec) -> io::Result<GatesFact> {
    // A schedule whose begin is over begins with its next cycle.
    let end = Instant::now() + BEGINS_WITHIN + cycle(gates).duration();
    loop {
        match read(netns, name.to_owned()).await? {
            // The kernel never reports the schedule of a network card as the one in force (`taprio_start_sched` of
            // net/sched/sch_taprio.c).
            Some((found, is_pending)) if !is_pending || gates.by == GatesBy::Offload => return Ok(found),
            None => return Err(io::Error::other("the interface has no gates when it is read back")),
            Some(_) if Instant::now() > end => {
                return Err(io::Error::other("the schedule of the gates has not begun at its time"));
            }
            Some(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Checks that each of the queues gives frames to the device this time before their launch time of CLOCK_TAI.
async fn launched_ahead(netns: &NetNs, name: &str, (handle, count, ahead): (u32, u16, Nanos)) -> io::Result<()> {
    let asked = launch::strict(ahead.0);
    let job = move |index| Ok(launch::all_queues(&queues::read(index)?, handle));
    match qdisc::at(netns, name, job).await? {
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
            ("preemptible classes", format!("{:b}", fact.preemptible)),
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
    let all = qdisc::at(netns, &name, queues::read).await?;
    let Some(found) = all.iter().find(|one| one.kind == KIND && one.parent == ROOT) else { return Ok(None) };
    // Only frames with launch times have queues that keep them.
    let queues = match word_of(&found.options, FLAGS) & ASSIST {
        0 => None,
        _ => launch::all_queues(&all, found.handle),
    };
    let is_by_card = word_of(&found.options, FLAGS) & OFFLOAD != 0;
    let clock = match is_by_card {
        true => run_in(netns, move || Reading::of_card(&of_clock))?.wait().await??,
        false => Reading::of_clock(word_of(&found.options, CLOCKID) as i32)?,
    };
    let incomplete = || io::Error::other("the kernel's answer about the gates is incomplete");
    let (fact, is_pending) = parsed(found, clock).ok_or_else(incomplete)?;
    let launch_ahead_ns = queues.map_or(0, |(queue, _)| queue.ahead_ns as u32);
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
        let clock = PtpClock::numbered(number).map_err(failed)?;
        let ahead = clock.ahead_of_monotonic().map_err(failed)?;
        Ok(Reading {
            tai_offset_s: clock::tai_offset_s().unwrap_or_default(),
            ahead_ns: ahead.offset_ns,
            within_ns: ahead.width_ns / 2 + 1,
            hardware: Some(number),
            read_at_ns: ahead.at_ns,
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
        clock: if gates.by == GatesBy::Offload { -1 } else { libc::CLOCK_TAI },
        tai_offset_s,
        overhead_bytes: WIRE_BYTES,
        flags: flags(gates.by),
        preemptible: gates.preemptible(),
        delay_ns: gates.by.delay().0 as u32,
        launch_ahead_ns: match gates.by {
            GatesBy::Assist { ahead } => ahead.0 as u32,
            _ => 0,
        },
        ..GatesFact::default()
    }
}

fn flags(by: GatesBy) -> u32 {
    match by {
        GatesBy::Software | GatesBy::Existing => 0,
        GatesBy::Assist { .. } => ASSIST,
        GatesBy::Offload => OFFLOAD,
    }
}

/// The options of taprio.
fn options(gates: &GatesSpec, base_ns: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let counts: Vec<u16> = gates.classes.iter().map(|class| class.queues).collect();
    push(&mut bytes, PRIOMAP, &priority_map(gates.class_of_priority(), &counts));
    push(&mut bytes, BASE_TIME, &base_ns.to_ne_bytes());
    // The kernel refuses a clock if the network card opens and closes the gates.
    if gates.by != GatesBy::Offload {
        push(&mut bytes, CLOCKID, &libc::CLOCK_TAI.to_ne_bytes());
    }
    if let Some(cycle) = gates.cycle {
        push(&mut bytes, CYCLE_TIME, &cycle.0.to_ne_bytes());
    }
    if flags(gates.by) != 0 {
        push(&mut bytes, FLAGS, &flags(gates.by).to_ne_bytes());
    }
    if flags(gates.by) == ASSIST {
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
    bytes.extend(preemptible(gates));
    bytes
}

/// Which classes are preemptible, as attributes of taprio. Without such a class there are none, because kernels before 6.4 do not know
/// them.
fn preemptible(gates: &GatesSpec) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, class) in gates.classes.iter().enumerate().filter(|_| gates.preemptible() != 0) {
        let mut one = Vec::new();
        push(&mut one, TC_ENTRY_INDEX, &(number as u32).to_ne_bytes());
        let value = if class.preemptible { FP_PREEMPTIBLE } else { FP_EXPRESS };
        push(&mut one, TC_ENTRY_FP, &value.to_ne_bytes());
        push(&mut bytes, TC_ENTRY | NESTED, &one);
    }
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
fn parsed(found: &QueueDiscipline, clock: Reading) -> Option<(GatesFact, bool)> {
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
    let classes = attributes(whole).filter(|(kind, _)| *kind == TC_ENTRY);
    let preemptible = classes.filter(|(_, class)| word_of(class, TC_ENTRY_FP) == FP_PREEMPTIBLE);
    let preemptible = preemptible.fold(0, |bits, (_, class)| bits | 1u32.wrapping_shl(word_of(class, TC_ENTRY_INDEX)));
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
        preemptible,
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
    let by = match gates.by {
        GatesBy::Software | GatesBy::Existing => " clockid CLOCK_TAI".to_owned(),
        GatesBy::Offload => format!(" flags 0x2{}", preemptible_words(gates)),
        GatesBy::Assist { ahead } => format!(
            " clockid CLOCK_TAI flags 0x1 txtime-delay {}; tc qdisc add dev {name} parent 1:QUEUE etf clockid CLOCK_TAI delta {} skip_sock_check",
            gates.by.delay().0,
            ahead.0
        ),
    };
    format!(
        "tc qdisc replace dev {name} root handle 1: stab overhead {WIRE_BYTES} taprio num_tc {} map {map} queues {} base-time SECOND+{} {}{cycle}{by}",
        gates.classes.len(),
        words(queues.collect()),
        gates.base.0,
        words(entries.collect()),
    )
}

/// Which classes are preemptible, as words of tc-taprio(8); empty if none is.
fn preemptible_words(gates: &GatesSpec) -> String {
    let words = gates.classes.iter().map(|class| if class.preemptible { " P" } else { " E" });
    if gates.preemptible() == 0 { String::new() } else { format!(" fp{}", words.collect::<String>()) }
}

/// Returns a problem if this kernel cannot open and close gates.
pub(crate) fn problem() -> Option<Problem> {
    qdisc::is_missing(KIND).then(|| qdisc::lack_of(KIND, "opens and closes gates", "gates"))
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
            preemptible: false,
        };
        let entry = |open, us: i64| GateEntry { open, time: Nanos(us * 1_000) };
        let others: Vec<u8> = (0..7).chain(8..16).collect();
        GatesSpec {
            by: GatesBy::Software,
            classes: vec![class("stream", &[7], 1), class("rest", &others, 3)],
            entries: vec![entry(1, 101), entry(2, 402)],
            cycle: Some(Nanos(503_000)),
            base: Nanos(250_000),
            replace: false,
        }
    }

    #[test]
    fn the_kernel_reports_what_was_asked_for() {
        let options = options(&gates(), 7);
        let found = QueueDiscipline { size_table: size_table(), ..QueueDiscipline::at_root(KIND, options.clone()) };
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
    fn gates_of_a_card_begin_with_a_second_of_its_clock() {
        let at = |ahead_ns| Reading { ahead_ns, ..Reading::default() };
        let begin = |card_ns| begin_ns(40 * SECOND_NS, at(7), at(7 + card_ns));
        // Clocks that are apart by seconds and by less than 10 ms.
        assert_eq!([-37 * SECOND_NS + 9_000_000, 9_000_000, -9_000_000].map(begin), [3, 40, 40].map(|s| s * SECOND_NS));
        // Clocks that have nothing to do with each other.
        assert_eq!([11_000_000, -400_000_000].map(begin), [41, 40].map(|s| s * SECOND_NS));
    }

    #[test]
    fn a_card_gets_no_clock() {
        let options = options(&GatesSpec { by: GatesBy::Offload, ..gates() }, 7);
        assert_eq!(word_of(&options, FLAGS), OFFLOAD);
        assert!(attributes(&options).all(|(kind, _)| kind != CLOCKID));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn preemptible_classes_have_the_layout_of_the_headers_of_the_kernel() {
        let mut gates = GatesSpec { by: GatesBy::Offload, ..gates() };
        assert_eq!((preemptible(&gates), preemptible_words(&gates)), (Vec::new(), String::new()));
        gates.classes[1].preemptible = true;
        // struct nlattr (linux/netlink.h): length with its header, kind. TCA_TAPRIO_ATTR_TC_ENTRY = 12, nested, with
        // TCA_TAPRIO_TC_ENTRY_INDEX = 1 and TCA_TAPRIO_TC_ENTRY_FP = 3 (TC_FP_EXPRESS = 1, TC_FP_PREEMPTIBLE = 2).
        let class = |number, fp| [20, 0, 12, 0x80, 8, 0, 1, 0, number, 0, 0, 0, 8, 0, 3, 0, fp, 0, 0, 0];
        assert_eq!(preemptible(&gates), [class(0, 1), class(1, 2)].concat());
        let command = command("eth0", &gates);
        assert!(command.ends_with("flags 0x2 fp E P"), "{command}");
        let found = QueueDiscipline { size_table: size_table(), ..QueueDiscipline::at_root(KIND, options(&gates, 7)) };
        let (fact, _) = parsed(&found, Reading::default()).unwrap();
        assert_eq!((fact.preemptible, fact), (0b10, asked(&gates, 7, 0)));
        let difference = difference(&asked(&gates, 7, 0), &GatesFact { preemptible: 0, ..asked(&gates, 7, 0) });
        assert_eq!(difference, "preemptible classes 0 instead of 10");
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
        let found = QueueDiscipline::at_root(KIND, options.clone());
        let expected = GatesFact { overhead_bytes: 0, ..asked(&gates(), 9, 0) };
        assert_eq!(parsed(&found, Reading::default()), Some((expected, true)));
        let cut = QueueDiscipline::at_root(KIND, options[..options.len() - 4].to_vec());
        assert_eq!(parsed(&cut, Reading::default()), None);
    }
}
