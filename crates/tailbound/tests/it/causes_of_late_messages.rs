//! Tests of the causes of the latest messages: the report must name injected faults with their thread and their
//! duration.

use crate::support::processes::{descendants, wait_for_measuring};
use crate::support::{Bench, may_be_real_time, succeeded};
use serde_json::Value;
use std::process::Child;
use std::time::Duration;
use tailbound_host::{monotonic_ns, scheduling};
use tailbound_model::{CpuList, Policy, RoleScheduling};

/// A fault that a test injects into a run to delay messages.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Injected fault: a thread `injected-hog` with policy fifo 90 kept the CPU with this number busy.
    Hog { cpu: u32 },
    /// Injected fault: the process of this end was stopped.
    Stop { end: &'static str },
}

#[derive(Debug, Clone, Copy)]
struct Injected {
    fault: Fault,
    begin_ns: i64,
    end_ns: i64,
}

/// Generates random numbers without a library, from a fixed seed that is printed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Injects faults into a run until it ends, each fault into the condition that is being measured.
fn inject(run: &mut Child, seed: u64) -> Vec<Injected> {
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
                std::thread::sleep(Duration::from_millis(20));
                // SAFETY: as above.
                unsafe { libc::kill(pid, libc::SIGCONT) };
                faults.push(Injected { fault: Fault::Stop { end }, begin_ns, end_ns: monotonic_ns() });
            }
        } else {
            scheduling::set_affinity(0, &CpuList::one(cpu)).unwrap();
            let begin_ns = monotonic_ns();
            while monotonic_ns() < begin_ns + 5_000_000 {}
            faults.push(Injected { fault: Fault::Hog { cpu }, begin_ns, end_ns: monotonic_ns() });
        }
    }
    faults
}

/// Process id of the process that measures the given end at the moment.
fn measuring(controller: i32, end: &str) -> Option<i32> {
    let name = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    descendants(controller).into_iter().find(|pid| name(pid).trim() == format!("tb-{end}"))
}

fn overlap(fault: &Injected, begin: i64, end: i64) -> i64 {
    fault.end_ns.min(end) - fault.begin_ns.max(begin)
}

/// Whether the cause that the report gives matches the injected fault.
fn named_right(cause: &Value, fault: Fault) -> bool {
    match fault {
        Fault::Hog { cpu } => cause["kind"] == "waited" && cause["cpu"] == cpu && cause["instead"] == "injected-hog",
        Fault::Stop { end } => cause["kind"] == "stopped" && cause["end"] == end,
    }
}

/// Number of late messages that were judged, and number of those late messages whose lateness the report explained by
/// the injected fault.
#[derive(Default)]
struct Judged {
    messages: usize,
    right: usize,
}

/// Runs a study with injected faults, and judges the causes that its report gives. Only messages that exactly one fault
/// delayed are judged.
fn judge_injected_faults(seed: u64, judged: &mut Judged) {
    let bench = Bench::new();
    // Each payload is a condition with its own ten latest messages.
    let payloads: Vec<String> = (0..32).map(|n| format!("{} B", 64 + n)).collect();
    let study = bench.study(&format!(
        "measure: {{ ping-pong: {{ duration: 1500 ms, warm_up: 10, timeout: 1 s }} }}\nrate: 200 Hz\ndriver: cyclonedds\n\
         path: loopback\nends: {{ ping: {{ cpus: \"0\" }}, pong: {{ cpus: \"1\" }} }}\nfactors: {{ payload: [{}] }}\n",
        payloads.join(", ")
    ));
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut run = command.spawn().unwrap();
    println!("seed {seed}");
    let faults = std::thread::scope(|scope| scope.spawn(|| inject(&mut run, seed)).join().unwrap());
    assert!(run.wait().unwrap().success());
    let report = bench.report();
    let mut wrong = 0;
    for condition in report["conditions"].as_array().unwrap() {
        for message in condition["worst"].as_array().unwrap() {
            let due = message["intended_ns"].as_i64().unwrap();
            let answered = due + message["from_intended_ns"].as_i64().unwrap();
            let cause = &message["cause"];
            let hit: Vec<&Injected> = faults.iter().filter(|f| overlap(f, due, answered) > 0).collect();
            let [fault] = hit.as_slice() else { continue };
            if overlap(fault, due, answered) * 10 < (answered - due) * 8 || answered - due < 1_000_000 {
                continue;
            }
            judged.messages += 1;
            if named_right(cause, fault.fault) {
                judged.right += 1;
            } else {
                wrong += 1;
                println!("{:?} taken for: {}", fault.fault, cause["text"]);
            }
        }
    }
    println!("{} of {} late messages named right, {} faults injected", judged.right, judged.messages, faults.len());
    if wrong > 0 {
        println!("{:?}", bench.dir.path());
        std::mem::forget(bench);
    }
}

#[test]
fn injected_faults_are_named() {
    if !may_be_real_time() {
        return;
    }
    // On a busy machine more than one delay hits many messages, and one run does not have enough messages to judge.
    let mut judged = Judged::default();
    for seed in 42..46 {
        judge_injected_faults(seed, &mut judged);
        if judged.messages >= 200 {
            break;
        }
    }
    assert!(judged.messages >= 200, "only {} late messages were held up by one fault alone", judged.messages);
    assert!(judged.right * 100 >= judged.messages * 95, "{} of {}", judged.right, judged.messages);
}

#[test]
fn switched_off_nothing_is_watched() {
    let bench = Bench::new();
    let study = "measure: { ping-pong: { slots: 200 } }\nrate: 1 kHz\ndriver: udp\npath: loopback\nattribution: off\n";
    succeeded(&bench.run(study, &[]));
    assert!(!bench.path("record/switches").exists());
    let condition = &bench.report()["conditions"][0];
    assert!(condition["explained"].is_null() && condition["worst"][0]["cause"].is_null());
}

/// Test: the pong is stopped for 3 s; then the messages of these 3 s are late, no message is missing, and the report
/// gives the reason.
#[test]
fn a_pong_that_is_stopped_makes_messages_late_and_loses_none() {
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { duration: 6 s, warm_up: 10, timeout: 10 s } }\nrate: 100 Hz\ndriver: cyclonedds\n\
         qos: { reliability: reliable, history: keep-all }\npath: veth\nplace: netns\n",
    );
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut run = command.spawn().unwrap();
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
    let condition = &bench.report()["conditions"][0];
    assert_eq!(condition["counts"]["answered"], 600, "{}", condition["counts"]);
    let late = condition["from_intended"]["histogram"].as_array().unwrap().iter();
    let late: u64 = late.filter(|b| b[0].as_i64().unwrap() > 20_000_000).map(|b| b[2].as_u64().unwrap()).sum();
    assert!((290..=310).contains(&late), "{late} messages were late");
    let longest = condition["from_intended"]["max_ns"].as_i64().unwrap();
    // Limit: the stop that this test made, and half a second for the messages that had to wait.
    assert!((stopped_ns - 100_000_000..stopped_ns + 500_000_000).contains(&longest), "{longest} of {stopped_ns}");
    let cause = &condition["worst"][0]["cause"];
    assert!(cause["kind"] == "stopped" && cause["end"] == "pong", "{cause}");
}
