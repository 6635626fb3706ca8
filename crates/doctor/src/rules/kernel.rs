//! The kernel: preemption, interrupts, clocks, bandwidth for real-time threads.

use crate::condition::{Condition, Judgement, flag, number, text};
use crate::finding::Rule;
use tailbound_model::HostFacts;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "kernel.preempt_rt",
        title: "PREEMPT_RT",
        unit: "",
        bad: Condition::Flag(false),
        because: "without PREEMPT_RT a real-time thread waits for whatever the kernel does in interrupts, soft interrupts \
                  and under spin locks on its CPU",
        mend: "boot a kernel with PREEMPT_RT (in mainline since Linux 6.12; Debian: linux-image-rt-amd64)",
        host: "",
    },
    Rule {
        key: "kernel.preemption",
        title: "preemption model",
        unit: "",
        bad: Condition::OneOf(&["none", "voluntary", "none or voluntary", "lazy"]),
        because: "a woken thread waits until the one that runs leaves the kernel or, with lazy preemption, until the next \
                  tick",
        mend: "boot with preempt=full (kernels with PREEMPT_DYNAMIC)",
        host: "",
    },
    Rule {
        key: "irq.threaded",
        title: "threaded interrupts",
        unit: "",
        bad: Condition::Flag(false),
        because: "interrupt handlers run ahead of every thread, whatever its priority",
        mend: "boot with threadirqs and give the handlers' threads priorities below those that matter, or move interrupts \
               to other CPUs",
        host: "",
    },
    Rule {
        key: "irq.balance_daemon",
        title: "irqbalance running",
        unit: "",
        bad: Condition::Flag(true),
        because: "irqbalance moves interrupts between CPUs while they are measured, onto those that matter too",
        mend: "stop it (systemctl stop irqbalance) or ban the CPUs that matter (IRQBALANCE_BANNED_CPULIST)",
        host: "",
    },
    Rule {
        key: "kernel.nmi_watchdog",
        title: "NMI watchdog",
        unit: "",
        bad: Condition::Flag(true),
        because: "the watchdog interrupts every CPU at intervals, even where interrupts are off",
        mend: "sysctl kernel.nmi_watchdog=0",
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
        because: "this clock cannot be read without entering the kernel: each reading takes a microsecond or more, and all \
                  CPUs share one device",
        mend: "find out in the kernel's log why the CPU's own counter (tsc) was given up; tsc=reliable only where that is \
               known to be wrong",
        host: "",
    },
    Rule {
        key: "sched.rt_runtime_us",
        title: "real-time throttling",
        unit: "",
        bad: Condition::Judge(throttling),
        because: "a real-time thread that keeps its CPU busy is stopped for the rest of each period",
        mend: "sysctl kernel.sched_rt_runtime_us=-1 (a real-time thread that never sleeps then blocks its CPU)",
        host: "real_time_throttling: off",
    },
    Rule {
        key: "sched.fair_server",
        title: "fair server for ordinary threads",
        unit: "",
        bad: Condition::Judge(fair_server),
        because: "a real-time thread that keeps its CPU busy loses it to waiting ordinary threads, by default for up to \
                  50 ms of each second",
        mend: "keep ordinary threads off its CPU, or as root write 0 to /sys/kernel/debug/sched/fair_server/cpuN/runtime",
        host: "",
    },
    Rule {
        key: "sched.autogroup",
        title: "autogroup",
        unit: "",
        bad: Condition::Flag(true),
        because: "ordinary threads share the CPU by session, not by thread: one busy terminal weighs as much as all \
                  threads of the application, and nice values count only within",
        mend: "sysctl kernel.sched_autogroup_enabled=0, or use real-time policies",
        host: "sysctl: { kernel.sched_autogroup_enabled: 0 }",
    },
    Rule {
        key: "process.timer_slack_ns",
        title: "timer slack of ordinary threads",
        unit: " ns",
        bad: Condition::Above(1_000),
        because: "the kernel may wake an ordinary thread later by this much to save interrupts (Tailbound sets 1 ns for its \
                  own threads; your programs keep the default)",
        mend: "call prctl(PR_SET_TIMERSLACK, 1) in the program, or use a real-time policy, which has no slack",
        host: "",
    },
];

/// Since Linux 6.12 the fair server stands in the place of throttling, but for kernels with RT_GROUP_SCHED, which still
/// hold each control group to its runtime.
fn throttling(facts: &HostFacts) -> Judgement {
    let read = || -> Result<Judgement, String> {
        if flag(facts, "sched.fair_server")? && flag(facts, "sched.rt_group") != Ok(true) {
            return Ok(Judgement::Fine("replaced by the fair server".into()));
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
        // Where its runtime is not shown it has the default.
        Ok(true) => match text(facts, "sched.fair_server_runtime_ns") {
            Ok("0") => Judgement::Fine("off".into()),
            Ok(runtime) => Judgement::Bad(format!("{runtime} ns per period")),
            Err(_) => Judgement::Bad("on, its runtime not shown".into()),
        },
        Err(why) => Judgement::NotKnown(why),
    }
}
