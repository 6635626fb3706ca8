//! Finds the causes of the worst incident while a trial runs, on a CPU that no end of the trial uses.
//!
//! The agent of the sending end finds the causes on its side in its own samples and events. It asks the agent of the answering end
//! about the longest time in which it had no message itself. What is sent is a few words: samples and events stay at the agents.

use crate::{cause_numbers, store};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use tailbound_analysis::{Elsewhere, Running, RunningCause, RunningCauses};
use tailbound_host as host;
use tailbound_model::{CpuList, EchoRow, Policy, RoleScheduling, Switches, ThreadTable, TrialSpec};
use tailbound_record::{KeptRow, WorstIncident};
use tailbound_wire::{Absence, Cause, Causes, Message, Order, shortened};

/// Largest number of rows of an answering end that are remembered, if its sample memory is a ring.
const MOST_ROWS: usize = 20_000;

/// What an agent looks for.
pub(super) enum Question {
    /// The causes at the sending end: of this incident, beside these ordinary messages.
    Sender(Box<WorstIncident>, Vec<KeptRow>, i64),
    /// The causes at the answering end, in this time and for the message of this row.
    Receiver(Absence, EchoRow),
}

/// The search for causes while a trial runs.
pub(super) struct LiveCauses {
    spec: TrialSpec,
    /// CPUs that no end of the trial uses.
    free: CpuList,
    threads: ThreadTable,
    is_real_time: bool,
    /// The thread that looks for causes, which may have ended.
    thread: Option<JoinHandle<()>>,
    found: Option<Receiver<Vec<Message>>>,
    unsent: VecDeque<Message>,
    /// The newest rows of an answering end whose sample memory is a ring.
    rows: VecDeque<EchoRow>,
}

impl LiveCauses {
    pub fn new(order: &Order) -> LiveCauses {
        LiveCauses::on(order.free.clone(), order.spec.clone())
    }

    /// Makes a search that no thread has begun, for trials of `spec` on the CPUs `free`.
    fn on(free: CpuList, spec: TrialSpec) -> LiveCauses {
        LiveCauses {
            spec,
            free,
            threads: ThreadTable::default(),
            is_real_time: false,
            thread: None,
            found: None,
            unsent: VecDeque::new(),
            rows: VecDeque::new(),
        }
    }

    /// Learns which threads the measuring process has before the first message. Their CPUs are not free.
    pub fn begin(&mut self, threads: &ThreadTable) {
        self.threads = threads.clone();
        self.threads.before.iter().for_each(|row| self.free.0.retain(|cpu| !row.cpus.0.contains(cpu)));
        self.is_real_time = host::facts::is_real_time_kernel();
    }

    /// Whether a CPU is free for the search.
    pub fn has_cpu(&self) -> bool {
        !self.free.0.is_empty()
    }

    /// Reports that no CPU is free for the search.
    pub fn refuse(&mut self) {
        self.unsent.push_back(Message::Causes(Causes::NoCpu));
    }

    /// Remembers rows of an answering end, as bytes of its ring of sample memory.
    pub fn remember(&mut self, bytes: &[u8]) {
        if self.has_cpu() {
            self.rows.extend(store::echo_rows(bytes));
            self.rows.drain(..self.rows.len().saturating_sub(MOST_ROWS));
        }
    }

    /// The row of the message of this time, if it is remembered.
    pub fn remembered(&self, absence: &Absence) -> Option<EchoRow> {
        self.rows.iter().find(|row| row.seq == absence.seq).copied()
    }

    /// Whether a search can begin: the thread of the one before has ended, so that the memory for one is enough.
    pub fn can_search(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Looks for causes on a thread of its own, in the events that were recorded around the messages.
    pub fn search(&mut self, question: Question, seen: Switches) {
        let (sender, receiver) = channel();
        let (spec, threads, is_real_time) = (self.spec.clone(), self.threads.clone(), self.is_real_time);
        let scheduling = RoleScheduling { policy: Some(Policy::Other { nice: 19 }), cpus: Some(self.free.clone()) };
        let job = move || {
            let messages = match host::scheduling::apply(0, &scheduling) {
                Ok(()) => {
                    let running = Running { spec: &spec, threads: &threads, seen: &seen, is_real_time };
                    messages(&running, question)
                }
                // For example because the CPU was switched off.
                Err(_) => vec![Message::Causes(Causes::NoCpu)],
            };
            tracing::debug!(
                events = seen.events.len(),
                cpu_ns = host::clock::thread_cpu_ns(),
                "causes were looked for"
            );
            // Nobody receives it after the trial.
            let _ = sender.send(messages);
        };
        // Without a thread, this summary has no causes.
        self.thread = std::thread::Builder::new().name("tb-causes".into()).spawn(job).ok();
        self.found = Some(receiver);
    }

    /// Gives up what was not found or sent before the summary for which it was wanted, for example because other programs used the free
    /// CPUs.
    pub fn give_up(&mut self) {
        self.found = None;
        self.unsent.clear();
    }

    /// Takes a message that the controller does not have yet.
    pub fn unsent(&mut self) -> Option<Message> {
        if let Some(messages) = self.found.as_ref().and_then(|found| found.try_recv().ok()) {
            self.unsent.extend(messages);
            self.found = None;
        }
        self.unsent.pop_front()
    }
}

/// What is found, as messages to the controller.
fn messages(running: &Running<'_>, question: Question) -> Vec<Message> {
    match question {
        Question::Sender(worst, ordinary, after_ms) => {
            let found = running.of_sender(&worst, &ordinary);
            // A shorter time is usual.
            let longest = found.longest.filter(|longest| longest.end_ns - longest.begin_ns > longest.usual_ns);
            let absence = |Elsewhere { seq, begin_ns, end_ns, usual_ns }| {
                Message::Absence(Absence { seq, begin_ns, end_ns, usual_ns })
            };
            let causes = Causes::Sender {
                seq: longest.map_or(0, |longest| longest.seq),
                after_ms,
                excess_us: worst.incident.excess_ns / 1_000,
                elsewhere_us: found.elsewhere_ns / 1_000,
                causes: numbered(&found),
                others_us: 0,
            };
            longest.map(absence).into_iter().chain([Message::Causes(shortened(causes))]).collect()
        }
        Question::Receiver(Absence { seq, begin_ns, end_ns, usual_ns }, row) => {
            let found = running.of_receiver(&Elsewhere { seq, begin_ns, end_ns, usual_ns }, &row);
            let causes = Causes::Receiver { seq, causes: numbered(&found), others_us: 0 };
            vec![Message::Causes(shortened(causes))]
        }
    }
}

/// The causes as messages have them.
fn numbered(found: &RunningCauses) -> Vec<Cause> {
    let of = |cause: &RunningCause| {
        let number = cause_numbers::number(cause.cause)? * 2 + u8::from(cause.end == "pong");
        Some((number, cause.by.clone().unwrap_or_default(), cause.ns / 1_000))
    };
    found.causes.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause_numbers::number;
    use std::path::Path;
    use tailbound_document::CauseWord;
    use tailbound_model::{
        NO_TIME, Outcome, SenderRow, SleepState, SwitchEvent, SwitchKind, SwitchScope, Task, ThreadRow,
    };
    use tailbound_record::RunningIncidents;

    const MS: i64 = 1_000_000;
    /// Ids of the thread of the end, and of another program.
    const OWN: i32 = 10;
    const OTHER: i32 = 30;

    fn spec() -> TrialSpec {
        let text = "study: s\nquestion: q\nmeasure: { ping-pong: { slots: 200, receive: block } }\ndriver: udp\n";
        let plan = tailbound_study::load_str("s.yaml", text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"));
        plan.conditions[0].spec.clone()
    }

    /// The only thread of an end, on CPU 0.
    fn threads(end: &str) -> ThreadTable {
        let row = ThreadRow {
            tid: OWN,
            name: format!("tb-{end}"),
            role: "main".to_owned(),
            asked: RoleScheduling::default(),
            policy: Policy::Other { nice: 0 },
            reset_on_fork: false,
            cpus: CpuList::one(0),
            last_cpu: 0,
            cpu_ns: 0,
            run_delay_ns: 0,
            runnable: false,
            waits_since_ns: None,
            later: None,
            voluntary_switches: 0,
            involuntary_switches: 0,
            migrations: None,
            minor_faults: 0,
            major_faults: 0,
            born_in: None,
            birth: None,
            creator: None,
            timer_slack_ns: None,
        };
        ThreadTable { ends: vec![end.to_owned()], pid: OWN, before: vec![row], ..ThreadTable::default() }
    }

    fn switch(at_ns: i64, out: i32, into: i32, state: Option<SleepState>) -> SwitchEvent {
        let what = SwitchKind::Switch { out, into, preempted: state.is_none() && out > 0, state, limit: None };
        SwitchEvent { at_ns, cpu: 0, what }
    }

    fn wake(at_ns: i64) -> SwitchEvent {
        let what = SwitchKind::Wake { thread: OWN, by: 0, interrupt: true, packet: false, limit: None };
        SwitchEvent { at_ns, cpu: 0, what }
    }

    /// All events of CPU 0 from 150 to 500 ms.
    fn seen(end: &str, events: Vec<SwitchEvent>) -> Switches {
        let hog = Task { name: "hog".to_owned(), policy: None, process: None, kernel: false };
        Switches {
            ends: vec![end.to_owned()],
            scope: SwitchScope::Cpus(CpuList::one(0)),
            wakes: true,
            windows: vec![(150 * MS, 500 * MS)],
            events,
            tasks: [(OTHER, hog)].into(),
            ..Switches::default()
        }
    }

    fn ask(end: &str, seen: &Switches, question: Question) -> Vec<Message> {
        let (spec, threads) = (spec(), threads(end));
        messages(&Running { spec: &spec, threads: &threads, seen, is_real_time: false }, question)
    }

    /// The incident of message 200, which was due at 200 ms, sent at `send_ns`, and answered 0.1 ms after `back_ns`. All others took
    /// 0.1 ms.
    fn worst(send_ns: i64, back_ns: i64) -> Question {
        let mut running = RunningIncidents::new(1_000, None);
        for slot in 0..450 {
            let due_ns = slot * MS;
            let (begun_ns, answered_ns) = match slot {
                200..=399 => (send_ns.max(due_ns), back_ns.max(due_ns)),
                _ => (due_ns, due_ns),
            };
            let row = SenderRow {
                seq: slot as u64,
                intended_ns: due_ns,
                wake_ns: begun_ns,
                send_begin_ns: begun_ns,
                send_end_ns: begun_ns + 5_000,
                receive_ns: answered_ns + 100_000,
                kernel_rx_ns: NO_TIME,
                receive_thread: Some(OWN as u32),
                outcome: Outcome::Answered,
                duplicates: 0,
                out_of_order: false,
                warm_up: false,
            };
            running.add(slot as u64, &row, &mut Vec::new());
        }
        let worst = running.take_worst().expect("an incident");
        Question::Sender(Box::new(worst), running.ordinary().to_vec(), 200)
    }

    fn is_near(us: i64, expected_us: i64) -> bool {
        (us - expected_us).abs() < 1_000
    }

    #[test]
    fn a_program_that_had_the_cpu_of_the_sender_is_named() {
        let events =
            vec![switch(199 * MS, 0, OTHER, None), wake(200 * MS), switch(400 * MS - 10_000, OTHER, OWN, None)];
        let events = [events, vec![switch(401 * MS, OWN, 0, Some(SleepState::Interruptible))]].concat();
        let found = ask("ping", &seen("ping", events), worst(400 * MS, 400 * MS));
        let [Message::Causes(Causes::Sender { causes, after_ms: 200, excess_us, elsewhere_us, .. })] = &found[..]
        else {
            panic!("{found:?}")
        };
        let [(cause, by, us)] = &causes[..] else { panic!("{causes:?}") };
        assert_eq!((*cause, by.as_str()), (number(CauseWord::WaitedForCpu).unwrap() * 2, "hog"));
        assert!(is_near(*us, 200_000) && is_near(*excess_us, 200_000) && *elsewhere_us < 1_000, "{found:?}");
    }

    #[test]
    fn a_message_that_the_sender_does_not_have_has_no_cause_there() {
        let sleep = |at_ns| switch(at_ns, OWN, 0, Some(SleepState::Interruptible));
        let mut events = vec![switch(199 * MS, 0, OWN, None), sleep(200 * MS + 10_000), wake(400 * MS)];
        events.extend([switch(400 * MS + 10_000, 0, OWN, None), sleep(401 * MS)]);
        let found = ask("ping", &seen("ping", events), worst(200 * MS, 400 * MS));
        let [Message::Absence(absence), Message::Causes(Causes::Sender { seq, causes, elsewhere_us, .. })] = &found[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!((absence.seq, *seq), (200, 200));
        assert!(is_near(absence.begin_ns / 1_000, 200_000) && is_near(absence.end_ns / 1_000, 400_000), "{found:?}");
        assert!(causes.is_empty() && is_near(*elsewhere_us, 200_000), "{found:?}");
    }

    #[test]
    fn a_stop_at_the_answering_end_is_named_only_while_the_sender_had_no_message() {
        let events = vec![
            switch(180 * MS, OWN, 0, Some(SleepState::Stopped)),
            wake(400 * MS),
            switch(400 * MS + 10_000, 0, OWN, None),
            switch(401 * MS, OWN, 0, Some(SleepState::Interruptible)),
        ];
        let seen = Switches { stops: vec![(180 * MS, 400 * MS)], ..seen("pong", events) };
        let absence = Absence { seq: 7, begin_ns: 200 * MS, end_ns: 401 * MS, usual_ns: 100_000 };
        let echo = |in_ns| EchoRow {
            seq: 7,
            in_ns,
            begin_ns: in_ns + 5_000,
            end_ns: in_ns + 10_000,
            kernel_rx_ns: NO_TIME,
            in_thread: Some(OWN as u32),
        };
        let found = ask("pong", &seen, Question::Receiver(absence, echo(400 * MS + 50_000)));
        let [Message::Causes(Causes::Receiver { seq: 7, causes, .. })] = &found[..] else { panic!("{found:?}") };
        let [(cause, _, us)] = &causes[..] else { panic!("{causes:?}") };
        assert_eq!(*cause, number(CauseWord::Stopped).unwrap() * 2 + 1);
        // The stop began 20 ms before the sender had sent the message; a usual round trip is subtracted.
        assert!(*us <= 199_900 && is_near(*us, 199_900), "{found:?}");
        // A message that the end received before this time says nothing.
        let found = ask("pong", &seen, Question::Receiver(absence, echo(190 * MS)));
        assert_eq!(found, [Message::Causes(Causes::Receiver { seq: 7, causes: Vec::new(), others_us: 0 })]);
    }

    #[test]
    fn a_cpu_of_an_end_is_not_free() {
        let mut causes = LiveCauses::on(CpuList([0, 1].into()), spec());
        causes.begin(&threads("ping"));
        assert_eq!((causes.free.to_string().as_str(), causes.has_cpu()), ("1", true));
        causes.threads.before[0].cpus = CpuList::one(1);
        causes.begin(&causes.threads.clone());
        assert!(!causes.has_cpu());
        causes.refuse();
        assert_eq!((causes.unsent(), causes.unsent()), (Some(Message::Causes(Causes::NoCpu)), None));
    }
}
