//! Tests of what a trace shows of the pong's machine and of the host of guests, if their clocks are not the ping's. The true
//! times are known: the clocks are ahead by a known time that grows.

use super::*;

/// Distance of the pong's thread ids, and of the host's, from those of the kernel.
const PONG_IDS: i32 = 1 << 24;
const HOST_IDS: i32 = 2 << 24;
/// Messages take at least 10 us to the pong. Between the pong's call and the receipt, they take at least 82.5 us. In the
/// middle of what is possible, times of the pong are later than the true ones by half of the difference.
const SHIFT: i64 = 36_250;
/// Largest distance of a converted time from the exact middle: the two bounds do not come from messages of the same times.
const NEAR: i64 = 20;
/// Half of the sum of both, rounded up to whole us.
const WIDTH: i64 = 47_000;

/// The time of the pong's clock at a time of the ping's clock.
fn pong_clock(ns: i64) -> i64 {
    ns + 77_000_000_000 + (ns - T0) / 50_000
}

/// The time of the clock of the host of the guests at a time of the ping's clock.
fn host_clock(ns: i64) -> i64 {
    ns - 500_000_000
}

/// Gives the answers of a trial the times of the pong's clock.
fn apart(echoes: &mut [EchoRow]) {
    let convert = |ns: &mut i64| *ns = if *ns == NO_TIME { NO_TIME } else { pong_clock(*ns) };
    echoes.iter_mut().for_each(|e| [&mut e.in_ns, &mut e.begin_ns, &mut e.end_ns].into_iter().for_each(convert));
}

fn two_clocks(manifest: &mut Manifest) {
    manifest.trials.iter_mut().for_each(|t| t.ends.get_mut("pong").unwrap().clock = "another".into());
}

/// A record with two clocks, in which these events were recorded.
fn made(trials: usize, switches: &[(usize, &str, Switches)]) -> Made {
    Made::of(trials, |_, _, echoes| apart(echoes), two_clocks, switches)
}

/// Events of the pong, with thread ids and CPUs that the ping's machine has too, in true times.
fn of_pong() -> Switches {
    let tasks = [(OTHER, "pong-hog", false), (KERNEL, "pong-ksoftirqd", true)];
    let task = |name: &str, kernel| Task { name: name.into(), policy: None, process: None, kernel };
    let tasks = tasks.map(|(tid, name, kernel)| (tid, task(name, kernel)));
    Switches { ends: vec!["pong".into()], tasks: tasks.into(), ..seen(0) }
}

fn at_pong(mut seen: Switches) -> Switches {
    seen.convert_times(pong_clock);
    seen
}

/// What the host of the guests recorded, with readings of the ping's clock that take 4 us.
fn at_host(readings: i64) -> Switches {
    let mut seen = Switches { ends: Vec::new(), ..of_pong() };
    seen.convert_times(host_clock);
    let reading = |n: i64| {
        let other_ns = T0 + n * 10_000_000;
        ClockReading { before_ns: host_clock(other_ns) - 2_000, other_ns, after_ns: host_clock(other_ns) + 2_000 }
    };
    let ping_clock = (0..readings).map(reading).collect();
    Switches { host: Some(HostOfGuests { name: "bench".into(), ping_clock }), ..seen }
}

/// Context switches that were recorded, as time, CPU, and the threads that left and got the CPU.
fn recorded_switches(seen: &Switches) -> Vec<(i64, i64, i64, i64)> {
    let one = |e: &SwitchEvent| match e.what {
        SwitchKind::Switch { out, into, .. } => Some((e.at_ns, i64::from(e.cpu), i64::from(out), i64::from(into))),
        _ => None,
    };
    seen.events.iter().filter_map(one).collect()
}

/// Context switches of the trace on CPUs from this one to the one 99 higher, as [`recorded_switches`].
fn switches_from(trace: &Trace, first: i64) -> Vec<(i64, i64, i64, i64)> {
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let one = |(at_ns, cpu, inner): (i64, i64, Value)| {
        let of = &inner[1];
        (inner[0] == "sched_switch").then(|| (at_ns, cpu, number(&of[0]), number(&of[3])))
    };
    events_of(trace).into_iter().filter(|(_, cpu, _)| (first..first + 100).contains(cpu)).filter_map(one).collect()
}

/// Checks that the trace has these context switches, later by `shift_ns`, with CPUs and threads that are higher.
fn assert_moved(found: &[(i64, i64, i64, i64)], given: &Switches, (shift_ns, cpus, ids): (i64, i64, i32)) {
    let id = |thread: i64| if thread > 0 { thread + i64::from(ids) } else { thread };
    let expected: Vec<_> =
        recorded_switches(given).into_iter().map(|(at, cpu, out, into)| (at, cpu + cpus, id(out), id(into))).collect();
    let without_time = |all: &[(i64, i64, i64, i64)]| all.iter().map(|(_, a, b, c)| (*a, *b, *c)).collect::<Vec<_>>();
    assert_eq!(without_time(found), without_time(&expected));
    for (found, expected) in found.iter().zip(&expected) {
        let wrong_ns = found.0 - expected.0 - shift_ns;
        assert!(wrong_ns.abs() <= NEAR, "{wrong_ns}: {found:?} {expected:?}");
    }
}

#[test]
fn events_of_the_pong_are_converted_with_cpus_and_threads_of_their_own() {
    let late = due(0, LATE);
    let given = Switches { gaps: vec![(late + 21_000, late + 29_000)], ..of_pong() };
    let alone = made(1, &[(0, "ping", seen(0))]).trace(&[]);
    let trace = made(1, &[(0, "ping", seen(0)), (0, "pong", at_pong(given.clone()))]).trace(&[]);
    // Events of the ping and their lost events are as without those of the pong.
    let ping = |trace: &Trace| -> Vec<Value> {
        let all = trace.packets.iter().filter(|p| p["ftrace_events"]["cpu"].as_i64().is_some_and(|cpu| cpu < 100));
        all.cloned().collect()
    };
    assert_eq!(ping(&trace), ping(&alone));
    assert_eq!(switches_from(&trace, 0), recorded_switches(&seen(0)));
    assert_moved(&switches_from(&trace, 100), &given, (SHIFT, 100, PONG_IDS));
    let cpus = trace.ftrace();
    assert_eq!(cpus.keys().copied().collect::<Vec<_>>(), [0, 1, 100, 101]);
    let of_pong = |name: &str| -> Vec<Value> {
        [100, 101].iter().flat_map(|cpu| &cpus[cpu]).filter_map(|e| e.get(name).cloned()).collect()
    };
    let [thread, hog] = [PING, OTHER].map(|tid| i64::from(tid + PONG_IDS));
    assert_eq!(of_pong("sched_waking")[0]["pid"], thread + 1);
    assert_eq!(of_pong("sched_migrate_task")[0]["dest_cpu"], 101);
    assert_eq!(of_pong("irq_handler_entry").len(), 2);
    let named: Vec<Value> = of_pong("sched_switch").into_iter().filter(|s| s["next_pid"] == hog).collect();
    assert!(!named.is_empty() && named.iter().all(|s| s["next_comm"] == "pong-hog"), "{named:?}");
    assert!(cpus[&0].iter().any(|e| e["sched_switch"]["next_comm"] == "stress"));
    let recorded: Vec<_> =
        trace.named("events recorded").into_iter().filter(|d| d.track.ends_with("recorded (pong)")).collect();
    assert_eq!(recorded.len(), 2);
    assert!((recorded[0].begin_ns - given.windows[0].0 - SHIFT).abs() <= NEAR, "{recorded:?}");
}

#[test]
fn processes_and_messages_of_the_pong_are_converted_and_the_width_is_said() {
    let trace = made(1, &[(0, "ping", seen(0)), (0, "pong", at_pong(of_pong()))]).trace(&[]);
    let processes: BTreeSet<i64> =
        trace.packets.iter().filter_map(|p| p["track_descriptor"].get("process")?["pid"].as_i64()).collect();
    assert_eq!(processes, [PING, PONG + PONG_IDS].map(i64::from).into());
    let tree = trace.packets.iter().find_map(|p| p.get("process_tree")).unwrap();
    let all = |kind: &str| tree[kind].as_array().unwrap().clone();
    let thread = all("threads").into_iter().find(|t| t["tid"] == PONG + PONG_IDS + 1).unwrap();
    assert_eq!((&thread["tgid"], &thread["name"]), (&(PONG + PONG_IDS).into(), &"recv".into()));
    let parent = |pid: i32| all("processes").into_iter().find(|p| p["pid"] == pid).unwrap()["ppid"].clone();
    assert_eq!((parent(KERNEL), parent(KERNEL + PONG_IDS)), (2.into(), (2 + PONG_IDS).into()));
    // Each message has its time at the pong, between the send call and the receipt, with both flows.
    let messages = trace.named("message ");
    let turnarounds = trace.named("turnaround of message ");
    assert!(turnarounds.len() > 10 && turnarounds.len() == messages.len());
    for turnaround in &turnarounds {
        let number: u64 = turnaround.name.rsplit(' ').next().unwrap().parse().unwrap();
        let wrong_ns = turnaround.begin_ns - (due(0, number) + 1_000 + USUAL[0]) - SHIFT;
        assert!(wrong_ns.abs() <= NEAR, "{wrong_ns}: {turnaround:?}");
    }
    let flows = |key: &str| trace.drawn().iter().filter_map(|d| d.event.get(key)?.as_array()).flatten().count();
    assert_eq!([flows("flow_ids"), flows("terminating_flow_ids")], [2 * messages.len(); 2]);
    let text = format!(
        "times of the pong's end are converted to the clock of the ping and can be wrong by up to ± {}; 100 is added to the \
         numbers of its CPUs, and 16,777,216 to the ids of its processes and threads",
        Nanos(WIDTH)
    );
    assert_eq!(trace.notes, [format!("Trial 0: {text}.")]);
    let [said] = &trace.named("times of")[..] else { panic!("{:?}", trace.drawn()) };
    assert_eq!(said.name, text);
    assert!(said.track.ends_with(" / converted times (pong)"), "{said:?}");
    let first = around_late(0).0 + SHIFT;
    assert!((said.begin_ns - first).abs() <= NEAR, "{said:?} {first}");
}

#[test]
fn without_bounds_only_the_pings_end_is_shown_with_the_reason() {
    // One of the clocks is stepped by a second in the middle of the trial.
    let stepped = |_: usize, _: &mut [SenderRow], echoes: &mut Vec<EchoRow>| {
        apart(echoes);
        for e in echoes.iter_mut().filter(|e| e.seq >= 100) {
            [&mut e.in_ns, &mut e.begin_ns, &mut e.end_ns].into_iter().for_each(|ns| *ns += 1_000_000_000);
        }
    };
    // The pong's calls are not recorded.
    let one_way = |_: usize, _: &mut [SenderRow], echoes: &mut Vec<EchoRow>| {
        apart(echoes);
        echoes.iter_mut().for_each(|e| (e.begin_ns, e.end_ns) = (NO_TIME, NO_TIME));
    };
    type Change = fn(usize, &mut [SenderRow], &mut Vec<EchoRow>);
    let cases: [(Change, &str); 2] =
        [(stepped, "one of the clocks changed during the trial"), (one_way, "messages went in one direction only")];
    for (change, why) in cases {
        let switches = [(0, "ping", seen(0)), (0, "pong", at_pong(of_pong()))];
        let trace = Made::of(1, change, two_clocks, &switches).trace(&[]);
        assert!(trace.tracks().values().all(|name| !name.contains("pong")), "{:?}", trace.tracks());
        let has_flow = |d: &Drawn| d.event.get("flow_ids").or(d.event.get("terminating_flow_ids")).is_some();
        assert!(!trace.drawn().iter().any(has_flow));
        assert_eq!(trace.ftrace().into_keys().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(switches_from(&trace, 0), recorded_switches(&seen(0)));
        let note = "Trial 0: the ends have different clocks; the trace has only what the ping's end recorded, and no flows \
            between the ends";
        assert_eq!(trace.notes, [format!("{note}: {why}.")]);
    }
}

#[test]
fn events_of_the_host_of_guests_are_converted_if_its_clock_was_read() {
    let switches = |readings| [(0, "host", at_host(readings)), (0, "ping", seen(0))];
    let trace = Made::with(&switches(100)).trace(&[]);
    assert_eq!(switches_from(&trace, 0), recorded_switches(&seen(0)));
    assert_moved(&switches_from(&trace, 100), &of_pong(), (0, 100, HOST_IDS));
    let note = "Trial 0: times of what was recorded on the host of the guests are converted to the clock of the ping and can \
        be wrong by up to ± 3 us; 100 is added to the numbers of its CPUs, and 33,554,432 to the ids of its processes and \
        threads.";
    assert_eq!(trace.notes, [note]);
    assert!(trace.tracks().values().any(|name| name.ends_with("events recorded (host of the guests)")));
    // A third clock, beside the one of the pong.
    let all = [(0, "host", at_host(100)), (0, "ping", seen(0)), (0, "pong", at_pong(of_pong()))];
    let trace = made(1, &all).trace(&[]);
    assert_moved(&switches_from(&trace, 100), &of_pong(), (SHIFT, 100, PONG_IDS));
    assert_moved(&switches_from(&trace, 200), &of_pong(), (0, 200, HOST_IDS));
    assert_eq!(trace.notes.len(), 2);
    let trace = Made::with(&switches(0)).trace(&[]);
    assert_eq!(trace.ftrace().into_keys().collect::<Vec<_>>(), [0, 1]);
    let note =
        "Trial 0: the trace has nothing of what was recorded on the host of the guests, which has another clock.";
    assert_eq!(trace.notes, [note]);
}

/// The viewer has one row for each CPU number, for all trials.
#[test]
fn cpu_numbers_of_the_pong_are_the_same_in_all_trials() {
    let mut second = seen(1);
    second.events.push(switch(second.windows[1].1 - 1_000, 120, 0, 7));
    // The highest CPU of the pong gets a number that the viewer does not have.
    let mut given = of_pong();
    given.events.push(switch(given.windows[1].1 - 1_000, 950, 0, 7));
    let trace = made(2, &[(0, "ping", seen(0)), (0, "pong", at_pong(given)), (1, "ping", second)]).trace(&[]);
    assert_eq!(trace.ftrace().into_keys().collect::<Vec<_>>(), [0, 1, 120, 200, 201]);
    let note = "Trial 0: 1 event of a CPU above 1023 is left out, because the viewer has no such CPU.";
    assert!(trace.notes.contains(&note.to_owned()), "{:?}", trace.notes);
}
