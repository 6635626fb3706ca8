//! Launch times of the messages of an interface: the queue discipline `etf` (tc-etf(8)) for the queue of their priority, below
//! `mqprio` (tc-mqprio(8)), whose other queue sends everything else at once. An interface with gates has `etf` for the queues of the
//! class of the messages, below `taprio`, which refuses messages whose launch time is not in a window of the class.

use crate::netns::NetNs;
use crate::qdisc::{self, attributes, priority_map, push};
use std::io;
use std::ops::Range;
use tailbound_host::queues;
use tailbound_model::{
    GatesSpec, LaunchMode, LaunchQueueFact, LaunchSpec, Problem, QueueDiscipline, ROOT, SOCKET_PRIORITIES,
};

const KIND: &str = "etf";
const ABOVE: &str = "mqprio";
/// Number of transmit queues that the interface needs.
pub(crate) const QUEUES: u16 = 2;
/// The handle of `mqprio`, and its class for the second transmit queue.
const HANDLE: u32 = 1 << 16;
const QUEUE: u32 = HANDLE | 2;
/// Attribute of the parameters, `struct tc_etf_qopt` of linux/pkt_sched.h: delta, number of the clock, flags.
const PARMS: u16 = 1;
const DEADLINE: u32 = 1;
const OFFLOAD: u32 = 2;
const SKIP_SOCKET_CHECK: u32 = 4;

/// Gives an interface a queue with launch times, and compares it with what the kernel reports.
pub(crate) async fn put(netns: &NetNs, name: String, launch: LaunchSpec) -> io::Result<()> {
    let job = move |index| {
        let above = QueueDiscipline { handle: HANDLE, ..QueueDiscipline::at_root(ABOVE, map(launch.priority)) };
        queues::add(index, &above)?;
        let own = QueueDiscipline { parent: QUEUE, ..QueueDiscipline::at_root(KIND, options(asked(launch))) };
        queues::add(index, &own)?;
        qdisc::found(index, ABOVE, ROOT)
    };
    let above = qdisc::at(netns, &name, job).await?;
    if !above.is_some_and(|found| found.options.starts_with(&map(launch.priority))) {
        return Err(io::Error::other("the kernel set other queues for the priorities of the packets (mqprio)"));
    }
    match read(netns, name).await? {
        Some(found) if found == asked(launch) => Ok(()),
        Some(found) => Err(io::Error::other(format!("the kernel set {found:?} instead of {:?}", asked(launch)))),
        None => Err(io::Error::other("the interface has no queue with launch times when it is read back")),
    }
}

/// The queues with launch times of an interface; `None` if it has none, or if they differ.
pub(crate) async fn read(netns: &NetNs, name: String) -> io::Result<Option<LaunchQueueFact>> {
    let all = qdisc::at(netns, &name, queues::read).await?;
    let found: Vec<_> = all.iter().filter(|one| one.kind == KIND).map(|one| parsed(&one.options)).collect();
    let first = found.first().copied().flatten();
    Ok(first.filter(|first| found.iter().all(|one| *one == Some(*first))))
}

/// The queue disciplines for the queues of the class of the messages, below gates with this handle.
pub(crate) fn below(gates: &GatesSpec, launch: LaunchSpec, handle: u32) -> Vec<QueueDiscipline> {
    let below =
        |number| QueueDiscipline { parent: handle | number, ..QueueDiscipline::at_root(KIND, options(asked(launch))) };
    queues_of(gates, launch.priority).map(below).collect()
}

/// What differs from the queue disciplines of [`below`] at an interface that has `all`; `None` = nothing.
pub(crate) fn difference(
    all: &[QueueDiscipline],
    gates: &GatesSpec,
    launch: LaunchSpec,
    handle: u32,
) -> Option<String> {
    let found = |asked: &QueueDiscipline| all.iter().find(|one| one.kind == KIND && one.parent == asked.parent);
    let wanted = asked(launch);
    below(gates, launch, handle).iter().find_map(|asked| match found(asked).map(|one| parsed(&one.options)) {
        Some(Some(found)) if found == wanted => None,
        found => Some(format!("queue {}: {:?} instead of {wanted:?}", asked.parent & 0xffff, found.flatten())),
    })
}

/// Numbers of the transmit queues of the class of this priority, counted from 1 as the kernel names them.
fn queues_of(gates: &GatesSpec, priority: u8) -> Range<u32> {
    let class = gates.class_of_priority()[usize::from(priority % SOCKET_PRIORITIES)];
    let of = |count: usize| gates.classes.iter().take(count).map(|class| u32::from(class.queues)).sum::<u32>();
    1 + of(class.into())..1 + of(usize::from(class) + 1)
}

/// A queue on CLOCK_TAI that gives packets to the device this time before their launch time, ns, and never earlier.
pub(crate) fn strict(ahead_ns: i64) -> LaunchQueueFact {
    LaunchQueueFact { ahead_ns, clock: libc::CLOCK_TAI, deadline: false, offload: false }
}

/// The queue as the kernel should report it.
fn asked(launch: LaunchSpec) -> LaunchQueueFact {
    LaunchQueueFact { deadline: launch.mode == LaunchMode::Deadline, ..strict(launch.ahead.0) }
}

/// The classes of the priorities: class 1, with the second queue, has the messages with launch times.
fn classes(priority: u8) -> [u8; SOCKET_PRIORITIES as usize] {
    std::array::from_fn(|number| u8::from(number == usize::from(priority)))
}

fn map(priority: u8) -> Vec<u8> {
    priority_map(classes(priority), &[1, 1])
}

fn options(queue: LaunchQueueFact) -> Vec<u8> {
    let flags = if queue.deadline { DEADLINE } else { 0 } | if queue.offload { OFFLOAD } else { 0 };
    with_flags(queue, flags)
}

/// The queue discipline for frames that `taprio` gives launch times, whatever socket they come from.
pub(crate) fn of_all_sockets(parent: u32, ahead_ns: i64) -> QueueDiscipline {
    QueueDiscipline { parent, ..QueueDiscipline::at_root(KIND, with_flags(strict(ahead_ns), SKIP_SOCKET_CHECK)) }
}

/// The queue with launch times that is the same below all classes with one of a queue discipline with this handle, and their number;
/// `None` = there is none, or they differ.
pub(crate) fn all_queues(all: &[QueueDiscipline], above: u32) -> Option<(LaunchQueueFact, u16)> {
    let below = all.iter().filter(|one| one.kind == KIND && one.parent & 0xffff_0000 == above);
    let found: Vec<_> = below.filter_map(|one| parsed(&one.options)).collect();
    let first = found.first().copied().filter(|first| found.iter().all(|one| one == first))?;
    Some((first, found.len() as u16))
}

fn with_flags(queue: LaunchQueueFact, flags: u32) -> Vec<u8> {
    let mut parameters = Vec::new();
    // The study has less than 1 s, which fits.
    parameters.extend((queue.ahead_ns as i32).to_ne_bytes());
    parameters.extend(queue.clock.to_ne_bytes());
    parameters.extend(flags.to_ne_bytes());
    let mut bytes = Vec::new();
    push(&mut bytes, PARMS, &parameters);
    bytes
}

fn parsed(options: &[u8]) -> Option<LaunchQueueFact> {
    let (_, parameters) = attributes(options).find(|(kind, _)| *kind == PARMS)?;
    let word = |at: usize| Some(i32::from_ne_bytes(parameters.get(at..at + 4)?.try_into().ok()?));
    let flags = word(8)? as u32;
    Some(LaunchQueueFact {
        ahead_ns: word(0)?.into(),
        clock: word(4)?,
        deadline: flags & DEADLINE != 0,
        offload: flags & OFFLOAD != 0,
    })
}

/// The queue as commands for an interface.
pub(crate) fn command(name: &str, launch: &LaunchSpec) -> String {
    let map = classes(launch.priority).map(|class| class.to_string()).join(" ");
    format!(
        "tc qdisc add dev {name} root handle 1: {ABOVE} num_tc 2 map {map} queues 1@0 1@1 hw 0; {}",
        command_of_queue(name, launch, 2)
    )
}

/// The queues below gates as commands for an interface.
pub(crate) fn command_below(name: &str, gates: &GatesSpec, launch: &LaunchSpec) -> String {
    let queues = queues_of(gates, launch.priority);
    queues.map(|number| command_of_queue(name, launch, number)).collect::<Vec<_>>().join("; ")
}

fn command_of_queue(name: &str, launch: &LaunchSpec, number: u32) -> String {
    let deadline = if launch.mode == LaunchMode::Deadline { " deadline_mode" } else { "" };
    format!("tc qdisc add dev {name} parent 1:{number} {KIND} clockid CLOCK_TAI delta {}{deadline}", launch.ahead.0)
}

/// Returns a problem if this kernel has no launch times. `below_gates`: whether the interface has gates.
pub(crate) fn problem(below_gates: bool) -> Option<Problem> {
    let needed = [KIND, ABOVE].into_iter().take(if below_gates { 1 } else { 2 });
    let kind = needed.into_iter().find(|kind| qdisc::is_missing(kind))?;
    Some(qdisc::lack_of(kind, "launch times need", "launch"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{GateClass, GatesBy, Nanos};

    #[test]
    fn the_kernel_reports_what_was_asked_for() {
        let launch =
            LaunchSpec { lead: Nanos(1_000_000), ahead: Nanos(300_000), mode: LaunchMode::Deadline, priority: 3 };
        let options = options(asked(launch));
        assert_eq!(parsed(&options), Some(asked(launch)));
        assert_eq!(parsed(&options[..options.len() - 4]), None);
        let map = map(3);
        // Two classes; the class of each priority; counts of queues, then their offsets.
        assert_eq!(
            (&map[..6], &map[18..22], &map[50..54]),
            (&[2, 0, 0, 0, 1, 0][..], &[1, 0, 1, 0][..], &[0, 0, 1, 0][..])
        );
        assert!(command("tbx-p0", &launch).ends_with("parent 1:2 etf clockid CLOCK_TAI delta 300000 deadline_mode"));
    }

    #[test]
    fn the_queues_of_the_class_of_the_messages_have_launch_times() {
        let launch =
            LaunchSpec { lead: Nanos(1_000_000), ahead: Nanos(300_000), mode: LaunchMode::Strict, priority: 3 };
        let class = |name: &str, priorities: Vec<u8>, queues| GateClass {
            name: name.into(),
            priorities: priorities.into_iter().collect(),
            queues,
            preemptible: false,
        };
        let gates = GatesSpec {
            by: GatesBy::Software,
            classes: vec![class("a", vec![0, 1, 2], 2), class("stream", vec![3], 2), class("b", (4..16).collect(), 1)],
            entries: Vec::new(),
            cycle: None,
            base: Nanos(0),
            replace: false,
        };
        let below = below(&gates, launch, 5 << 16);
        assert_eq!(below.iter().map(|one| one.parent & 0xffff).collect::<Vec<_>>(), [3, 4]);
        let other = QueueDiscipline { parent: 5 << 16 | 1, ..QueueDiscipline::at_root("pfifo_fast", Vec::new()) };
        let found = [other, below[0].clone(), below[1].clone()];
        assert_eq!(difference(&found, &gates, launch, 5 << 16), None);
        let text = difference(&found[..2], &gates, launch, 5 << 16).unwrap();
        assert!(text.starts_with("queue 4: None instead of"), "{text}");
        let deadline = LaunchSpec { mode: LaunchMode::Deadline, ..launch };
        assert!(difference(&found, &gates, deadline, 5 << 16).is_some_and(|text| text.starts_with("queue 3: Some")));
        let commands = command_below("x", &gates, &launch);
        let one = |number| format!("tc qdisc add dev x parent 1:{number} etf clockid CLOCK_TAI delta 300000");
        assert_eq!(commands, [one(3), one(4)].join("; "));
    }
}
