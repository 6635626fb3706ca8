//! Tests of valid studies: the built-in studies, default values, and the effect of each key on the plan.

use std::path::Path;
use tailbound_model::{
    Attribution, Collect, CpuList, HandOff, Length, Measure, Nanos, OnOverrun, PathSpec, PingPong, PlaceSpec, Plan,
    Policy, Problem, ReceiveMode, TrialSpec,
};
use tailbound_study::{Options, check_limits, embedded, estimate, load, load_str, load_str_with, load_with};

fn plan(text: &str) -> Plan {
    load_str("test.yaml", text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn built_in(name: &str) -> Plan {
    let (_, text) = embedded().iter().find(|(n, _)| *n == name).expect("a built-in study");
    load_str(&format!("{name}.yaml"), text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn spec(text: &str) -> TrialSpec {
    plan(text).conditions[0].spec.clone()
}

fn ping_pong(spec: &TrialSpec) -> &PingPong {
    let Measure::PingPong(keys) = &spec.measure else { panic!("{:?}", spec.measure) };
    keys
}

#[test]
fn quick_measures_four_conditions_five_times_in_about_twenty_seconds() {
    let plan = built_in("quick");
    // A verdict of `tailbound compare` needs five trials a side.
    assert_eq!((plan.conditions.len(), plan.trials.len()), (4, 20));
    // Each trial takes about half a second more than its messages.
    let seconds = estimate(&plan).secs() + 0.5 * plan.trials.len() as f64;
    assert!((15.0..25.0).contains(&seconds), "{seconds} s");
    let payloads: Vec<u64> = plan.conditions[..2].iter().map(|c| c.spec.payload.0).collect();
    assert_eq!(payloads, [64, 60_000]);
    // p99.9 with its interval needs 3688 slots.
    let Length::Slots(slots) = ping_pong(&plan.conditions[0].spec).length else { panic!("slots") };
    assert!(slots * 5 >= 3688);
}

#[test]
fn built_in_studies_load_from_their_files() {
    for (name, text) in embedded() {
        let plan = built_in(name);
        assert_eq!((plan.study.as_str(), plan.source.as_str()), (*name, *text));
        assert!(plan.conditions.iter().all(|c| c.not_possible.is_none()), "{name}");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../studies/{name}.yaml"));
        assert_eq!(load(&file, &[]).unwrap(), plan);
    }
}

/// The published study opened and closes the gates of its sender in front of each bridge.
#[test]
fn vm_bridges_can_have_the_published_gates_on_every_bridge() {
    let (_, text) = embedded().iter().find(|(name, _)| *name == "vm-bridges").unwrap();
    let comment: String = text.lines().filter_map(|line| line.strip_prefix("# ")).collect::<Vec<_>>().join(" ");
    let (_, gates) = comment.split_once("--set ends.ping.gates='").unwrap();
    let gates = format!("ends.ping.gates={}", gates.split_once('\'').unwrap().0);
    let options = Options { settings: &[gates], ..Options::default() };
    let plan = load_str_with("vm-bridges.yaml", text, Path::new(""), &options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.conditions.len(), 12);
    for condition in &plan.conditions {
        let gates = condition.spec.ping.gates.as_ref().map(|gates| (gates.entries.len(), gates.classes.len()));
        assert_eq!((&condition.not_possible, gates), (&None, Some((3, 3))), "{:?}", condition.levels);
    }
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let plan = plan("measure: ping-pong\ndriver: udp\n");
    let spec = &plan.conditions[0].spec;
    let keys = ping_pong(spec);
    assert_eq!(plan.study, "test");
    assert_eq!((spec.payload.0, spec.rate.period(), spec.domain), (64, Some(Nanos::from_millis(1)), 77));
    assert_eq!((&spec.path, &spec.ping.place), (&PathSpec::Veth { mtu: None, delay: None }, &PlaceSpec::Netns));
    assert_eq!((keys.length, keys.warm_up_slots), (Length::Duration(Nanos::from_secs(10)), 200));
    assert_eq!((keys.timeout, keys.on_overrun), (Nanos::from_secs(1), OnOverrun::CatchUp));
    assert_eq!((keys.receive, &keys.hand_off, spec.collect), (ReceiveMode::Listener, &HandOff::None, Collect::After));
    assert_eq!((&spec.ping.scheduling.cpus, spec.ping.scheduling.policy), (&None, None));
    assert!(spec.qos.is_empty() && plan.factors.is_empty());
    assert_eq!((plan.seed, plan.trials.len()), (1, 1));
    let levels: Vec<(&str, &str)> = plan.conditions[0].levels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(levels, [("driver", "udp"), ("path", "veth"), ("payload", "64 B"), ("rate", "1 kHz")]);
}

#[test]
fn place_and_path_follow_each_other() {
    let of = |keys: &str| {
        let spec = spec(&format!("measure: ping-pong\ndriver: udp\n{keys}\n"));
        (spec.path, spec.ping.place, spec.pong.place)
    };
    assert_eq!(of("path: loopback"), (PathSpec::Loopback, PlaceSpec::Process, PlaceSpec::Process));
    assert_eq!(of("path: bridge").1, PlaceSpec::Netns);
    assert_eq!(of("place: same-process").0, PathSpec::Loopback);
    assert_eq!(of("place: process").0, PathSpec::Loopback);
    assert_eq!(of("place: { existing-netns: a }").0, PathSpec::Veth { mtu: None, delay: None });
    assert_eq!(of("ends: { ping: { place: { existing-netns: a } } }").2, PlaceSpec::Netns);
    let existing = of("path: { existing: { ping: { interface: eth0 }, pong: { address: fe80::1 } } }");
    assert_eq!(existing.1, PlaceSpec::Process);
    assert_eq!(existing.0.to_string(), "existing eth0 to fe80::1");
}

#[test]
fn ends_are_pinned_to_distinct_allowed_cpus() {
    let cpus = |text: &str, allowed: &[u32]| {
        let options = Options { allowed_cpus: allowed, ..Options::default() };
        let plan = load_str_with("a.yaml", &format!("measure: ping-pong\n{text}"), Path::new(""), &options).unwrap();
        let spec = &plan.conditions[0].spec;
        let shown = |cpus: &Option<CpuList>| cpus.as_ref().map_or("any".to_owned(), CpuList::to_string);
        (shown(&spec.ping.scheduling.cpus), shown(&spec.pong.scheduling.cpus))
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(cpus("driver: udp\n", &[2, 5, 7]), pair("2", "5"));
    assert_eq!(cpus("driver: udp\n", &[3]), pair("3", "3"));
    assert_eq!(cpus("driver: udp\nplace: same-process\n", &[2, 5, 7]), pair("2,5", "2,5"));
    assert_eq!(cpus("driver: udp\nplace: same-process\nends: { pong: { cpus: 7 } }\n", &[2, 5, 7]), pair("7", "7"));
    assert_eq!(cpus("driver: udp\nends: { ping: { cpus: any } }\n", &[2, 5]), pair("any", "5"));
    let deadline = "driver: udp\nscheduling: { policy: deadline, runtime: 1 ms, deadline: 2 ms, period: 2 ms }\n";
    assert_eq!(cpus(deadline, &[2, 5]), pair("any", "any"));
}

#[test]
fn all_keys_arrive_in_the_plan() {
    let text = r#"
study: all
measure:
  ping-pong:
    slots: 500
    warm_up: 10 ms
    timeout: 2 s
    on_overrun: skip
    receive: spin
    hand_off: { thread: { cpus: "1" } }
payload: 1.5 kB
rate: 500 Hz
driver: { cyclonedds: { multicast: off, peers: "10.0.0.1,10.0.0.2", fragment: 8000 } }
qos:
  reliability: { reliable: { max_blocking_time: 100 ms } }
  history: { keep-last: 4 }
  durability: transient-local
  deadline: 1 s
  latency_budget: 0 ms
  lifespan: 2 s
  liveliness: { manual-by-topic: { lease_duration: 3 s } }
  transport_priority: -1
domain: 0
ends:
  ping: { place: netns, cpus: 0, scheduling: { policy: rr, priority: 98 } }
  pong: { place: { existing-netns: lab }, cpus: "0-1,3" }
scheduling: { policy: batch, nice: 5 }
path: { bridge: { mtu: 9000 } }
collect: live
repeat: 2
seed: 18446744073709551615
report: { title: A title, quantiles: [0.5, "0.99999"], x: rate }
"#;
    let plan = Plan { source: String::new(), ..plan(text) };
    insta::assert_json_snapshot!(plan);
}

#[test]
fn a_report_sets_levels_against_one_of_them() {
    let against = |keys: &str, set: &[&str]| {
        let text = format!("measure: ping-pong\ndriver: udp\n{keys}\n");
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        let plan = load_str("s.yaml", &text, Path::new("."), &set).unwrap();
        plan.report.against.map(|a| (a.factor, a.level))
    };
    let told = |factor: &str, level: &str| Some((factor.to_owned(), level.to_owned()));
    let payload = "factors: { payload: [64 B, 1 KiB] }\nreport: { against: { payload: 1024B } }";
    assert_eq!(against(payload, &[]), told("payload", "1 KiB"));
    // If only one level is left, there is no comparison, and the study stays valid.
    assert_eq!(against(payload, &["payload=64B"]), None);
    let path = "factors: { path: [loopback, { veth: { mtu: 9000 } }] }\nreport: { against: { path: veth mtu 9000 } }";
    assert_eq!(against(path, &[]), told("path", "veth mtu 9000"));
    assert_eq!(against(path, &["report.against.path=loopback"]), told("path", "loopback"));
}

#[test]
fn the_check_of_a_recording_is_a_factor() {
    let plan = |keys: &str, set: &[&str]| {
        let text = format!("measure: ping-pong\ndriver: udp\n{keys}\n");
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        load_str("s.yaml", &text, Path::new("."), &set).unwrap()
    };
    let levels = |plan: &Plan| -> Vec<Attribution> { plan.conditions.iter().map(|c| c.spec.attribution).collect() };
    let alone = plan("attribution: { level: machine }", &[]);
    assert_eq!((levels(&alone), alone.report.against), (vec![Attribution::Machine], None));
    let off = plan("attribution: { check: off }", &[]);
    assert_eq!((levels(&off), off.factors.len()), (vec![Attribution::Auto], 0));
    let on = "attribution: { level: machine, check: on }\nfactors: { payload: [64 B, 1 KiB] }\nrepeat: 5";
    for checked in [plan(on, &[]), plan(&on.replace("machine", "off"), &["attribution.level=machine"])] {
        use Attribution::{Machine, Off};
        assert_eq!(levels(&checked), [Machine, Off, Machine, Off]);
        assert_eq!((checked.factors.join(" "), checked.trials.len()), ("payload attribution".to_owned(), 20));
        let against = checked.report.against.unwrap();
        assert_eq!((against.factor.as_str(), against.level.as_str()), ("attribution", "off"));
        assert_eq!(checked.conditions[2].levels["attribution"], "machine");
    }
    // The title of the report stays.
    let titled = plan("attribution: { level: threads, check: on }\nreport: { title: T }", &[]);
    assert_eq!((titled.report.title.as_deref(), titled.report.against.is_some()), (Some("T"), true));
}

#[test]
fn warm_up_becomes_a_number_of_slots() {
    let slots = |keys: &str| ping_pong(&spec(&format!("driver: udp\n{keys}\n"))).warm_up_slots;
    assert_eq!(slots("measure: ping-pong\nrate: 3 kHz"), 601); // 200 ms / 333,333 ns, rounded up
    assert_eq!(slots("measure: { ping-pong: { warm_up: 7 } }\nrate: max"), 7);
    assert_eq!(slots("measure: { ping-pong: { warm_up: 1 s } }\nrate: max"), 1000);
    assert_eq!(slots("measure: { ping-pong: { warm_up: 0 } }"), 0);
}

#[test]
fn a_configuration_file_is_read_from_the_directory_of_the_study() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("my.xml"), "<CycloneDDS/>").unwrap();
    let study = dir.path().join("with-config.yaml");
    std::fs::write(&study, "measure: ping-pong\ndriver: { cyclonedds: { config: my.xml, multicast: off } }\n").unwrap();
    let plan = load(&study, &[]).unwrap();
    let driver = &plan.conditions[0].spec.driver;
    let config = driver.config.as_ref().unwrap();
    assert_eq!(
        (plan.study.as_str(), config.path.as_str(), config.text.as_str()),
        ("with-config", "my.xml", "<CycloneDDS/>")
    );
    assert_eq!(config.sha256, "7d14351f8d9a5406f8660685a6818bf718365f0fcb4a0ea6aed12dd7ee6501ab");
    assert_eq!(driver.options, [("multicast".to_owned(), "off".to_owned())].into());
    assert_eq!(plan.conditions[0].levels["driver"], "cyclonedds config my.xml, multicast off");
}

#[test]
fn aliases_and_merge_keys_are_understood() {
    let text = "measure: ping-pong\ndriver: udp\nends:\n  ping: &end { scheduling: { policy: fifo, priority: 5 } }\n  \
                pong: { <<: *end, cpus: any }\n";
    assert_eq!(spec(text).pong.scheduling.policy, Some(Policy::Fifo { priority: 5 }));
}

#[test]
fn files_that_cannot_be_read_are_errors_without_a_place() {
    let error = load(Path::new("no-such-dir/quik.yaml"), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no-such-dir/quik.yaml: cannot be read: no such file or directory\n  help: there is a built-in study `quick`; \
         `tailbound studies show quick` prints it"
    );
    assert!(load(Path::new("/"), &[]).unwrap_err().to_string().contains("is a directory, not a study file"));
    let dir = tempfile::tempdir().unwrap();
    let latin = dir.path().join("latin.yaml");
    std::fs::write(&latin, b"measure: ping-pong\nquestion: sp\xe4t\n").unwrap();
    let error = load(&latin, &[]).unwrap_err();
    assert_eq!((error.line, error.column, error.problem.what.as_str()), (2, 13, "not text in UTF-8"));
}

#[test]
fn limits_of_a_driver_make_conditions_impossible() {
    let text = "measure: ping-pong\ndriver: udp\nrepeat: 2\nfactors: { payload: [64 B, 60 kB, 70 kB] }\n";
    let limits = |spec: &TrialSpec| {
        (spec.payload.0 > 65_507).then(|| Problem::new("too_long", "payload: at most 65507 B", "").at("payload"))
    };
    let mut plan = plan(text);
    assert_eq!((plan.trials.len(), check_limits(&mut plan, &limits)), (6, 2));
    assert_eq!(plan.conditions[2].not_possible.as_deref(), Some("payload: at most 65507 B"));
    let options = Options { limits: Some(&limits), ..Options::default() };
    assert_eq!(load_str_with("test.yaml", text, Path::new(""), &options).unwrap(), plan);
    let strict = Options { strict: true, ..options };
    let error = load_str_with("test.yaml", text, Path::new(""), &strict).unwrap_err();
    assert_eq!((error.line, error.column), (4, 35));
    assert!(load_with(Path::new("/nowhere.yaml"), &options).is_err());
}

#[test]
fn a_problem_of_a_driver_points_at_the_key_that_it_names() {
    let text = "measure: ping-pong\ndriver: udp\nqos: { reliability: reliable }\n";
    let place = |key: &'static str| {
        let limits = move |_: &TrialSpec| Some(Problem::new("refused", "the payload needs another QoS", "").at(key));
        let options = Options { limits: Some(&limits), ..Options::default() };
        let error = load_str_with("test.yaml", text, Path::new(""), &options).unwrap_err();
        (error.line, error.column)
    };
    assert_eq!(place("qos.reliability"), (3, 21));
    assert_eq!(place("qos.history.depth"), (3, 6));
    assert_eq!(place("driver"), (2, 9));
    // The study has no payload: the driver is the key that can be changed.
    assert_eq!(place("payload"), (2, 9));
}
