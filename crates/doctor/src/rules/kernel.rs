//! Rules that check a host's kernel: preemption, interrupts, clocks, CPU time for real-time threads.

use crate::condition::{Condition, Judgement, NotKnown, flag, number, text};
use crate::finding::Rule;
use tailbound_model::HostFacts;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "kernel.preempt_rt",
        title: "PREEMPT_RT",
        unit: "",
        bad: Condition::Flag(false),
        because: "without PREEMPT_RT a real-time thread waits for all work that the kernel does in interrupts, soft \
            interrupts \
                  and under spin locks on its CPU",
        remedy: "boot a kernel with PREEMPT_RT (in mainline since Linux 6.12; Debian: linux-image-rt-amd64)",
        host: "",
    },
    Rule {
        key: "kernel.preemption",
        title: "preemption model",
        unit: "",
        bad: Condition::OneOf(&["none", "voluntary", "none or voluntary", "lazy"]),
        because: "a woken thread waits until the running thread leaves the kernel or, with lazy preemption, until \
                  the next tick",
        remedy: "boot with preempt=full (kernels with PREEMPT_DYNAMIC)",
        host: "",
    },
    Rule {
        key: "irq.threaded",
        title: "threaded interrupts",
        unit: "",
        bad: Condition::Flag(false),
        because: "interrupt handlers run ahead of every thread, whatever its priority",
        remedy: "boot with threadirqs and give the interrupt threads lower priorities than the important threads, or \
                 move interrupts to other CPUs",
        host: "",
    },
    Rule {
        key: "irq.balance_daemon",
        title: "irqbalance running",
        unit: "",
        bad: Condition::Flag(true),
        because: "irqbalance moves interrupts between CPUs during a measurement, also to the measured CPUs",
        remedy: "stop irqbalance (systemctl stop irqbalance), or exclude the measured CPUs (IRQBALANCE_BANNED_CPULIST)",
        host: "",
    },
    Rule {
        key: "kernel.nmi_watchdog",
        title: "NMI watchdog",
        unit: "",
        bad: Condition::Flag(true),
        because: "the watchdog interrupts every CPU at intervals, even CPUs that have interrupts disabled",
        remedy: "sysctl kernel.nmi_watchdog=0",
        host: "sysctl: { kernel.nmi_watchdog: 0 }",
    },
    Rule {
        key: "clock.source",
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
        remedy: "find in the kernel's log why the kernel does not use the CPU's own counter (tsc); boot with \
                 tsc=reliable only if this reason is known to be wrong",
        host: "",
    },
    Rule {
        key: "sched.rt_runtime_us",
        title: "real-time throttling",
        unit: "",
        bad: Condition::Judge(throttling),
        because: "a real-time thread that keeps its CPU busy is stopped for the rest of each period",
        remedy: "sysctl kernel.sched_rt_runtime_us=-1 (a real-time thread that never sleeps then blocks its CPU)",
        host: "real_time_throttling: off",
    },
    Rule {
        key: "sched.fair_server",
        title: "fair server for ordinary threads",
        unit: "",
        bad: Condition::Judge(fair_server),
        because: "a real-time thread that keeps its CPU busy loses the CPU to waiting ordinary threads, by default \
                  for up to 50 ms of each second",
        remedy: "keep ordinary threads off the real-time thread's CPU, or as root write 0 to \
                 /sys/kernel/debug/sched/fair_server/cpuN/runtime",
        host: "",
    },
    Rule {
        key: "sched.autogroup",
        title: "autogroup",
        unit: "",
        bad: Condition::Flag(true),
        because: "ordinary threads share the CPU by session, not by thread: one busy terminal gets as much CPU time \
                  as all threads of the application, and nice values count only within a session",
        remedy: "sysctl kernel.sched_autogroup_enabled=0, or use real-time policies",
        host: "sysctl: { kernel.sched_autogroup_enabled: 0 }",
    },
    Rule {
        key: "process.timer_slack_ns",
        title: "timer slack of ordinary threads",
        unit: " ns",
        bad: Condition::Above(1_000),
        because: "the kernel may wake an ordinary thread late by up to the timer slack, to save interrupts (Tailbound \
                  sets 1 ns for its own threads; your programs keep the default)",
        remedy: "call prctl(PR_SET_TIMERSLACK, 1) in the program, or use a real-time policy, which has no slack",
        host: "",
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
