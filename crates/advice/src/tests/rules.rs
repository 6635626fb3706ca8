//! For each rule that gives candidates: a situation that has its candidate, and one that must not have it.

use super::world::{World, role, text};
use crate::RULES;
use std::collections::BTreeSet;
use tailbound_document::*;
use tailbound_model::*;

/// A rule with a situation in which it proposes a change, and one in which it proposes none although the cause is the same.
struct Test {
    rule: &'static str,
    yes: World,
    no: World,
}

fn test(rule: &'static str, yes: World, no: World) -> Test {
    Test { rule, yes, no }
}

fn of(cause: CauseWord) -> World {
    World::new().cause(cause)
}

fn hog() -> World {
    of(CauseWord::WaitedForCpu).by("hog", "fifo 50")
}

fn flag(value: bool) -> FactValue {
    FactValue::Flag(value)
}

/// The world with another receive mode.
fn receives(world: World, mode: ReceiveMode) -> World {
    world.with(|spec| {
        if let Measure::PingPong(of) = &mut spec.measure {
            of.receive = mode;
        }
    })
}

fn driver(world: World, name: &str) -> World {
    world.with(|spec| spec.driver.name = name.to_owned())
}

fn sysctl(world: World, name: &str) -> World {
    world.with(|spec| spec.host.push(KnobSpec::Sysctl { name: name.into(), value: "1".into() }))
}

fn policy(world: World, policy: &str) -> World {
    world.with(|spec| spec.pong.scheduling.policy = Some(policy.parse().unwrap()))
}

fn place(world: World, place: PlaceSpec) -> World {
    world.with(|spec| spec.pong.place = place)
}

fn of_cpus() -> Vec<Test> {
    use CauseWord::{DeadlineThrottled, Executor, IdleExit, SocketQueue, WaitedForCpu};
    let one_executor = |executors| {
        receives(of(Executor), ReceiveMode::Executor)
            .with(|spec| spec.arrangement = Some(Arrangement { processes: 1, participants: 1, executors }))
    };
    let handed = hog().with(|spec| {
        if let Measure::PingPong(of) = &mut spec.measure {
            of.hand_off = HandOff::Thread { cpus: None };
        }
    });
    vec![
        test("priority-of-end", hog(), policy(hog(), "fifo 51")),
        test(
            "priority-of-middleware",
            hog(),
            hog().with(|s| drop(s.pong.scheduling.roles.insert("middleware".into(), role("fifo 60")))),
        ),
        test("priority-of-role", hog(), of(WaitedForCpu).by("hog", "fifo 98")),
        test(
            "priority-of-other-end",
            hog(),
            hog().with(|s| s.ping.scheduling.policy = Some(Policy::Rr { priority: 60 })),
        ),
        test("cpus-of-end", hog(), hog().cpus(&[1])),
        test("cpus-of-role", hog(), policy(hog(), "deadline 1000/2000/2000 ns")),
        test("all-cpus", hog(), hog().with(|s| s.pong.scheduling.cpus = None)),
        test(
            "nice",
            of(WaitedForCpu).by("hog", "other"),
            policy(of(WaitedForCpu).by("hog", "other"), "other nice -20"),
        ),
        test("move-the-other-program", hog(), of(WaitedForCpu)),
        test(
            "longer-run-time",
            policy(of(DeadlineThrottled), "deadline 1000/2000/2000 ns"),
            policy(of(DeadlineThrottled), "fifo 1"),
        ),
        test("own-executors", one_executor(1), receives(one_executor(2), ReceiveMode::Block)),
        test("receive-spin", of(IdleExit), receives(of(IdleExit), ReceiveMode::Spin)),
        test("hand-off", of(SocketQueue), handed),
    ]
}

fn of_kernel() -> Vec<Test> {
    use CauseWord::{CpuQuota, FairServer, Frozen, Irq, KernelThread, RtThrottled, Softirq, TimerLate, WaitedForCpu};
    let irq = || of(Irq).by("irq 24", "");
    let carrier = |policy| of(KernelThread).by("hog", policy).carrier("ksoftirqd/1");
    let slack = |is_default| of(TimerLate).with(|spec| spec.middleware.default_timer_slack = is_default);
    let main = of(TimerLate).with(|s| drop(s.pong.scheduling.roles.insert("main".into(), role("fifo 60"))));
    let off = |world: World| world.fact("sched.rt_runtime_us", FactValue::Number(-1));
    let ordinary = of(WaitedForCpu).by("hog", "other");
    vec![
        test("irq-affinity", irq(), of(Irq).by("timer", "")),
        test("priority-of-kernel-thread", carrier("fifo 50"), carrier("fifo 98")),
        test("priority-of-ksoftirqd", of(Softirq).by("NET_RX", ""), of(WaitedForCpu).by("hog", "rr 98")),
        test(
            "kernel-thread-away",
            of(KernelThread).by("kcompactd0", "other"),
            of(KernelThread).by("ksoftirqd/1", "other"),
        ),
        test("throttling-off", of(RtThrottled), off(of(RtThrottled))),
        test("throttling-on", off(hog()), hog()),
        test("fair-server", of(FairServer), of(RtThrottled)),
        test(
            "autogroup-off",
            ordinary.clone().fact("sched.autogroup", flag(true)),
            ordinary.fact("sched.autogroup", flag(false)),
        ),
        test(
            "preempt-rt",
            of(Softirq).fact("kernel.preempt_rt", flag(false)),
            of(Softirq).fact("kernel.preempt_rt", flag(true)),
        ),
        test(
            "preempt-full",
            hog().fact("kernel.preemption", text("voluntary")),
            hog().fact("kernel.preemption", text("full")),
        ),
        test("threaded-irqs", irq().fact("irq.threaded", flag(false)), irq()),
        test("stop-irqbalance", irq().fact("irq.balance_daemon", flag(true)), irq()),
        test(
            "nmi-watchdog-off",
            irq().fact("kernel.nmi_watchdog", flag(true)),
            sysctl(irq().fact("kernel.nmi_watchdog", flag(true)), "kernel.nmi_watchdog"),
        ),
        test("isolated-cpus", hog().fact("cpu.isolated", text("")), hog().fact("cpu.isolated", text("2-3"))),
        test(
            "nohz-full",
            of(Irq).by("local_timer", "").fact("cpu.nohz_full", text("")),
            irq().fact("cpu.nohz_full", text("")),
        ),
        test("timer-slack", slack(true), slack(false)),
        test("real-time-timers", of(TimerLate), main),
        test("find-who-stops", of(Frozen), hog()),
        test("no-cpu-quota", of(CpuQuota), hog()),
        test("real-time-beside-quota", of(CpuQuota), policy(of(CpuQuota), "rr 5")),
    ]
}

fn of_machine() -> Vec<Test> {
    use CauseWord::{BlockedIo, Frequency, IdleExit, PageFault, Reclaim, Steal, UserLock};
    let guest = |vcpu_threads| PlaceSpec::Vm(Box::new(VmSpec { vcpu_threads, ..VmSpec::default() }));
    let locked = |is_unlocked| of(PageFault).with(|spec| spec.middleware.unlocked_memory = is_unlocked);
    let dma = of(IdleExit).with(|spec| spec.host.push(KnobSpec::CpuDmaLatency { us: 0 }));
    let swap = |kib| of(PageFault).fact("memory.swap_total_kib", FactValue::Number(kib));
    let compaction = |n| of(PageFault).fact("memory.compaction_proactiveness", FactValue::Number(n));
    vec![
        test("no-deep-idle", of(IdleExit), dma),
        test("governor-performance", of(Frequency), of(Frequency).fact("cpu.governor", text("performance"))),
        test("turbo-off", of(Frequency), of(IdleExit)),
        test("dedicated-cpus", of(Steal), of(IdleExit)),
        test(
            "priority-of-virtual-cpus",
            place(of(Steal), guest(Vec::new())),
            place(of(Steal), guest(vec![role("fifo 5")])),
        ),
        test("kvm-halt-poll", place(of(IdleExit), guest(Vec::new())), of(IdleExit)),
        test("lock-memory", locked(true), locked(false)),
        test("swappiness", swap(1024), swap(0)),
        test("free-memory", of(Reclaim), sysctl(of(Reclaim), "vm.watermark_scale_factor")),
        test(
            "thp-madvise",
            of(PageFault).fact("memory.thp", text("always")),
            of(PageFault).fact("memory.thp", text("never")),
        ),
        test("numa-balancing-off", of(PageFault).fact("memory.numa_balancing", flag(true)), of(PageFault)),
        test("compaction-off", compaction(20), compaction(0)),
        test("no-disk", of(BlockedIo), of(PageFault)),
        test("priority-inheritance", of(UserLock).by("other thread", ""), of(BlockedIo)),
    ]
}

fn of_network() -> Vec<Test> {
    use CauseWord::{DeviceQueue, Gate, QueueDiscipline, Retransmission, Softirq, WriterThrottled};
    let lost = |kind| World::new().loss(kind);
    let queue = || of(QueueDiscipline).by("pfifo_fast of eth0", "");
    let dds = |world| driver(world, "cyclonedds");
    let threads = |of: &str| {
        let of = of.to_owned();
        dds(lost(LossKind::SocketBuffer)).with(|s| drop(s.driver.options.insert("receive_threads".into(), of)))
    };
    let qos = |world: World, key: &str, value: &str| {
        let (key, value) = (key.to_owned(), value.to_owned());
        world.with(|spec| drop(spec.qos.insert(key, value)))
    };
    let with = |world: World, option: &str| {
        let option = option.to_owned();
        world.with(|spec| drop(spec.driver.options.insert(option, "1".into())))
    };
    let stream = of(Gate).with(|spec| spec.stream = Some(StreamSpec { offset: Nanos(0), launch: None }));
    let card = of(DeviceQueue).between("eth0");
    let at_interface = |kind: &str| of(QueueDiscipline).by(&format!("{kind} of eth0"), "").between("eth0");
    let rmem = |n| lost(LossKind::SocketBuffer).fact("net.core.rmem_max", FactValue::Number(n));
    vec![
        test("receive-buffer", lost(LossKind::SocketBuffer), lost(LossKind::Backlog)),
        test("receive-buffer-limit", rmem(212_992), rmem(33_554_432)),
        test("receive-threads", threads("single"), threads("multiple")),
        test("receive-block", lost(LossKind::SocketBuffer), receives(lost(LossKind::SocketBuffer), ReceiveMode::Block)),
        test("packet-priority", queue(), with(queue(), "priority")),
        test("own-queue", queue(), place(queue(), PlaceSpec::Netns).with(|s| s.path = PathSpec::Loopback)),
        test("transport-priority", dds(queue()), queue()),
        test("send-buffer", queue(), with(queue(), "sndbuf")),
        test("other-queue", at_interface("tbf"), at_interface("fq_codel")),
        test("queue-with-bands", queue(), of(QueueDiscipline)),
        test("meet-the-gate", stream, of(Gate)),
        test("busy-poll", of(Softirq), sysctl(of(Softirq), "net.core.busy_read")),
        test("interrupt-coalescing", card, of(DeviceQueue)),
        test("longer-backlog", lost(LossKind::Backlog), sysctl(lost(LossKind::Backlog), "net.core.netdev_max_backlog")),
        test(
            "fragment-memory",
            lost(LossKind::Fragments),
            sysctl(lost(LossKind::Fragments), "net.ipv4.ipfrag_high_thresh"),
        ),
        test("best-effort", dds(of(Retransmission)), of(Retransmission)),
        test("keep-last", qos(dds(of(WriterThrottled)), "history", "keep-all"), dds(of(WriterThrottled))),
    ]
}

#[test]
fn each_rule_gives_a_candidate_where_it_applies_and_only_there() {
    for Test { rule, yes, no } in [of_cpus(), of_kernel(), of_machine(), of_network()].concat_all() {
        assert!(yes.rules().contains(&rule), "{rule} must give a candidate: {:?}", yes.rules());
        assert!(!no.rules().contains(&rule), "{rule} must give no candidate: {:?}", no.rules());
    }
}

/// A study with the condition of a situation, as far as settings depend on it.
fn study(spec: &TrialSpec) -> String {
    let path = match &spec.path {
        PathSpec::Existing { .. } => {
            "path: { existing: { ping: { interface: eth0 }, pong: { interface: eth0 } } }\nplace: process"
        }
        PathSpec::Bridge { .. } => "path: bridge\nplace: netns",
        _ => "path: veth\nplace: netns",
    };
    let guest = match spec.pong.place {
        PlaceSpec::Vm(_) => "\nends: { pong: { place: vm } }\n",
        _ => "\n",
    };
    let path = if guest.len() > 1 { "path: bridge\nplace: netns" } else { path };
    let stream = if spec.stream.is_some() { "stream: { offset: 0 s }\n" } else { "" };
    let arrangement = match spec.arrangement {
        Some(a) if a.executors > 0 => format!(
            "arrangement: {{ processes: {}, participants: {}, executors: {} }}\n",
            a.processes, a.participants, a.executors
        ),
        _ => String::new(),
    };
    let (path, receive) = match spec.measure.receive() {
        ReceiveMode::Executor => ("", "receive: executor, "),
        ReceiveMode::Block => (path, "receive: block, "),
        ReceiveMode::Spin => (path, "receive: spin, "),
        ReceiveMode::Listener => (path, ""),
    };
    format!(
        "measure: {{ ping-pong: {{ {receive}slots: 100 }} }}\ndriver: {}\n{path}{guest}{stream}{arrangement}",
        spec.driver.name
    )
}

/// Every setting of every candidate must be one that a study accepts: `--set` applies it, and the value is read.
#[test]
fn every_setting_is_one_of_the_study_format() {
    let worlds = [of_cpus(), of_kernel(), of_machine(), of_network()].concat_all().into_iter().map(|test| test.yes);
    let mut tried: BTreeSet<&str> = BTreeSet::new();
    for world in worlds {
        for candidate in world.candidates().into_iter().filter(|one| !one.settings.is_empty()) {
            let options = tailbound_study::Options {
                settings: &candidate.settings,
                allowed_cpus: &[0, 1, 2, 3],
                strict: true,
                ..tailbound_study::Options::default()
            };
            let text = study(&world.spec);
            let loaded = tailbound_study::load_str_with("study", &text, std::path::Path::new("."), &options);
            assert!(loaded.is_ok(), "{}: {:?}\n{text}{}", candidate.rule.key, candidate.settings, loaded.unwrap_err());
            tried.insert(candidate.rule.key);
        }
    }
    let with_keys: BTreeSet<&str> = RULES.iter().filter(|rule| rule.can_be_tried()).map(|rule| rule.key).collect();
    assert_eq!(tried, with_keys);
}

#[test]
fn each_rule_is_tested_or_only_a_remedy_of_doctor() {
    let tested: BTreeSet<&str> =
        [of_cpus(), of_kernel(), of_machine(), of_network()].concat_all().iter().map(|test| test.rule).collect();
    // Rules that `doctor` refers to, and that no cause of one condition asks for.
    let of_doctor = [
        "real-time-right",
        "lock-right",
        "smt-off",
        "mitigations",
        "clock-source",
        "real-cpu",
        "pinned-virtual-cpus",
        "quiet-machine",
        "more-cpus",
        "no-swap",
        "ksm-off",
    ];
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.key).collect();
    assert_eq!(tested.iter().copied().chain(of_doctor).collect::<BTreeSet<&str>>(), rules);
}

/// Joins lists of tests.
trait ConcatAll {
    fn concat_all(self) -> Vec<Test>;
}

impl<const N: usize> ConcatAll for [Vec<Test>; N] {
    fn concat_all(self) -> Vec<Test> {
        self.into_iter().flatten().collect()
    }
}
