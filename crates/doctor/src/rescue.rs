//! Identifies the kernel feature that gives CPU time to starved ordinary threads: from the measurement of the
//! self-test, and from the facts of the host.

use crate::condition::{flag, number, text};
use tailbound_model::{HostFacts, RescueSeen};

/// Smallest share of a CPU that counts as help by the kernel: if an ordinary thread got a smaller share beside a busy
/// real-time thread, no kernel feature gave the ordinary thread CPU time.
const SHARE: f64 = 0.002;
/// Limit, in ns, of the time for which a real-time thread did not get its CPU although no other thread wanted the CPU.
/// If the time is at least this long, the kernel stopped the thread.
const STOPPED_NS: u64 = 20_000_000;
/// Limit, in ns, of the idle time of a CPU that a real-time thread wanted. If the idle time is at least this long, the
/// kernel stopped the thread. The value is two clock ticks of 10 ms, the unit in which /proc/stat counts idle time.
const IDLE_NS: u64 = 20_000_000;

/// The kernel feature that gives CPU time to starved threads according to the facts, as a part of a sentence.
pub fn rescue_by_facts(facts: &HostFacts) -> String {
    match flag(facts, "sched.fair_server") {
        Ok(true) => match text(facts, "sched.fair_server_runtime_ns") {
            Ok("0") => "the fair server, which is switched off".into(),
            Ok(runtime) => format!("the fair server (runtime {runtime} ns)"),
            Err(_) => "the fair server (Linux 6.12 and later; its runtime is not shown)".into(),
        },
        Ok(false) => match (number(facts, "sched.rt_runtime_us"), number(facts, "sched.rt_period_us")) {
            (Ok(runtime), Ok(period)) if runtime < 0 || runtime >= period => "none: throttling is off".into(),
            (Ok(runtime), Ok(period)) => format!("real-time throttling after {runtime} of each {period} us"),
            _ => "real-time throttling, with limits that are not shown".into(),
        },
        Err(why) => format!("not known ({why})"),
    }
}

/// Says in sentences which feature of the kernel gave CPU time to the ordinary thread while the real-time thread of the
/// self-test kept the CPU.
pub fn rescue(facts: &HostFacts, seen: &RescueSeen) -> String {
    let share = seen.ordinary_cpu_ns as f64 / seen.beside_ns.max(1) as f64;
    let ms = |ns: u64| ns as f64 / 1e6;
    let cpu = seen.cpu;
    let measured = format!(
        "Beside a real-time thread that never sleeps, an ordinary thread got {:.1} % of CPU {cpu}, and waited up to \
         {:.0} ms for this CPU.",
        100.0 * share,
        ms(seen.ordinary_gap_ns)
    );
    let stopped = seen.alone_delay_ns >= STOPPED_NS;
    let who = if share < SHARE {
        "No kernel feature gave the ordinary thread CPU time: a real-time thread that never sleeps blocks its CPU."
            .to_owned()
    } else if !stopped {
        format!(
            "The fair server or a similar feature gave the ordinary thread CPU time: alone, the real-time thread kept \
             its CPU (for all but {:.1} of {:.0} ms).",
            ms(seen.alone_delay_ns),
            ms(seen.alone_ns)
        )
    } else if seen.alone_idle_ns >= IDLE_NS {
        format!(
            "Real-time throttling gave the ordinary thread CPU time: the real-time thread was stopped for {:.0} of \
             {:.0} ms even when no other thread wanted its CPU.",
            ms(seen.alone_delay_ns),
            ms(seen.alone_ns)
        )
    } else {
        format!(
            "Other threads wanted CPU {cpu} too, so the test cannot tell which feature gave the ordinary thread CPU \
             time."
        )
    };
    format!("{measured} {who} According to the facts of the host: {}.", rescue_by_facts(facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{Fact, FactValue};

    const SEEN: RescueSeen = RescueSeen {
        cpu: 3,
        alone_ns: 1_050_000_000,
        alone_delay_ns: 400_000,
        alone_idle_ns: 0,
        beside_ns: 2_000_000_000,
        ordinary_cpu_ns: 100_000_000,
        ordinary_gap_ns: 950_000_000,
    };

    fn facts(all: &[(&str, FactValue)]) -> HostFacts {
        let fact =
            |(key, value): &(&str, FactValue)| Fact { key: (*key).into(), value: value.clone(), source: "test".into() };
        HostFacts { host: "h".into(), boot_id: "b".into(), facts: all.iter().map(fact).collect() }
    }

    #[test]
    fn each_rescue_is_told_apart() {
        let fair = facts(&[("sched.fair_server", FactValue::Flag(true))]);
        let older = |runtime| {
            facts(&[
                ("sched.fair_server", FactValue::Flag(false)),
                ("sched.rt_runtime_us", FactValue::Number(runtime)),
                ("sched.rt_period_us", FactValue::Number(1_000_000)),
            ])
        };
        let throttled = RescueSeen { alone_delay_ns: 50_000_000, alone_idle_ns: 50_000_000, ..SEEN };
        let busy = RescueSeen { alone_delay_ns: 50_000_000, ..SEEN };
        let none = RescueSeen { ordinary_cpu_ns: 0, ordinary_gap_ns: 2_000_000_000, ..SEEN };
        let all = [
            rescue(&fair, &SEEN),
            rescue(&older(950_000), &throttled),
            rescue(&older(950_000), &busy),
            rescue(&older(-1), &none),
            rescue(&facts(&[]), &SEEN),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }
}
