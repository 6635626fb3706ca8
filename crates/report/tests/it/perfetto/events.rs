//! Tests of the events of the kernel in a trace.

use super::*;

fn expected(event: &SwitchEvent, names: &dyn Fn(i32) -> Value, prio: &dyn Fn(i32) -> Value) -> (i64, i64, Value) {
    let inner = match event.what {
        SwitchKind::Switch { out, into, .. } => {
            serde_json::json!(["sched_switch", [out, names(out), 1, into, names(into), prio(into)]])
        }
        SwitchKind::Wake { thread, .. } => serde_json::json!(["sched_waking", [thread, names(thread)]]),
        SwitchKind::Moved { thread, to } => serde_json::json!(["sched_migrate_task", [thread, to]]),
        SwitchKind::Interrupted { by: Interruption::Irq(n), .. } => {
            serde_json::json!(["irq_handler_entry", [n, format!("irq {n}")]])
        }
        SwitchKind::Interrupted { by: Interruption::Vector(n), .. } => {
            serde_json::json!(["irq_handler_entry", [n, format!("vector {n}")]])
        }
        SwitchKind::Interrupted { by: Interruption::Softirq(n), .. } => serde_json::json!(["softirq_entry", [n]]),
        other => panic!("{other:?}"),
    };
    (event.at_ns, i64::from(event.cpu), inner)
}

#[test]
fn the_events_of_the_kernel_are_those_of_the_record() {
    let given = seen(0);
    // The other agent records the same CPUs, and the wake-up of one more thread.
    let mut twice = Switches { ends: vec!["pong".into()], ..seen(0) };
    twice.events.retain(|e| !matches!(e.what, SwitchKind::Moved { .. }));
    twice.events.iter_mut().for_each(|e| e.at_ns += 300);
    let another = wake(due(0, LATE) + 14_000, 0, PONG + 1, PING);
    twice.events.insert(4, another);
    let trace = Made::with(&[(0, "ping", given.clone()), (0, "pong", twice)]).trace(&[]);
    let names = |tid: i32| match tid {
        0 => "swapper/".into(),
        PING => "tb-main".into(),
        PONG => "tb-main".into(),
        KERNEL => "ksoftirqd/0".into(),
        OTHER => "stress".into(),
        _ => Value::from("recv"),
    };
    // FIFO 80 of the main threads, FIFO 90, and nice 0.
    let prio = |tid: i32| match tid {
        PING | PONG => 19.into(),
        OTHER => 9.into(),
        0 | KERNEL => Value::Null,
        _ => Value::from(120),
    };
    let mut all: Vec<_> = given.events.iter().map(|e| expected(e, &names, &prio)).collect();
    all.insert(4, expected(&another, &names, &prio));
    let found: Vec<_> = events_of(&trace);
    let found: Vec<_> = found
        .into_iter()
        .map(|(at_ns, cpu, inner)| {
            let text = inner.to_string().replace(&format!("swapper/{cpu}"), "swapper/");
            (at_ns, cpu, serde_json::from_str::<Value>(&text).unwrap())
        })
        .collect();
    assert_eq!(found, all);
    assert_eq!(trace.notes, [] as [&str; 0]);
    // Each interrupt ends.
    let ends = |name: &str| -> Vec<i64> {
        let of = trace.ftrace().into_values().flatten().filter(|e| e.get(name).is_some()).collect::<Vec<_>>();
        of.iter().map(|e| e["timestamp"].as_i64().unwrap()).collect()
    };
    let late = due(0, LATE);
    assert_eq!(ends("irq_handler_exit"), [late + 19_000, late + 52_000]);
    assert_eq!(ends("softirq_exit"), [late + 17_000]);
}

/// A thread must have a CPU from the time at which it got it until it left it, and nothing may be claimed of the times
/// between the recorded spans.
#[test]
fn outside_the_recorded_spans_no_thread_has_a_cpu() {
    let given = seen(0);
    let [first, second] = given.windows[..] else { panic!() };
    let trace = Made::with(&[(0, "ping", given)]).trace(&[]);
    let cpus = trace.ftrace();
    let switches = |cpu: i64| -> Vec<(i64, i64, i64)> {
        let all = cpus[&cpu].iter().filter_map(|e| Some((e["timestamp"].as_i64()?, e.get("sched_switch")?)));
        all.map(|(at, s)| (at, s["prev_pid"].as_i64().unwrap_or(0), s["next_pid"].as_i64().unwrap_or(0))).collect()
    };
    for cpu in [0, 1] {
        let all = switches(cpu);
        assert!(all.windows(2).all(|two| two[0].2 == two[1].1), "{all:?}");
        assert!(all.iter().all(|(at, ..)| [first, second].iter().any(|w| (w.0..=w.1).contains(at))), "{all:?}");
        assert_eq!((all[0].0, all.last().unwrap().2), (first.0, REAL + 1 + cpu));
    }
    let at = |ns: i64| switches(0).iter().rfind(|(at, ..)| *at <= ns).map(|(_, _, into)| *into);
    let taker = i64::from(PING + 1);
    assert_eq!((at(first.0), at(first.1 - 1), at(first.1)), (Some(0), Some(taker), Some(REAL + 1)));
    assert_eq!((at(second.0 - 1), at(second.0), at(second.1)), (Some(REAL + 1), Some(0), Some(REAL + 1)));
    // The state of a thread whose span has ended is not known.
    let ended = cpus[&0].iter().find(|e| e["timestamp"] == first.1).unwrap();
    assert_eq!(ended["sched_switch"]["prev_state"], 0x400);
}

/// If a thread leaves a CPU that another thread had, neither of them can be shown as running in between.
#[test]
fn around_a_switch_that_the_kernel_did_not_report_nothing_is_claimed() {
    let mut given = seen(0);
    given.events.retain(|e| !matches!(e.what, SwitchKind::Switch { out: OTHER, .. }));
    let trace = Made::with(&[(0, "ping", given)]).trace(&[]);
    let at = |ns: i64| -> Vec<(i64, i64)> {
        let of = |s: &Value| (s["prev_pid"].as_i64().unwrap(), s["next_pid"].as_i64().unwrap());
        let all =
            trace.ftrace()[&0].iter().filter(|e| e["timestamp"] == due(0, LATE) + ns).cloned().collect::<Vec<_>>();
        all.iter().map(|e| of(&e["sched_switch"])).collect()
    };
    let [ping, kernel, other] = [PING, KERNEL, OTHER].map(i64::from);
    assert_eq!(at(20_000), [(ping, other), (other, REAL + 1)]);
    assert_eq!(at(8_000_000), [(REAL + 1, kernel), (kernel, ping + 1)]);
    let note = "Trial 0: 1 context switch was not reported by the kernel; the time in which each must have happened is \
        shown as not recorded.";
    assert_eq!(trace.notes, [note]);
}

/// Threads of an ordinary user: only the threads of the ends are recorded.
#[test]
fn what_had_a_cpu_besides_the_recorded_threads_is_not_claimed() {
    let late = due(0, LATE);
    let events = vec![
        event(late, 0, SwitchKind::In(PING)),
        event(late + 5_000, 0, SwitchKind::Out { thread: PING, preempted: true }),
        event(late + 9_000, 0, SwitchKind::In(PING)),
    ];
    let scope = SwitchScope::OwnThreads;
    let trace = Made::with(&[(0, "ping", Switches { scope, wakes: false, events, ..seen(0) })]).trace(&[]);
    let switches: Vec<_> = trace.ftrace()[&0]
        .iter()
        .map(|e| (e["timestamp"].as_i64().unwrap() - late, e["sched_switch"].clone()))
        .map(|(at, s)| {
            (at, s["prev_pid"].as_i64().unwrap(), s["prev_state"].as_i64().unwrap(), s["next_pid"].as_i64().unwrap())
        })
        .collect();
    let (ping, other, end) = (i64::from(PING), REAL + 1, around_late(0).1 - late);
    let expected = [(0, other, 0, ping), (5_000, ping, 0, other), (9_000, other, 0, ping), (end, ping, 0x400, other)];
    assert_eq!(switches, expected);
}

#[test]
fn gaps_and_stops_are_marked() {
    let late = due(0, LATE);
    let (gaps, stops) = (vec![(late + 21_000, late + 29_000)], vec![(late + 40_000, late + 60_000)]);
    let trace = Made::with(&[(0, "ping", Switches { gaps, stops, ..seen(0) })]).trace(&[]);
    let [lost] = &trace.named("events lost")[..] else { panic!() };
    assert_eq!((lost.begin_ns, lost.end_ns), (late + 21_000, late + 29_000));
    let [stopped] = &trace.named("stopped")[..] else { panic!() };
    assert_eq!((stopped.begin_ns, stopped.end_ns), (late + 40_000, late + 60_000));
    assert!(stopped.track.starts_with("ping of trial 0"), "{stopped:?}");
    assert_eq!(trace.named("events recorded").len(), 2);
    for bundle in trace.packets.iter().filter_map(|p| p.get("ftrace_events")) {
        let first = bundle["event"][0]["timestamp"].as_i64().unwrap();
        assert_eq!(bundle.get("lost_events").is_some(), first >= late + 29_000, "{bundle}");
    }
}
