//! Tests of the causes of incidents: the report must name injected faults with their thread and their duration.

use crate::support::host::{is_root, stands_still};
use crate::support::processes::{measuring, wait_for_measuring};
use crate::support::ssh::TwoHosts;
use crate::support::{Bench, may_be_real_time, succeeded};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::time::Duration;
use tailbound_host::{monotonic_ns, scheduling};
use tailbound_model::*;

/// A fault that a test injects into a run to delay messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// Injected fault: a thread `injected-hog` with policy fifo 90 kept the CPU with this number busy.
    Hog { cpu: u32 },
    /// Injected fault: the process of this end was stopped.
    Stop { end: &'static str },
}

#[derive(Debug, Clone, Copy)]
pub struct Injected {
    pub fault: Fault,
    /// How long the fault was meant to last, ns.
    pub planned_ns: i64,
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// How long an injected hog keeps its CPU, and how long a process is stopped, ns.
const HOG_NS: i64 = 5_000_000;
const STOP_NS: i64 = 20_000_000;

impl Injected {
    /// Whether something else took more than a fifth of its time from the hog: nothing in the machine comes before it, so that
    /// the CPU stood still. The incident then has two causes, and it is not known how long each of them lasted.
    fn is_disturbed(&self) -> bool {
        matches!(self.fault, Fault::Hog { .. }) && (self.end_ns - self.begin_ns) * 5 > self.planned_ns * 6
    }
}

/// Generates random numbers without a library, from a fixed seed that is printed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Injects faults into a run until it ends, each fault into the condition that is being measured. `measuring` finds the
/// process that measures an end.
fn inject(run: &mut Child, seed: u64, measuring: &dyn Fn(i32, &str) -> Option<i32>) -> Vec<Injected> {
    let mut draw = Draw(seed);
    let mut faults = Vec::new();
    let hog = RoleScheduling { policy: Some(Policy::Fifo { priority: 90 }), cpus: None };
    scheduling::apply(0, &hog).unwrap();
    nix::sys::prctl::set_name(c"injected-hog").unwrap();
    while run.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(90 + draw.below(30)));
        let cpu = draw.below(2) as u32;
        let end = ["ping", "pong"][draw.below(2) as usize];
        if draw.below(4) == 0 {
            if let Some(pid) = measuring(run.id() as i32, end) {
                let begin_ns = monotonic_ns();
                // SAFETY: a process of a run that this test started.
                unsafe { libc::kill(pid, libc::SIGSTOP) };
                std::thread::sleep(Duration::from_nanos(STOP_NS as u64));
                // SAFETY: as above.
                unsafe { libc::kill(pid, libc::SIGCONT) };
                let fault = Fault::Stop { end };
                faults.push(Injected { fault, planned_ns: STOP_NS, begin_ns, end_ns: monotonic_ns() });
            }
        } else {
            scheduling::set_affinity(0, &CpuList::one(cpu)).unwrap();
            let begin_ns = monotonic_ns();
            while monotonic_ns() < begin_ns + HOG_NS {}
            let fault = Fault::Hog { cpu };
            faults.push(Injected { fault, planned_ns: HOG_NS, begin_ns, end_ns: monotonic_ns() });
        }
    }
    faults
}

fn overlap(fault: &Injected, begin: i64, end: i64) -> i64 {
    fault.end_ns.min(end) - fault.begin_ns.max(begin)
}

/// Whether an entry of a ledger names the injected fault.
fn names(entry: &Value, fault: Fault, hog: &str) -> bool {
    match fault {
        Fault::Hog { cpu } => {
            let end = ["ping", "pong"][cpu as usize];
            let of_end = (&entry["cpu"], &entry["end"]) == (&cpu.into(), &end.into());
            entry["cause"] == "waited_for_cpu" && of_end && entry["by"]["name"] == hog
        }
        Fault::Stop { end } => entry["cause"] == "stopped" && entry["end"] == end,
    }
}

/// Whether the ledger of an incident names the injected fault: at least half of the excess, 70 to 130 % of the fault's
/// own duration, and no other cause with more than a fifth.
fn named_right(incident: &Value, fault: &Injected, hog: &str) -> bool {
    let excess_ns = incident["excess_ns"].as_i64().unwrap();
    let Some(entries) = incident["ledger"].as_array() else { return false };
    let sum = |wanted: bool| -> i64 {
        let of = entries.iter().filter(|e| names(e, fault.fault, hog) == wanted);
        of.map(|e| e["ns_low"].as_i64().unwrap()).sum()
    };
    let harm = overlap(fault, incident["begin_ns"].as_i64().unwrap(), incident["end_ns"].as_i64().unwrap());
    let (named, others) = (sum(true), sum(false));
    named * 2 >= excess_ns && (harm * 7..=harm * 13).contains(&(named * 10)) && others * 5 <= excess_ns
}

/// Number of incidents that were judged, and number of those whose ledger names the injected fault.
pub struct Judged {
    pub incidents: usize,
    right: usize,
    /// Number of incidents that were not judged, because the machine disturbed the injected thread.
    disturbed: usize,
    /// Name that a report must give to the injected thread.
    hog: &'static str,
}

impl Judged {
    pub fn new(hog: &'static str) -> Judged {
        Judged { incidents: 0, right: 0, disturbed: 0, hog }
    }
}

/// Runs a study with injected faults, and judges the ledgers in its report. Only incidents of at least a millisecond that
/// exactly one fault caused are judged.
fn judge_injected_faults(seed: u64, judged: &mut Judged) {
    let bench = Bench::new();
    // Each payload is a condition with incidents of its own.
    let payloads: Vec<String> = (0..32).map(|n| format!("{} B", 64 + n)).collect();
    let study = bench.study(&format!(
        "measure: {{ ping-pong: {{ duration: 1500 ms, warm_up: 10, timeout: 1 s }} }}\nrate: 200 Hz\ndriver: cyclonedds\n\
         path: loopback\nattribution: auto\nends: {{ ping: {{ cpus: \"0\" }}, pong: {{ cpus: \"1\" }} }}\nfactors: {{ payload: [{}] }}\n",
        payloads.join(", ")
    ));
    let mut run = bench.start(&study);
    println!("seed {seed}");
    let faults = std::thread::scope(|scope| scope.spawn(|| inject(&mut run, seed, &measuring)).join().unwrap());
    assert!(run.wait().unwrap().success());
    if judge(&bench.report(), &faults, judged) > 0 {
        println!("{:?}", bench.dir.path());
        std::mem::forget(bench);
    }
}

/// Judges the ledgers of a report. Returns the number of incidents whose ledger does not name the fault that caused them.
pub fn judge(report: &Value, faults: &[Injected], judged: &mut Judged) -> usize {
    let mut wrong = 0;
    for condition in report["conditions"].as_array().unwrap() {
        for incident in condition["incidents"].as_array().into_iter().flatten() {
            let (begin, end) = (incident["begin_ns"].as_i64().unwrap(), incident["end_ns"].as_i64().unwrap());
            let excess_ns = incident["excess_ns"].as_i64().unwrap();
            let hit: Vec<&Injected> = faults.iter().filter(|f| overlap(f, begin, end) > 0).collect();
            let [fault] = hit.as_slice() else { continue };
            if overlap(fault, begin, end) * 10 < excess_ns * 8 || excess_ns < 1_000_000 {
                continue;
            }
            if fault.is_disturbed() {
                judged.disturbed += 1;
                continue;
            }
            judged.incidents += 1;
            if named_right(incident, fault, judged.hog) {
                judged.right += 1;
            } else {
                wrong += 1;
                println!("{:?} taken for: {}\n{}", fault, incident["text"], incident["ledger"]);
            }
        }
    }
    println!(
        "{} of {} incidents named right, {} not judged, {} faults injected",
        judged.right,
        judged.incidents,
        judged.disturbed,
        faults.len()
    );
    wrong
}

#[test]
fn injected_faults_are_named() {
    if !may_be_real_time() {
        return;
    }
    // On a busy machine more than one delay is in many incidents, and one run does not have enough of them to judge.
    let mut judged = Judged::new("injected-hog");
    for seed in 42..46 {
        judge_injected_faults(seed, &mut judged);
        if judged.incidents >= 200 {
            break;
        }
    }
    let is_right = judged.incidents >= 200 && judged.right * 100 >= judged.incidents * 95;
    assert!(is_right || stands_still(), "{} of {} (at least 200 wanted)", judged.right, judged.incidents);
}

/// Test: faults at both ends are named with the right end, although the pong is on another host, whose clock differs from
/// the clock of the ping by 1,000 s. The clock of the ping gives the times of the faults.
#[test]
fn injected_faults_are_named_across_two_clocks() {
    if !may_be_real_time() {
        return;
    }
    let hosts = TwoHosts::new(1_000);
    let payloads: Vec<String> = (0..10).map(|n| format!("{} B", 64 + n)).collect();
    let program = env!("CARGO_BIN_EXE_tailbound");
    let study = format!(
        "study: two-hosts\nquestion: q\nmeasure: {{ ping-pong: {{ duration: 1500 ms, warm_up: 10, timeout: 1 s }} }}\n\
         rate: 200 Hz\ndriver: udp\nattribution: auto\n\
         ends: {{ ping: {{ cpus: \"0\" }}, pong: {{ place: {{ ssh: {{ host: guest-1, program: {program} }} }}, cpus: \"1\" }} }}\n\
         path: {{ existing: {{ ping: {{ interface: x0 }}, pong: {{ interface: x0 }} }} }}\n\
         factors: {{ payload: [{}] }}\n",
        payloads.join(", ")
    );
    let mut command = hosts.run(&study);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut run = command.spawn().unwrap();
    let there = |end: &str| {
        let name = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        hosts.processes_there().into_iter().map(|(pid, _)| pid).find(|pid| name(pid).trim() == format!("tb-{end}"))
    };
    let of_either = |controller: i32, end: &str| measuring(controller, end).or_else(|| there(end));
    let faults = std::thread::scope(|scope| {
        let of_either: &(dyn Fn(i32, &str) -> Option<i32> + Sync) = &of_either;
        scope.spawn(|| inject(&mut run, 7, &|controller, end| of_either(controller, end))).join().unwrap()
    });
    assert!(run.wait().unwrap().success());
    let report = hosts.bench.report();
    let ends = &hosts.bench.manifest()["trials"][0]["ends"];
    assert_ne!(ends["ping"]["clock"], ends["pong"]["clock"]);
    let mut judged = Judged::new("injected-hog");
    let wrong = judge(&report, &faults, &mut judged);
    let at_pong = |incident: &&Value| incident["ledger"][0]["end"] == "pong";
    let all = || {
        report["conditions"].as_array().unwrap().iter().flat_map(|c| c["incidents"].as_array().into_iter().flatten())
    };
    for incident in all().filter(|i| i["ledger"].is_array()) {
        let width_ns = incident["other_clock"]["width_ns"].as_i64().unwrap_or_else(|| panic!("{}", incident["text"]));
        // Limit: the bounds are as wide as the round trip of the fastest message.
        assert!((1..1_000_000).contains(&width_ns), "{width_ns}");
        let low: i64 = incident["ledger"].as_array().unwrap().iter().map(|e| e["ns_low"].as_i64().unwrap()).sum();
        assert!(low <= incident["excess_ns"].as_i64().unwrap() * 105 / 100 + 20_000, "{}", incident["text"]);
    }
    assert!(all().filter(at_pong).count() >= 10, "few incidents of the pong");
    let is_right = judged.incidents >= 40 && judged.right * 100 >= judged.incidents * 95;
    assert!(is_right || stands_still(), "{wrong} of {} wrong", judged.incidents);
}

/// Test: a run ends at a message that a stopped pong delays, and keeps the events around it. Nobody knows in which trial
/// the pong is stopped.
#[test]
fn a_run_ends_at_the_message_of_a_stall() {
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { slots: 100, warm_up: 10, timeout: 2 s } }\nrate: 100 Hz\ndriver: udp\nplace: process\n\
         path: loopback\nattribution: auto\n",
    );
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    command.args(["--until", "round_trip > 200 ms", "--at-most", "5 min"]);
    let mut run = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut draw = Draw(u64::from(std::process::id()));
    let (begin_ns, end_ns) = loop {
        std::thread::sleep(Duration::from_millis(1_000 + draw.below(2_000)));
        // Between two trials, no process measures. A stop at the end of a trial may delay no message.
        let Some(pid) = measuring(run.id() as i32, "pong") else { continue };
        let begin_ns = monotonic_ns();
        // SAFETY: a process of a run that this test started.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        std::thread::sleep(Duration::from_millis(400));
        // SAFETY: as above.
        unsafe { libc::kill(pid, libc::SIGCONT) };
        let end_ns = monotonic_ns();
        std::thread::sleep(Duration::from_millis(2_500));
        if run.try_wait().unwrap().is_some() {
            break (begin_ns, end_ns);
        }
    };
    assert_eq!(run.wait().unwrap().code(), Some(0));
    let report = bench.report();
    let found = &report["run"]["until"]["found"];
    let (due, received) = (found["due_ns"].as_i64().unwrap(), found["received_ns"].as_i64().unwrap());
    assert!(due < end_ns && begin_ns < received, "the message lies in the stop: {found}");
    assert!(found["value_ns"].as_i64().unwrap() > 200_000_000, "{found}");
    let last = report["trials"].as_array().unwrap().len() - 1;
    assert_eq!(found["trial"], last, "nothing runs after the trial of the message");
    let incidents = report["conditions"][0]["incidents"].as_array().unwrap();
    let holds = |i: &&Value| i["begin_ns"].as_i64().unwrap() <= due && due <= i["end_ns"].as_i64().unwrap();
    let incident = incidents.iter().find(|i| i["trial"] == last && holds(i)).expect("the incident of the message");
    let stopped = incident["ledger"].as_array().into_iter().flatten().filter(|e| e["cause"] == "stopped");
    assert!(stopped.map(|e| e["ns_low"].as_i64().unwrap()).sum::<i64>() > 200_000_000, "{incident}");
    let pong = std::fs::read_to_string(bench.path(&format!("record/switches/{last}-pong.json"))).unwrap();
    let pong: Switches = serde_json::from_str(&pong).unwrap();
    assert!(pong.windows.iter().any(|(from, to)| *from <= due && received <= *to), "{:?}", pong.windows);
}

/// Test: agents in another PID namespace record wake-ups, with the ids that their threads have there. The injected thread
/// is outside of the PID namespace, so that it has no id there.
#[test]
fn agents_in_another_pid_namespace_record_wake_ups() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let payloads: Vec<String> = (0..8).map(|n| format!("{} B", 64 + n)).collect();
    let study = bench.study(&format!(
        "measure: {{ ping-pong: {{ duration: 1500 ms, warm_up: 10, timeout: 1 s, receive: block }} }}\nrate: 200 Hz\n\
         driver: udp\npath: loopback\nplace: process\nattribution: machine\n\
         ends: {{ ping: {{ cpus: \"0\" }}, pong: {{ cpus: \"1\" }} }}\nfactors: {{ payload: [{}] }}\n",
        payloads.join(", ")
    ));
    let mut command = std::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_tailbound"), "run"]);
    command.current_dir(bench.dir.path()).arg(study).arg("--out").arg(bench.path("record"));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut run = command.spawn().unwrap();
    let faults = std::thread::scope(|scope| scope.spawn(|| inject(&mut run, 11, &measuring)).join().unwrap());
    assert!(run.wait().unwrap().success());
    let mut woken = 0;
    for file in std::fs::read_dir(bench.path("record/switches")).unwrap() {
        let path = file.unwrap().path();
        let seen: Switches = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let recorder = seen.recorder.as_ref().unwrap();
        if recorder.by != RecordedBy::Bpf {
            println!("skipped: BPF cannot be used: {:?}", recorder.instead);
            return;
        }
        let table = bench.path("record/threads").join(path.file_name().unwrap());
        let table: ThreadTable = serde_json::from_slice(&std::fs::read(table).unwrap()).unwrap();
        let is_own = |e: &&SwitchEvent| matches!(e.what, SwitchKind::Wake { thread, .. } if table.before.iter().any(|row| row.tid == thread));
        assert!(seen.wakes);
        woken += seen.events.iter().filter(is_own).count();
    }
    assert!(woken > 1_000, "{woken} wake-ups of threads of the ends");
    let mut judged = Judged::new("a thread without a visible id");
    let wrong = judge(&bench.report(), &faults, &mut judged);
    let is_right = judged.incidents >= 30 && judged.right * 100 >= judged.incidents * 95;
    assert!(is_right || stands_still(), "{wrong} of {} wrong", judged.incidents);
}

#[test]
fn the_cost_of_a_recording_is_checked_by_trials_without_it() {
    let bench = Bench::new();
    let study = "measure: { ping-pong: { slots: 200, warm_up: 10, receive: block } }\nrate: 1 kHz\ndriver: udp\n\
                 place: process\npath: loopback\nattribution: { level: threads, check: on }\nrepeat: 5\n\
                 report: { late_above: 1 ns }\n";
    let output = bench.run(study, &[]);
    succeeded(&output);
    let report = bench.report();
    let level = |trial: &Value| {
        let condition = trial["condition"].as_u64().unwrap() as usize;
        report["conditions"][condition]["levels"]["attribution"].as_str().unwrap().to_owned()
    };
    for trial in report["trials"].as_array().unwrap() {
        let recorded = bench.path(&format!("record/switches/{}-ping.json", trial["id"])).exists();
        assert_eq!(recorded, level(trial) == "threads", "{}", trial["id"]);
    }
    let rows = report["against"]["rows"].as_array().unwrap();
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    let overheads = row["overheads"].as_array().unwrap();
    assert!(overheads.iter().any(|o| o["statistic"] == "p50" && o["interval"].is_array()), "{row}");
    let out = String::from_utf8(output.stdout).unwrap();
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("Compared with trials without the recording: the p50 of the round trip is "), "{out}");
}

#[test]
fn switched_off_nothing_is_watched() {
    let bench = Bench::new();
    let study = "measure: { ping-pong: { slots: 200 } }\nrate: 1 kHz\ndriver: udp\npath: loopback\nattribution: off\n";
    succeeded(&bench.run(study, &[]));
    assert!(!bench.path("record/switches").exists());
    let condition = &bench.report()["conditions"][0];
    assert!(condition.get("causes").is_none() && condition["incident_totals"]["covered_ns"] == 0, "{condition}");
    let ledgers = condition["incidents"].as_array().into_iter().flatten().filter(|i| !i["ledger"].is_null());
    assert_eq!(ledgers.count(), 0);
}

/// Test: for a user without privileges, the context switches of the ends' own threads are recorded, although threads of
/// an end may have ended since they were listed.
#[test]
fn an_ordinary_user_records_the_threads_of_the_ends() {
    const NOBODY: u32 = 65_534;
    let bench = Bench::new();
    // Every message is late, so that every trial has recorded time spans.
    let study = bench.study(
        "measure: { ping-pong: { slots: 100, warm_up: 10, timeout: 1 s, receive: block } }\nrate: 500 Hz\ndriver: udp\n\
         path: loopback\nattribution: auto\nrepeat: 3\nreport: { late_above: 1 ns }\n",
    );
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    if is_root() {
        std::os::unix::fs::chown(bench.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.output() {
        // The folder of the program may be closed to other users.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            println!("skipped: the program cannot be started as another user");
            return;
        }
        output => succeeded(&output.unwrap()),
    }
    for file in std::fs::read_dir(bench.path("record/switches")).unwrap() {
        let seen: Switches = serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap();
        match seen.scope {
            SwitchScope::Nothing(why) if why.contains("os error 13") => {
                println!("skipped: kernel.perf_event_paranoid permits no perf events");
                return;
            }
            SwitchScope::OwnThreads | SwitchScope::Cpus(_) => assert!(!seen.events.is_empty()),
            scope => panic!("{scope:?}"),
        }
    }
}

/// Test: the pong is stopped for 3 s; then the messages of these 3 s are late, no message is missing, and the report
/// gives the reason.
#[test]
fn a_pong_that_is_stopped_makes_messages_late_and_loses_none() {
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { duration: 6 s, warm_up: 10, timeout: 10 s } }\nrate: 100 Hz\ndriver: cyclonedds\n\
         qos: { reliability: reliable, history: keep-all }\npath: veth\nplace: netns\nattribution: auto\n",
    );
    let mut run = bench.start(&study);
    wait_for_measuring(run.id() as i32, "pong");
    std::thread::sleep(Duration::from_millis(1500));
    let pong = measuring(run.id() as i32, "pong").expect("the pong measures");
    // SAFETY: a process of a run that this test started.
    unsafe { libc::kill(pong, libc::SIGSTOP) };
    let begin = std::time::Instant::now();
    std::thread::sleep(Duration::from_secs(3));
    // SAFETY: as above.
    unsafe { libc::kill(pong, libc::SIGCONT) };
    let stopped_ns = begin.elapsed().as_nanos() as i64;
    assert!(run.wait().unwrap().success());
    let printed = bench.stderr();
    let summary = printed.lines().find(|line| line.starts_with("trial 1/1: late messages took")).expect("a summary");
    assert!(summary.contains("% stopped by a signal or a debugger (pong end)"), "{printed}");
    let condition = &bench.report()["conditions"][0];
    assert_eq!(condition["counts"]["answered"], 600, "{}", condition["counts"]);
    let late = condition["from_intended"]["histogram"].as_array().unwrap().iter();
    let late: u64 = late.filter(|b| b[0].as_i64().unwrap() > 20_000_000).map(|b| b[2].as_u64().unwrap()).sum();
    assert!((290..=310).contains(&late), "{late} messages were late");
    // The messages were in the socket of the pong, and it took all of them when it continued. On a machine with other jobs, the
    // sender may be late meanwhile, or the pong slow.
    let held: Vec<&Value> = condition["hold_and_release"].as_array().into_iter().flatten().collect();
    let out = held.iter().find(|held| held["leg"] == "out").expect("the messages of the stop");
    assert!(out["messages"].as_u64().is_some_and(|messages| (150..=310).contains(&messages)), "{out}");
    // Limit: as for the latest message.
    let held_ns = out["longest_ns"].as_i64().unwrap();
    assert!((stopped_ns - 100_000_000..stopped_ns + 500_000_000).contains(&held_ns), "{out}");
    let longest = condition["from_intended"]["max_ns"].as_i64().unwrap();
    // Limit: the stop that this test made, and half a second for the messages that had to wait.
    assert!((stopped_ns - 100_000_000..stopped_ns + 500_000_000).contains(&longest), "{longest} of {stopped_ns}");
    // Half of the trial is one incident: this is no rare event.
    let incident = &condition["incidents"][0];
    assert!(incident["sustained"] == true && incident["ledger"][0]["cause"] == "stopped", "{incident}");
    assert!(incident["ledger"][0]["end"] == "pong", "{incident}");
    let named_ns = incident["ledger"][0]["ns_low"].as_i64().unwrap();
    assert!(named_ns * 10 > stopped_ns * 9 && named_ns < stopped_ns + 50_000_000, "{named_ns} of {stopped_ns}");
    // Without the stop, the tail is near what it is outside the stop again, although half of the messages were late.
    let without = &condition["without_cause"][0];
    assert!(without["cause"] == "stopped" && without["end"] == "pong", "{without}");
    let p99 = &without["quantiles"][0];
    assert!(p99["q"] == 0.99 && p99["value_ns"].as_i64().unwrap() > 2_500_000_000, "{without}");
    // Limit: as for the messages that had to wait.
    assert!(p99["without_ns"].as_i64().unwrap() < 500_000_000, "{without}");
}

/// Keeps a CPU busy with this policy for this time.
pub fn keep_busy(name: &std::ffi::CStr, policy: Policy, cpu: u32, time: Duration) {
    nix::sys::prctl::set_name(name).unwrap();
    scheduling::apply(0, &RoleScheduling { policy: Some(policy), cpus: Some(CpuList::one(cpu)) }).unwrap();
    let end_ns = monotonic_ns() + time.as_nanos() as i64;
    while monotonic_ns() < end_ns {}
}

/// Test: a real-time thread below the pong keeps its CPU busy, so that the fair server gives the CPU to a time-sharing
/// thread, which displaces the pong too; the report names the server and the thread.
#[test]
fn a_real_time_pong_that_the_fair_server_displaces_is_explained() {
    let release = nix::sys::utsname::uname().unwrap().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    if !may_be_real_time() || (numbers.next(), numbers.next()) < (Some(6), Some(12)) {
        println!("skipped: needs real-time policies and Linux 6.12");
        return;
    }
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { duration: 5 s, warm_up: 10, timeout: 1 s, receive: block } }\nrate: 200 Hz\ndriver: udp\n\
         path: loopback\nattribution: on\nends: { ping: { cpus: \"0\" }, pong: { cpus: \"1\" } }\n\
         scheduling: { policy: fifo, priority: 50 }\nhost: { real_time_throttling: off }\n",
    );
    let mut run = bench.start(&study);
    wait_for_measuring(run.id() as i32, "pong");
    std::thread::scope(|scope| {
        scope.spawn(|| keep_busy(c"fair-hog", Policy::Other { nice: 0 }, 1, Duration::from_secs(3)));
        scope.spawn(|| keep_busy(c"rt-hog", Policy::Fifo { priority: 10 }, 1, Duration::from_secs(3)));
    });
    assert!(run.wait().unwrap().success());
    let report = bench.report();
    let causes = report["conditions"][0]["causes"].as_array().cloned().unwrap_or_default();
    let served: Vec<&Value> = causes.iter().filter(|c| c["cause"] == "fair_server").collect();
    // Which time-sharing threads the server chooses is not decided here; Tailbound has some, too.
    let real_time = |c: &&&Value| c["by"]["policy"].as_str().is_some_and(|policy| policy.starts_with("fifo"));
    assert!(served.iter().all(|c| c["end"] == "pong") && served.iter().find(real_time).is_none(), "{causes:#?}");
    let ns: i64 = served.iter().map(|c| c["ns"].as_i64().unwrap()).sum();
    // Limit: the server gives at most 50 ms of each second, and a little more by its tick.
    assert!((10_000_000..=200_000_000).contains(&ns), "{ns} ns in {causes:#?}");
}

/// Test: the pong has the policy deadline for a time, with less run time in each period than its messages need.
#[test]
fn a_pong_without_run_time_of_its_period_is_explained() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { duration: 4 s, warm_up: 100, timeout: 1 s, receive: block } }\nrate: 500 Hz\ndriver: udp\n\
         path: loopback\nattribution: machine\nends: { ping: { cpus: \"0\" }, pong: { cpus: any } }\n",
    );
    let mut run = bench.start(&study);
    wait_for_measuring(run.id() as i32, "pong");
    let deadline = Policy::Deadline { runtime_ns: 20_000, deadline_ns: 100_000_000, period_ns: 100_000_000 };
    let mut spans = Vec::new();
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(700));
        let pong = measuring(run.id() as i32, "pong").expect("the pong measures");
        let tasks = std::fs::read_dir(format!("/proc/{pong}/task")).unwrap();
        let tids: Vec<i32> = tasks.map(|task| task.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
        let begin_ns = monotonic_ns();
        tids.iter().for_each(|tid| scheduling::set_policy(*tid, &deadline, false).unwrap());
        std::thread::sleep(Duration::from_millis(250));
        tids.iter().for_each(|tid| scheduling::set_policy(*tid, &Policy::Other { nice: 0 }, false).unwrap());
        spans.push((begin_ns, monotonic_ns()));
    }
    assert!(run.wait().unwrap().success());
    if !bench.is_recorded_by_bpf("pong") {
        return;
    }
    let report = bench.report();
    let incidents = report["conditions"][0]["incidents"].as_array().unwrap();
    for (begin, end) in spans {
        let overlaps = |i: &&Value| i["begin_ns"].as_i64().unwrap() < end && begin < i["end_ns"].as_i64().unwrap();
        let within: Vec<&Value> = incidents.iter().filter(overlaps).collect();
        let excess_ns: i64 = within.iter().map(|i| i["excess_ns"].as_i64().unwrap()).sum();
        let entries = within.iter().flat_map(|i| i["ledger"].as_array().into_iter().flatten());
        let named = entries.filter(|e| e["cause"] == "deadline_throttled" && e["end"] == "pong");
        let named_ns: i64 = named.map(|e| e["ns_low"].as_i64().unwrap()).sum();
        // Limit: of each period of 100 ms, 20 us are run time.
        assert!(excess_ns > 100_000_000 && named_ns * 10 > excess_ns * 7, "{named_ns} of {excess_ns}: {within:#?}");
    }
}
