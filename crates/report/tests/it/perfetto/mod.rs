//! Tests of the trace for Perfetto, decoded by the public schema: it has the messages, incidents and events of a
//! synthetic record, and nothing that the record does not have.

mod clocks;
mod events;
mod messages;
mod trials;

use crate::support::{Given, GivenTrial, T0, lose, skip, slot, thread_table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;
const SLOTS: u64 = 200;
/// Number of the slot whose message is late.
const LATE: u64 = 50;
const USUAL: [i64; 3] = [10_000, 5_000, 80_000];
const LATE_LEGS: [i64; 3] = [10_000, 5_000, 8_080_000];
/// Thread ids: the threads of the ends, a thread of the kernel and another thread.
const PING: i32 = 4_000;
const PONG: i32 = 5_000;
const KERNEL: i32 = 17;
const OTHER: i32 = 30;
/// The 1,024 thread ids above this one stand for whatever had a CPU that was not recorded.
const REAL: i64 = 1 << 22;

/// Path of a Python interpreter with the schema of Perfetto; `dev/setup test` installs this interpreter.
fn python() -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    std::env::var_os("TAILBOUND_PYTHON").map_or(made, PathBuf::from)
}

/// A synthetic record of one condition. If it is dropped, its directory is removed.
struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    /// Makes a record whose trials have one late message each, and these events.
    fn with(switches: &[(usize, &str, Switches)]) -> Made {
        Made::of(1 + switches.iter().map(|(trial, ..)| *trial).max().unwrap_or(0), |_, _, _| (), |_| (), switches)
    }

    fn of(
        trials: usize,
        change: impl Fn(usize, &mut [SenderRow], &mut Vec<EchoRow>),
        manifest: impl FnOnce(&mut Manifest),
        switches: &[(usize, &str, Switches)],
    ) -> Made {
        let trial = |number: usize| {
            let from = number as i64 * 1_000 * PERIOD;
            let legs = |k| if k == LATE { LATE_LEGS } else { USUAL };
            let (mut slots, mut echoes): (Vec<_>, Vec<_>) = (0..SLOTS).map(|k| slot(k, PERIOD, 1_000, legs(k))).unzip();
            change(number, &mut slots, &mut echoes);
            let later = |ns: &mut i64| *ns = if *ns == NO_TIME { NO_TIME } else { *ns + from };
            for s in &mut slots {
                [&mut s.intended_ns, &mut s.wake_ns, &mut s.send_begin_ns, &mut s.send_end_ns, &mut s.receive_ns]
                    .into_iter()
                    .for_each(later);
            }
            echoes.iter_mut().for_each(|e| [&mut e.in_ns, &mut e.begin_ns, &mut e.end_ns].into_iter().for_each(later));
            GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }
        };
        let trials = (0..trials).map(trial).collect();
        let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials };
        let made = Made { folder: tempfile::tempdir().unwrap() };
        let record = crate::support::write(&made.dir(), &[given], manifest);
        for trial in &record.manifest.trials {
            for (end, pid, cpu) in [("ping", PING, 0), ("pong", PONG, 1)] {
                let pid = pid + 10 * trial.id as i32;
                let mut table = ThreadTable { pid, ..thread_table(end, cpu) };
                for rows in [&mut table.before, &mut table.after] {
                    rows.iter_mut().zip(pid..).for_each(|(row, tid)| row.tid = tid);
                }
                let path = made.dir().join(format!("threads/{}-{end}.json", trial.id));
                std::fs::write(path, serde_json::to_string(&table).unwrap()).unwrap();
            }
        }
        std::fs::create_dir_all(made.dir().join("switches")).unwrap();
        for (trial, end, switches) in switches {
            let path = made.dir().join(format!("switches/{trial}-{end}.json"));
            std::fs::write(path, serde_json::to_string(switches).unwrap()).unwrap();
        }
        made
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    /// The trace of these trials, decoded, and the sentences about what it does not have.
    fn trace(&self, trials: &[usize]) -> Trace {
        let record = Record::open(&self.dir()).unwrap();
        let report = analyse(&record).unwrap();
        let file = self.folder.path().join("trace");
        let mut out = std::fs::File::create(&file).unwrap();
        let notes = Perfetto::of(&record, &report, trials).unwrap().write(&mut out).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decode_trace.py");
        let decoded = Command::new(python()).arg(script).arg(file).output().expect("python: run dev/setup test");
        assert!(decoded.status.success(), "{}", String::from_utf8_lossy(&decoded.stderr));
        let notes = notes.iter().map(|n| n.replace(self.folder.path().to_str().unwrap(), "FOLDER")).collect();
        Trace { packets: serde_json::from_slice(&decoded.stdout).unwrap(), notes, report }
    }

    fn refusal(&self, trials: &[usize]) -> String {
        let record = Record::open(&self.dir()).unwrap();
        let report = analyse(&record).unwrap();
        Perfetto::of(&record, &report, trials).err().unwrap().to_string()
    }
}

/// A decoded trace.
struct Trace {
    packets: Vec<Value>,
    notes: Vec<String>,
    report: Report,
}

/// A slice or an instant of a track.
#[derive(Debug, Clone, PartialEq)]
struct Drawn {
    /// Names of the track and of the tracks above it, from the top.
    track: String,
    name: String,
    begin_ns: i64,
    end_ns: i64,
    /// Number of slices of the track in which it lies.
    depth: usize,
    event: Value,
}

impl Trace {
    /// Names of the tracks by uuid.
    fn tracks(&self) -> BTreeMap<i64, String> {
        let mut names: BTreeMap<i64, String> = BTreeMap::new();
        for track in self.packets.iter().filter_map(|p| p.get("track_descriptor")) {
            let name = track.get("name").or_else(|| track["process"].get("process_name")).unwrap().as_str().unwrap();
            let above = track.get("parent_uuid").map(|uuid| names[&uuid.as_i64().unwrap()].clone());
            let name = above.map_or(name.to_owned(), |above| format!("{above} / {name}"));
            assert!(names.insert(track["uuid"].as_i64().unwrap(), name).is_none(), "{track}");
        }
        names
    }

    /// All slices and instants, after a check that the times of each sequence rise, that each sequence has one track,
    /// and that slices end in the order in which the viewer ends them.
    fn drawn(&self) -> Vec<Drawn> {
        let names = self.tracks();
        let mut last: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        let mut open: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let mut drawn: Vec<Drawn> = Vec::new();
        for packet in self.packets.iter().filter(|p| p.get("track_event").is_some()) {
            assert_eq!(packet["timestamp_clock_id"], 3, "{packet}");
            let (event, at_ns) = (&packet["track_event"], packet["timestamp"].as_i64().unwrap());
            let uuid = event["track_uuid"].as_i64().unwrap();
            let sequence = packet["trusted_packet_sequence_id"].as_i64().unwrap();
            let before = last.insert(sequence, (uuid, at_ns));
            assert!(before.is_none_or(|(track, before)| track == uuid && before <= at_ns), "{packet}");
            let open = open.entry(uuid).or_default();
            let mut one = |end_ns| {
                let name = event["name"].as_str().unwrap().to_owned();
                let (track, depth) = (names[&uuid].clone(), open.len());
                drawn.push(Drawn { track, name, begin_ns: at_ns, end_ns, depth, event: event.clone() });
            };
            match event["type"].as_i64().unwrap() {
                1 => {
                    one(i64::MIN);
                    open.push(drawn.len() - 1);
                }
                2 => drawn[open.pop().expect("a slice has begun")].end_ns = at_ns,
                3 => one(at_ns),
                other => panic!("{other}"),
            }
        }
        assert!(open.values().all(Vec::is_empty), "every slice ends");
        drawn
    }

    /// Slices of a track whose names begin with `name`.
    fn named(&self, name: &str) -> Vec<Drawn> {
        self.drawn().into_iter().filter(|d| d.name.starts_with(name)).collect()
    }

    /// The ftrace events of each CPU, after a check of their order.
    fn ftrace(&self) -> BTreeMap<i64, Vec<Value>> {
        let mut cpus: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
        for bundle in self.packets.iter().filter_map(|p| p.get("ftrace_events")) {
            let events = cpus.entry(bundle["cpu"].as_i64().unwrap()).or_default();
            events.extend(bundle["event"].as_array().unwrap().iter().cloned());
        }
        for events in cpus.values() {
            assert!(events.is_sorted_by_key(|e| e["timestamp"].as_i64().unwrap()), "{events:?}");
        }
        cpus
    }

    fn annotation(&self, drawn: &Drawn, name: &str) -> Value {
        let all = drawn.event["debug_annotations"].as_array().unwrap();
        all.iter().find(|a| a["name"] == name).unwrap_or_else(|| panic!("{name}: {all:?}")).clone()
    }
}

fn event(at_ns: i64, cpu: u32, what: SwitchKind) -> SwitchEvent {
    SwitchEvent { at_ns, cpu, what }
}

fn switch(at_ns: i64, cpu: u32, out: i32, into: i32) -> SwitchEvent {
    let state = Some(SleepState::Interruptible);
    event(at_ns, cpu, SwitchKind::Switch { out, into, preempted: false, state, limit: None })
}

fn wake(at_ns: i64, cpu: u32, thread: i32, by: i32) -> SwitchEvent {
    event(at_ns, cpu, SwitchKind::Wake { thread, by, interrupt: true, packet: true, limit: None })
}

fn interrupted(at_ns: i64, cpu: u32, by: Interruption, ns: u32) -> SwitchEvent {
    event(at_ns, cpu, SwitchKind::Interrupted { by, ns })
}

/// Due time of a slot of a trial, ns.
fn due(trial: i64, seq: u64) -> i64 {
    T0 + (trial * 1_000 + seq as i64) * PERIOD
}

/// The time span around the late message of a trial.
fn around_late(trial: i64) -> (i64, i64) {
    (due(trial, LATE) - 2_000_000, due(trial, LATE) + 1_000 + LATE_LEGS.iter().sum::<i64>() + 500_000)
}

/// Events of one agent around the late message and around an ordinary message.
fn seen(trial: i64) -> Switches {
    let (late, ordinary) = (due(trial, LATE), due(trial, 150));
    let tasks = [
        (KERNEL, Task { name: "ksoftirqd/0".into(), policy: None, process: None, kernel: true }),
        (
            OTHER,
            Task { name: "stress".into(), policy: Some(Policy::Fifo { priority: 90 }), process: None, kernel: false },
        ),
    ];
    let thread = PING + 10 * trial as i32;
    let events = vec![
        switch(late - 1_000_000, 0, 0, thread),
        interrupted(late + 10_000, 0, Interruption::Irq(7), 9_000),
        interrupted(late + 12_000, 0, Interruption::Softirq(3), 5_000),
        wake(late + 13_000, 0, thread + 1, thread),
        switch(late + 20_000, 0, thread, OTHER),
        switch(late + 30_000, 1, 0, PONG + 10 * trial as i32),
        interrupted(late + 50_000, 1, Interruption::Vector(236), 2_000),
        switch(late + 7_000_000, 0, OTHER, KERNEL),
        switch(late + 8_000_000, 0, KERNEL, thread + 1),
        switch(ordinary + 5_000, 0, 0, thread),
        event(ordinary + 9_000, 0, SwitchKind::Moved { thread: thread + 1, to: 1 }),
        switch(ordinary + 20_000, 0, thread, 0),
    ];
    Switches {
        ends: vec!["ping".into()],
        scope: SwitchScope::Cpus(CpuList([0, 1].into())),
        wakes: true,
        interrupts: true,
        windows: vec![around_late(trial), (ordinary - 2_000_000, ordinary + 600_000)],
        events,
        tasks: tasks.into(),
        ..Switches::default()
    }
}

/// The recorded form of an event of the trace; `None` for the end of an interrupt, and for a context switch that the
/// trace adds.
fn recorded(cpu: i64, event: &Value) -> Option<(i64, i64, Value)> {
    let at_ns = event["timestamp"].as_i64().unwrap();
    let of = |name: &str, members: &[&str]| {
        let inner = event.get(name)?;
        let values: Vec<Value> = members.iter().map(|m| inner.get(*m).cloned().unwrap_or(Value::Null)).collect();
        Some((at_ns, cpu, serde_json::json!([name, values])))
    };
    let is_added = |pid: &Value| (REAL + 1..=REAL + 1_024).contains(&pid.as_i64().unwrap());
    let added = |event: &Value| ["prev_pid", "next_pid"].iter().any(|pid| is_added(&event[*pid]));
    match event.get("sched_switch") {
        Some(switch) if added(switch) => None,
        Some(_) => of("sched_switch", &["prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm", "next_prio"]),
        None => of("sched_waking", &["pid", "comm"])
            .or_else(|| of("sched_migrate_task", &["pid", "dest_cpu"]))
            .or_else(|| of("irq_handler_entry", &["irq", "name"]))
            .or_else(|| of("softirq_entry", &["vec"])),
    }
}

/// The recorded events of a trace, sorted by time.
fn events_of(trace: &Trace) -> Vec<(i64, i64, Value)> {
    let cpus = trace.ftrace();
    let mut all: Vec<_> =
        cpus.iter().flat_map(|(cpu, events)| events.iter().filter_map(|e| recorded(*cpu, e))).collect();
    all.sort_by_key(|(at_ns, cpu, _)| (*at_ns, *cpu));
    all
}
