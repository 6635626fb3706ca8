//! Tests of the finding about a starved thread: what had its CPUs, as far as CPU times prove it.

use crate::support::{Given, GivenTrial, T0, slot, thread_table};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 10_000_000;
const SECOND: i64 = 1_000_000_000;

/// A real-time load on CPU 0 that runs for 5 s, from slot 0 on.
fn load() -> LoadDone {
    LoadDone {
        run: "cpu".into(),
        at: "ping".into(),
        policy: "rr 90".into(),
        cpus: "0".into(),
        began_ns: Some(T0),
        ended_ns: Some(T0 + 5 * SECOND),
        cpu_ns: 4_900_000_000,
        ..LoadDone::default()
    }
}

/// Computes the finding about the thread `recv` of the ping end, which waited 4 s for CPU 0 in 5 s, after `change` has
/// changed the load of the trial, and `trial` the trial and the threads of the ping end.
fn starved(change: impl FnOnce(&mut LoadDone), trial: impl FnOnce(&mut TrialRecord, &mut ThreadTable)) -> String {
    let (slots, echoes) = (0..500).map(|k| slot(k, PERIOD, 1_000, [10_000, 5_000, 15_000])).unzip();
    let given = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![given] };
    let mut table = thread_table("ping", 0);
    (table.before_ns, table.after_ns) = (Some(T0), Some(T0 + 5 * SECOND));
    for (before, after) in table.before.iter().zip(&mut table.after) {
        after.cpu_ns = before.cpu_ns + 60_000_000;
        after.run_delay_ns = before.run_delay_ns;
    }
    table.after[1].run_delay_ns += 4_000_000_000;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    drop(crate::support::write(&dir, &[given], |manifest| {
        let mut load = load();
        change(&mut load);
        let record = &mut manifest.trials[0];
        record.ends.get_mut(&load.at).unwrap().loads.push(load);
        trial(record, &mut table);
    }));
    std::fs::write(dir.join("threads/0-ping.json"), serde_json::to_string(&table).unwrap()).unwrap();
    let report = analyse(&Record::open(&dir).unwrap()).unwrap();
    let text = &report.findings.iter().find(|f| f.code == "starved").unwrap().text;
    text.replace('\u{202f}', " ").split_once("and ran for 60 ms. ").unwrap().1.to_owned()
}

fn with(change: impl FnOnce(&mut LoadDone)) -> String {
    starved(change, |_, _| ())
}

/// Words of a finding that names the load as the program that had the CPU.
const BLAMED: &str = "In this time the load";

#[test]
fn a_load_is_named_with_the_cpu_time_that_it_certainly_had_there() {
    let exact = with(|_| ());
    assert!(exact.starts_with("In this time the load `cpu` (rr 90) had 4.90 s of CPU time on CPU 0."), "{exact}");
    // At most 10 s of the 14.9 s were before the trial.
    let longer = with(|load| (load.began_ns, load.cpu_ns) = (Some(T0 - 10 * SECOND), 14_900_000_000));
    assert!(longer.starts_with("In this time the load `cpu` (rr 90) had at least 4.90 s of CPU time on"), "{longer}");
    // At most 5 s of the 9.8 s were on the other CPU.
    let wider = with(|load| (load.cpus, load.cpu_ns) = ("0-1".into(), 9_800_000_000));
    assert!(wider.starts_with("In this time the load `cpu` (rr 90) had at least 4.80 s of CPU time on"), "{wider}");
}

#[test]
fn a_load_that_could_be_elsewhere_is_not_blamed() {
    // 20 s of CPU time in 65 s, which may all lie before the trial.
    let before = with(|load| (load.began_ns, load.cpu_ns) = (Some(T0 - 60 * SECOND), 20_000_000_000));
    insta::assert_snapshot!("starved_load_before", before);
    // A single thread that could use two CPUs.
    let beside = with(|load| load.cpus = "0-1".into());
    insta::assert_snapshot!("starved_load_on_more_cpus", beside);
    // A load that ended before the trial, and one that began after it.
    for began in [-5 * SECOND, 5 * SECOND] {
        let text = with(|load| (load.began_ns, load.ended_ns) = (Some(T0 + began), Some(T0 + began + 5 * SECOND)));
        insta::allow_duplicates! { insta::assert_snapshot!("starved_without_load", text) };
    }
    // CPU 0 of another machine.
    let there =
        starved(|load| load.at = "pong".into(), |trial, _| trial.ends.get_mut("pong").unwrap().host = "bench-2".into());
    assert!(!there.contains("load"), "{there}");
}

#[test]
fn a_thread_that_could_be_elsewhere_is_not_blamed() {
    let of_main = |cpus: &'static str| {
        starved(
            |load| load.cpus = "1".into(),
            |_, table| {
                table.after[0].cpus = cpus.parse().unwrap();
                table.after[0].cpu_ns += 3_000_000_000;
            },
        )
    };
    let named = of_main("0");
    assert_eq!(named, "In this time thread `tb-main` of the ping end (fifo 80) had 3.06 s of CPU time on CPU 0.");
    let not_named = of_main("0-1");
    assert!(!not_named.contains("tb-main"), "{not_named}");
}

/// Tests that CPU time beside a real-time load is not credited to a kernel feature: a thread above the load had most of
/// it.
#[test]
fn time_beside_a_load_is_given_to_the_threads_that_had_it() {
    let text = starved(|load| load.cpu_ns = 3_000_000_000, |_, table| table.after[0].cpu_ns += 1_500_000_000);
    assert!(text.starts_with(BLAMED), "{text}");
    insta::assert_snapshot!("starved_beside", text);
}
