//! Queue disciplines of interfaces in network namespaces (tc(8)).

use crate::error::lack;
use crate::netns::{NetNs, run_in};
use std::io;
use std::ops::Range;
use tailbound_host::queues;
use tailbound_model::{Problem, QueueDiscipline, SOCKET_PRIORITIES};

pub(crate) use tailbound_host::queues::{attributes, push};

/// Runs a job with the index of an interface, on a thread inside its network namespace.
pub(crate) async fn at<T, F>(netns: &NetNs, name: &str, job: F) -> io::Result<T>
where
    T: Send + 'static,
    F: FnOnce(u32) -> io::Result<T> + Send + 'static,
{
    let name = name.to_owned();
    run_in(netns, move || job(nix::net::if_::if_nametoindex(name.as_str())?))?.wait().await?
}

/// Reads the queue discipline of this kind and with this parent of an interface; `None` if the interface has another one there.
pub(crate) fn found(index: u32, kind: &str, parent: u32) -> io::Result<Option<QueueDiscipline>> {
    Ok(queues::read(index)?.into_iter().find(|one| one.kind == kind && one.parent == parent))
}

/// Whether this kernel has no queue discipline of this kind, found by an attempt in a temporary network namespace. If no namespace
/// can be made, another check of the lab reports that.
pub(crate) fn is_missing(kind: &'static str) -> bool {
    let tried = NetNs::make().and_then(|netns| {
        // The loopback interface always has index 1. The kernel refuses empty options if it knows the queue discipline and they
        // are needed.
        run_in(&netns, move || queues::add(1, &QueueDiscipline::at_root(kind, Vec::new())))?.join()?
    });
    tried.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Problem: this kernel has no queue discipline of this kind; `for_what`: what it does or what needs it, as the end of a sentence;
/// `key`: the key of the study that needs it.
pub(crate) fn lack_of(kind: &str, for_what: &str, key: &str) -> Problem {
    lack(
        format!(
            "this kernel has no {kind}, which {for_what}: it was built without CONFIG_NET_SCH_{}, or the module is missing",
            kind.to_uppercase()
        ),
        format!(
            "load the module (`modprobe sch_{kind}`), remove `{key}`, or run the study in a guest whose kernel has {kind} (`tailbound guest run`)"
        ),
    )
}

/// The classes of the priorities of sockets, and the numbers of transmit queues of the classes, as `struct tc_mqprio_qopt` of
/// linux/pkt_sched.h: number of classes, class of each priority, hw (0), then counts and offsets of queues.
pub(crate) fn priority_map(class_of_priority: [u8; SOCKET_PRIORITIES as usize], queues: &[u16]) -> Vec<u8> {
    let mut map = vec![queues.len() as u8];
    map.extend(class_of_priority);
    map.push(0);
    let padded = |values: Vec<u16>| values.into_iter().chain(std::iter::repeat(0)).take(16).flat_map(u16::to_ne_bytes);
    let offsets = queues.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count)));
    map.extend(padded(queues.to_vec()));
    map.extend(padded(offsets.collect()));
    map
}

/// Kinds of queue disciplines with traffic classes at the root of an interface.
pub(crate) const MQPRIO: &str = "mqprio";
pub(crate) const TAPRIO: &str = "taprio";
/// Attribute of `taprio` with the classes of the priorities, as [`priority_map`] makes them (TCA_TAPRIO_ATTR_PRIOMAP).
pub(crate) const TAPRIO_MAP: u16 = 1;

/// Numbers of the transmit queues of the class of this priority, counted from 1 as the kernel names them, by the queue discipline at the
/// root of an interface; `None` = it has no classes.
pub(crate) fn queues_of_priority(root: &QueueDiscipline, priority: u8) -> Option<Range<u32>> {
    let map = match root.kind.as_str() {
        MQPRIO => root.options.as_slice(),
        TAPRIO => attributes(&root.options).find(|(kind, _)| *kind == TAPRIO_MAP)?.1,
        _ => return None,
    };
    /// Offsets in `struct tc_mqprio_qopt`.
    const CLASSES_AT: usize = 1;
    const COUNTS_AT: usize = 18;
    const OFFSETS_AT: usize = 50;
    let class = usize::from(*map.get(CLASSES_AT + usize::from(priority % SOCKET_PRIORITIES))?);
    let word = |from: usize| {
        let at = from + 2 * class;
        Some(u32::from(u16::from_ne_bytes(map.get(at..at + 2)?.try_into().ok()?)))
    };
    let (count, first) = (word(COUNTS_AT)?, word(OFFSETS_AT)?);
    Some(first + 1..first + 1 + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queues_of_a_priority_are_found() {
        let map = priority_map(std::array::from_fn(|priority| u8::from(priority == 3) * 2), &[4, 1, 2]);
        let mut of_taprio = Vec::new();
        push(&mut of_taprio, TAPRIO_MAP, &map);
        let roots = [(MQPRIO, map.clone()), (TAPRIO, of_taprio), (MQPRIO, map[..50].to_vec()), ("fq_codel", map)];
        let found = roots.map(|(kind, options)| {
            let root = QueueDiscipline::at_root(kind, options);
            [0, 3, 19].map(|priority| queues_of_priority(&root, priority))
        });
        let known = [Some(1..5), Some(6..8), Some(6..8)];
        assert_eq!(found, [known.clone(), known, [None, None, None], [None, None, None]]);
    }

    #[test]
    fn a_kernel_without_a_queue_discipline_is_named_with_the_key_that_needs_it() {
        assert!(is_missing("tb-none") || NetNs::make().is_err(), "no kernel has this queue discipline");
        let all = [
            lack_of("taprio", "opens and closes gates", "gates"),
            lack_of("netem", "delays packets", "delay"),
            lack_of("etf", "launch times need", "launch"),
        ];
        insta::assert_snapshot!(all.map(|problem| problem.to_string()).join("\n"));
    }
}
