//! Sentences about the tail that would remain without a cause of late messages, for findings and the HTML page.
//!
//! `tailbound-analysis` estimates the tail; this module only formats it.

use tailbound_document::number::{count, label, time};
use tailbound_document::{CauseWord, ConditionReport, RemainingQuantile, WithoutCause};

/// How the estimates of a condition are made, and how many late messages they leave as they are.
pub(crate) fn rule(condition: &ConditionReport) -> String {
    let rule = "Estimates: the time that the incidents ascribe to the cause is subtracted from each message that overlaps \
                with it, and lost messages stay lost.";
    let kept = condition.without_cause.first().and_then(kept);
    kept.map_or(rule.to_owned(), |kept| format!("{rule} {kept}."))
}

/// One sentence for each cause of a condition without which the tail would be clearly shorter, in the order of the
/// document.
pub(crate) fn sentences(condition: &ConditionReport) -> impl Iterator<Item = String> {
    condition.without_cause.iter().filter(|of| matters(of)).map(without)
}

/// The sentence about the first of these causes for a finding, with the rule by which the estimate is made.
pub(crate) fn finding(condition: &ConditionReport) -> Option<String> {
    let first = sentences(condition).next()?;
    let kept = condition.without_cause.first().and_then(kept).map_or(String::new(), |kept| format!("; {kept}"));
    Some(format!(
        "{}{kept} (estimate: the time of the cause is subtracted from each message that overlaps with it, and lost \
         messages stay lost).",
        first.trim_end_matches('.')
    ))
}

/// How many late messages keep their time, if there are any.
fn kept(of: &WithoutCause) -> Option<String> {
    let (kept, late) = (of.late - of.covered_late, count(of.late));
    (kept > 0)
        .then(|| format!("{} of {late} late messages keep their time, because their causes are not known", count(kept)))
}

fn without(of: &WithoutCause) -> String {
    let quantile = |q: &RemainingQuantile| Some((label(q.q), q.value_ns?, q.without_ns?));
    let maximum = ("the maximum".to_owned(), of.max_ns, of.max_without_ns);
    let all = of.quantiles.iter().filter_map(quantile).chain([maximum]);
    let fell: Vec<(String, i64, i64)> = all.filter(|(_, old, new)| clearly_less(*old, *new)).collect();
    let changed = |(at, (name, old, new)): (usize, &(String, i64, i64))| {
        // The first figure has the verb and the metric of all.
        let (metric, verb) = if at > 0 { ("", "") } else { (metric(&of.metric), " would be") };
        format!("{name}{metric}{verb} about {} instead of {}", time(*new as f64), time(*old as f64))
    };
    let figures: Vec<String> = fell.iter().enumerate().map(changed).collect();
    format!("Without {}, {}.", words(of), and(&figures))
}

/// True if an estimate is at least a tenth below the measured value.
fn clearly_less(old_ns: i64, new_ns: i64) -> bool {
    (old_ns - new_ns) * 10 >= old_ns
}

fn metric(key: &str) -> &'static str {
    match key {
        "from_intended" => " from due to answered",
        _ => " of the round trip",
    }
}

/// True if the tail would be clearly shorter without the cause.
fn matters(of: &WithoutCause) -> bool {
    let quantile =
        |q: &RemainingQuantile| q.value_ns.zip(q.without_ns).is_some_and(|(old, new)| clearly_less(old, new));
    of.shortened > 0 && (clearly_less(of.max_ns, of.max_without_ns) || of.quantiles.iter().any(quantile))
}

fn and(parts: &[String]) -> String {
    match parts {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => parts.concat(),
    }
}

/// Words for a cause after "without", e.g. `the waits for a CPU that \`stress-ng\` had (pong end)`.
fn words(of: &WithoutCause) -> String {
    let by = of.by.as_ref().map_or(String::new(), |by| format!("`{}`", by.name));
    let carrier = of.by.as_ref().and_then(|by| by.carrier.as_ref()).map(|name| format!("`{name}`"));
    let what = match of.cause {
        CauseWord::WaitedForCpu if by.is_empty() => "the waits for a CPU".to_owned(),
        CauseWord::WaitedForCpu => format!("the waits for a CPU that {by} had"),
        CauseWord::KernelThread | CauseWord::Instrument if carrier.is_some() => {
            format!("the waits of the kernel thread {} while {by} had its CPU", carrier.unwrap_or_default())
        }
        CauseWord::KernelThread => format!("the waits for a CPU on which the kernel thread {by} ran"),
        CauseWord::Instrument => format!("the waits for a CPU that {by} of Tailbound had"),
        CauseWord::Irq => format!("the interrupt {by}"),
        CauseWord::Ipi => format!("the calls from other CPUs ({by})"),
        CauseWord::Softirq => format!("the soft interrupt {by}"),
        CauseWord::PageFault => "the page faults".to_owned(),
        CauseWord::Reclaim => "the freeing of memory in the threads of the end".to_owned(),
        CauseWord::BlockedIo => "the waits for a disk".to_owned(),
        CauseWord::KernelLock => "the waits for a lock in the kernel".to_owned(),
        CauseWord::UserLock => format!("the waits for {by} in the driver's call to send"),
        CauseWord::WriterThrottled => "the waits of the writer for acknowledgements".to_owned(),
        CauseWord::Stopped => "the stops of a process by a signal or a debugger".to_owned(),
        CauseWord::Frozen => "the stops by the freezer of a control group".to_owned(),
        CauseWord::CpuQuota => "the stops by a CPU quota".to_owned(),
        CauseWord::RtThrottled => "the stops by the limit of real-time run time".to_owned(),
        CauseWord::DeadlineThrottled => "the stops by the run time of the policy deadline".to_owned(),
        CauseWord::Gate => "the waits for the gate".to_owned(),
        CauseWord::Launch => "the waits for the launch time".to_owned(),
        CauseWord::QueueDiscipline => format!("the waits in the queue discipline {by}"),
        CauseWord::DeviceQueue => format!("the time at the device {by}"),
        CauseWord::Retransmission => "the time until messages were sent again".to_owned(),
        CauseWord::Reassembly if by.is_empty() => "the waits for the rest of a message".to_owned(),
        CauseWord::Reassembly => format!("the waits for the rest of a message, which was at {by}"),
        CauseWord::SocketQueue => "the waits in a socket behind other datagrams".to_owned(),
        CauseWord::FairServer => format!("the waits for a CPU that the fair server gave to {by}"),
        CauseWord::IdleExit => "the waits for an idle CPU".to_owned(),
        CauseWord::Executor => "the waits for an executor that handled other messages".to_owned(),
        CauseWord::TimerLate => "the lateness of the sender's timers".to_owned(),
        CauseWord::Steal => "the time in which the hypervisor had the CPU".to_owned(),
        CauseWord::Frequency => "the low frequency of a CPU".to_owned(),
        CauseWord::MachineGap => "the times in which a CPU may have stood still".to_owned(),
        CauseWord::OwnWork => "the run time of the measured program".to_owned(),
        CauseWord::Network => "the time in which no thread of an end had the message".to_owned(),
        CauseWord::HoldAndRelease => "the holds on the way, after which messages arrived together".to_owned(),
        CauseWord::DriverCall => "the sleep in the driver's call to send".to_owned(),
    };
    what + &of.end.as_ref().map_or(String::new(), |end| format!(" ({end} end)"))
}
