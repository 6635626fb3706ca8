//! Makes records with planted stalls: time spans in which another thread has the CPU of the thread that takes answers.

use crate::support::{Given, GivenTrial, T0, lose, slot, thread_table};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

/// Time from one slot to the next, ns.
pub const PERIOD: i64 = 1_000_000;
/// Number of slots of a trial.
pub const SLOTS: u64 = 4_000;
/// Time for which the thread that took an answer had the CPU before, ns.
const RAN: i64 = 15_000;
/// Time for which the thread that takes an answer waits for its CPU before every message, ns.
const USUAL_WAIT: i64 = 30_000;
/// Time in which the thread takes the answer of one more message, ns.
const NEXT: i64 = 2_000;
const TAKER: i32 = 4_001;
/// Id of the thread of a program that does not belong to an end.
pub const HOG: i32 = 30;
/// Id of a thread of the kernel.
pub const KERNEL: i32 = 31;

/// A time span in which another thread has the CPU of the thread that takes answers: it begins while the message of
/// this slot is on its way back, and lasts for some ns.
#[derive(Clone, Copy)]
pub struct Stall {
    pub slot: u64,
    pub ns: i64,
    pub by: i32,
}

/// Time from the due time to the receipt of the answer of a message that no stall delays, ns.
fn usual(seq: u64) -> i64 {
    1_000 + 10_000 + 5_000 + 60_000 + (seq as i64 * 7_919) % 20_000
}

/// Time at which a message is due, ns.
pub fn due(seq: u64) -> i64 {
    T0 + seq as i64 * PERIOD
}

fn switch(at_ns: i64, out: i32, into: i32) -> SwitchEvent {
    let what = SwitchKind::Switch { out, into, preempted: false, state: None, limit: None };
    SwitchEvent { at_ns, cpu: 0, what }
}

/// The messages of a trial with these stalls: when each answer is received, and the events of the kernel.
fn trial(stalls: &[Stall]) -> (Vec<i64>, Vec<SwitchEvent>) {
    let (mut received, mut events) = (Vec::new(), Vec::new());
    let mut k = 0;
    while k < SLOTS {
        let stall = stalls.iter().find(|s| s.slot == k);
        let woken = due(k) + usual(k) - RAN - USUAL_WAIT;
        let (by, runs) = stall.map_or((HOG, woken + USUAL_WAIT), |s| (s.by, woken + s.ns));
        events.push(switch(woken - 1_000, 0, by));
        let what = SwitchKind::Wake { thread: TAKER, by, interrupt: true, packet: false, limit: None };
        events.push(SwitchEvent { at_ns: woken, cpu: 0, what });
        events.push(switch(runs, by, TAKER));
        // All messages that have arrived meanwhile are taken one after another.
        let mut at = runs + RAN;
        received.push(at);
        k += 1;
        while k < SLOTS && due(k) + usual(k) - RAN - USUAL_WAIT <= at {
            at += NEXT;
            received.push(at);
            k += 1;
        }
        events.push(switch(at + 5_000, TAKER, 0));
    }
    (received, events)
}

/// Writes a record of one condition with as many equal trials, each with these stalls. Events are recorded in the time
/// spans `windows`; the first `lost` messages of each trial are lost.
pub fn record(dir: &Path, trials: usize, stalls: &[Stall], windows: &[(i64, i64)], lost: u64) -> Record {
    let (received, events) = trial(stalls);
    let row = |k: u64| slot(k, PERIOD, 1_000, [10_000, 5_000, received[k as usize] - due(k) - 16_000]);
    let (mut slots, echoes): (Vec<_>, Vec<_>) = (0..SLOTS).map(row).unzip();
    slots[..lost as usize].iter_mut().for_each(lose);
    let given = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let trials = vec![given; trials];
    let numbers = 0..trials.len();
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials };
    drop(crate::support::write(dir, &[given], |_| ()));
    std::fs::create_dir_all(dir.join("switches")).unwrap();
    let task = |name: &str, kernel| Task { name: name.into(), policy: None, process: None, kernel };
    let events = Switches {
        ends: vec!["ping".into(), "pong".into()],
        scope: SwitchScope::Cpus(CpuList([0, 1].into())),
        wakes: true,
        windows: windows.to_vec(),
        tasks: BTreeMap::from([(HOG, task("stress-ng", false)), (KERNEL, task("ksoftirqd/0", true))]),
        events,
        ..Switches::default()
    };
    for trial in numbers {
        for (end, pid, cpu) in [("ping", 4_000, 0), ("pong", 5_000, 1)] {
            let mut table = ThreadTable { pid, ..thread_table(end, cpu) };
            for rows in [&mut table.before, &mut table.after] {
                rows.iter_mut().zip(pid..).for_each(|(row, tid)| row.tid = tid);
            }
            let file = dir.join(format!("threads/{trial}-{end}.json"));
            std::fs::write(file, serde_json::to_string(&table).unwrap()).unwrap();
        }
        let file = dir.join(format!("switches/{trial}-ping.json"));
        std::fs::write(file, serde_json::to_string(&events).unwrap()).unwrap();
    }
    Record::open(dir).unwrap()
}

/// The report of a record with one trial, made as [`record`] makes it.
pub fn report(stalls: &[Stall], windows: &[(i64, i64)], lost: u64) -> Report {
    let folder = tempfile::tempdir().unwrap();
    analyse(&record(&folder.path().join("record"), 1, stalls, windows, lost)).unwrap()
}

/// One time span that contains the whole trial.
pub fn everything() -> [(i64, i64); 1] {
    [(0, due(SLOTS) + 1_000_000_000)]
}

/// Ten stalls of 5 ms by a program, and ten of 3 ms by a thread of the kernel.
pub fn stalls() -> Vec<Stall> {
    let stall = |n: u64| match n % 2 {
        0 => Stall { slot: 150 + n * 180, ns: 5_000_000, by: HOG },
        _ => Stall { slot: 150 + n * 180, ns: 3_000_000, by: KERNEL },
    };
    (0..20).map(stall).collect()
}
