//! Makes synthetic records: a manifest and rows of samples, written by the record's own writer.

pub mod gated;

use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::*;
use tailbound_record::*;

/// A condition of a synthetic record of a test, with its trials.
pub struct Given {
    pub driver: &'static str,
    pub payload: u64,
    pub rate: Rate,
    pub trials: Vec<GivenTrial>,
}

/// Rows of samples of one trial of a synthetic record.
#[derive(Clone)]
pub struct GivenTrial {
    pub status: TrialStatus,
    pub slots: Vec<SenderRow>,
    pub echoes: Vec<EchoRow>,
    pub finding: Option<String>,
}

pub const T0: i64 = 1_000_000_000;

/// A small random number generator with a fixed seed, so that every run writes the same record.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// Draws a uniform random number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Makes an answered slot: the message is due at `seq * period`, is sent `late` ns later, and the three legs follow
/// each other.
pub fn slot(seq: u64, period: i64, late: i64, legs: [i64; 3]) -> (SenderRow, EchoRow) {
    let intended = T0 + seq as i64 * period;
    let begin = intended + late;
    let echo_in = begin + legs[0];
    let row = SenderRow {
        seq,
        intended_ns: intended,
        wake_ns: begin - 700,
        send_begin_ns: begin,
        send_end_ns: begin + 4_000,
        receive_ns: echo_in + legs[1] + legs[2],
        kernel_rx_ns: NO_TIME,
        receive_thread: None,
        outcome: Outcome::Answered,
        duplicates: 0,
        out_of_order: false,
        warm_up: false,
    };
    let end = echo_in + legs[1];
    let echo = EchoRow {
        seq,
        in_ns: echo_in,
        begin_ns: echo_in + legs[1] / 2,
        end_ns: end,
        kernel_rx_ns: NO_TIME,
        in_thread: None,
    };
    (row, echo)
}

/// Turns the row of an answered slot into the row of a lost slot.
pub fn lose(row: &mut SenderRow) {
    row.outcome = Outcome::Lost;
    row.receive_ns = NO_TIME;
}

/// Turns the row of a slot into the row of a slot that was not sent.
pub fn skip(row: &mut SenderRow) {
    row.outcome = Outcome::NotSent;
    row.wake_ns = NO_TIME;
    row.send_begin_ns = NO_TIME;
    row.send_end_ns = NO_TIME;
    row.receive_ns = NO_TIME;
}

pub fn end(cpu: u32) -> EndSpec {
    let scheduling = Scheduling::of_all(Some(Policy::Fifo { priority: 80 }), Some(CpuList::one(cpu)));
    EndSpec { place: PlaceSpec::Netns, scheduling, gates: None, shaping: None, police: None }
}

fn spec(given: &Given) -> TrialSpec {
    TrialSpec {
        measure: Measure::PingPong(PingPong {
            length: Length::Slots(given.trials.iter().map(|t| t.slots.len() as u64).min().unwrap_or(0)),
            warm_up_slots: 0,
            timeout: Nanos::from_secs(1),
            on_overrun: OnOverrun::CatchUp,
            receive: ReceiveMode::Block,
            hand_off: HandOff::None,
        }),
        payload: ByteSize(given.payload),
        stream: None,
        rate: given.rate,
        driver: DriverSpec { name: given.driver.into(), ..DriverSpec::default() },
        qos: BTreeMap::from([("reliability".to_owned(), "reliable".to_owned())]),
        domain: 77,
        pong_driver: None,
        ping: end(0),
        pong: end(1),
        path: PathSpec::Veth { mtu: None, delay: None },
        vlan: None,
        loads: Vec::new(),
        host: Vec::new(),
        collect: Collect::After,
        attribution: Attribution::Auto,
        security: None,
        middleware: Default::default(),
        discovery: Default::default(),
        arrangement: None,
        quiet: Quiet::Auto,
    }
}

fn end_record() -> EndRecord {
    EndRecord {
        host: "bench-1".into(),
        qos: BTreeMap::from([("reliability".into(), "reliable".into())]),
        serialised_bytes: Some(80),
        matched_after_ns: Some(41_000_000),
        memory_locked: true,
        timer_slack_ns: Some(1),
        ..EndRecord::default()
    }
}

pub fn path_facts() -> PathFacts {
    let end = |end: &str, address: &str| PathEnd {
        end: end.into(),
        interface: format!("tb-{end}"),
        address: address.into(),
        mtu: 1500,
        up: true,
        speed_mbit_s: Some(10_000),
        tx_queues: Some(1),
        rx_queues: Some(1),
        offloads: vec!["tx-checksum".into()],
        card: Vec::new(),
        attached: None,
        vlan: None,
        gates: None,
        shaping: None,
        launch: None,
    };
    PathFacts {
        ends: vec![end("ping", "10.77.0.1"), end("pong", "10.77.0.2")],
        max_datagram_ping_to_pong: 65_507,
        max_datagram_pong_to_ping: 65_507,
        fragments_pass: true,
        multicast_passes: Some(true),
        probe_round_trip_ns: Some(31_000),
        cut_off: Vec::new(),
        remarks: Vec::new(),
        discovery: None,
        security: None,
    }
}

/// Makes a path proof over veth: slightly more than two packets per message, and one packet per second without
/// messages.
pub fn path_proof(messages: u64) -> PathProof {
    let counted = |ns: i64, packets: i64, name: &str| {
        let sent = Traffic { tx_packets: packets, tx_bytes: 120 * packets, ..Traffic::default() };
        let interfaces = [("lo".to_owned(), Traffic::default()), (name.to_owned(), sent)].into();
        Counted { ns, interfaces, ip: BTreeMap::from([("IpExt.OutMcastPkts".to_owned(), 1)]), ..Counted::default() }
    };
    let space = |end: &str| {
        let name = format!("tb-{end}");
        Space {
            ends: vec![end.into()],
            path: vec![name.clone()],
            made: true,
            quiet: Some(counted(1_000_000_000, 1, &name)),
            data: counted(2_000_000_000, messages as i64 + 2, &name),
        }
    };
    PathProof {
        asked: Some(Way::Packets),
        found: Some(Way::Packets),
        sent: messages,
        answered: messages,
        spaces: vec![space("ping"), space("pong")],
        ..PathProof::default()
    }
}

fn thread(tid: i32, name: &str, role: &str, policy: Policy, cpu: u32) -> ThreadRow {
    ThreadRow {
        asked: RoleScheduling::default(),
        tid,
        name: name.into(),
        role: role.into(),
        policy,
        reset_on_fork: false,
        cpus: CpuList::one(cpu),
        last_cpu: cpu,
        cpu_ns: 1_000_000,
        run_delay_ns: 20_000,
        runnable: false,
        waits_since_ns: None,
        later: None,
        voluntary_switches: 10,
        involuntary_switches: 1,
        migrations: Some(0),
        minor_faults: 3,
        major_faults: 0,
        born_in: None,
        birth: Some(0),
        creator: None,
        timer_slack_ns: Some(1),
    }
}

pub fn thread_table(end: &str, cpu: u32) -> ThreadTable {
    let before = vec![
        thread(101, "tb-main", "main", Policy::Fifo { priority: 80 }, cpu),
        thread(102, "recv", "receive", Policy::Other { nice: 0 }, cpu),
    ];
    let mut after = before.clone();
    for row in &mut after {
        row.cpu_ns += 2_345_000_000;
        row.run_delay_ns += 345_000_000;
        row.voluntary_switches += 5_000;
        row.involuntary_switches += 17;
    }
    ThreadTable { ends: vec![end.into()], pid: 4_000 + cpu as i32, before, after, ..ThreadTable::default() }
}

pub fn host_facts() -> HostFacts {
    let fact = |key: &str, value: FactValue| Fact { key: key.into(), value, source: format!("/proc/{key}") };
    HostFacts {
        host: "bench-1".into(),
        boot_id: "6f6c2d3e".into(),
        facts: vec![
            fact("cpu.0.governor", FactValue::Unknown("no such file".into())),
            fact("kernel.preemption", FactValue::Text("PREEMPT_DYNAMIC".into())),
            fact("kernel.release", FactValue::Text("6.18.0 <b>&".into())),
            fact("sched.autogroup", FactValue::Flag(true)),
            fact("sched.rt_runtime_us", FactValue::Number(950_000)),
        ],
    }
}

/// Levels of a condition, with the names that a study would use.
fn levels(given: &Given) -> BTreeMap<String, String> {
    let text = |k: &str, v: String| (k.to_owned(), v);
    BTreeMap::from([
        text("driver", given.driver.into()),
        text("payload", ByteSize(given.payload).to_string()),
        text("rate", given.rate.to_string()),
        text("path", "veth".into()),
    ])
}

/// Makes the manifest of a record with these conditions, which ran one after the other.
pub fn manifest(conditions: &[Given]) -> Manifest {
    let mut plan = Plan {
        study: "payload".into(),
        question: "What does a larger payload cost?".into(),
        seed: 42,
        factors: vec!["driver".into(), "payload".into()],
        conditions: Vec::new(),
        trials: Vec::new(),
        report: ReportSpec::default(),
        source: "study: payload\n".into(),
        clock: None,
        settings: Vec::new(),
    };
    let mut trials = Vec::new();
    for (id, given) in conditions.iter().enumerate() {
        plan.conditions.push(Condition { id, levels: levels(given), spec: spec(given), not_possible: None });
        for (repeat, trial) in given.trials.iter().enumerate() {
            let number = trials.len();
            plan.trials.push(Trial { id: number, condition: id, repeat, block: 0 });
            trials.push(TrialRecord {
                id: number,
                status: trial.status,
                source: Source::Samples,
                began_unix_ns: Some(1_760_000_000_000_000_000),
                t0_ns: Some(T0),
                ends: BTreeMap::from([("ping".into(), end_record()), ("pong".into(), end_record())]),
                path: Some(path_facts()),
                proof: Some(path_proof(trial.slots.len() as u64)),
                finding: trial.finding.clone(),
                summary: None,
                controller: None,
                nodes: Vec::new(),
                ports: Vec::new(),
                neighbour_loads: Vec::new(),
                guests: Vec::new(),
                stream: None,
            });
        }
    }
    let any = |wanted: &[TrialStatus]| trials.iter().any(|t| wanted.contains(&t.status));
    let status = if any(&[TrialStatus::Running, TrialStatus::Pending]) {
        Status::Incomplete
    } else if any(&[TrialStatus::Invalid]) {
        Status::Invalid
    } else {
        Status::Valid
    };
    Manifest {
        format: Format { major: FORMAT_MAJOR, minor: FORMAT_MINOR },
        readable_by: READABLE_BY.into(),
        tailbound: "0.1.0".into(),
        run_id: "k3v9".into(),
        began_unix_ns: 1_760_000_000_000_000_000,
        command: vec!["tailbound".into(), "run".into(), "payload.yaml".into()],
        status,
        functional_only: None,
        plan,
        hosts: BTreeMap::new(),
        drivers: BTreeMap::from([("udp".into(), serde_json::json!({"name": "udp", "version": "0.1.0"}))]),
        trials,
        host_settings: Vec::new(),
        imported: Vec::new(),
        until: None,
        repeated: None,
        warnings: Vec::new(),
    }
}

/// Writes a synthetic record with its samples, facts and thread tables.
pub fn write(dir: &Path, conditions: &[Given], change: impl FnOnce(&mut Manifest)) -> Record {
    let mut made = manifest(conditions);
    change(&mut made);
    let mut writer = RecordWriter::create(dir, made).unwrap();
    writer.host(&host_facts()).unwrap();
    for (number, trial) in conditions.iter().flat_map(|c| &c.trials).enumerate() {
        if trial.status != TrialStatus::Pending {
            let path = |end| RecordWriter::segment_path(dir, number, end, 0);
            write_slots(&path("ping"), number, trial.slots.iter().copied()).unwrap();
            write_echoes(&path("pong"), number, &trial.echoes).unwrap();
            writer.threads(number, "ping", &thread_table("ping", 0)).unwrap();
            writer.threads(number, "pong", &thread_table("pong", 1)).unwrap();
        }
    }
    writer.save().unwrap();
    Record::open(dir).unwrap()
}
