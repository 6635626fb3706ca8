//! Tests of the two built-in studies of real-time tasks and middleware threads, shortened: findings must follow from
//! the kernel's counters.

use crate::support::processes::{measuring, wait_for_measuring};
use crate::support::{Bench, exit_and_stderr, may_be_real_time};
use serde_json::Value;
use std::time::Duration;

/// Argument of `--set` that selects the arrangement with two processes.
const TWO_PROCESSES: &str = "arrangement=[{ processes: 2, participants: 2, executors: 2 }]";

/// Runs a built-in study with these settings, and returns its report.
fn run(bench: &Bench, name: &str, settings: &[&str]) -> Value {
    let mut command = bench.tailbound();
    command.arg("run").arg(name).arg("--out").arg(bench.path("record")).args(["--set", "quiet=off"]);
    if name == "child-threads" {
        // One driver; and missed slots are sent, so that every condition has the same number of messages.
        command.args(["--set", "driver=cyclonedds", "--set", "measure.on_overrun=catch-up"]);
    }
    for setting in settings {
        command.args(["--set", setting]);
    }
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    assert_eq!(code, 0, "{text}");
    bench.report()
}

/// Texts of the findings that have this code and are about conditions whose name contains all of `words`.
fn findings(report: &Value, code: &str, words: &[&str]) -> Vec<String> {
    let name = |id: &Value| report["conditions"][id.as_u64().unwrap() as usize]["name"].as_str().unwrap();
    let about = |f: &&Value| {
        f["code"] == code
            && f["conditions"].as_array().unwrap().iter().any(|c| words.iter().all(|w| name(c).contains(w)))
    };
    let all = report["findings"].as_array().unwrap().iter().filter(about);
    all.map(|f| f["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn threads_below_a_real_time_task_are_starved_and_those_above_are_not() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let load = "load=[[{ run: cpu, scheduling: { policy: rr, priority: 90, cpus: \"0\" } }]]";
    let report =
        run(&bench, "child-threads", &["measure.duration=4s", "measure.timeout=1s", "repeat=1", load, TWO_PROCESSES]);
    let starved = findings(&report, "starved", &["middleware policy other"]);
    let [text] = starved.as_slice() else { panic!("{}", report["findings"]) };
    // Another time-sharing thread may have waited for longer.
    assert!(text.contains("of the ping end (other)") && text.contains("recv"), "{text}");
    assert!(text.contains("In this time the load `cpu` (rr 90) had"), "{text}");
    assert!(text.contains("the measured time-sharing threads"), "{text}");
    let blocked = findings(&report, "load_blocked", &["middleware policy other"]);
    assert!(blocked.iter().any(|t| t.contains("delivery on the way back took up to")), "{}", report["findings"]);
    let back = report["conditions"][0]["back"]["max_ns"].as_i64().unwrap();
    // Limit: the fair server gives time-sharing threads 50 ms of each second; real-time throttling gives the same.
    assert!((500_000_000..1_500_000_000).contains(&back), "{back}");
    let pattern = |id: usize| report["trials"][id]["pattern"]["name"].as_str().unwrap().to_owned();
    let of = |words: &str| {
        let name = |c: &Value| c["name"].as_str().unwrap().contains(words);
        let condition = report["conditions"].as_array().unwrap().iter().find(|c| name(c)).unwrap();
        pattern(condition["trial_ids"][0].as_u64().unwrap() as usize)
    };
    // The last answers may come after the planned end, so that the trial takes longer; a starved thread may have a lock for which
    // the send call waits; and other programs may get the CPU of the main thread, which since Linux 6.12 the kernel permits for 5 % of the time.
    let found = of("middleware policy other");
    let expected = ["answers late", "total time longer", "publish blocked", "main thread blocked", "sender starved"];
    assert!(expected.contains(&found.as_str()), "{found}");
    let above = &["middleware policy rr"];
    assert_eq!(findings(&report, "starved", above), [""; 0]);
    let condition =
        report["conditions"].as_array().unwrap().iter().find(|c| c["name"].as_str().unwrap().contains(above[0]));
    for leg in ["out", "back"] {
        let longest = condition.unwrap()[leg]["max_ns"].as_i64().unwrap();
        // Limit: since Linux 6.12 other programs may get the CPU for 50 ms of each second; a starved thread waits for longer.
        assert!(longest < 300_000_000, "{leg} took up to {longest} ns");
    }
}

/// Test: ends in one process pass messages without the threads of the middleware, so starving these threads has no
/// effect.
#[test]
fn one_process_needs_no_thread_of_the_middleware() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let load = "load=[[], [{ run: cpu, scheduling: { policy: rr, priority: 90, cpus: \"0\" } }]]";
    let one = "scheduling=[{ main: { policy: rr, priority: 98 }, middleware: { policy: other } }]";
    let settings = ["measure.duration=3s", "measure.timeout=1s", "repeat=1", load, one];
    let report = run(&bench, "child-threads", &settings);
    let trials = report["trials"].as_array().unwrap().iter().filter(|t| t["pattern"].is_object());
    let mut by_arrangement: Vec<(&str, &str)> = trials
        .map(|t| {
            let condition = &report["conditions"][t["condition"].as_u64().unwrap() as usize];
            (condition["levels"]["arrangement"].as_str().unwrap(), t["pattern"]["name"].as_str().unwrap())
        })
        .collect();
    by_arrangement.sort_unstable();
    let [one, two, apart] = by_arrangement.as_slice() else { panic!("{by_arrangement:?}") };
    // Since Linux 6.12 a CPU that real-time threads keep busy runs other programs for 5 % of the time (fair server), which
    // also takes the CPU from the main thread.
    let unharmed = |name: &str| ["no effect", "sender starved"].contains(&name);
    assert!(one.0 == "1 process, 1 participant, 1 executor" && unharmed(one.1), "{one:?}");
    assert!(two.0 == "1 process, 2 participants, 1 executor" && unharmed(two.1), "{two:?}");
    assert!(apart.0.starts_with("2 processes") && apart.1 != "no effect", "{apart:?}");
}

/// Test: if a load is requested on CPU 0 but runs on another CPU, no finding says that the load starved or blocked a
/// thread.
#[test]
fn a_load_on_another_cpu_than_asked_is_not_blamed() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let load = format!(
        "load=[[{{ run: {{ command: [taskset, -c, \"1\", {}, agent, --load, cpu] }}, scheduling: {{ policy: rr, priority: 90, \
         cpus: \"0\" }} }}]]",
        env!("CARGO_BIN_EXE_tailbound")
    );
    let one = "scheduling=[{ main: { policy: rr, priority: 98 }, middleware: { policy: other } }]";
    let settings =
        ["measure.duration=3s", "measure.timeout=1s", "repeat=1", "ends.pong.cpus=0", &load, one, TWO_PROCESSES];
    let report = run(&bench, "child-threads", &settings);
    let loaded = (&report["loads"][0]["policy"], &report["loads"][0]["cpus"]);
    assert_eq!(loaded, (&"rr 90".into(), &"0-1".into()), "CPU 0 as asked, CPU 1 as chosen by the command");
    // Other programs of the machine may delay the ends; findings must not blame the load for that.
    let starved = findings(&report, "starved", &[]);
    assert!(!starved.iter().any(|t| t.contains("the load")), "{starved:?}");
    // Every thread of the ends is on CPU 0, so that none can have waited for a CPU that the load had.
    let causes = findings(&report, "causes", &[]);
    assert!(!causes.iter().any(|t| t.contains("that `tb-load")), "{causes:?}");
}

/// Test of `doctor --rescue-test`: the command ends, and its text agrees with its figures.
#[test]
fn the_rescue_of_ordinary_threads_can_be_tried() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let output = bench.tailbound().args(["doctor", "--rescue-test", "--json"]).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 0, "{text}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |key: &str| found["rescue_test"][key].as_u64().unwrap();
    println!("{found}");
    // The real-time thread runs for at least two seconds; how late the test sees the end depends on the machine.
    assert!(number("beside_ns") >= 2_000_000_000);
    assert!(number("ordinary_cpu_ns") < number("beside_ns"), "a real-time thread goes first");
    let facts: Value =
        serde_json::from_slice(&bench.tailbound().args(["doctor", "--json"]).output().unwrap().stdout).unwrap();
    let fair_server =
        facts["facts"]["facts"].as_array().unwrap().iter().find(|f| f["key"] == "sched.fair_server").unwrap();
    if fair_server["value"].to_string().contains("true") {
        assert!(number("ordinary_cpu_ns") > 0, "the fair server keeps time for ordinary threads");
    }
    let words = found["text"].as_str().unwrap();
    let rescued = number("ordinary_cpu_ns") * 500 >= number("beside_ns");
    assert_eq!(words.contains("No kernel feature gave"), !rescued, "{words}");
}

/// Test of the study rt-priority: before and after the trial, every thread has the policy that the study requests.
#[test]
fn a_priority_for_all_threads_reaches_all_of_them() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let report = run(&bench, "rt-priority", &["measure.slots=1000"]);
    for (trial, process) in report["threads"].as_array().unwrap().iter().map(|t| (t["trial"].as_u64().unwrap(), t)) {
        let condition = report["trials"][trial as usize]["condition"].as_u64().unwrap() as usize;
        let asked = &report["conditions"][condition]["levels"]["scheduling"];
        for thread in process["before"].as_array().unwrap().iter().chain(process["after"].as_array().unwrap()) {
            assert_eq!(&thread["policy"], asked, "{thread}");
        }
    }
    assert_eq!(report["conditions"].as_array().unwrap().len(), 4);
    assert_eq!(report["loads"].as_array().unwrap().len(), 8);
}

/// Test: a trial counts loops, as a program that sends in a loop does. While its sender is stopped, slots are missed; the trial
/// ends later by them, and has all its loops.
#[test]
fn a_trial_of_loops_ends_later_by_the_time_for_which_its_sender_was_stopped() {
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { loops: 200, warm_up: 10, timeout: 1 s, on_overrun: skip } }\nrate: 100 Hz\ndriver: udp\n\
         place: process\npath: loopback\n",
    );
    let mut run = bench.start(&study);
    wait_for_measuring(run.id() as i32, "ping");
    std::thread::sleep(Duration::from_millis(500));
    let pid = measuring(run.id() as i32, "ping").expect("the ping measures");
    // SAFETY: a process of a run that this test started.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    std::thread::sleep(Duration::from_secs(1));
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGCONT) };
    assert!(run.wait().unwrap().success(), "{}", bench.stderr());
    let report = bench.report();
    let counts = &report["conditions"][0]["counts"];
    let of = |key: &str| counts[key].as_u64().unwrap();
    // Limit: a slot is due every 10 ms, and the machine itself may hold the sender up too.
    assert!((95..=200).contains(&of("not_sent")), "{counts}");
    assert_eq!(of("scheduled"), 200 + of("not_sent"), "{counts}");
    assert_eq!(of("answered") + of("after_timeout") + of("lost"), 200, "{counts}");
    let m1_ns = report["trials"][0]["course"]["run_time_ns"].as_i64().unwrap();
    let expected_ns = 10_000_000 * (of("scheduled") as i64 - 1);
    assert!(m1_ns >= expected_ns, "{m1_ns}: {counts}");
}
