//! Tests of factors and `--set` arguments: paths, levels, and combinations that are impossible.

use std::path::Path;
use tailbound_model::{Measure, PathSpec, PingPong, Plan};
use tailbound_study::load_str;

fn with(text: &str, settings: &[&str]) -> Plan {
    let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
    load_str("test.yaml", text, Path::new(""), &settings).unwrap_or_else(|e| panic!("{e}"))
}

fn factors(text: &str) -> Plan {
    with(&format!("measure: ping-pong\nrate: 1 kHz\nfactors:\n{text}"), &[])
}

fn levels<'a>(plan: &'a Plan, factor: &str) -> Vec<&'a str> {
    plan.conditions.iter().map(|c| c.levels[factor].as_str()).collect()
}

fn ping_pong(plan: &Plan, condition: usize) -> &PingPong {
    let Measure::PingPong(keys) = &plan.conditions[condition].spec.measure else { panic!("a ping-pong") };
    keys
}

#[test]
fn first_factor_is_the_outermost() {
    let plan = factors("  driver: [udp, cyclonedds]\n  payload: [64 B, 1 KiB, 60000 B]\n");
    assert_eq!(plan.factors, ["driver", "payload"]);
    assert_eq!(levels(&plan, "driver"), ["udp", "udp", "udp", "cyclonedds", "cyclonedds", "cyclonedds"]);
    assert_eq!(levels(&plan, "payload"), ["64 B", "1 KiB", "60 kB", "64 B", "1 KiB", "60 kB"]);
    assert_eq!(levels(&plan, "path"), ["veth"; 6]);
}

#[test]
fn options_are_found_through_the_chosen_word() {
    let plan =
        factors("  driver: [udp]\n  measure.slots: [100, 200]\n  measure.hand_off: [none, { thread: { cpus: 1 } }]\n");
    assert_eq!(levels(&plan, "measure.hand_off"), ["none", "thread cpus 1", "none", "thread cpus 1"]);
    assert_eq!(format!("{:?}", ping_pong(&plan, 2).length), "Slots(200)");
    let named = factors("  driver: [udp]\n  measure.ping-pong.slots: [100, 200]\n");
    assert_eq!(format!("{:?}", ping_pong(&named, 1).length), "Slots(200)");
}

#[test]
fn an_option_may_precede_the_choice_it_belongs_to() {
    let plan = factors("  driver.multicast: [off, spdp]\n  driver: [cyclonedds, fastdds]\n");
    assert_eq!(plan.factors, ["driver.multicast", "driver"]);
    assert_eq!(levels(&plan, "driver"), ["cyclonedds", "fastdds", "cyclonedds", "fastdds"]);
    assert_eq!(plan.conditions[3].spec.driver.options["multicast"], "spdp");
}

#[test]
fn maps_that_are_not_there_are_made() {
    let plan =
        factors("  driver: [udp]\n  ends.ping.cpus: ['0', '0-1', any]\n  qos.reliability: [reliable, best-effort]\n");
    assert_eq!(levels(&plan, "ends.ping.cpus"), ["0", "0", "0-1", "0-1", "any", "any"]);
    assert_eq!(plan.conditions[5].spec.qos["reliability"], "best-effort");
}

#[test]
fn path_option_alone_means_the_default_path() {
    let plan = factors("  driver: [udp]\n  path.mtu: [1500, 9000]\n");
    assert_eq!(plan.conditions[1].spec.path, PathSpec::Veth { mtu: Some(9000), delay: None });
    assert_eq!((levels(&plan, "path"), levels(&plan, "path.mtu")), (vec!["veth"; 2], vec!["1500", "9000"]));
}

#[test]
fn loads_are_described_in_a_few_words() {
    let plan = factors(
        "  driver: [udp]\n  load:\n    - []\n    - [{ run: cpu, scheduling: { policy: rr, priority: 90, cpus: '0' }, duration: 1 s }]\n    \
         - [{ run: { command: [stress-ng, --vm, '1'] }, at: pong, start: before-discovery }, { run: cache, start: 2 s }]\n",
    );
    let known = ["none", "cpu rr 90 CPU 0, for 1 s", "stress-ng --vm 1 at pong, before discovery + cache, after 2 s"];
    assert_eq!(levels(&plan, "load"), known);
    assert_eq!(plan.conditions.iter().map(|c| c.spec.loads.len()).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn levels_have_texts_that_people_know() {
    let plan = factors(
        "  driver: [udp, { cyclonedds: { multicast: off } }]\n  path: [veth, { veth: { mtu: 9000 } }]\n  \
         scheduling: [{ policy: other }, { policy: fifo, priority: 80 }]\n  place: [netns, { existing-netns: a }]\n",
    );
    let last = &plan.conditions.last().unwrap().levels;
    assert_eq!(last["driver"], "cyclonedds multicast off");
    assert_eq!((last["path"].as_str(), last["scheduling"].as_str()), ("veth mtu 9000", "fifo 80"));
    assert_eq!(last["place"], "existing-netns a");
    assert_eq!(plan.conditions[0].levels["scheduling"], "other");
}

#[test]
fn impossible_combinations_are_conditions_without_trials() {
    let plan = factors("  driver: [udp]\n  path: [loopback, veth]\n  path.mtu: [1500, 9000]\n");
    let possible: Vec<bool> = plan.conditions.iter().map(|c| c.not_possible.is_none()).collect();
    assert_eq!(possible, [false, false, true, true]);
    assert_eq!(
        plan.conditions[0].not_possible.as_deref(),
        Some("`path.mtu` is not possible: `path` is loopback, which has no `mtu`")
    );
    assert_eq!(plan.trials.len(), 2);
    let plan = factors("  driver: [null, udp]\n  place: [same-process, netns]\n");
    let possible: Vec<bool> = plan.conditions.iter().map(|c| c.not_possible.is_none()).collect();
    assert_eq!(possible, [true, false, true, true]);
}

#[test]
fn path_factor_takes_the_place_along() {
    let plan = factors("  driver: [udp]\n  path: [loopback, veth]\n");
    let places: Vec<String> = plan.conditions.iter().map(|c| c.spec.ping.place.to_string()).collect();
    assert_eq!(places, ["process", "netns"]);
}

const STUDY: &str = "measure: { ping-pong: { duration: 1 s } }\nrate: 1 kHz\nrepeat: 3\nfactors:\n  driver: [udp, \
                     cyclonedds]\n  payload: [64 B, 1 KiB]\n";

#[test]
fn set_changes_a_value() {
    let plan = with(STUDY, &["rate=2kHz", "repeat=1", "seed=9", "study=mine", "report.quantiles=[0.5]"]);
    assert_eq!(plan.conditions[0].levels["rate"], "2 kHz");
    assert_eq!((plan.seed, plan.trials.len(), plan.study.as_str()), (9, 4, "mine"));
    assert_eq!(plan.report.quantiles, ["0.5"]);
    assert_eq!(plan.settings[0], "rate=2kHz");
}

#[test]
fn set_replaces_levels() {
    let plan = with(STUDY, &["payload=[8 KiB, 60 kB, 1 B]"]);
    assert_eq!(levels(&plan, "payload")[..3], ["8 KiB", "60 kB", "1 B"]);
    let plan = with(STUDY, &["payload=8 KiB", "driver=udp"]);
    assert_eq!((plan.factors.len(), levels(&plan, "payload")), (2, vec!["8 KiB"]));
}

#[test]
fn set_with_a_list_makes_a_factor() {
    let plan = with(STUDY, &["rate=[1 kHz, max]"]);
    assert_eq!(plan.factors, ["driver", "payload", "rate"]);
    assert_eq!(plan.conditions.len(), 8);
    let plan = with(STUDY, &["measure.receive=[listener,spin]"]);
    assert_eq!(levels(&plan, "measure.receive")[..2], ["listener", "spin"]);
}

#[test]
fn set_below_a_factor_reaches_all_its_levels() {
    let plan = with(STUDY, &["driver.multicast=off"]);
    assert!(plan.conditions.iter().all(|c| c.spec.driver.options["multicast"] == "off"));
}

#[test]
fn setting_the_length_replaces_the_other_key_for_it() {
    let plan = with(STUDY, &["measure.slots=100"]);
    assert_eq!(format!("{:?}", ping_pong(&plan, 0).length), "Slots(100)");
    let plan = with(STUDY, &["measure.slots=[100, 200]", "measure.timeout=2 s"]);
    assert_eq!((plan.conditions.len(), ping_pong(&plan, 7).timeout.0), (8, 2_000_000_000));
}

#[test]
fn set_takes_maps() {
    let plan = with(STUDY, &["scheduling={policy: fifo, priority: 80}", "ends.pong.cpus=0-1,3"]);
    let spec = &plan.conditions[0].spec;
    assert_eq!(spec.ping.scheduling.policy.unwrap().to_string(), "fifo 80");
    assert_eq!(spec.pong.scheduling.cpus.as_ref().unwrap().to_string(), "0-1,3");
}

#[test]
fn settings_of_the_host_are_varied_one_by_one_or_as_a_whole() {
    let text = "measure: ping-pong\ndriver: udp\nhost: { sysctl: { net.core.busy_poll: 0, vm.stat_interval: 5 } }\n\
                repeat: 3\nfactors:\n  host.sysctl.net.ipv4.conf.eth0/5.forwarding: [0, 1]\n  payload: [64 B, 1 KiB]\n";
    let plan = with(text, &["host.sysctl.net.core.busy_poll=[0, 50]"]);
    assert_eq!(plan.conditions.len(), 8);
    let of = |i: usize| plan.conditions[i].spec.host.iter().map(ToString::to_string).collect::<Vec<_>>();
    let busy_poll = "host.sysctl.net.core.busy_poll: 50";
    assert_eq!(of(7), ["host.sysctl.vm.stat_interval: 5", busy_poll, "host.sysctl.net.ipv4.conf.eth0/5.forwarding: 1"]);
    assert_eq!(plan.conditions[7].levels["host.sysctl.net.core.busy_poll"], "50");
    // Trials under the same settings come one after the other, and each repetition has all of them.
    for repeat in 0..3 {
        let trials: Vec<_> = plan.trials.iter().filter(|t| t.repeat == repeat).collect();
        let hosts: Vec<_> = trials.iter().map(|t| &plan.conditions[t.condition].spec.host).collect();
        let changes = hosts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!((trials.len(), changes), (8, 3), "{hosts:?}");
        let blocks: std::collections::BTreeSet<_> = trials.iter().map(|t| t.block).collect();
        assert_eq!(blocks.len(), 4);
    }
    let whole = "measure: ping-pong\ndriver: udp\nfactors:\n  host: [{}, { real_time_throttling: off }]\n";
    let plan = with(whole, &[]);
    let levels: Vec<&str> = plan.conditions.iter().map(|c| c.levels["host"].as_str()).collect();
    assert_eq!(levels, ["as found", "real_time_throttling off"]);
    assert_eq!(plan.conditions[0].spec.host, []);
    assert_eq!(plan.conditions[1].spec.host[0].to_string(), "host.sysctl.kernel.sched_rt_runtime_us: -1");
}

#[test]
fn settings_by_name_are_varied_whatever_the_name() {
    let plan = factors(
        "  driver: [udp]\n  host.nic.eth0.5.channels: [1, 2]\n  host.nic.eth0.5.coalesce_rx: [0 us]\n  \
         host.kernel_threads.irq/24-*.priority: [10]\n  host.kernel_threads.irq/24-*.policy: [fifo]\n  \
         host.irq_affinity.eth0*: [\"0-1\"]\n  host.governor.0-1: [powersave]\n  host.governor.2: [performance]\n  \
         host.cpu_dma_latency: [2000 us]\n",
    );
    assert_eq!(plan.conditions.len(), 2);
    let all: Vec<String> = plan.conditions[1].spec.host.iter().map(ToString::to_string).collect();
    assert_eq!(
        all,
        [
            "host.governor.0-1: powersave",
            "host.governor.2: performance",
            "host.cpu_dma_latency: 2000 us",
            "host.irq_affinity.eth0*: 0-1",
            "host.kernel_threads.irq/24-*: fifo 10",
            "host.nic.eth0.5.channels: 2",
            "host.nic.eth0.5.coalesce_rx: 0 us",
        ]
    );
    assert_eq!(plan.conditions[0].levels["host.cpu_dma_latency"], "2 ms");
}

const NAMED: &str = "  driver: [udp]
  setting:
    plain: { place: netns }
    guests: { place: { vm: { vcpus: 3 } }, path: xdp }
    tuned guests: { ends.ping.place: { vm: { memory: 1 GiB } }, place: { vm: {} }, path: datagram, measure.hand_off: { thread: { cpus: '1' } } }
";

#[test]
fn a_factor_of_named_levels_sets_several_paths_in_each() {
    let plan = factors(NAMED);
    assert_eq!(plan.factors, ["driver", "setting"]);
    assert_eq!(levels(&plan, "setting"), ["plain", "guests", "tuned guests"]);
    assert_eq!(levels(&plan, "path"), ["veth", "xdp native", "datagram"]);
    assert_eq!(plan.conditions[2].spec.ping.place.to_string(), "guest ping (2 vCPUs, 1024 MiB)");
    assert_ne!(ping_pong(&plan, 2).hand_off, ping_pong(&plan, 1).hand_off);
}

#[test]
fn settings_reach_into_named_levels_and_choose_among_them() {
    let text = format!("measure: ping-pong\nrate: 1 kHz\nfactors:\n{NAMED}");
    let plan = with(&text, &["setting=[tuned guests, guests]", "place.vcpus=5"]);
    assert_eq!(levels(&plan, "setting"), ["tuned guests", "guests"]);
    let places: Vec<String> = plan.conditions.iter().map(|c| c.spec.pong.place.to_string()).collect();
    assert_eq!(places, ["guest pong (5 vCPUs, 512 MiB)", "guest pong (5 vCPUs, 512 MiB)"]);
    // A key of one end is not a key of all ends.
    assert_eq!(plan.conditions[0].spec.ping.place.to_string(), "guest ping (2 vCPUs, 1024 MiB)");
    assert_eq!(with(&text, &["setting=plain"]).conditions.len(), 1);
    let settings = ["setting=[gests]".to_owned()];
    // A value of `--set` applies to all levels of the factor, including levels that do not set the key.
    let some = "measure: ping-pong\ndriver: udp\nfactors:\n  setting: { a: { payload: 2 KiB }, b: { rate: 100 Hz } }\n";
    assert_eq!(levels(&with(some, &["payload=64B"]), "payload"), ["64 B", "64 B"]);
    let refused = load_str("test.yaml", &text, Path::new(""), &settings).unwrap_err().to_string();
    assert!(refused.contains("`gests` is not a level of `setting`") && refused.contains("guests"), "{refused}");
}

/// A named level may set an option (here `vcpus`) of a word that another factor chooses (here `vm`), and either factor
/// may be written first.
#[test]
fn named_levels_may_set_options_of_another_factor() {
    let plan = factors(
        "  driver: [udp]\n  size: { few: { place.vcpus: 1 }, many: { place.vcpus: 4 } }\n  place: [{ vm: { memory: 1 GiB } }]\n",
    );
    let places: Vec<String> = plan.conditions.iter().map(|c| c.spec.ping.place.to_string()).collect();
    assert_eq!(places, ["guest ping (1 vCPU, 1024 MiB)", "guest ping (4 vCPUs, 1024 MiB)"]);
}
