//! Tests of the patterns of trials under load: given rows of samples and run delays give the expected patterns.

#[allow(dead_code)]
use crate::support::{Given, GivenTrial, slot};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 10_000_000;
const SLOTS: u64 = 500;
const SECOND: i64 = 1_000_000_000;

/// Changes that a test makes to the trial under load: to its slots, to its record, to the run delays of the ping end's
/// threads before the first slot, and to the run delay of the ping end's main thread during the trial.
#[derive(Clone, Copy)]
struct Load {
    /// Time at which the load began, in ns after the first slot; `None` if it never began.
    began_ns: Option<i64>,
    part: Option<LoadPart>,
    rate: Rate,
    slots: fn(&mut [SenderRow]),
    trial: fn(&mut TrialRecord),
    before_ns: u64,
    main_ns: u64,
    /// Waits of the ping end's main thread for a CPU in recorded context switches, in ns after slot 0; `None` if no
    /// context switches were recorded.
    waits: Option<&'static [(i64, i64)]>,
}

const NOTHING: Load = Load {
    began_ns: Some(0),
    part: None,
    rate: Rate::Period(Nanos(PERIOD)),
    slots: |_| (),
    trial: |_| (),
    before_ns: 0,
    main_ns: 0,
    waits: None,
};

fn trial(change: fn(&mut [SenderRow])) -> GivenTrial {
    let (mut slots, echoes): (Vec<_>, Vec<_>) =
        (0..SLOTS).map(|k| slot(k, PERIOD, 1_000, [10_000, 5_000, 15_000])).unzip();
    change(&mut slots);
    GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }
}

fn given(rate: Rate, trials: Vec<GivenTrial>) -> Given {
    Given { driver: "udp", payload: 64, rate, trials }
}

/// Computes the report of two conditions, one without and one with a load, with one trial each; `level` is the level of
/// the factor `load`.
fn report(load: &Load, level: &str) -> Report {
    report_of(load, level, |_| ())
}

/// Computes the report of two conditions, one without and one with a load, after `change` has changed the thread table
/// of the ping end.
fn report_of(load: &Load, level: &str, threads: impl FnOnce(&mut ThreadTable)) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    let record = crate::support::write(
        &dir,
        &[given(load.rate, vec![trial(|_| ())]), given(load.rate, vec![trial(load.slots)])],
        |manifest| {
            for (condition, level) in manifest.plan.conditions.iter_mut().zip(["none", level]) {
                condition.levels.insert("load".into(), level.into());
            }
            let ran = LoadDone {
                run: "cpu".into(),
                at: "ping".into(),
                policy: "rr 90".into(),
                cpus: "0".into(),
                part: load.part,
                began_ns: load.began_ns.map(|ns| crate::support::T0 + ns),
                ended_ns: Some(crate::support::T0 + 5 * SECOND),
                cpu_ns: 4_900_000_000,
                bytes: None,
                rounds: None,
                failed: None,
                ..LoadDone::default()
            };
            manifest.trials[1].ends.get_mut("ping").unwrap().loads.push(ran);
            (load.trial)(&mut manifest.trials[1]);
        },
    );
    drop(record);
    let mut table = crate::support::thread_table("ping", 0);
    for (before, after) in table.before.iter_mut().zip(&mut table.after) {
        before.run_delay_ns = load.before_ns;
        after.run_delay_ns = load.before_ns + if before.role == "main" { load.main_ns } else { 0 };
    }
    threads(&mut table);
    std::fs::write(dir.join("threads/1-ping.json"), serde_json::to_string(&table).unwrap()).unwrap();
    if let Some(waits) = load.waits {
        std::fs::create_dir_all(dir.join("switches")).unwrap();
        std::fs::write(dir.join("switches/1-ping.json"), serde_json::to_string(&switches(waits)).unwrap()).unwrap();
    }
    analyse(&Record::open(&dir).unwrap()).unwrap()
}

/// Context switches of the whole trial, in which the main thread of the ping end is preempted at the begin of each wait
/// and gets the CPU again at its end.
fn switches(waits: &[(i64, i64)]) -> Switches {
    let main = crate::support::thread_table("ping", 0).after[0].tid;
    let event = |after_ns: i64, what| SwitchEvent { at_ns: crate::support::T0 + after_ns, cpu: 0, what };
    let of = |(from, to): &(i64, i64)| {
        let left = SwitchKind::Switch { out: main, into: 9, preempted: true, state: None, limit: None };
        [
            event(*from, left),
            event(*to, SwitchKind::Switch { out: 9, into: main, preempted: true, state: None, limit: None }),
        ]
    };
    Switches {
        ends: vec!["ping".into()],
        scope: SwitchScope::Cpus(CpuList::one(0)),
        wakes: true,
        windows: vec![(0, crate::support::T0 + 60 * SECOND)],
        events: waits.iter().flat_map(of).collect(),
        ..Switches::default()
    }
}

fn pattern(load: &Load) -> (String, String) {
    let report = report(load, "cpu rr 90 CPU 0");
    assert!(report.trials[0].pattern.is_none(), "nothing ran beside the first");
    let found = report.trials[1].pattern.clone().unwrap();
    (found.name, found.evidence.replace('\u{202f}', " "))
}

#[test]
fn each_pattern_is_recognised_by_its_figures() {
    let cases: [(&str, &str, Load); 19] = [
        ("no effect", "M3 up to 30 us, without a load 30 us", NOTHING),
        (
            "publish blocked",
            "M2 up to 2.00 s, without a load 4.70 us; the main thread waited 5 ms for a CPU in all",
            Load { slots: |s| s[100].send_end_ns += 2 * SECOND, main_ns: 5_000_000, ..NOTHING },
        ),
        (
            "sender starved",
            "M2 up to 2.00 s, without a load 4.70 us; the main thread waited at least 1.50 s of this time for a CPU, \
             1.90 s in all",
            Load {
                slots: |s| s[100].send_end_ns += 2 * SECOND,
                main_ns: 1_900_000_000,
                waits: Some(&[(1_200_000_000, 2_700_000_000), (4_000_000_000, 4_400_000_000)]),
                ..NOTHING
            },
        ),
        // The main thread waited as long, but at another time.
        (
            "publish blocked",
            "M2 up to 2.00 s, without a load 4.70 us; the main thread waited at least 100 ms of this time for a CPU, \
             1.90 s in all",
            Load {
                slots: |s| s[100].send_end_ns += 2 * SECOND,
                main_ns: 1_900_000_000,
                waits: Some(&[(1_200_000_000, 1_300_000_000), (3_100_000_000, 4_900_000_000)]),
                ..NOTHING
            },
        ),
        (
            "publish blocked",
            "M2 up to 2.00 s, without a load 4.70 us; the main thread waited 1.90 s for a CPU in all, and it is not \
             known whether it did in this time",
            Load { slots: |s| s[100].send_end_ns += 2 * SECOND, main_ns: 1_900_000_000, ..NOTHING },
        ),
        // A call that takes longer than the period of 10 ms delays the next message.
        (
            "publish blocked",
            "M2 up to 45.0 ms, without a load 4.70 us; the main thread waited 5 ms for a CPU in all",
            Load { slots: |s| s[100].send_end_ns += 45_000_000, main_ns: 5_000_000, ..NOTHING },
        ),
        (
            "answers late",
            "M3 up to 30 ms, without a load 30 us",
            Load { slots: |s| s[100].receive_ns += 29_970_000, ..NOTHING },
        ),
        (
            "no effect",
            "M3 up to 9 ms, without a load 30 us",
            Load { slots: |s| s[100].receive_ns += 8_970_000, ..NOTHING },
        ),
        (
            "main thread blocked",
            "M4 up to 2 s beyond a period, without a load 0 ns; the main thread waited 5 ms for a CPU in all",
            Load { slots: |s| stood(s), main_ns: 5_000_000, ..NOTHING },
        ),
        (
            "sender starved",
            "M4 up to 2 s beyond a period, without a load 0 ns; the main thread waited at least 1.90 s of this time \
             for a CPU, 1.90 s in all",
            Load {
                slots: |s| stood(s),
                main_ns: 1_900_000_000,
                waits: Some(&[(1_050_000_000, 2_950_000_000)]),
                ..NOTHING
            },
        ),
        // If both a call and a wake-up were blocked, the finding names the longer time.
        (
            "main thread blocked",
            "M4 up to 2 s beyond a period, without a load 0 ns; the main thread waited 5 ms for a CPU in all",
            Load {
                slots: |s| {
                    stood(s);
                    s[400].send_end_ns += 621_000_000;
                },
                main_ns: 5_000_000,
                ..NOTHING
            },
        ),
        // With stop-and-wait, answers wake the sender.
        ("no effect", "M3 up to 30 us, without a load 30 us", Load { rate: Rate::Max, slots: |s| stood(s), ..NOTHING }),
        (
            "total time longer",
            "M1 8.99 s, without a load 4.99 s",
            Load { slots: |s| s[499].receive_ns += 4 * SECOND, ..NOTHING },
        ),
        (
            "messages lost",
            "480 of 500 lost or not sent, without a load 0",
            Load { slots: |s| s[20..].iter_mut().for_each(crate::support::lose), ..NOTHING },
        ),
        (
            "answers late",
            "M3 up to 950 ms, without a load 30 us",
            Load { slots: |s| s[100].receive_ns += 950_000_000 - 30_000, ..NOTHING },
        ),
        (
            "discovery starved",
            "the ends found each other after 6 s, without a load 41 ms; thread `recv` waited 5 s for a CPU meanwhile",
            Load {
                began_ns: Some(-7 * SECOND),
                trial: |t| met(t, Some(6 * SECOND)),
                before_ns: 5_000_000_000,
                ..NOTHING
            },
        ),
        // The load had not begun yet.
        (
            "no effect",
            "M3 up to 30 us, without a load 30 us",
            Load { began_ns: Some(-SECOND), trial: |t| met(t, Some(6 * SECOND)), before_ns: 5_000_000_000, ..NOTHING },
        ),
        (
            "discovery starved",
            "the ends never found each other; thread `recv` waited 9 s for a CPU meanwhile",
            Load { trial: |t| met(t, None), before_ns: 9_000_000_000, ..NOTHING },
        ),
        // The ends matched late, and every thread had a CPU: the load was not the cause.
        (
            "no effect",
            "M3 up to 30 us, without a load 30 us",
            Load { began_ns: Some(-7 * SECOND), trial: |t| met(t, Some(6 * SECOND)), ..NOTHING },
        ),
    ];
    for (name, evidence, load) in cases {
        assert_eq!(pattern(&load), (name.to_owned(), evidence.to_owned()));
    }
    /// Changes the slots as if the main thread did nothing for two seconds and then caught up.
    fn stood(slots: &mut [SenderRow]) {
        for row in &mut slots[100..300] {
            let late = 2 * SECOND - (row.seq as i64 - 100) * PERIOD;
            row.wake_ns += late;
            row.send_begin_ns += late;
            row.send_end_ns += late;
            row.receive_ns += late;
        }
    }
    fn met(trial: &mut TrialRecord, after_ns: Option<i64>) {
        trial.ends.get_mut("pong").unwrap().matched_after_ns = after_ns;
        if after_ns.is_none() {
            trial.finding = Some("ping never met its peer".into());
        }
    }
}

/// Tests that there is no pattern if the ends never found each other although their threads had a CPU; a finding then
/// gives another reason.
#[test]
fn missing_data_gives_no_pattern() {
    let never = |t: &mut TrialRecord| {
        t.ends.values_mut().for_each(|e| e.matched_after_ns = None);
        t.finding = Some("ping never met its peer".into());
    };
    let starved = Load { trial: never, before_ns: 9_000_000_000, ..NOTHING };
    for load in [
        Load { trial: never, ..NOTHING },
        // A load that never began, and a half that only waits for the other.
        Load { began_ns: None, ..starved },
        Load { part: Some(LoadPart::Receives), ..starved },
    ] {
        assert_eq!(report(&load, "cpu").trials[1].pattern, None);
    }
}

/// Tests that messages without an answer count as an effect of the load, even if no call and no delivery took long.
#[test]
fn lost_messages_are_not_nothing() {
    let code = |load: &Load| {
        let report = report(load, "cpu");
        let found = report.findings.iter().find(|f| f.code.starts_with("load_blocked")).unwrap().clone();
        (found.code, found.text)
    };
    let (quiet, _) = code(&NOTHING);
    assert_eq!(quiet, "load_blocked_nothing");
    let (blocked, text) = code(&Load { slots: |s| s[20..].iter_mut().for_each(crate::support::lose), ..NOTHING });
    assert_eq!(blocked, "load_blocked");
    assert!(text.ends_with("blocked under the load: 480 of 500 messages were lost."), "{text}");
}

/// Tests that a send call counts as blocked if it takes at least one period (10 ms here), and that the sentence which says
/// that the load had no effect names this limit.
#[test]
fn a_call_is_blocked_if_it_takes_a_period() {
    let told = |load: &Load| {
        let report = report(load, "cpu");
        let found = report.findings.iter().find(|f| f.code.starts_with("load_blocked")).unwrap();
        found.text.replace('\u{202f}', " ")
    };
    let blocked = told(&Load { slots: |s| s[100].send_end_ns += 45_000_000, ..NOTHING });
    assert!(blocked.ends_with("blocked under the load: the call that publishes took up to 45.0 ms."), "{blocked}");
    let quiet = told(&Load { slots: |s| s[100].send_end_ns += 8_000_000, ..NOTHING });
    assert!(quiet.contains("no wake-up took 10 ms or longer and 3 times as long as usual"), "{quiet}");
}

/// Tests a wait that is counted late, because the kernel counts a wait when it ends: `recv` waited until the load had
/// ended, and `later` is the second reading of the counter.
#[test]
fn a_thread_that_waited_to_the_end_is_named() {
    let starved = |later: Option<ThreadLater>| {
        let report = report_of(&NOTHING, "cpu", |table| {
            (table.before_ns, table.after_ns) = (Some(crate::support::T0), Some(crate::support::T0 + 7 * SECOND));
            let before = table.before[1].clone();
            table.after[1] = ThreadRow { runnable: true, cpu_ns: before.cpu_ns + 3_000_000, later, ..before };
        });
        let told = report.findings.iter().find(|f| f.code == "starved" && f.text.contains("`recv`"));
        (told.map(|f| f.text.replace('\u{202f}', " ")), render_html(&report).contains("≥"))
    };
    let read = |after_ns: i64, waited_ns: i64| {
        let cpu_ns = crate::support::thread_table("ping", 0).before[1].cpu_ns + 3_000_000;
        let run_delay_ns = waited_ns as u64;
        Some(ThreadLater {
            at_ns: crate::support::T0 + 7 * SECOND + after_ns,
            cpu_ns,
            run_delay_ns,
            runnable: waited_ns == 0,
        })
    };
    let text = |later| starved(later).0.unwrap_or_default();
    let known = text(read(50_000_000, 6_950_000_000));
    assert!(known.contains("was ready to run but waited at least 6.90 s of 7 s, and ran for 3 ms."), "{known}");
    assert!(known.contains("In this time the load `cpu` (rr 90) had 4.90 s of CPU time on CPU 0."), "{known}");
    // Never more than the window, however long the wait.
    let long = text(read(50_000_000, 60 * SECOND));
    assert!(long.contains("waited at least 7.00 s of 7 s"), "{long}");
    // The thread had no CPU at that time either.
    let open = text(read(200_000_000, 0));
    assert!(
        open.contains(
            "was waiting for a CPU when the trial ended, and still 200 ms later; the kernel does not say when the wait began; the thread \
             ran for 3 ms of 7 s."
        ),
        "{open}"
    );
    assert!(starved(read(200_000_000, 0)).1, "the table says that it is at least so long");
    // A thread that was read only once proves nothing; its waiting time at the end is not counted.
    assert_eq!(starved(None), (None, true));
}

/// Tests that ends which never found each other have a pattern if a thread waited for a CPU until the load ended.
#[test]
fn a_wait_that_ends_with_the_load_counts_for_ends_that_never_met() {
    let never = |t: &mut TrialRecord| {
        t.ends.values_mut().for_each(|e| e.matched_after_ns = None);
        t.finding = Some("ping never met its peer".into());
    };
    let report = report_of(&Load { trial: never, ..NOTHING }, "cpu", |table| {
        table.after_ns = Some(crate::support::T0);
        let row = &mut table.after[1];
        row.runnable = true;
        let run_delay_ns = row.run_delay_ns + 9_050_000_000;
        let at_ns = crate::support::T0 + 50_000_000;
        row.later = Some(ThreadLater { at_ns, cpu_ns: row.cpu_ns, run_delay_ns, runnable: false });
    });
    let found = report.trials[1].pattern.clone().unwrap();
    assert_eq!(found.name, "discovery starved");
    assert!(found.evidence.replace('\u{202f}', " ").contains("thread `recv` waited 9 s"), "{}", found.evidence);
}

/// Tests that the name of a level gives no pattern: the load of that level did not run.
#[test]
fn what_the_study_asked_for_is_no_evidence() {
    let unasked = |t: &mut TrialRecord| t.ends.values_mut().for_each(|e| e.loads.clear());
    assert_eq!(report(&Load { trial: unasked, ..NOTHING }, "cpu rr 90").trials[1].pattern, None);
}

#[test]
fn counts_are_shown_next_to_published_ones() {
    let mut report = report(&NOTHING, "cpu");
    report.published = vec![PublishedReport {
        name: "theirs".into(),
        text: Some("9 runs in three patterns".into()),
        patterns: [("publish blocked".to_owned(), 2), ("no effect".to_owned(), 7)].into(),
        ..PublishedReport::from(&Published::default())
    }];
    let text = render_terminal(&report, 100, false);
    let at = text.find("number of trials under load with each pattern").unwrap();
    insta::assert_snapshot!("patterns", text[at..].lines().take(6).collect::<Vec<_>>().join("\n"));
    let page = render_html(&report);
    assert!(page.contains("theirs<span class=\"interval\">published, other hardware: 9 runs in three patterns</span>"));
    let told = report.findings.iter().find(|f| f.code == "patterns").unwrap();
    assert_eq!(told.text, "Patterns of 1 trial under load: no effect 1.");
}
