//! Tests of the situations that users have: what is proposed first, and what is never proposed.

use super::world::{World, role, text};
use crate::{Answers, Prediction};
use tailbound_document::*;
use tailbound_model::*;

/// A real-time thread without sleep on the CPU of the pong.
fn hog(policy: &str) -> World {
    World::new().cause(CauseWord::WaitedForCpu).by("hog", policy)
}

#[test]
fn a_real_time_hog_is_answered_by_a_higher_priority_and_by_another_cpu() {
    let world = hog("fifo 50");
    insta::assert_snapshot!("hog", listed(&world));
    let two_cpus = hog("fifo 50").cpus(&[0, 1]);
    assert!(two_cpus.candidates().iter().filter(|one| !one.settings.is_empty()).count() >= 8);
    assert!(two_cpus.settings().contains(&"ends.pong.cpus=0".to_owned()));
}

#[test]
fn above_the_highest_priority_only_other_cpus_remain() {
    for policy in ["fifo 98", "rr 99", "deadline 1000000/2000000/2000000 ns"] {
        let world = hog(policy);
        let priorities = world.settings().into_iter().filter(|setting| setting.contains("priority")).count();
        assert_eq!(priorities, 0, "{policy}: {:?}", world.settings());
        assert_eq!(world.settings()[0], "ends.pong.cpus=2", "{policy}");
    }
    assert_eq!(hog("fifo 97").settings()[0], "ends.pong.scheduling={ policy: fifo, priority: 98 }");
}

#[test]
fn a_time_sharing_hog_is_answered_by_a_small_real_time_priority() {
    let settings = hog("other").settings();
    assert_eq!(settings[0], "ends.pong.scheduling={ policy: fifo, priority: 10 }");
    assert!(settings.contains(&"ends.pong.scheduling={ policy: other, nice: -20 }".to_owned()), "{settings:?}");
}

#[test]
fn middleware_threads_below_a_load_get_a_priority_above_it() {
    let world = World::new().cause(CauseWord::WaitedForCpu).by("tb-load-cpu", "rr 90").with(|spec| {
        spec.pong.scheduling.roles = [("main".into(), role("rr 98")), ("middleware".into(), role("other"))].into();
    });
    let first =
        "ends.pong.scheduling={ main: { policy: rr, priority: 98 }, middleware: { policy: fifo, priority: 91 } }";
    assert_eq!(world.settings()[0], first, "{:?}", world.settings());
    // The priority of the main thread is above the load already, and stays.
    assert!(
        world
            .settings()
            .iter()
            .filter(|s| s.starts_with("ends.pong.scheduling"))
            .all(|s| s.contains("rr, priority: 98"))
    );
}

#[test]
fn a_thread_of_tailbound_that_waits_for_the_middleware_needs_its_own_role() {
    let mut world = World::new().cause(CauseWord::WaitedForCpu).by("hog", "fifo 50").with(|spec| {
        spec.driver.name = "cyclonedds".into();
        spec.pong.scheduling.roles = [("main".into(), role("fifo 80"))].into();
    });
    let role = "ends.pong.scheduling={ main: { policy: fifo, priority: 80 }, receive: { policy: fifo, priority: 51 } }";
    let middleware =
        "ends.pong.scheduling={ main: { policy: fifo, priority: 80 }, middleware: { policy: fifo, priority: 51 } }";
    let place = |world: &World, setting: &str| world.settings().iter().position(|one| one == setting).unwrap();
    assert!(place(&world, middleware) < place(&world, role), "{:?}", world.settings());
    world.causes[0].delayed[0].thread = Some("tb-receive".into());
    assert!(place(&world, role) < place(&world, middleware), "{:?}", world.settings());
}

#[test]
fn a_cpu_quota_is_removed_or_avoided_by_a_real_time_policy() {
    let world = World::new().cause(CauseWord::CpuQuota).fact("cgroup.cpu_max", text("20000 100000"));
    let all = world.candidates();
    assert_eq!(world.rules(), ["no-cpu-quota", "real-time-beside-quota"]);
    assert_eq!(all[0].settings, ["host.cpu_quota=off"]);
    assert!(all[0].text.contains("now 20000 us in each 100000 us"), "{}", all[0].text);
    assert_eq!(all[1].settings, ["ends.pong.scheduling={ policy: fifo, priority: 10 }"]);
}

#[test]
fn a_full_socket_buffer_is_answered_by_a_larger_one_that_the_kernel_permits() {
    let world = World::new().loss(LossKind::SocketBuffer).with(|spec| {
        spec.driver.options.insert("rcvbuf".into(), "4096".into());
    });
    let larger = "host.sysctl.net.core.rmem_max=16777216 & driver.udp.rcvbuf=16777216";
    assert_eq!(world.settings()[0], larger, "{:?}", world.settings());
    let first = &world.candidates()[0];
    assert_eq!(first.answers, Answers::Loss { kind: LossKind::SocketBuffer, end: "pong" });
    assert_eq!(first.predicted_ns, None, "lost messages stay lost in every estimate");
    // The kernel permits it already.
    let permitted = world.clone().fact("net.core.rmem_max", FactValue::Number(67_108_864));
    assert_eq!(permitted.settings()[0], "driver.udp.rcvbuf=16777216");
    // With a driver for each end, only the driver of the pong is changed.
    let two = permitted.with(|spec| {
        spec.pong_driver = Some(DriverSpec { name: "cyclonedds".into(), ..DriverSpec::default() });
    });
    assert_eq!(two.settings()[0], "ends.pong.driver.cyclonedds.socket_receive_buffer_size=16777216");
}

#[test]
fn a_long_queue_of_a_bridge_is_answered_by_priorities_and_queues_of_its_own() {
    let world = World::new()
        .cause(CauseWord::QueueDiscipline)
        .by("tbf of ping0", "")
        .with(|spec| spec.path = PathSpec::Bridge { mtu: None });
    let queue =
        "ends.ping.shaping={ classes: [{ name: rest }, { name: messages, priorities: [6] }] } & driver.udp.priority=6";
    let settings = world.settings();
    assert!(settings.contains(&queue.to_owned()), "{settings:?}");
    assert!(settings.contains(&"driver.udp.priority=6".to_owned()), "{settings:?}");
    let by_hand = world.candidates().into_iter().find(|one| one.settings.is_empty()).unwrap();
    assert!(by_hand.text.contains("tc qdisc replace dev ping0 root"), "{}", by_hand.text);
    // On an interface of the user, the queue discipline is replaced for the trials.
    let existing = world.between("eth0").with(|spec| spec.ping.place = PlaceSpec::Process);
    assert!(existing.settings().iter().any(|setting| setting.contains("replace: yes")), "{:?}", existing.settings());
}

#[test]
fn a_shaper_at_a_port_of_a_bridge_is_removed_and_a_priority_does_not_reach_it() {
    let world = |by: &str| {
        World::new().cause(CauseWord::QueueDiscipline).by(by, "").between("eth0").with(|spec| {
            spec.ping.place = PlaceSpec::ExistingNetns("robot".into());
            spec.pong.place = PlaceSpec::ExistingNetns("robot".into());
        })
    };
    let shaped = world("tbf of to-pong").settings();
    assert_eq!(shaped[0], "host.queue.to-pong=default");
    let is_priority = |setting: &String| setting == "driver.udp.priority=6";
    assert!(!shaped.iter().any(is_priority), "{shaped:?}");
    let shared = world("pfifo of eth0").settings();
    assert!(shared.contains(&"host.queue.eth0=fq_codel".to_owned()) && shared.iter().any(is_priority), "{shared:?}");
    for other in ["fq_codel", "htb", "netem", "taprio"] {
        let all = world(&format!("{other} of eth0")).settings();
        assert!(!all.iter().any(|setting| setting.starts_with("host.queue")), "{other}: {all:?}");
    }
}

#[test]
fn without_a_cause_that_was_seen_or_counted_there_is_no_advice() {
    let mut world = hog("fifo 50");
    world.causes[0].proven_ns = 0;
    assert_eq!(world.settings(), Vec::<String>::new());
    let mut lost = World::new().loss(LossKind::SocketBuffer);
    for evidence in [Evidence::Inferred, Evidence::AtMost] {
        lost.losses[0].evidence = evidence;
        assert_eq!(lost.settings(), Vec::<String>::new());
    }
    assert_eq!(World::new().cause(CauseWord::OwnWork).settings(), Vec::<String>::new());
    assert_eq!(World::new().settings(), Vec::<String>::new());
}

#[test]
fn of_two_causes_the_larger_one_comes_first_and_no_settings_come_twice() {
    let mut world = hog("fifo 50").cause(CauseWord::IdleExit);
    (world.causes[1].proven_ns, world.causes[1].ns, world.causes[1].share) = (1_000_000, 1_000_000, 0.08);
    let rules = world.rules();
    assert_eq!(rules[0], "priority-of-end");
    assert!(rules.contains(&"no-deep-idle"));
    let settings: Vec<String> = world.settings().into_iter().filter(|setting| !setting.is_empty()).collect();
    let distinct: std::collections::BTreeSet<&String> = settings.iter().collect();
    assert_eq!(distinct.len(), settings.len());
}

#[test]
fn the_gain_is_predicted_for_the_declared_quantile_or_the_highest_clear_one() {
    let mut world = hog("fifo 50");
    let quantile =
        |q, value_ns, without_ns| RemainingQuantile { q, value_ns: Some(value_ns), without_ns: Some(without_ns) };
    world.without.push(WithoutCause {
        cause: CauseWord::WaitedForCpu,
        end: Some("pong".into()),
        by: world.causes[0].by.clone(),
        metric: "from_intended".into(),
        quantiles: vec![quantile(0.99, 100_000, 99_000), quantile(0.999, 2_100_000, 140_000)],
        max_ns: 9_000_000,
        max_without_ns: 200_000,
        shortened: 12,
        covered_late: 12,
        late: 12,
    });
    let expected = |q, now_ns, then_ns| Some(Prediction { q, now_ns, then_ns });
    assert_eq!(world.candidates()[0].predicted_ns, expected(0.999, 2_100_000, 140_000));
    // If no quantile is clearly shorter, the maximum can be.
    world.without[0].quantiles.pop();
    assert_eq!(world.candidates()[0].predicted_ns, expected(1.0, 9_000_000, 200_000));
    world.without[0].end = Some("ping".into());
    assert_eq!(world.candidates()[0].predicted_ns, None);
}

#[test]
fn with_one_process_the_settings_of_the_ping_apply() {
    let world = hog("fifo 50").with(|spec| {
        spec.arrangement = Some(Arrangement { processes: 1, participants: 1, executors: 0 });
    });
    assert!(world.settings().iter().all(|setting| !setting.starts_with("ends.pong")), "{:?}", world.settings());
    assert_eq!(world.settings()[0], "ends.ping.scheduling={ policy: fifo, priority: 51 }");
}

/// The candidates of a situation, one a line.
fn listed(world: &World) -> String {
    let line = |one: crate::Candidate| {
        format!("{:<24} {:.2}  {}\n    {}\n", one.rule.key, one.rank, one.text, one.settings.join(" & "))
    };
    world.candidates().into_iter().map(line).collect()
}
