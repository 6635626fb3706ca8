//! Which rescue of ordinary threads is at work: judged by what the self-test saw, and by the facts where it cannot tell.

use crate::condition::{flag, number, text};
use tailbound_model::{HostFacts, RescueSeen};

/// Less of the CPU than this share is no rescue.
const SHARE: f64 = 0.002;
/// A real-time thread that was kept from its CPU for longer than this, with nobody beside it, was stopped.
const STOPPED_NS: u64 = 20_000_000;
/// A CPU that was idle for as long while its real-time thread wanted it: two ticks of the kernel's count.
const IDLE_NS: u64 = 20_000_000;

/// What the facts say, in a sentence's part.
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

/// What the self-test says, in sentences.
pub fn rescue(facts: &HostFacts, seen: &RescueSeen) -> String {
    let share = seen.ordinary_cpu_ns as f64 / seen.beside_ns.max(1) as f64;
    let ms = |ns: u64| ns as f64 / 1e6;
    let cpu = seen.cpu;
    let measured = format!(
        "Beside a real-time thread that never sleeps an ordinary thread had {:.1} % of CPU {cpu}, and waited up to {:.0} ms \
         for it.",
        100.0 * share,
        ms(seen.ordinary_gap_ns)
    );
    let stopped = seen.alone_delay_ns >= STOPPED_NS;
    let who = if share < SHARE {
        "Nothing rescued it: a real-time thread that never sleeps keeps all others from its CPU.".to_owned()
    } else if !stopped {
        format!(
            "The fair server, or what does the same: alone, the real-time thread kept its CPU (all but {:.1} ms of {:.0}).",
            ms(seen.alone_delay_ns),
            ms(seen.alone_ns)
        )
    } else if seen.alone_idle_ns >= IDLE_NS {
        format!(
            "Real-time throttling: the real-time thread was stopped for {:.0} of {:.0} ms also when nothing else wanted its \
             CPU.",
            ms(seen.alone_delay_ns),
            ms(seen.alone_ns)
        )
    } else {
        format!("Other work wanted CPU {cpu} too, so the test cannot tell which rescue it is.")
    };
    format!("{measured} {who} By the facts: {}.", rescue_by_facts(facts))
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
