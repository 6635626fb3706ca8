//! The threads on the host that run the guests of the ends: while one of them waits for a CPU of the host or is stopped, the
//! guest cannot do what it seems to do.
//!
//! The host is recorded by the agent of the other end if this end runs there, and by the controller if the ends are in guests.

use crate::why::course::{Doing, Piece};
use crate::why::other_clock::{Machine, Pong, kernel_cpu};
use crate::why::timeline::{Idle, Timeline};
use std::collections::BTreeMap;
use tailbound_document::{CausedBy, Evidence};
use tailbound_model::{CpuList, GuestThread, Metric, PlaceSpec, SleepState, SwitchScope, Switches, TrialSpec};
use tailbound_record::Manifest;
use tailbound_stats::ClockLine;

/// Name of the kernel's threads that carry packets of a guest.
const VHOST: &str = "vhost";
/// Begin of the name of QEMU's main thread, which carries packets of a guest without vhost.
const QEMU: &str = "qemu";

/// A guest in which ends run, with the threads of the host that run it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Guest {
    /// Names of the ends that run in the guest.
    pub ends: Vec<&'static str>,
    /// Name of the guest.
    pub name: String,
    /// Id of the thread that runs each vCPU, by the number of the vCPU.
    pub vcpus: BTreeMap<u32, i32>,
    /// Whether the guest has one vCPU only.
    pub has_one_vcpu: bool,
    /// Whether `vcpus` has all virtual CPUs of the guest.
    pub has_all_vcpus: bool,
    /// Ids of the threads that carry packets.
    pub others: Vec<i32>,
    /// Ids of the threads that run the timers of emulated virtual CPUs.
    pub timers: Vec<i32>,
    /// Whether both ends are known to be on the host, so that a message cannot have been on another machine.
    pub has_both_ends: bool,
    /// Names of the threads, by id.
    pub names: BTreeMap<i32, String>,
    /// Begin and end of each time in which the hypervisor had paused the guest. In a [`Guest`] of [`Guest::of`], they are on the clock
    /// of the machine that was recorded; [`Guest::with_pauses`] converts them to the clock of the ping.
    pub pauses: Vec<(i64, i64)>,
}

/// Whether the hypervisor paused the guest of an end during a trial, so that the clock of the end can have stood still meanwhile.
pub(crate) fn was_paused(manifest: &Manifest, trial: usize, end: &str) -> bool {
    let Some(spec) = spec_of(manifest, trial) else { return false };
    let place = if end == "ping" { &spec.ping.place } else { &spec.pong.place };
    let done = manifest.trials.iter().find(|t| t.id == trial);
    let guests = done.map_or(&[][..], |done| &done.guests);
    // The time is negative if the wall clock was set meanwhile.
    guests.iter().any(|seen| name_of(place) == Some(&seen.guest) && (seen.paused_ns != 0 || seen.still_paused))
}

/// What a trial is planned to measure.
fn spec_of(manifest: &Manifest, trial: usize) -> Option<&TrialSpec> {
    let planned = manifest.plan.trials.iter().find(|t| t.id == trial)?;
    manifest.plan.conditions.get(planned.condition).map(|c| &c.spec)
}

/// A time span in which a thread of the host kept the guest from working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub from_ns: i64,
    pub to_ns: i64,
    pub thread: i32,
    pub idle: Idle,
    /// How it is known that the message had to wait for this thread.
    pub evidence: Evidence,
}

/// Puts time spans into their order and cuts off what an earlier one covers, so that they do not overlap.
pub(crate) fn in_turn(mut spans: Vec<Kept>) -> Vec<Kept> {
    spans.sort_by_key(|kept| (kept.from_ns, kept.to_ns));
    let mut at = i64::MIN;
    for kept in &mut spans {
        kept.from_ns = kept.from_ns.max(at);
        at = at.max(kept.to_ns);
    }
    spans.retain(|kept| kept.from_ns < kept.to_ns);
    spans
}

/// The parts of a time span outside of others, which are in their order and do not overlap.
pub(crate) fn without(kept: Kept, others: &[Kept]) -> Vec<Kept> {
    let mut parts = Vec::new();
    let mut from_ns = kept.from_ns;
    for other in others.iter().filter(|other| other.to_ns > kept.from_ns && other.from_ns < kept.to_ns) {
        parts.push(Kept { from_ns, to_ns: other.from_ns, ..kept });
        from_ns = other.to_ns;
    }
    parts.push(Kept { from_ns, ..kept });
    parts.retain(|part| part.from_ns < part.to_ns);
    parts
}

/// Name of the guest at a place, if the place is one.
fn name_of(place: &PlaceSpec) -> Option<&str> {
    match place {
        PlaceSpec::Vm(guest) => Some(&guest.name),
        PlaceSpec::Domain(domain) => Some(&domain.name),
        _ => None,
    }
}

/// Whether the threads that carry the packets of each end's guest are recorded. `by_controller`: whether the controller recorded
/// them, because no end runs on the host of the guests.
pub(crate) fn are_watched(guests: &[Guest], by_controller: bool) -> bool {
    let has_guest = |end: &str| guests.iter().any(|guest| guest.is_of(end));
    let is_whole = if by_controller { has_guest("ping") && has_guest("pong") } else { !guests.is_empty() };
    is_whole && guests.iter().all(|guest| !guest.others.is_empty())
}

impl Guest {
    /// The guests of a trial whose host was recorded: by the agent of the other end, in a process that has the thread ids of the
    /// host, or by the controller.
    pub fn of(manifest: &Manifest, trial: usize, pong: &Pong, seen: &[Switches]) -> Vec<Guest> {
        let Some(spec) = spec_of(manifest, trial) else { return Vec::new() };
        let has_ids_of_host =
            |place: &PlaceSpec| matches!(place, PlaceSpec::Process | PlaceSpec::Netns | PlaceSpec::ExistingNetns(_));
        let by = |of_host: &dyn Fn(&Switches) -> bool| seen.iter().find(|s| of_host(s));
        let of_end = |end: &str| by(&|s| s.host.is_none() && s.ends.iter().any(|of| of == end));
        let of_controller = by(&|s| s.host.is_some());
        let machine_of_pong = if matches!(pong, Pong::Bounded(_)) { Machine::Pong } else { Machine::Ping };
        let one = |end, name: &str, (recorded, machine): (Option<&Switches>, Machine)| {
            Guest::of_end(manifest, trial, (end, name), recorded?, machine)
        };
        let (of_ping, of_pong) = (&spec.ping.place, &spec.pong.place);
        let found = match (name_of(of_ping), name_of(of_pong)) {
            (_, Some(name)) if has_ids_of_host(of_ping) => {
                vec![one("pong", name, (of_end("ping"), Machine::Ping))]
            }
            (Some(name), _) if has_ids_of_host(of_pong) && pong.is_followed() => {
                vec![one("ping", name, (of_end("pong"), machine_of_pong))]
            }
            (Some(of_ping), Some(of_pong)) if of_ping == of_pong => {
                let both = one("ping", of_ping, (of_controller, Machine::Host));
                vec![both.map(|guest| Guest { ends: vec!["ping", "pong"], ..guest })]
            }
            (of_ping, of_pong) => {
                let of = |end, name: Option<&str>| one(end, name?, (of_controller, Machine::Host));
                vec![of("ping", of_ping), of("pong", of_pong)]
            }
        };
        // In the last case, one end can be on another machine.
        let has_both_ends = found.iter().all(Option::is_some);
        found.into_iter().flatten().map(|guest| Guest { has_both_ends, ..guest }).collect()
    }

    /// The guest `name` of an end. `recorded`: the events of the host, whose ids are the ids of `machine`.
    fn of_end(
        manifest: &Manifest,
        trial: usize,
        (end, name): (&'static str, &str),
        recorded: &Switches,
        machine: Machine,
    ) -> Option<Guest> {
        // A thread whose CPUs are not all recorded can seem to wait while it runs on another one.
        let SwitchScope::Cpus(recorded) = &recorded.scope else { return None };
        let is_recorded =
            |thread: &GuestThread| thread.cpus.parse().is_ok_and(|cpus: CpuList| cpus.0.is_subset(&recorded.0));
        let done = manifest.trials.iter().find(|t| t.id == trial)?;
        let seen = done.guests.iter().find(|guest| guest.guest == name).filter(|guest| !guest.threads.is_empty())?;
        let vcpus = seen.threads.iter().filter(|thread| thread.vcpu.is_some()).count();
        let mut guest = Guest { ends: vec![end], name: name.to_owned(), has_one_vcpu: vcpus == 1, ..Guest::default() };
        // A pause of the ping's guest is no cause: the clock of the ping can have stood still meanwhile.
        if machine != Machine::Pong {
            guest.pauses.clone_from(&seen.pauses);
        }
        // With vhost, the kernel carries the packets.
        let carriers = if seen.threads.iter().any(|t| t.name == VHOST) { VHOST } else { QEMU };
        for thread in seen.threads.iter().filter(|thread| is_recorded(thread)) {
            let tid = machine.thread(thread.tid);
            if thread.vcpu.is_none() && thread.name.starts_with(QEMU) {
                guest.timers.push(tid);
            }
            match thread.vcpu {
                Some(number) => drop(guest.vcpus.insert(number, tid)),
                None if thread.name.starts_with(carriers) => guest.others.push(tid),
                None => {}
            }
            guest.names.insert(tid, format!("{} of guest {name}", thread.name));
        }
        guest.has_all_vcpus = guest.vcpus.len() == vcpus;
        Some(guest)
    }

    /// Whether an end runs in the guest.
    pub fn is_of(&self, end: &str) -> bool {
        self.ends.contains(&end)
    }

    /// Whether a thread of the host runs the guest.
    pub fn has(&self, thread: i32) -> bool {
        self.names.contains_key(&thread)
    }

    /// Id of the first thread that runs the guest.
    pub fn first_thread(&self) -> Option<i32> {
        self.names.keys().next().copied()
    }

    /// The same guest with its pauses on the clock of the ping. `host`: the line that converts times of the host of the guests, if the
    /// controller recorded this host.
    pub fn with_pauses(&self, host: Option<&ClockLine>) -> Guest {
        let at_ns = |at_ns: i64| host.map_or(at_ns, |line| line.at_a_ns(at_ns));
        let pauses = self.pauses.iter().map(|(begin, end)| (at_ns(*begin), at_ns(*end))).collect();
        Guest { pauses, ..self.clone() }
    }

    /// The same guest; a thread runs the timers of its virtual CPUs only if they are emulated.
    pub fn emulated(self, is_emulated: bool) -> Guest {
        if is_emulated { self } else { Guest { timers: Vec::new(), ..self } }
    }

    /// The process that runs the guest, as a cause.
    pub fn hypervisor(&self) -> CausedBy {
        CausedBy::named(format!("the hypervisor of guest {}", self.name))
    }

    /// The times within a piece in which threads of the host kept the guest from working, in their order. They do not
    /// overlap.
    pub fn kept(&self, piece: &Piece, timeline: &Timeline) -> Vec<Kept> {
        let paused = self.paused(piece, timeline);
        let mut found = Vec::new();
        for (thread, evidence) in self.threads_for(piece, timeline) {
            let one = |(from_ns, to_ns, idle)| Kept { from_ns, to_ns, thread, idle, evidence };
            found.extend(timeline.kept_ready(thread, piece.from_ns, piece.to_ns).into_iter().map(one));
            for (state, idle) in [(SleepState::Stopped, Idle::Stopped), (SleepState::Frozen, Idle::Frozen)] {
                let spans = timeline.asleep_within(thread, state, (piece.from_ns, piece.to_ns)).into_iter();
                found.extend(spans.map(|(from, to)| one((from, to, idle))));
            }
        }
        let others = in_turn(found);
        let all = others.into_iter().flat_map(|kept| without(kept, &paused)).chain(paused.iter().copied());
        in_turn(all.collect())
    }

    /// The parts of a piece in which the hypervisor had paused the guest: it has neither run a thread nor carried a packet then.
    fn paused(&self, piece: &Piece, timeline: &Timeline) -> Vec<Kept> {
        let evidence = match piece.what {
            _ if self.is_of(piece.end) => Evidence::Seen,
            // A message that no thread of an end had can have waited for the guest.
            Doing::SleptForMessage(None | Some(SleepState::Interruptible)) | Doing::Polled { .. } => {
                if self.has_both_ends { Evidence::Inferred } else { Evidence::AtMost }
            }
            _ => return Vec::new(),
        };
        let Some(thread) = self.first_thread() else { return Vec::new() };
        let one = |pause: &(i64, i64)| {
            let (from_ns, to_ns) = self.stood_still(*pause, timeline);
            let (from_ns, to_ns) = (piece.from_ns.max(from_ns), piece.to_ns.min(to_ns));
            Kept { from_ns, to_ns, thread, idle: Idle::Stopped, evidence }
        };
        in_turn(self.pauses.iter().map(one).filter(|kept| kept.from_ns < kept.to_ns).collect())
    }

    /// The time for which no virtual CPU ran because of a pause. QEMU reports a pause only when the thread of each virtual CPU has
    /// answered that it stops, after which the thread sleeps, and reports the end of the pause before it wakes these threads (QEMU:
    /// `do_vm_stop`, `pause_all_vcpus` and `vm_prepare_start` in system/cpus.c). So the sleeps of all of them at both times belong to
    /// the pause. If these sleeps are not recorded, the pause is as reported.
    fn stood_still(&self, (begin_ns, end_ns): (i64, i64), timeline: &Timeline) -> (i64, i64) {
        let sleeps = |at_ns| -> Option<Vec<(i64, i64)>> {
            let vcpus = self.vcpus.values().filter(|_| self.has_all_vcpus);
            vcpus.map(|thread| timeline.sleep_at(*thread, at_ns)).collect()
        };
        let from_ns = sleeps(begin_ns).and_then(|all| all.iter().map(|(from, _)| *from).max());
        let to_ns = sleeps(end_ns).and_then(|all| all.iter().map(|(_, to)| *to).min());
        (from_ns.unwrap_or(begin_ns), to_ns.unwrap_or(end_ns))
    }

    /// The threads without which the guest cannot do what it does in a piece, and how that is known.
    fn threads_for(&self, piece: &Piece, timeline: &Timeline) -> Vec<(i32, Evidence)> {
        match piece.what {
            Doing::Ran { cpu }
            | Doing::ReadOthers { cpu }
            | Doing::HandledAnother { cpu: Some(cpu), .. }
            | Doing::Waited { cpu, .. }
                if self.is_of(piece.end) =>
            {
                self.vcpus.get(&kernel_cpu(cpu)).map(|tid| (*tid, Evidence::Seen)).into_iter().collect()
            }
            // No thread of an end had the message. It can only have waited for the guest: the only vCPU, or a thread that
            // carries packets.
            Doing::SleptForMessage(None | Some(SleepState::Interruptible)) | Doing::Polled { .. } => {
                self.carriers(piece)
            }
            Doing::Unknown if self.is_of(piece.end) => self.carriers(piece),
            // The sender slept although its message was due: the timer of the virtual CPU that woke it was late.
            Doing::Slept(None | Some(SleepState::Interruptible))
                if piece.leg == Metric::SendLateness && self.is_of(piece.end) =>
            {
                let wake = timeline.woken(piece.thread, piece.to_ns, piece.to_ns);
                let vcpu = wake.and_then(|wake| self.vcpus.get(&kernel_cpu(wake.cpu)));
                vcpu.into_iter().chain(&self.timers).map(|tid| (*tid, Evidence::Inferred)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The threads for which a message can have waited that no thread of an end had.
    fn carriers(&self, piece: &Piece) -> Vec<(i32, Evidence)> {
        // After its send call, the virtual CPU of the sender no longer has the message.
        let receives = self.is_of(piece.end) || !matches!(piece.leg, Metric::Out | Metric::Back);
        let only = self.vcpus.values().filter(|_| self.has_one_vcpu && receives);
        // Between two machines, the message can have been anywhere while the thread waited.
        let evidence = if self.has_both_ends { Evidence::Inferred } else { Evidence::AtMost };
        only.chain(&self.others).map(|tid| (*tid, evidence)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{Away, ClockReading, Metric, SwitchEvent, SwitchKind};
    use tailbound_record::bounds_of_readings;

    const VCPU: i32 = 30;
    const MAIN: i32 = 31;
    const HOG: i32 = 40;

    fn guest(vcpus: &[(u32, i32)]) -> Guest {
        let has_one_vcpu = vcpus.len() == 1;
        Guest {
            ends: vec!["pong"],
            vcpus: vcpus.iter().copied().collect(),
            has_one_vcpu,
            others: vec![MAIN],
            timers: vec![MAIN],
            has_both_ends: true,
            ..Guest::default()
        }
    }

    fn piece(what: Doing) -> Piece {
        Piece { from_ns: 100, to_ns: 900, leg: Metric::Out, end: "pong", thread: 20, what }
    }

    /// On CPU 1 of the host: the vCPU is preempted by a hog from 200 to 500, and QEMU, woken at 400, waits until 600.
    fn timeline() -> Timeline {
        let switch = |at_ns, out, into, preempted, state| SwitchEvent {
            at_ns,
            cpu: 1,
            what: SwitchKind::Switch { out, into, preempted, state, limit: None },
        };
        let wake = SwitchKind::Wake { thread: MAIN, by: 0, interrupt: true, packet: true, limit: None };
        let events = vec![
            switch(50, MAIN, VCPU, false, Some(SleepState::Interruptible)),
            switch(200, VCPU, HOG, true, None),
            SwitchEvent { at_ns: 400, cpu: 0, what: wake },
            switch(500, HOG, VCPU, false, Some(SleepState::Interruptible)),
            switch(600, VCPU, MAIN, true, None),
            switch(650, MAIN, VCPU, false, Some(SleepState::Stopped)),
        ];
        let scope = SwitchScope::Cpus(CpuList([0, 1].into()));
        Timeline::of(
            &[Switches { ends: vec!["ping".into()], scope, wakes: true, events, ..Switches::default() }],
            (0, 1_000),
        )
    }

    fn kept(guest: &Guest, what: Doing) -> Vec<(i64, i64, i32, Evidence)> {
        let found = guest.kept(&piece(what), &timeline());
        found.iter().map(|k| (k.from_ns, k.to_ns, k.thread, k.evidence)).collect()
    }

    #[test]
    fn a_thread_of_the_guest_works_only_while_its_vcpu_has_a_cpu_of_the_host() {
        let guest = guest(&[(0, VCPU), (1, 32)]);
        let on = |cpu| Doing::Ran { cpu: Machine::Pong.cpu(cpu) };
        let waits = [(200, 500, VCPU, Evidence::Seen), (600, 650, VCPU, Evidence::Seen)];
        assert_eq!(kept(&guest, on(0)), waits);
        assert_eq!(kept(&guest, on(1)), []);
        // The other end does not run in the guest.
        let other = Piece { end: "ping", ..piece(on(0)) };
        assert_eq!(guest.kept(&other, &timeline()), []);
    }

    /// Test: a pause from 300 to 550. The waits of the virtual CPU count only before and after it.
    #[test]
    fn while_the_hypervisor_pauses_a_guest_nothing_else_keeps_it() {
        let guest =
            Guest { pauses: vec![(300, 550)], names: [(MAIN, "qemu".into())].into(), ..guest(&[(0, VCPU), (1, 32)]) };
        let on_cpu = Doing::Ran { cpu: Machine::Pong.cpu(0) };
        let waits =
            [(200, 300, VCPU, Evidence::Seen), (300, 550, MAIN, Evidence::Seen), (600, 650, VCPU, Evidence::Seen)];
        assert_eq!(kept(&guest, on_cpu), waits);
        let stopped = guest.kept(&piece(on_cpu), &timeline());
        assert_eq!(stopped[1].idle, Idle::Stopped);
        // A message that no thread had can have waited for the guest; the other end went on meanwhile.
        let other = |what| Piece { end: "ping", ..piece(what) };
        let asleep = guest.kept(&other(Doing::SleptForMessage(None)), &timeline());
        assert!(asleep.contains(&Kept { evidence: Evidence::Inferred, ..stopped[1] }), "{asleep:?}");
        assert_eq!(guest.kept(&other(on_cpu), &timeline()), []);
    }

    /// Test: the clock of the host is ahead by 5 s, and a reading of both takes 1 ms.
    #[test]
    fn pauses_on_the_clock_of_the_host_are_converted_and_no_longer_or_shorter() {
        let reading = |ping_ns| ClockReading {
            before_ns: 5_000_000_000 + ping_ns - 500_000,
            other_ns: ping_ns,
            after_ns: 5_000_000_000 + ping_ns + 500_000,
        };
        let bounds = bounds_of_readings(&[0, 4_000_000_000].map(reading)).unwrap();
        let on_host = Guest { pauses: vec![(6_000_000_000, 6_300_000_000)], ..guest(&[(0, VCPU)]) };
        let lines = bounds.extremes([1_000_000_000].into_iter());
        let begins: Vec<i64> = lines.iter().map(|line| on_host.with_pauses(Some(line)).pauses[0].0).collect();
        assert!(begins.iter().any(|at| *at < 999_600_000) && begins.iter().any(|at| *at > 1_000_400_000), "{begins:?}");
        for line in lines.iter().chain([&bounds.middle()]) {
            let [(begin, end)] = on_host.with_pauses(Some(line)).pauses[..] else { panic!("one pause") };
            // Two clocks of which both readings are true differ by at most 0.25 ms per second.
            assert!((999_400_000..=1_000_600_000).contains(&begin), "{begin}");
            assert!((299_920_000..=300_080_000).contains(&(end - begin)), "{}", end - begin);
        }
        assert_eq!(on_host.with_pauses(None), on_host);
    }

    /// Test: the vCPU sleeps from 100 on, is kicked at 310 while the guest is paused, and is woken at 560 because the pause has ended.
    #[test]
    fn a_pause_lasts_as_long_as_no_vcpu_ran_because_of_it() {
        let switch = |at_ns, out, into, state| SwitchEvent {
            at_ns,
            cpu: 1,
            what: SwitchKind::Switch { out, into, preempted: false, state, limit: None },
        };
        let wake = |at_ns| SwitchEvent {
            at_ns,
            cpu: 0,
            what: SwitchKind::Wake { thread: VCPU, by: MAIN, interrupt: false, packet: false, limit: None },
        };
        let asleep = Some(SleepState::Interruptible);
        let events = vec![
            switch(50, 0, VCPU, None),
            switch(100, VCPU, 0, asleep),
            wake(310),
            switch(320, 0, VCPU, None),
            switch(330, VCPU, 0, asleep),
            wake(560),
            switch(580, 0, VCPU, None),
        ];
        let scope = SwitchScope::Cpus(CpuList([0, 1].into()));
        let seen = Switches { ends: vec!["ping".into()], scope, wakes: true, events, ..Switches::default() };
        let timeline = |gaps| Timeline::of(&[Switches { gaps, ..seen.clone() }], (0, 1_000));
        let one = Guest { has_all_vcpus: true, ..guest(&[(0, VCPU)]) };
        assert_eq!(one.stood_still((200, 500), &timeline(vec![])), (100, 560));
        // The thread was kicked at the begin, and runs at the end.
        assert_eq!(one.stood_still((315, 325), &timeline(vec![])), (315, 325));
        // Not all is recorded.
        assert_eq!(one.stood_still((200, 500), &timeline(vec![(540, 550)])), (100, 500));
        let other = Guest { has_all_vcpus: true, ..guest(&[(0, VCPU), (1, 32)]) };
        assert_eq!(other.stood_still((200, 500), &timeline(vec![])), (200, 500));
        assert_eq!(guest(&[(0, VCPU)]).stood_still((200, 500), &timeline(vec![])), (200, 500));
    }

    #[test]
    fn a_message_on_its_way_waits_for_the_threads_that_carry_packets_and_for_an_only_vcpu() {
        let none = Doing::SleptForMessage(None);
        let of_qemu = [(400, 600, MAIN, Evidence::Inferred), (650, 900, MAIN, Evidence::Inferred)];
        assert_eq!(kept(&guest(&[(0, VCPU), (1, 32)]), none), of_qemu);
        // What both waited for counts once.
        let found = kept(&guest(&[(0, VCPU)]), none);
        let expected = [
            (200, 500, VCPU, Evidence::Inferred),
            (500, 600, MAIN, Evidence::Inferred),
            (600, 650, VCPU, Evidence::Inferred),
            (650, 900, MAIN, Evidence::Inferred),
        ];
        assert_eq!(found, expected);
        // The virtual CPU of the sender no longer has the message.
        let of_ping = Guest { ends: vec!["ping"], ..guest(&[(0, VCPU)]) };
        assert_eq!(kept(&of_ping, none), of_qemu);
        // The other end is on another machine, where the message can have been.
        let alone = Guest { has_both_ends: false, ..guest(&[(0, VCPU), (1, 32)]) };
        assert!(kept(&alone, none).iter().all(|(.., evidence)| *evidence == Evidence::AtMost));
        // A thread of an end had the message.
        assert_eq!(kept(&guest(&[(0, VCPU)]), Doing::SleptInCall(None)), []);
    }

    #[test]
    fn a_sender_that_slept_too_long_waited_for_the_virtual_cpu_that_woke_it_or_for_its_timer() {
        let late = Piece { leg: Metric::SendLateness, ..piece(Doing::Slept(None)) };
        let cpu = Machine::Pong.cpu(0);
        let wake = SwitchKind::Wake { thread: late.thread, by: 0, interrupt: true, packet: false, limit: None };
        let mut timeline = timeline();
        timeline.add(SwitchEvent { at_ns: late.to_ns, cpu, what: wake });
        let kept = |guest: Guest| guest.kept(&late, &timeline).iter().map(|k| k.thread).collect::<Vec<_>>();
        let two = || guest(&[(0, VCPU), (1, 32)]);
        assert_eq!(kept(two().emulated(true)), [VCPU, MAIN, VCPU, MAIN]);
        assert_eq!(kept(two().emulated(false)), [VCPU, VCPU]);
        // It was woken on the other virtual CPU.
        assert!(kept(guest(&[(1, VCPU)]).emulated(false)).is_empty());
    }

    /// Test: two agents of a host give the same event, and the timeline begins within their time span.
    #[test]
    fn a_guest_that_was_stopped_before_the_recorded_time_span_is_known() {
        let left = SwitchEvent {
            at_ns: 10,
            cpu: 1,
            what: SwitchKind::Switch {
                out: VCPU,
                into: 0,
                preempted: false,
                state: Some(SleepState::Stopped),
                limit: None,
            },
        };
        let wake = SwitchKind::Wake { thread: VCPU, by: 0, interrupt: false, packet: false, limit: None };
        let come = SwitchKind::Switch { out: 0, into: VCPU, preempted: true, state: None, limit: None };
        let events = [(500, wake), (520, come)].map(|(at_ns, what)| SwitchEvent { at_ns, cpu: 1, what });
        let one = |away: Vec<Away>| Switches {
            ends: vec!["ping".into()],
            scope: SwitchScope::Cpus(CpuList([0, 1].into())),
            wakes: true,
            windows: vec![(50, 1_000)],
            events: events.to_vec(),
            away,
            ..Switches::default()
        };
        let found = |away: Vec<Away>| -> Vec<(i64, i64, Idle)> {
            let timeline = Timeline::of(&[one(away.clone()), one(away)], (60, 1_000));
            let found = guest(&[(0, VCPU)]).kept(&piece(Doing::SleptForMessage(None)), &timeline);
            found.iter().map(|k| (k.from_ns, k.to_ns, k.idle)).collect()
        };
        let ready = (500, 520, Idle::Ready { cpu: 1, limit: None });
        assert_eq!(found(vec![Away { until_ns: 50, event: left }]), [(100, 500, Idle::Stopped), ready]);
        // It was stopped after the agent began to keep events, and before the timeline begins.
        let stopped_ns = |at_ns| SwitchEvent { at_ns, ..left };
        let within = Switches { events: [&[stopped_ns(55)][..], &events].concat(), ..one(Vec::new()) };
        let timeline = Timeline::of(&[within], (60, 1_000));
        let kept = guest(&[(0, VCPU)]).kept(&piece(Doing::SleptForMessage(None)), &timeline);
        assert_eq!(
            kept.iter().map(|k| (k.from_ns, k.to_ns, k.idle)).collect::<Vec<_>>(),
            [(100, 500, Idle::Stopped), ready]
        );
        // Of another time span.
        assert_eq!(found(vec![Away { until_ns: 40, event: left }]), [ready]);
        assert_eq!(found(Vec::new()), [ready]);
    }
}
