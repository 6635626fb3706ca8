//! Launch times of the messages of an interface: the queue discipline `etf` (tc-etf(8)) for the queue of their priority, below
//! `mqprio` (tc-mqprio(8)), whose other queue sends everything else at once. An interface with gates has `etf` for the queues of the
//! class of the messages, below `taprio`, which refuses messages whose launch time is not in a window of the class.

use crate::error::lack;
use crate::netns::{NetNs, run_in};
use crate::qdisc::{self, attributes, priority_map, push};
use std::io;
use std::ops::Range;
use tailbound_host::queues;
use tailbound_model::{
    GatesBy, GatesSpec, LaunchMode, LaunchQueueFact, LaunchSpec, Nanos, Problem, QueueDiscipline, ROOT,
    SOCKET_PRIORITIES,
};

const KIND: &str = "etf";
/// Kind of the queue discipline at the root of an interface with launch times and without gates.
pub(crate) const ABOVE: &str = qdisc::MQPRIO;
/// Number of transmit queues that the interface needs.
pub(crate) const QUEUES: u16 = 2;
/// The handle of `mqprio` of an interface that Tailbound makes.
pub(crate) const HANDLE: u32 = 1 << 16;
/// Number of the second transmit queue, counted from 1 as the kernel names it, which has the messages.
const QUEUE: u32 = 2;
/// Attribute of the parameters, `struct tc_etf_qopt` of linux/pkt_sched.h: delta, number of the clock, flags.
const PARMS: u16 = 1;
const DEADLINE: u32 = 1;
const OFFLOAD: u32 = 2;
const SKIP_SOCKET_CHECK: u32 = 4;

/// Gives an interface a queue with launch times in the place of its queue discipline, with this handle, and compares it with what the
/// kernel reports.
pub(crate) async fn put(netns: &NetNs, name: String, (launch, handle): (LaunchSpec, u32)) -> io::Result<()> {
    let job = move |index| {
        let above = QueueDiscipline { handle, ..QueueDiscipline::at_root(ABOVE, map(launch.priority)) };
        queues::replace(index, &above)?;
        let own = QueueDiscipline { parent: handle | QUEUE, ..QueueDiscipline::at_root(KIND, options(asked(launch))) };
        queues::add(index, &own)?;
        qdisc::found(index, ABOVE, ROOT)
    };
    let above = qdisc::at(netns, &name, job).await?;
    if !above.is_some_and(|found| found.options.starts_with(&map(launch.priority))) {
        return Err(io::Error::other("the kernel set other queues for the priorities of the packets (mqprio)"));
    }
    match read(netns, &name, launch.priority).await {
        Ok(found) if found == asked(launch) => Ok(()),
        Ok(found) => Err(io::Error::other(format!("the kernel set {found:?} instead of {:?}", asked(launch)))),
        Err(error) => Err(error),
    }
}

/// The queue with launch times that an interface has for this priority.
pub(crate) async fn read(netns: &NetNs, name: &str, priority: u8) -> io::Result<LaunchQueueFact> {
    of_priority(&qdisc::at(netns, name, queues::read).await?, priority).map_err(io::Error::other)
}

/// The queue with launch times that is the same for all transmit queues of this priority of an interface with these queue disciplines.
///
/// # Errors
/// Why there is none.
fn of_priority(all: &[QueueDiscipline], priority: u8) -> Result<LaunchQueueFact, String> {
    let root = all.iter().find(|one| one.parent == ROOT).ok_or("it has no queue discipline")?;
    let numbers = qdisc::queues_of_priority(root, priority).filter(|numbers| !numbers.is_empty());
    let numbers = numbers.ok_or_else(|| format!("its queue discipline `{root}` has no traffic classes"))?;
    let of_queue = |number| {
        let below = all.iter().find(|one| one.parent == root.handle | number);
        let etf = below.filter(|one| one.kind == KIND).and_then(|one| parsed(&one.options));
        etf.ok_or_else(|| {
            format!("transmit queue {number}, which has the priority {priority}, has no queue discipline `{KIND}`")
        })
    };
    let found = numbers.map(of_queue).collect::<Result<Vec<_>, _>>()?;
    match found.split_first() {
        Some((first, others)) if others.iter().all(|one| one == first) => Ok(*first),
        _ => Err(format!("the transmit queues of the priority {priority} have different options of `{KIND}`")),
    }
}

/// Returns a problem if the interface of the user (its name, its end) has not the queue with launch times that the study describes.
pub(crate) fn existing_problem(netns: &NetNs, (name, end): (&str, &str), launch: LaunchSpec) -> Option<Problem> {
    let of_job = name.to_owned();
    let read = run_in(netns, move || queues::read(nix::net::if_::if_nametoindex(of_job.as_str())?));
    match read.and_then(|job| job.join()?) {
        Ok(all) => existing_lack(&all, (name, end), launch),
        Err(error) => Some(lack(
            format!("the queue disciplines of {name} ({end}) cannot be read: {error}"),
            "run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN)",
        )),
    }
}

fn existing_lack(all: &[QueueDiscipline], (name, end): (&str, &str), launch: LaunchSpec) -> Option<Problem> {
    match of_priority(all, launch.priority) {
        Ok(found) => other_queue(found, (name, end), launch),
        Err(why) => Some(lack(
            format!("{name} ({end}) has no queue with launch times for the messages: {why}"),
            format!("set it up (`tc qdisc show dev {name}`, tc-etf(8)), or remove `by: existing` of `launch`"),
        )),
    }
}

/// Returns a problem if the queue with launch times of an interface (its name, its end) is not the one that the study describes. Whether
/// the network card launches the messages is no part of the study.
pub(crate) fn other_queue(found: LaunchQueueFact, (name, end): (&str, &str), launch: LaunchSpec) -> Option<Problem> {
    let (wanted, found) = (asked(launch), LaunchQueueFact { offload: false, ..found });
    let word = |deadline| if deadline { LaunchMode::Deadline.word() } else { LaunchMode::Strict.word() };
    let (has, help) = if found.clock != wanted.clock {
        let clock = format!(
            "launch times of the clock {}, and the messages have launch times of CLOCK_TAI ({})",
            found.clock, wanted.clock
        );
        (clock, "set the queue up with `clockid CLOCK_TAI`".to_owned())
    } else if found.deadline != wanted.deadline {
        let (has, asks) = (word(found.deadline), word(wanted.deadline));
        (format!("launch times in the mode `{has}`, and the study asks for `{asks}`"), format!("write `mode: {has}`"))
    } else if found.ahead_ns != wanted.ahead_ns {
        let [has, asks] = [found, wanted].map(|queue| Nanos(queue.ahead_ns));
        (
            format!(
                "a queue that gives messages to the device {has} before their launch time, and the study says {asks}"
            ),
            format!("write `ahead: {has}`"),
        )
    } else {
        return None;
    };
    Some(lack(format!("{name} ({end}) has {has}"), format!("{help}, or remove `by: existing` of `launch`")))
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
        command_of_queue(name, launch, QUEUE)
    )
}

/// The queues below gates as commands for an interface.
pub(crate) fn command_below(name: &str, gates: &GatesSpec, launch: &LaunchSpec) -> String {
    // With `assist`, the gates have these queues.
    let queues = if gates.by == GatesBy::Software { queues_of(gates, launch.priority) } else { 0..0 };
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
    use tailbound_model::GateClass;

    fn launch_spec() -> LaunchSpec {
        LaunchSpec { lead: Nanos(1_000_000), ahead: Nanos(300_000), priority: 3, ..LaunchSpec::default() }
    }

    #[test]
    fn what_an_existing_queue_lacks_is_named() {
        let root = QueueDiscipline { handle: 5 << 16, ..QueueDiscipline::at_root(ABOVE, map(3)) };
        let below = |queue: LaunchQueueFact| QueueDiscipline {
            parent: 5 << 16 | QUEUE,
            ..QueueDiscipline::at_root(KIND, options(queue))
        };
        let said = |all: &[QueueDiscipline], launch| {
            existing_lack(all, ("eth0", "ping"), launch).map_or_else(|| "fits".to_owned(), |lack| lack.to_string())
        };
        let with = |queue| said(&[root.clone(), below(queue)], launch_spec());
        let fits = asked(launch_spec());
        let all = [
            with(fits),
            // Whether the network card launches the messages is no part of the study.
            with(LaunchQueueFact { offload: true, ..fits }),
            with(LaunchQueueFact { ahead_ns: 700_000, ..fits }),
            with(LaunchQueueFact { deadline: true, ..fits }),
            with(LaunchQueueFact { clock: 1, ..fits }),
            said(&[root.clone(), below(fits)], LaunchSpec { priority: 2, ..launch_spec() }),
            said(
                &[QueueDiscipline { handle: 7 << 16, ..QueueDiscipline::at_root("fq_codel", Vec::new()) }],
                launch_spec(),
            ),
            said(&[], launch_spec()),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn the_kernel_reports_what_was_asked_for() {
        let launch = LaunchSpec { mode: LaunchMode::Deadline, ..launch_spec() };
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
        let launch = launch_spec();
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
