//! Rules that check a host's kernel: preemption, interrupts, clocks, CPU time for real-time threads.

use crate::condition::{Condition, Judgement, NotKnown, flag, number, text};
use crate::finding::Rule;
use tailbound_model::HostFacts;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "kernel.preempt_rt",
        advice: "preempt-rt",
        weight: 3,
        title: "PREEMPT_RT",
        unit: "",
        bad: Condition::Flag(false),
        because: "without PREEMPT_RT a real-time thread waits for all work that the kernel does in interrupts, soft \
            interrupts \
                  and under spin locks on its CPU",
    },
    Rule {
        key: "kernel.preemption",
        advice: "preempt-full",
        weight: 3,
        title: "preemption model",
        unit: "",
        bad: Condition::OneOf(&["none", "voluntary", "none or voluntary", "lazy"]),
        because: "a woken thread waits until the running thread leaves the kernel or, with lazy preemption, until \
                  the next tick",
    },
    Rule {
        key: "irq.threaded",
        advice: "threaded-irqs",
        weight: 2,
        title: "threaded interrupts",
        unit: "",
        bad: Condition::Flag(false),
        because: "interrupt handlers run ahead of every thread, whatever its priority",
    },
    Rule {
        key: "irq.balance_daemon",
        advice: "stop-irqbalance",
        weight: 2,
        title: "irqbalance running",
        unit: "",
        bad: Condition::Flag(true),
        because: "irqbalance moves interrupts between CPUs during a measurement, also to the measured CPUs",
    },
    Rule {
        key: "kernel.nmi_watchdog",
        advice: "nmi-watchdog-off",
        weight: 1,
        title: "NMI watchdog",
        unit: "",
        bad: Condition::Flag(true),
        because: "the watchdog interrupts every CPU at intervals, even CPUs that have interrupts disabled",
    },
    Rule {
        key: "clock.source",
        advice: "clock-source",
        weight: 2,
        title: "clock source",
        unit: "",
        bad: Condition::NotOneOf(&[
            "tsc",
            "arch_sys_counter",
            "kvm-clock",
            "hyperv_clocksource_tsc_page",
            "riscv_clocksource",
            "timebase",
            "tod",
        ]),
        because: "this clock source cannot be read without entering the kernel: each reading takes a microsecond or \
                  more, and all CPUs share one device",
    },
    Rule {
        key: "sched.rt_runtime_us",
        advice: "throttling-off",
        weight: 5,
        title: "real-time throttling",
        unit: "",
        bad: Condition::Judge(throttling),
        because: "a real-time thread that keeps its CPU busy is stopped for the rest of each period",
    },
    Rule {
        key: "sched.fair_server",
        advice: "fair-server",
        weight: 5,
        title: "fair server for ordinary threads",
        unit: "",
        bad: Condition::Judge(fair_server),
        because: "a real-time thread that keeps its CPU busy loses the CPU to waiting ordinary threads, by default \
                  for up to 50 ms of each second",
    },
    Rule {
        key: "sched.autogroup",
        advice: "autogroup-off",
        weight: 4,
        title: "autogroup",
        unit: "",
        bad: Condition::Flag(true),
        because: "ordinary threads share the CPU by session, not by thread: one busy terminal gets as much CPU time \
                  as all threads of the application, and nice values count only within a session",
    },
    Rule {
        key: "process.timer_slack_ns",
        advice: "timer-slack",
        weight: 2,
        title: "timer slack of ordinary threads",
        unit: " ns",
        bad: Condition::Above(1_000),
        because: "the kernel may wake an ordinary thread late by up to the timer slack, to save interrupts (Tailbound \
                  sets 1 ns for its own threads; your programs keep the default)",
    },
];

/// Judges real-time throttling. Since Linux 6.12 the fair server replaces throttling. Kernels with RT_GROUP_SCHED still
/// limit the real-time threads of each control group to the real-time runtime of the group.
fn throttling(facts: &HostFacts) -> Judgement {
    let read = || -> Result<Judgement, NotKnown> {
        if flag(facts, "sched.fair_server")? && flag(facts, "sched.rt_group") != Ok(true) {
            return Ok(Judgement::Fine("the fair server replaces real-time throttling".into()));
        }
        let (runtime, period) = (number(facts, "sched.rt_runtime_us")?, number(facts, "sched.rt_period_us")?);
        let off = runtime < 0 || runtime >= period;
        Ok(Judgement::bad_if(!off, if off { "off".to_owned() } else { format!("{runtime} of {period} us") }))
    };
    read().unwrap_or_else(Judgement::NotKnown)
}

fn fair_server(facts: &HostFacts) -> Judgement {
    match flag(facts, "sched.fair_server") {
        Ok(false) => Judgement::Fine("not in this kernel".into()),
        // If the runtime cannot be read, the fair server has its default runtime.
        Ok(true) => match text(facts, "sched.fair_server_runtime_ns") {
            Ok("0") => Judgement::Fine("off".into()),
            Ok(runtime) => Judgement::Bad(format!("{runtime} ns per period")),
            Err(_) => Judgement::Bad("on, but its runtime is not shown".into()),
        },
        Err(why) => Judgement::NotKnown(why),
    }
}
