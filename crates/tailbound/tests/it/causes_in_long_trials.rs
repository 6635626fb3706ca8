//! Causes of incidents long before the end of a trial that has more events than the memory holds.

use crate::causes_of_late_messages::keep_busy;
use crate::support::processes::{measuring, wait_for_measuring};
use crate::support::{Bench, may_be_real_time};
use serde_json::Value;
use std::time::Duration;
use tailbound_host::{monotonic_ns, scheduling};
use tailbound_model::{Policy, Switches};

/// Stops the process of an end for this time. Returns when, monotonic ns.
fn stop(pid: i32, time: Duration) -> (i64, i64) {
    let begin_ns = monotonic_ns();
    // SAFETY: a process of a run that this test started.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    std::thread::sleep(time);
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGCONT) };
    (begin_ns, monotonic_ns())
}

/// Test: 20,000 messages/s have more than 100,000 events per second, so that the first seconds are discarded: the memory holds
/// 4.2 million. The events around the stops in these seconds are kept, at both ends.
#[test]
fn an_early_stall_in_a_long_trial_is_explained() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { duration: 63 s, warm_up: 1000, timeout: 500 ms, receive: block } }\nrate: 20 kHz\n\
         driver: udp\npath: loopback\nplace: process\nattribution: machine\nends: { ping: { cpus: \"0\" }, pong: { cpus: \"1\" } }\n",
    );
    let mut run = bench.start(&study);
    wait_for_measuring(run.id() as i32, "pong");
    let mut stops = Vec::new();
    for end in ["pong", "ping", "pong"] {
        std::thread::sleep(Duration::from_millis(600));
        let pid = measuring(run.id() as i32, end).expect("the end measures");
        // Longer than what the machine itself may do to a message: too many longer delays would displace these.
        stops.push((end, stop(pid, Duration::from_millis(100))));
    }
    assert!(run.wait().unwrap().success(), "{}", bench.stderr());
    // While the trial ran, one line had its late messages: the worst are the messages of a stop of 100 ms.
    let shown = bench.stderr();
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("(preliminary; causes follow")).collect();
    let [line] = lines[..] else { panic!("{shown}") };
    // The number and its unit are apart by a space at which no line breaks.
    let excess: Vec<&str> =
        line.split(" took ").nth(1).unwrap_or_default().split(char::is_whitespace).take(2).collect();
    let excess_ms = match excess[..] {
        [ms, "ms"] => ms.parse::<f64>().unwrap(),
        [s, "s"] => s.parse::<f64>().unwrap() * 1e3,
        _ => panic!("{line}"),
    };
    // Limit: the stop took at least 100 ms, and another one at the same time can have made it longer.
    // Limit: the controller and the agent count from different moments, and the agent reports once a second.
    let is_first = (59..=63).any(|s| line.starts_with(&format!("trial 1/1: after {s} s, ")));
    assert!(is_first && excess_ms >= 99.0, "{line}");
    // On a machine with two CPUs, the ends use both of them.
    let has_no_cpu = line.contains("because no CPU is free to look for them now");
    assert_eq!(has_no_cpu, scheduling::allowed_cpus().len() == 2, "{line}");
    for end in ["ping", "pong"] {
        let seen = std::fs::read_to_string(bench.path(&format!("record/switches/0-{end}.json"))).unwrap();
        let seen: Switches = serde_json::from_str(&seen).unwrap();
        let gap_before =
            |(_, (begin, _)): &(&str, (i64, i64))| seen.gaps.iter().any(|gap| gap.0 < *begin && gap.1 <= *begin);
        let discarded_ns = seen.gaps.iter().map(|gap| gap.1).max().unwrap_or(0);
        assert!(stops.iter().all(gap_before) && discarded_ns > stops[2].1.1 + 1_000_000_000, "{end}: {:?}", seen.gaps);
    }
    let report = bench.report();
    let incidents = report["conditions"][0]["incidents"].as_array().unwrap();
    for (end, (begin, to)) in stops {
        let overlaps = |i: &&Value| i["begin_ns"].as_i64().unwrap() < to && begin < i["end_ns"].as_i64().unwrap();
        let worst = incidents.iter().filter(overlaps).max_by_key(|i| i["excess_ns"].as_i64());
        let incident = worst.expect("the stop made messages late");
        let entries = incident["ledger"].as_array().into_iter().flatten();
        let ns: i64 =
            entries.filter(|e| e["cause"] == "stopped" && e["end"] == end).map(|e| e["ns_low"].as_i64().unwrap()).sum();
        // Limit: 70 to 130 % of the stop, as for all planted faults.
        assert!(((to - begin) * 7..=(to - begin) * 13).contains(&(ns * 10)), "{end}, {} ns: {incident:#}", to - begin);
    }
}

/// The times before these words in a line, in ms.
fn ms_before(line: &str, words: &str) -> f64 {
    let number = |before: &str| {
        let mut last = before.trim_end().rsplit(char::is_whitespace);
        let (unit, number) = (last.next()?, last.next()?.parse::<f64>().ok()?);
        Some(number * if unit == "s" { 1e3 } else { f64::from(u8::from(unit == "ms")) })
    };
    let parts: Vec<&str> = line.split(words).collect();
    parts.iter().take(parts.len() - 1).filter_map(|before| number(before)).sum()
}

/// Test: while a trial runs, the lines name what made its worst messages late: a stop of the pong before the first line, and then a
/// program that had the CPU of both ends.
#[test]
fn lines_of_a_long_trial_name_the_causes() {
    if !may_be_real_time() || scheduling::allowed_cpus().len() < 2 {
        println!("skipped: needs the right to use SCHED_FIFO, and two CPUs");
        return;
    }
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { duration: 94 s, warm_up: 1000, timeout: 500 ms, receive: block } }\nrate: 1 kHz\n\
         driver: udp\npath: loopback\nplace: process\nattribution: machine\n\
         ends: { ping: { cpus: \"0\" }, pong: { cpus: \"0\" } }\nscheduling: { policy: fifo, priority: 50 }\n",
    );
    let mut run = bench.start(&study);
    wait_for_measuring(run.id() as i32, "pong");
    std::thread::sleep(Duration::from_secs(5));
    let pid = measuring(run.id() as i32, "pong").expect("the end measures");
    let (begin_ns, end_ns) = stop(pid, Duration::from_millis(200));
    let stopped_ms = (end_ns - begin_ns) as f64 / 1e6;
    std::thread::sleep(Duration::from_secs(58));
    // Shorter than the stop, so that the second line has a worst message and a worst recent one.
    let hog = || keep_busy(c"causes-hog", Policy::Fifo { priority: 90 }, 0, Duration::from_millis(150));
    std::thread::spawn(hog).join().unwrap();
    assert!(run.wait().unwrap().success(), "{}", bench.stderr());
    let shown = bench.stderr();
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("(preliminary; all causes follow")).collect();
    let [first, second] = lines[..] else { panic!("{shown}") };
    println!("{first}\n{second}");
    // Limit: 70 to 130 % of the time, as for all planted faults.
    let ms = ms_before(first, " stopped by a signal or a debugger (pong end)");
    assert!((stopped_ms * 0.7..=stopped_ms * 1.3).contains(&ms), "{stopped_ms} ms: {first}");
    let newest = second.split("; the worst recent one, ").nth(1).expect(second);
    let program = std::fs::read_to_string("/proc/self/comm").unwrap();
    let words = format!(" waiting for a CPU that `{}` had", program.trim_end());
    assert!((105.0..=195.0).contains(&ms_before(newest, &words)), "{words}: {second}");
}
