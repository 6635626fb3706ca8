//! Makes a synthetic record of a stream through gates over several bridges: stamps of each stage, of the kernel's receipt and of the
//! thread, and a history of the clock.

use super::{Given, GivenTrial, Random, T0, slot};
use std::path::Path;
use tailbound_model::*;
use tailbound_record::*;

/// Messages of each trial, of which the first are the warm-up.
pub const SLOTS: u64 = 6_000;
const WARM_UP: u64 = 200;
/// Time from one message to the next. It is no multiple of the cycle, so that messages are due at all phases of the cycle.
const PERIOD: i64 = 997_000;
/// The published schedule: a cycle of 503 us, in which the class of the stream is open for 101 us.
pub const CYCLE: i64 = 503_000;
const OPEN: i64 = 101_000;
/// Time after which a frame of the stream no longer fits into its window at 10 Gbit/s.
const LAST: i64 = OPEN - 104;
/// Levels of the factor `over`, with the usual time from the driver of the sender to the kernel of the receiver, ns.
pub const OVER: [(&str, i64); 3] = [("bridge", 21_000), ("macvtap", 15_000), ("xdp", 11_000)];
pub const LOAD: [&str; 2] = ["none", "3 streams"];
/// Slots whose messages reach the queue when the window has closed for them, although their send call began before.
pub const MISSED: [u64; 2] = [2_345, 4_567];

/// The rows of one trial.
pub struct Rows {
    trial: GivenTrial,
    stages: Vec<StageRow>,
}

/// Time from `at_ns` until the gate of the stream permits a frame, ns. The cycles begin at [`T0`].
fn wait_ns(at_ns: i64) -> i64 {
    match (at_ns - T0).rem_euclid(CYCLE) {
        phase_ns if phase_ns <= LAST => 0,
        phase_ns => CYCLE - phase_ns,
    }
}

fn rows(random: &mut Random, usual_ns: i64, is_loaded: bool) -> Rows {
    let (mut slots, mut echoes, mut stages) = (Vec::new(), Vec::new(), Vec::new());
    for seq in 0..SLOTS {
        let due_ns = T0 + seq as i64 * PERIOD;
        let jitter = |random: &mut Random, most: f64| (most * random.unit().powi(6)) as i64;
        let mut late_ns = 1_800 + (1_500.0 * random.unit()) as i64 + jitter(random, 20_000.0);
        let mut call_ns = 2_600 + (700.0 * random.unit()) as i64;
        if MISSED.contains(&seq) {
            // The send call begins just before the window closes for the frame.
            late_ns += (LAST - 4_000 - (due_ns + late_ns - T0).rem_euclid(CYCLE)).rem_euclid(CYCLE);
            call_ns += 9_000;
        }
        let begin_ns = due_ns + late_ns;
        let queued_ns = begin_ns + call_ns;
        let sent_ns = queued_ns + wait_ns(queued_ns) + 900 + jitter(random, 6_000.0);
        let load_ns = if is_loaded { (38_000.0 * random.unit() * random.unit()) as i64 } else { 0 };
        let stall_ns = if random.next().is_multiple_of(700) { (250_000.0 * random.unit()) as i64 } else { 0 };
        let kernel_ns = sent_ns + usual_ns + (3_000.0 * random.unit()) as i64 + load_ns + stall_ns;
        let thread_ns = kernel_ns + 6_500 + (2_500.0 * random.unit()) as i64 + jitter(random, 90_000.0);
        let legs = [thread_ns - begin_ns, 4_000, usual_ns + 9_000 + jitter(random, 30_000.0)];
        let (mut row, mut echo) = slot(seq, PERIOD, late_ns, legs);
        row.send_end_ns = queued_ns + 500;
        row.kernel_rx_ns = row.receive_ns - 7_000 - jitter(random, 1_500.0);
        row.warm_up = seq < WARM_UP;
        echo.kernel_rx_ns = kernel_ns;
        stages.push(StageRow { queued_ns, sent_ns, ..StageRow::without_stamps(seq) });
        slots.push(row);
        echoes.push(echo);
    }
    Rows { trial: GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }, stages }
}

/// The gates of the ping, as a study asks for them.
fn gates() -> GatesSpec {
    let class = |name: &str, priorities: &[u8]| GateClass {
        name: name.into(),
        priorities: priorities.iter().copied().collect(),
        queues: 1,
        preemptible: false,
    };
    let rest: Vec<u8> = (0..16).filter(|p| ![5, 7].contains(p)).collect();
    GatesSpec {
        by: GatesBy::Software,
        classes: vec![class("stream", &[7]), class("ptp", &[5]), class("bulk", &rest)],
        entries: entries(),
        cycle: None,
        base: Nanos(0),
        replace: false,
    }
}

fn entries() -> Vec<GateEntry> {
    [(0b011, 101), (0b010, 103), (0b110, 109), (0b110, 190)]
        .map(|(open, us)| GateEntry { open, time: Nanos(us * 1_000) })
        .to_vec()
}

/// The same gates, as the kernel reports them.
fn fact() -> GatesFact {
    GatesFact {
        class_of_priority: gates().class_of_priority().to_vec(),
        entries: entries(),
        cycle_ns: CYCLE,
        base_ns: 1_760_000_000_000_000_000 + T0,
        clock: 11,
        ahead_ns: 1_760_000_000_000_000_000,
        within_ns: 240,
        overhead_bytes: 24,
        ..GatesFact::default()
    }
}

/// The history of a clock, eight values per second. In a disturbed trial, the offset leaves its bound for 0.9 s, and later the service
/// does not answer for 0.6 s.
pub fn history(random: &mut Random, is_disturbed: bool) -> ClockHistory {
    let to_ns = T0 + SLOTS as i64 * PERIOD;
    let mut offsets = Vec::new();
    let mut drift = 0.0;
    for at_ns in (T0..to_ns).step_by(125_000_000) {
        let after_s = (at_ns - T0) as f64 / 1e9;
        drift = 0.8 * drift + 160.0 * (random.unit() - 0.5);
        let swing =
            if is_disturbed && (2.0..2.9).contains(&after_s) { 2_600.0 * ((after_s - 2.0) * 3.5).sin() } else { 0.0 };
        if !(is_disturbed && (4.2..4.8).contains(&after_s)) {
            offsets.push(ClockOffsetFromMaster { at_ns, offset_ns: (drift + swing) as i64, path_delay_ns: Some(640) });
        }
    }
    let silence = ServiceSilence {
        from_ns: T0 + 4_125_000_000,
        to_ns: T0 + 4_812_000_000,
        why: "no answer within 500 ms".into(),
    };
    let master = ClockMaster {
        grandmaster: "001b21.fffe.8a3c10".into(),
        steps_removed: Some(1),
        utc_offset_s: Some(37),
        is_tai: Some(true),
    };
    ClockHistory {
        host: "bench-1".into(),
        service: "ptp4l at /var/run/ptp4l, domain 0".into(),
        within: Nanos(1_000),
        from_ns: T0,
        to_ns,
        offsets,
        ports: vec![PortChange { at_ns: T0, port: 1, state: PortState::Slave }],
        masters: vec![MasterChange { at_ns: T0, master }],
        silences: if is_disturbed { vec![silence] } else { Vec::new() },
        clock: "6f6c2d3e".into(),
        ..ClockHistory::default()
    }
}

/// Writes the record.
pub fn write(dir: &Path) -> Record {
    let mut random = Random(20_261_128);
    let conditions = OVER.iter().flat_map(|over| LOAD.iter().map(move |load| (over, *load)));
    let (given, stages): (Vec<Given>, Vec<Vec<StageRow>>) = conditions
        .clone()
        .map(|((_, usual_ns), load)| {
            let Rows { trial, stages } = rows(&mut random, *usual_ns, load != "none");
            (Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![trial] }, stages)
        })
        .unzip();
    let levels: Vec<(String, String)> =
        conditions.map(|((over, _), load)| (over.to_string(), load.to_owned())).collect();
    let plan = |manifest: &mut Manifest| {
        manifest.plan.study = "gated".into();
        manifest.plan.question = "Which bridge keeps the latency of a gated stream low, without and with load?".into();
        manifest.plan.factors = vec!["over".into(), "load".into()];
        manifest.plan.report.x = Some("over".into());
        let by = TimeService::Ptp4l { socket: "/var/run/ptp4l".into(), domain: 0 };
        manifest.plan.clock =
            Some(ClockSpec { by, within: Nanos(1_000), held: Nanos::from_secs(5), timeout: Nanos::from_secs(60) });
        for (condition, (over, load)) in manifest.plan.conditions.iter_mut().zip(&levels) {
            condition.levels.extend([("over".to_owned(), over.clone()), ("load".to_owned(), load.clone())]);
            condition.spec.ping.gates = Some(gates());
            condition.spec.driver.options.insert("priority".into(), "7".into());
        }
        for trial in &mut manifest.trials {
            trial.path.as_mut().unwrap().ends[0].gates = Some(fact());
            for end in trial.ends.values_mut() {
                end.clock = "6f6c2d3e".into();
            }
            trial.ends.get_mut("ping").unwrap().stages =
                Some(StageFact { messages: SLOTS, width_ns: Some(120), ..StageFact::default() });
        }
    };
    let record = super::write(dir, &given, plan);
    for (trial, rows) in stages.iter().enumerate() {
        let path = RecordWriter::stages_path(record.dir(), trial, "ping");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_stages(&path, rows).unwrap();
        let folder = record.dir().join("clocks");
        std::fs::create_dir_all(&folder).unwrap();
        let text = serde_json::to_vec(&history(&mut random, trial == 1)).unwrap();
        std::fs::write(folder.join(format!("{trial}-bench-1.json")), text).unwrap();
    }
    Record::open(dir).unwrap()
}
