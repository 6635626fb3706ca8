//! The queue discipline at the root of an interface (tc(8)).

use super::error::KnobError;
use super::interface;
use super::place::Place;
use super::setting::Setting;
use crate::queues;
use std::io;
use tailbound_model::{DEFAULT_QUEUE, NetnsId, QueueDiscipline, Undo};

/// The queue discipline at the root of one interface.
#[derive(Debug)]
struct QueueSetting {
    interface: String,
    ifindex: u32,
    netns: NetnsId,
    /// What the interface had when it was found, the queue discipline at the root first.
    before: Vec<QueueDiscipline>,
    /// What is set at the root; `None` = the kernel's default one.
    wanted: Option<QueueDiscipline>,
}

/// Finds the queue discipline of the interface with this name in a place (the host, or the network namespace of an end).
pub(super) fn find(interface: &str, kind: &str, place: &Place, key: &str) -> Result<Vec<Box<dyn Setting>>, KnobError> {
    let what = interface::what(interface);
    let look = |index| {
        let before = queues::read(index)?;
        let why = queues::beyond_restoring(index, &before)?;
        Ok((before, why))
    };
    let (ifindex, (before, why)) = interface::find(interface, place, (key, kind), look)?;
    if let Some(why) = why {
        return Err(KnobError::NotRestorable { key: key.to_owned(), what, why });
    }
    let netns = place.network().map_err(|error| KnobError::of(key, what, "read", kind, &error))?;
    let handle = queues::free_handle(&before);
    let wanted =
        (kind != DEFAULT_QUEUE).then(|| QueueDiscipline { handle, ..QueueDiscipline::at_root(kind, Vec::new()) });
    Ok(vec![Box::new(QueueSetting { interface: interface.to_owned(), ifindex, netns, before, wanted })])
}

impl QueueSetting {
    /// The queue discipline at the root: its kind if this setting made it, so that it has the kernel's own options, and otherwise also
    /// its handle.
    fn text(&self, all: &[QueueDiscipline]) -> String {
        let own = self.wanted.as_ref().map(|wanted| (&wanted.kind, wanted.handle));
        match all.first().filter(|root| !root.is_default()) {
            Some(root) if Some((&root.kind, root.handle)) == own => root.kind.clone(),
            Some(root) => root.to_string(),
            None => DEFAULT_QUEUE.to_owned(),
        }
    }
}

impl Setting for QueueSetting {
    fn what(&self) -> String {
        interface::what(&self.interface)
    }

    fn read(&self) -> io::Result<String> {
        queues::read(self.ifindex).map(|all| self.text(&all))
    }

    fn write(&mut self, _value: &str) -> io::Result<()> {
        let done = match &self.wanted {
            Some(wanted) => queues::replace(self.ifindex, wanted),
            None => queues::remove(self.ifindex),
        };
        // A kernel that does not have the kind says so; the setting as such is there.
        done.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other(error.to_string()),
            _ => error,
        })
    }

    fn may_write(&self) -> io::Result<()> {
        interface::may_write()
    }

    fn undo(&self, _before: &str, _set: &str) -> Undo {
        Undo::RestoreQueues {
            interface: self.interface.clone(),
            ifindex: self.ifindex,
            netns: self.netns.clone(),
            before: self.before.clone(),
            kind: self.wanted.as_ref().map_or(DEFAULT_QUEUE.to_owned(), |wanted| wanted.kind.clone()),
            handle: self.wanted.as_ref().map_or(0, |wanted| wanted.handle),
        }
    }

    fn spelled(&self, value: &str) -> String {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;
    use crate::knob::Knobs;
    use std::process::Command;
    use tailbound_model::KnobSpec;

    fn ip(words: &str) -> bool {
        Command::new("ip").args(words.split(' ')).status().is_ok_and(|status| status.success())
    }

    /// Runs a test in a network namespace of its own with the interface `tb-queue`, which is up.
    fn with_an_interface(test: impl FnOnce(u32) + Send + 'static) {
        let inside = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
            ip("link add tb-queue type veth peer name tb-peer").then_some(())?;
            assert!(ip("link set tb-peer up") && ip("link set tb-queue up"));
            test(nix::net::if_::if_nametoindex("tb-queue").unwrap());
            Some(())
        });
        if inside.join().unwrap().is_none() {
            println!("skipped: no network namespace or no veth can be made here");
        }
    }

    fn spec(kind: &str) -> KnobSpec {
        KnobSpec::Queue { interface: "tb-queue".into(), kind: kind.into() }
    }

    fn pfifo(limit: u32) -> QueueDiscipline {
        QueueDiscipline { handle: 7 << 16, ..QueueDiscipline::at_root("pfifo", limit.to_ne_bytes().to_vec()) }
    }

    /// Sets a kind, and restores what was there; returns the values before, after the change and after restoring.
    fn set_and_restore(index: u32, kind: &str) -> [Vec<QueueDiscipline>; 3] {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::create_in(&dir.path().join("journal"), "run").unwrap();
        let mut knobs = Knobs::default();
        let before = queues::read(index).unwrap();
        knobs.set(&spec(kind), &[], &journal).unwrap();
        let set = queues::read(index).unwrap();
        assert_eq!((knobs.verify(), knobs.settings()[0].found.as_str()), (Vec::new(), kind));
        let restored = knobs.restore(&journal);
        assert!(restored.left_alone.is_empty() && restored.failed.is_empty(), "{restored:?}");
        journal.finish().unwrap();
        [before, set, queues::read(index).unwrap()]
    }

    #[test]
    fn a_queue_discipline_takes_the_place_of_another_one_and_goes_again() {
        with_an_interface(|index| {
            let [before, set, after] = set_and_restore(index, "bfifo");
            assert!(set[0].kind == "bfifo" && !set[0].is_default() && before == after, "{set:?} {before:?} {after:?}");
            queues::replace(index, &pfifo(77)).unwrap();
            let [before, set, after] = set_and_restore(index, "bfifo");
            assert!(set[0].kind == "bfifo" && before == [pfifo(77)] && before == after, "{set:?} {before:?} {after:?}");
            // The same kind with other options is replaced, too.
            let [before, set, after] = set_and_restore(index, "pfifo");
            assert!(set[0].kind == "pfifo" && set[0].options != before[0].options, "{set:?} {before:?}");
            assert!(before == [pfifo(77)] && before == after, "{before:?} {after:?}");
        });
    }

    #[test]
    fn a_queue_discipline_is_removed_and_comes_back_with_its_options() {
        with_an_interface(|index| {
            queues::replace(index, &pfifo(77)).unwrap();
            let [before, set, after] = set_and_restore(index, DEFAULT_QUEUE);
            assert!(set.iter().all(QueueDiscipline::is_default), "{set:?}");
            assert!(before == [pfifo(77)] && before == after, "{before:?} {after:?}");
        });
    }

    #[test]
    fn the_changes_of_others_stay() {
        with_an_interface(|index| {
            queues::replace(index, &pfifo(77)).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let journal = Journal::create_in(&dir.path().join("journal"), "run").unwrap();
            let mut knobs = Knobs::default();
            knobs.set(&spec(DEFAULT_QUEUE), &[], &journal).unwrap();
            queues::replace(index, &pfifo(78)).unwrap();
            let text = "host.queue.tb-queue: interface tb-queue was set to `default`, and is `pfifo 7:` now";
            assert_eq!(knobs.verify(), [text]);
            let restored = knobs.restore(&journal);
            assert!(restored.left_alone[0].contains("somebody else changed it"), "{restored:?}");
            assert_eq!(queues::read(index).unwrap(), [pfifo(78)]);
        });
    }

    #[test]
    fn what_cannot_be_restored_and_what_the_kernel_does_not_have_is_refused() {
        with_an_interface(|index| {
            let netns = Place::own();
            let problem = |kind: &str| {
                let dir = tempfile::tempdir().unwrap();
                let journal = Journal::create_in(&dir.path().join("journal"), "run").unwrap();
                Knobs::default().set(&spec(kind), &[], &journal).unwrap_err().problem().what
            };
            let unknown = problem("tb-none");
            assert!(
                unknown.starts_with("host.queue.tb-queue: interface tb-queue does not take `tb-none`: "),
                "{unknown}"
            );
            assert!(unknown.contains("qdisc kind is unknown"), "{unknown}");
            let absent = find("tb-none", "pfifo", &netns, "host.queue.tb-none").unwrap_err().problem().what;
            assert!(absent.starts_with("host.queue.tb-none: interface tb-none does not exist here"), "{absent}");
            let tc = |words: &str| Command::new("tc").args(words.split(' ')).status().is_ok_and(|s| s.success());
            // A class with a rate, which is not read.
            if !tc("qdisc replace dev tb-queue root handle 1: htb default 1") {
                return println!("skipped: no `tc` or no `htb` here");
            }
            assert!(tc("class add dev tb-queue parent 1: classid 1:1 htb rate 1mbit"));
            let error = find("tb-queue", "pfifo", &netns, "host.queue.tb-queue").unwrap_err().problem();
            let text = "host.queue.tb-queue: interface tb-queue is not changed, because what it has could not be restored exactly: it has \
                        the class 1:1";
            assert_eq!(error.what, text);
            assert!(error.remedy.starts_with("remove what it has, and set it up again"), "{}", error.remedy);
            assert_eq!(queues::read(index).unwrap()[0].kind, "htb");
        });
    }
}
