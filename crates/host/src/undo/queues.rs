//! Undoes the replacement of an interface's queue disciplines: restores those that were there before.

use super::outcome::Undone;
use crate::queues;
use std::io;
use tailbound_model::QueueDiscipline;

/// Restores the queue disciplines of the interface with this name and index in the calling thread's network namespace; `kind`
/// and `handle` are those of the one that was set at its root.
pub(super) fn restore(
    (interface, ifindex): (&str, u32),
    before: &[QueueDiscipline],
    (kind, handle): (&str, u32),
) -> io::Result<Undone> {
    if nix::net::if_::if_nametoindex(interface) != Ok(ifindex) {
        return Ok(Undone::AlreadyGone);
    }
    let now = queues::read(ifindex)?;
    if now == before {
        return Ok(Undone::AlreadyGone);
    }
    if !is_of_this_run(&now, before, (kind, handle)) {
        return Ok(match (now.first(), before.first()) {
            (Some(now), Some(before)) if now.is_default() && before.is_default() => Undone::AlreadyGone,
            _ => Undone::LeftAlone(format!(
                "{interface} has {} now, not `{kind}` as this run set it: somebody else changed it, so it stays (it had {} before)",
                root(&now),
                root(before)
            )),
        });
    }
    queues::put_back(ifindex, before)?;
    let now = queues::read(ifindex)?;
    match now == before {
        true => Ok(Undone::Did(format!("gave {interface} {} back", root(before)))),
        false if is_default(&now) && is_default(before) => Ok(Undone::LeftAlone(format!(
            "{interface} has the kernel's default queue discipline again, which is now {} and was {}: net.core.default_qdisc \
             was changed since",
            root(&now),
            root(before)
        ))),
        false => Err(io::Error::other(format!("{interface} has {} with other options", root(&now)))),
    }
}

/// Whether an interface that has these queue disciplines `now` has them from this run, which set one of this kind with this handle.
fn is_of_this_run(now: &[QueueDiscipline], before: &[QueueDiscipline], (kind, handle): (&str, u32)) -> bool {
    // Without a handle, this run took away what was there, so that the kernel set its default one.
    let is_set = match handle {
        0 => is_default(now) && !is_default(before),
        _ => now.first().is_some_and(|root| root.kind == kind && root.handle == handle),
    };
    // An earlier attempt may have ended before everything was restored.
    let is_begun = now.first().is_some_and(|root| !root.is_default() && before.first() == Some(root));
    // One with traffic classes was removed before another one took its place, which the kernel may then have refused.
    let is_removed = is_default(now) && before.first().is_some_and(queues::has_classes);
    is_set || is_begun || is_removed
}

/// Whether an interface with these queue disciplines has the kernel's default one.
fn is_default(all: &[QueueDiscipline]) -> bool {
    all.first().is_none_or(QueueDiscipline::is_default)
}

/// Text for the queue discipline at the root.
fn root(all: &[QueueDiscipline]) -> String {
    all.first().map_or_else(|| "no queue discipline".to_owned(), |root| format!("`{root}`"))
}

#[cfg(test)]
mod tests {
    use super::super::interface::tests::{add_dummy, in_a_new_netns};
    use super::*;
    use crate::queues::push;
    use std::process::Command;
    use tailbound_model::ROOT;

    const SET: u32 = 5 << 16;

    fn pfifo(limit: u32, handle: u32) -> QueueDiscipline {
        QueueDiscipline { handle, ..QueueDiscipline::at_root("pfifo", limit.to_ne_bytes().to_vec()) }
    }

    /// Whether the queue disciplines that `set_up` makes are back after another one took their place.
    fn is_restored(set_up: impl Fn(u32) -> io::Result<()>) {
        let index = nix::net::if_::if_nametoindex("tb-test").unwrap();
        set_up(index).unwrap();
        let before = queues::read(index).unwrap();
        let undo = || restore(("tb-test", index), &before, ("pfifo", SET)).unwrap();
        assert_eq!(undo(), Undone::AlreadyGone, "nothing was changed");
        queues::replace(index, &pfifo(3, SET)).unwrap();
        assert_ne!(queues::read(index).unwrap(), before);
        assert!(matches!(undo(), Undone::Did(_)));
        assert_eq!(queues::read(index).unwrap(), before);
        assert_eq!(undo(), Undone::AlreadyGone);
    }

    #[test]
    fn queue_disciplines_are_restored_with_their_options_and_children() {
        in_a_new_netns(|| {
            if !add_dummy("tb-test") {
                return eprintln!("skipped: no veth or no `ip` here");
            }
            let up = Command::new("ip").args(["link", "set", "tb-test", "up"]).status();
            assert!(up.unwrap().success());
            is_restored(|_| Ok(()));
            is_restored(|index| queues::replace(index, &pfifo(77, 0)));
            // Two bands: the second one has a queue of its own, and the first one the kernel's.
            let mut bands = 2u32.to_ne_bytes().to_vec();
            bands.extend([1; 16]);
            let above = QueueDiscipline { handle: 7 << 16, ..QueueDiscipline::at_root("prio", bands) };
            let below = QueueDiscipline { parent: 7 << 16 | 2, ..pfifo(88, 8 << 16) };
            let is_known = queues::replace(1, &above).is_ok();
            match is_known {
                true => {
                    is_restored(|index| queues::replace(index, &above).and_then(|()| queues::replace(index, &below)))
                }
                false => eprintln!("skipped: no `prio` here"),
            }
            let mut target = Vec::new();
            push(&mut target, 1, &7_777u32.to_ne_bytes());
            match queues::replace(1, &QueueDiscipline::at_root("fq_codel", target.clone())).is_ok() {
                true => {
                    is_restored(|index| queues::replace(index, &QueueDiscipline::at_root("fq_codel", target.clone())))
                }
                false => eprintln!("skipped: no `fq_codel` here"),
            }
        });
    }

    #[test]
    fn classes_that_were_removed_before_a_refusal_are_of_this_run() {
        let root = |kind, handle| vec![QueueDiscipline { handle, ..QueueDiscipline::at_root(kind, Vec::new()) }];
        let default = root("noqueue", 0);
        let is = |now: &[QueueDiscipline], before: &[QueueDiscipline]| is_of_this_run(now, before, ("taprio", SET));
        assert!(is(&root("taprio", SET), &default) && is(&root("pfifo", 9 << 16), &root("pfifo", 9 << 16)));
        for kind in ["mqprio", "taprio"] {
            assert!(is(&default, &root(kind, 9 << 16)) && is(&[], &root(kind, 9 << 16)), "{kind}");
        }
        // Others stay until their successor is there.
        assert!(!is(&default, &root("pfifo", 9 << 16)) && !is(&default, &default));
        assert!(!is(&root("taprio", 9 << 16), &default) && !is(&root("pfifo", 8 << 16), &root("mqprio", 9 << 16)));
    }

    #[test]
    fn another_interface_and_the_changes_of_others_are_left_alone() {
        in_a_new_netns(|| {
            if !add_dummy("tb-test") {
                return eprintln!("skipped: no veth or no `ip` here");
            }
            let index = nix::net::if_::if_nametoindex("tb-test").unwrap();
            queues::replace(index, &pfifo(9, 9 << 16)).unwrap();
            let undo = |index| restore(("tb-test", index), &[], ("pfifo", SET)).unwrap();
            assert_eq!(undo(index + 40), Undone::AlreadyGone);
            assert!(matches!(undo(index), Undone::LeftAlone(_)));
            assert_eq!(queues::read(index).unwrap()[0].parent, ROOT);
        });
    }

    #[test]
    fn a_refusal_has_the_words_of_the_kernel() {
        in_a_new_netns(|| {
            let error = queues::add(1, &QueueDiscipline::at_root("tb-none", Vec::new())).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(error.to_string().contains("qdisc kind is unknown"), "{error}");
        });
    }
}
