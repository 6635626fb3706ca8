//! Tests of the rules: every rule reports the bad case, and only the bad case, and never treats a fact that was not
//! read as good.

use super::*;
use crate::rules;
use std::collections::BTreeSet;
use tailbound_document::{CauseWord, LossKind};
use tailbound_model::{Fact, FactValue, HostFacts};

fn flag(value: bool) -> FactValue {
    FactValue::Flag(value)
}
fn number(value: i64) -> FactValue {
    FactValue::Number(value)
}
fn text(value: &str) -> FactValue {
    FactValue::Text(value.to_owned())
}
fn not_read() -> FactValue {
    FactValue::Unknown("only root may read this value".into())
}

/// Facts of an invented machine that is set up for short tails.
fn good() -> HostFacts {
    let facts = [
        ("machine.emulated", flag(false)),
        ("machine.hypervisor", text("none")),
        ("cpu.steal_ppm", number(0)),
        ("load.1min", text("0.08")),
        ("cpu.count", number(8)),
        ("cpu.allowed", text("0-7")),
        ("kernel.cmdline", text("isolcpus=2-7 nohz_full=2-7 threadirqs")),
        ("kernel.preempt_rt", flag(true)),
        ("kernel.preemption", text("realtime")),
        ("kernel.nmi_watchdog", flag(false)),
        ("irq.threaded", flag(true)),
        ("irq.balance_daemon", flag(false)),
        ("clock.source", text("tsc")),
        ("sched.rt_runtime_us", number(-1)),
        ("sched.rt_period_us", number(1_000_000)),
        ("sched.rt_group", flag(false)),
        ("sched.fair_server", flag(false)),
        ("sched.fair_server_runtime_ns", not_read()),
        ("sched.autogroup", flag(false)),
        ("process.timer_slack_ns", number(1)),
        ("cpu.governor", text("performance")),
        ("cpu.turbo", flag(false)),
        ("cpu.idle_deepest_us", number(2)),
        ("cpu.dma_latency_us", number(2_000_000_000)),
        ("cpu.smt_active", flag(false)),
        ("cpu.isolated", text("2-7")),
        ("cpu.nohz_full", text("2-7")),
        ("cpu.vulnerability.mds", text("Not affected")),
        ("cpu.vulnerability.spectre_v2", text("Vulnerable")),
        ("memory.thp", text("madvise")),
        ("memory.swap_total_kib", number(0)),
        ("memory.ksm", number(0)),
        ("memory.numa_balancing", flag(false)),
        ("numa.nodes", number(2)),
        ("memory.compaction_proactiveness", number(0)),
        ("net.core.rmem_max", number(8_388_608)),
        ("net.ipv4.ipfrag_high_thresh", number(4_194_304)),
        ("cgroup.cpu_max", text("max")),
        ("capability.sys_nice", flag(true)),
        ("capability.ipc_lock", flag(true)),
        ("limit.rtprio", number(0)),
        ("limit.memlock_bytes", number(8_388_608)),
    ];
    HostFacts {
        host: "bench".into(),
        boot_id: String::new(),
        facts: facts
            .into_iter()
            .map(|(key, value)| Fact { key: key.into(), value, source: "made up".into() })
            .collect(),
    }
}

fn with(mut facts: HostFacts, changes: &[(&str, FactValue)]) -> HostFacts {
    for (key, value) in changes {
        let fact = facts.facts.iter_mut().find(|f| f.key == *key).unwrap_or_else(|| panic!("no fact {key}"));
        fact.value = value.clone();
    }
    facts
}

fn firing(facts: &HostFacts) -> Vec<String> {
    diagnose(facts).into_iter().filter(|f| f.verdict == Verdict::WillWidenTail).map(|f| f.key).collect()
}

/// For each rule, the changes of facts that make a good machine bad for this rule only.
fn faults() -> Vec<(&'static str, Vec<(&'static str, FactValue)>)> {
    vec![
        ("machine.emulated", vec![("machine.emulated", flag(true))]),
        ("machine.hypervisor", vec![("machine.hypervisor", text("KVM"))]),
        ("cpu.steal_ppm", vec![("cpu.steal_ppm", number(137))]),
        ("load.1min", vec![("load.1min", text("3.51"))]),
        ("cpu.allowed", vec![("cpu.allowed", text("3"))]),
        ("kernel.preempt_rt", vec![("kernel.preempt_rt", flag(false))]),
        ("kernel.preemption", vec![("kernel.preemption", text("voluntary"))]),
        ("kernel.nmi_watchdog", vec![("kernel.nmi_watchdog", flag(true))]),
        ("irq.threaded", vec![("irq.threaded", flag(false))]),
        ("irq.balance_daemon", vec![("irq.balance_daemon", flag(true))]),
        ("clock.source", vec![("clock.source", text("hpet"))]),
        ("sched.rt_runtime_us", vec![("sched.rt_runtime_us", number(950_000))]),
        (
            "sched.rt_runtime_us",
            vec![
                ("sched.rt_runtime_us", number(950_000)),
                ("sched.rt_group", flag(true)),
                ("sched.fair_server", flag(true)),
                ("sched.fair_server_runtime_ns", text("0")),
            ],
        ),
        (
            "sched.fair_server",
            vec![
                ("sched.fair_server", flag(true)),
                ("sched.rt_runtime_us", number(950_000)),
                ("sched.rt_group", flag(false)),
            ],
        ),
        (
            "sched.fair_server",
            vec![("sched.fair_server", flag(true)), ("sched.fair_server_runtime_ns", text("50000000"))],
        ),
        ("sched.autogroup", vec![("sched.autogroup", flag(true))]),
        ("process.timer_slack_ns", vec![("process.timer_slack_ns", number(50_000))]),
        ("cpu.governor", vec![("cpu.governor", text("powersave (CPU 0-3), performance (CPU 4-7)"))]),
        ("cpu.turbo", vec![("cpu.turbo", flag(true))]),
        ("cpu.idle_deepest_us", vec![("cpu.idle_deepest_us", number(133))]),
        ("cpu.idle_deepest_us", vec![("cpu.idle_deepest_us", number(133)), ("cpu.dma_latency_us", not_read())]),
        ("cpu.idle_deepest_us", vec![("cpu.idle_deepest_us", number(890)), ("cpu.dma_latency_us", number(100))]),
        ("cpu.smt_active", vec![("cpu.smt_active", flag(true))]),
        ("cpu.isolated", vec![("cpu.isolated", text(""))]),
        ("cpu.nohz_full", vec![("cpu.nohz_full", text(""))]),
        ("cpu.mitigations", vec![("cpu.vulnerability.mds", text("Mitigation: Clear CPU buffers; SMT disabled"))]),
        ("memory.thp", vec![("memory.thp", text("always"))]),
        ("memory.swap_total_kib", vec![("memory.swap_total_kib", number(2_097_148))]),
        ("memory.ksm", vec![("memory.ksm", number(1))]),
        ("memory.numa_balancing", vec![("memory.numa_balancing", flag(true))]),
        ("memory.compaction_proactiveness", vec![("memory.compaction_proactiveness", number(20))]),
        ("net.core.rmem_max", vec![("net.core.rmem_max", number(212_992))]),
        ("net.ipv4.ipfrag_high_thresh", vec![("net.ipv4.ipfrag_high_thresh", number(262_144))]),
        ("cgroup.cpu_max", vec![("cgroup.cpu_max", text("150000 100000"))]),
        ("limit.rtprio", vec![("capability.sys_nice", flag(false))]),
        ("limit.memlock_bytes", vec![("capability.ipc_lock", flag(false))]),
    ]
}

#[test]
fn every_rule_fires_on_its_fault_alone() {
    assert_eq!(firing(&good()), Vec::<String>::new());
    for (key, changes) in faults() {
        assert_eq!(firing(&with(good(), &changes)), [key], "{changes:?}");
    }
}

#[test]
fn every_rule_has_a_fault_and_complete_texts() {
    let tested: BTreeSet<&str> = faults().into_iter().map(|(key, _)| key).collect();
    let rules: BTreeSet<&str> = rules::all().map(|r| r.key).collect();
    assert_eq!(tested, rules);
    assert_eq!(rules::all().count(), rules.len(), "no key twice");
    for rule in rules::all() {
        let remedy = rule.remedy().unwrap_or_else(|| panic!("{}: no rule of advice `{}`", rule.key, rule.advice));
        assert!((1..=5).contains(&rule.weight), "{}", rule.key);
        for sentence in [rule.title, rule.because, remedy.remedy] {
            assert!(!sentence.is_empty() && !sentence.ends_with('.') && !sentence.contains("  "), "{}", rule.key);
        }
    }
}

#[test]
fn what_was_not_read_is_unknown_with_its_reason_and_never_ok() {
    for finding in diagnose(&HostFacts::default()) {
        assert_eq!(finding.verdict, Verdict::Unknown, "{finding:?}");
        assert!(!finding.because.is_empty(), "{finding:?}");
    }
    let finding =
        diagnose(&with(good(), &[("cpu.governor", not_read())])).into_iter().find(|f| f.key == "cpu.governor");
    assert_eq!(finding.unwrap().because, "only root may read this value");
}

#[test]
fn what_makes_up_for_a_fault_is_seen() {
    let cases: [&[(&str, FactValue)]; 7] = [
        &[("cpu.idle_deepest_us", number(133)), ("cpu.dma_latency_us", number(0))],
        &[("cpu.idle_deepest_us", number(133)), ("kernel.cmdline", text("quiet idle=poll"))],
        &[("memory.numa_balancing", flag(true)), ("numa.nodes", number(1))],
        &[("capability.sys_nice", flag(false)), ("limit.rtprio", number(99))],
        &[("capability.sys_nice", flag(false)), ("limit.rtprio", text("unlimited"))],
        &[("capability.ipc_lock", flag(false)), ("limit.memlock_bytes", text("unlimited"))],
        &[("sched.rt_runtime_us", number(1_000_000))],
    ];
    for changes in cases {
        assert_eq!(firing(&with(good(), changes)), Vec::<String>::new(), "{changes:?}");
    }
}

/// Facts of an invented machine with all faults at once, and a few facts that could not be read.
fn bad() -> HostFacts {
    let all: Vec<(&str, FactValue)> = faults().into_iter().flat_map(|(_, changes)| changes).collect();
    let hidden = ["kernel.preemption", "cpu.turbo"].map(|key| (key, not_read()));
    with(with(good(), &all), &hidden)
}

#[test]
fn a_good_and_a_bad_machine_as_text() {
    let all = Shape { width: 80, colour: false, verbose: true };
    insta::assert_snapshot!("good_80", render(&ranked(diagnose(&good()), None), all));
    insta::assert_snapshot!("bad_80", render(&ranked(diagnose(&bad()), None), all));
    insta::assert_snapshot!("good_short", render(&ranked(diagnose(&good()), None), Shape { verbose: false, ..all }));
    insta::assert_snapshot!("bad_short", render(&ranked(diagnose(&bad()), None), Shape { verbose: false, ..all }));
}

/// The keys of the five findings that are shown first.
fn first(record: Option<&RecordEvidence>) -> Vec<String> {
    ranked(diagnose(&bad()), record).into_iter().take(5).map(|finding| finding.key).collect()
}

#[test]
fn what_delays_most_comes_first_and_with_a_record_what_the_record_shows() {
    let weights: Vec<u8> = ranked(diagnose(&bad()), None)
        .into_iter()
        .filter(|finding| finding.verdict == Verdict::WillWidenTail)
        .map(|finding| finding.weight)
        .collect();
    assert!(weights.is_sorted_by(|a, b| a >= b), "{weights:?}");
    let mut record = RecordEvidence {
        causes: vec![(CauseWord::PageFault, 0.4), (CauseWord::IdleExit, 0.25)],
        losses: vec![(LossKind::SocketBuffer, 71)],
    };
    assert_eq!(first(Some(&record))[0], "net.core.rmem_max");
    record.losses.clear();
    let all = ranked(diagnose(&bad()), Some(&record));
    let with_evidence: Vec<&str> =
        all.iter().filter(|finding| finding.evidence.is_some()).map(|finding| finding.key.as_str()).collect();
    assert_eq!(all[0].evidence.as_ref().unwrap().words(), "40 % of your excess was `page_fault`");
    assert!(
        with_evidence.contains(&"memory.thp") && with_evidence.contains(&"cpu.idle_deepest_us"),
        "{with_evidence:?}"
    );
    assert_eq!(all.iter().take_while(|finding| finding.evidence.is_some()).count(), with_evidence.len());
    // A small cause is no evidence.
    record.causes = vec![(CauseWord::PageFault, 0.001)];
    assert_eq!(first(Some(&record)), first(None));
}

#[test]
fn colours_add_no_words() {
    let shape = |colour| Shape { width: 80, colour, verbose: true };
    let findings = ranked(diagnose(&bad()), None);
    let coloured = render(&findings, shape(true));
    assert!(coloured.contains("\x1b[31m") && coloured.contains("\x1b[1m"));
    let bare = ["\x1b[31m", "\x1b[1m", "\x1b[0m"].iter().fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(bare, render(&findings, shape(false)));
}

#[test]
fn no_line_is_wider_than_asked() {
    for width in [40, 60, 80, 120] {
        let text = render(&diagnose(&bad()), Shape { width, colour: false, verbose: true });
        for line in text.lines().filter(|l| l.split_whitespace().count() > 1) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn findings_round_trip_as_json() {
    let findings = diagnose(&bad());
    let json = serde_json::to_string(&findings).unwrap();
    assert!(json.contains(r#""verdict":"will_widen_tail""#));
    assert_eq!(serde_json::from_str::<Vec<Finding>>(&json).unwrap(), findings);
    insta::assert_json_snapshot!("one_finding", findings[1]);
}
