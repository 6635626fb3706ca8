//! Describes incidents in sentences.

use tailbound_document::number::{count, time};
use tailbound_document::{CauseWord, CausedBy, Evidence, IncidentReport, LedgerEntry, OtherClock};
use tailbound_model::Metric;

/// Number of causes that the description of an incident names.
const NAMED: usize = 3;

pub(crate) fn leg_key(metric: Metric) -> &'static str {
    match metric {
        Metric::SendLateness => "send_lateness",
        Metric::Out => "out",
        Metric::Turnaround => "turnaround",
        Metric::Back => "back",
        _ => "round_trip",
    }
}

fn place(leg: &str) -> &'static str {
    match leg {
        "send_lateness" => "before the message was sent",
        "out" => "on the way out",
        "turnaround" => "at the pong",
        "back" => "on the way back",
        _ => "between the send call of the message and its answer",
    }
}

/// Describes an incident whose members except `text` are complete. `slot_0_ns` is the time at which slot 0 was due.
pub(crate) fn text(incident: &IncidentReport, slot_0_ns: Option<i64>) -> String {
    let begin = incident.begin_ns - slot_0_ns.unwrap_or(incident.begin_ns);
    let mut text = format!("trial {}, {} after slot 0: ", incident.trial, time(begin as f64));
    text.push_str(&counts(incident));
    if let Some(worst) = incident.worst_ns {
        text.push_str(&format!(", the latest (slot {}) took {}", count(incident.worst_slot), time(worst as f64)));
    }
    if let Some(leg) = &incident.leg {
        text.push_str(&format!(", most of it {}", place(leg)));
    }
    text.push_str(". ");
    let excess = incident.excess_ns > 0;
    match &incident.ledger {
        _ if !excess => {}
        Some(entries) => text.push_str(&ledger(incident, entries)),
        None => {
            text.push_str(&format!("No cause: {}.", incident.no_ledger.as_deref().unwrap_or("the reason is not known")))
        }
    }
    if let Some(clock) = incident.other_clock.as_ref().filter(|_| excess && incident.ledger.is_some()) {
        text.push_str(&other_clock(clock));
    }
    if let Some(ns) = incident.host_clock_width_ns.filter(|_| excess && incident.ledger.is_some()) {
        let width = time(ns as f64);
        text.push_str(&format!(" The host of the guests has another clock, which is known to within {width}."));
    }
    text.trim_end().to_owned()
}

/// Says how exactly the times of a pong with another clock are known.
fn other_clock(clock: &OtherClock) -> String {
    match (&clock.not_followed, clock.width_ns) {
        (None, Some(ns)) => format!(" The pong has another clock, which is known to within {}.", time(ns as f64)),
        (Some(why), _) => format!(" The pong has another clock, and only the side of the ping is followed: {why}."),
        (None, None) => String::new(),
    }
}

fn counts(incident: &IncidentReport) -> String {
    let messages = |n: u64| if n == 1 { "1 message was".to_owned() } else { format!("{} messages were", count(n)) };
    match (incident.late, incident.lost) {
        (late, 0) => format!("{} late", messages(late)),
        (0, lost) => format!("{} lost or not sent", messages(lost)),
        (late, lost) => format!("{} late and {} lost or not sent", messages(late), count(lost)),
    }
}

fn ledger(incident: &IncidentReport, entries: &[LedgerEntry]) -> String {
    let share = |ns: i64| format!("{:.0} %", 100.0 * ns as f64 / incident.excess_ns.max(1) as f64);
    let is_large = |ns: i64| ns * 50 >= incident.excess_ns;
    // Between two clocks, an entry can be a range although its events were seen.
    let between = incident.other_clock.is_some() || incident.host_clock_width_ns.is_some();
    let is_bound = |e: &LedgerEntry| {
        (between || matches!(e.evidence, Evidence::AtMost | Evidence::Counted)) && is_large(e.ns_high)
    };
    let named = entries.iter().take(NAMED).filter(|e| is_large(e.ns_low) || is_bound(e));
    let part = |e: &LedgerEntry| {
        let (low, high) = (share(e.ns_low), share(e.ns_high));
        let size = match e.ns_low {
            0 => format!("at most {high}"),
            _ if is_bound(e) && low != high => format!("{low} to {high}"),
            _ => low,
        };
        format!("{size}: {}", cause(e))
    };
    let mut parts: Vec<String> = named.map(part).collect();
    let others: i64 = entries.iter().map(|e| e.ns_low).sum::<i64>()
        - entries.iter().take(NAMED).filter(|e| e.ns_low * 50 >= incident.excess_ns).map(|e| e.ns_low).sum::<i64>();
    if others * 50 >= incident.excess_ns {
        parts.push(format!("{}: other causes", share(others)));
    }
    let unseen = match incident.not_seen_ns {
        0 => String::new(),
        ns => format!(" (no events were recorded for {} of it)", time(ns as f64)),
    };
    parts.push(format!("{}: unexplained{unseen}", share(incident.unexplained_ns.max(0))));
    let mut text = format!("Of {} beyond the usual, {}.", time(incident.excess_ns as f64), parts.join("; "));
    if incident.inconsistent {
        text.push_str(" The causes exceed the time, so that at least one of them is wrong.");
    }
    text
}

/// Describes the cause of an entry, without its time.
pub(crate) fn cause(entry: &LedgerEntry) -> String {
    let thread = entry.thread.as_ref().map_or("a thread".to_owned(), |name| format!("`{name}`"));
    let end = entry.end.as_ref().map_or(String::new(), |end| format!(" of the {end} end"));
    let who = format!("{thread}{end}");
    let cpu = entry.cpu.map_or("a CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let by = || entry.by.as_ref().map_or("another thread".to_owned(), named);
    if let Some(carrier) = entry.by.as_ref().and_then(|by| by.carrier.as_ref()) {
        let of = if entry.cause == CauseWord::Instrument { " of Tailbound" } else { "" };
        return format!("the kernel thread `{carrier}`, which the message needed, waited while {}{of} had {cpu}", by());
    }
    match entry.cause {
        CauseWord::WaitedForCpu if entry.by.is_none() => {
            format!("{who} waited for {cpu}; what ran there is not recorded")
        }
        CauseWord::WaitedForCpu => format!("{who} waited for {cpu}, which {} had", by()),
        CauseWord::KernelThread if entry.by.is_none() => {
            format!("{who} waited for {cpu}; what ran there is not recorded")
        }
        CauseWord::KernelThread => format!("{who} waited for {cpu}, which the kernel thread {} had", by()),
        CauseWord::Instrument => format!("{who} waited for {cpu}, which {} of Tailbound had", by()),
        CauseWord::Irq => format!("the interrupt {} had {cpu}", by()),
        CauseWord::Ipi => format!("the interrupt {}, which another CPU sent, had {cpu}", by()),
        // No thread had the message: the packet itself waited.
        CauseWord::Softirq if entry.thread.is_none() => {
            format!("the packet waited for the soft interrupt {} of {cpu}, or was in it", by())
        }
        CauseWord::Softirq => format!("the soft interrupt {} had {cpu}", by()),
        CauseWord::Gate => format!("the gate for messages{end} was closed"),
        CauseWord::Launch => format!("the launch time of the message{end} had not come"),
        CauseWord::QueueDiscipline => format!("the packet was in the queue discipline {}", by()),
        CauseWord::DeviceQueue => format!("the packet was at the device {}", by()),
        CauseWord::Retransmission => "a packet did not arrive, until the message was sent again".to_owned(),
        CauseWord::Reassembly => {
            let at = entry.end.as_ref().map_or(String::new(), |end| format!(" at the {end} end"));
            let rest = entry.by.as_ref().map_or(String::new(), |by| format!(", which was at {}", named(by)));
            format!("a part of the message had arrived{at} and waited for the rest{rest}")
        }
        CauseWord::SocketQueue => format!("{who} read other datagrams, while the message was in its socket"),
        CauseWord::PageFault => format!("{who} was in a page fault (a page of memory was not there)"),
        CauseWord::Reclaim => {
            format!("{who} needed memory and freed some first (the machine or a control group had none left)")
        }
        CauseWord::BlockedIo if entry.evidence == Evidence::AtMost => {
            format!("{who} slept in the kernel (waiting for a disk or a lock)")
        }
        CauseWord::BlockedIo => format!("{who} waited for a disk"),
        CauseWord::KernelLock => format!("{who} slept in the kernel (waiting for a lock, not for a disk)"),
        CauseWord::UserLock => format!("{who} slept in the driver's call to send until {} woke it", by()),
        CauseWord::WriterThrottled => format!(
            "{who} slept in the driver's call to send until a packet woke {}, which woke {thread}: as if the writer had \
             waited for an acknowledgement",
            by()
        ),
        // The hypervisor of a guest.
        CauseWord::Stopped if entry.by.is_some() => format!("{} was stopped (SIGSTOP, or a debugger)", by()),
        CauseWord::Frozen if entry.by.is_some() => format!("the freezer of a control group had stopped {}", by()),
        CauseWord::Stopped => format!("the process{end} was stopped (SIGSTOP, or a debugger)"),
        CauseWord::Frozen => format!("the freezer of a control group had stopped the process{end}"),
        CauseWord::CpuQuota => format!("the CPU quota of a control group had stopped {who}"),
        CauseWord::RtThrottled => format!("the limit of real-time run time had stopped {who}"),
        CauseWord::DeadlineThrottled => format!("{who} had used up its run time of the period (policy deadline)"),
        CauseWord::FairServer => {
            format!("{who} waited for {cpu}, which the fair server of the kernel gave to {}", by())
        }
        CauseWord::IdleExit => format!("{who} was ready, and {cpu} was idle until it ran {thread}"),
        CauseWord::Executor => format!("{who} handled another message first (it is a single-threaded executor)"),
        CauseWord::TimerLate => format!(
            "the timer of {who} was late: its interrupt came to {cpu} after the message was due (because of an idle state, a \
             hypervisor, or disabled interrupts)"
        ),
        CauseWord::Steal => format!("the hypervisor had {cpu}"),
        CauseWord::Frequency => {
            let below = entry.by.as_ref().map_or(String::new(), |by| format!(" ({})", by.name));
            format!("{cpu} had a lower frequency than at other times{below}")
        }
        CauseWord::MachineGap => format!(
            "{cpu} may have stood still (a hypervisor or the firmware had it, or the kernel had disabled interrupts)"
        ),
        CauseWord::OwnWork => format!("{who} ran on {cpu}"),
        CauseWord::Network => {
            format!("no thread of an end had the message (towards the {} end)", entry.end.as_deref().unwrap_or("other"))
        }
        CauseWord::HoldAndRelease => format!(
            "something on the way towards the {} end held the message and released it together with others (no thread of an end had \
             it)",
            entry.end.as_deref().unwrap_or("other")
        ),
        CauseWord::DriverCall => format!("{who} slept in the driver's call to send"),
    }
}

fn named(by: &CausedBy) -> String {
    let process = by.process.as_ref().map(|process| format!("of `{process}`"));
    let about: Vec<String> = process.into_iter().chain(by.policy.clone()).collect();
    match about.is_empty() {
        true => format!("`{}`", by.name),
        false => format!("`{}` ({})", by.name, about.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_thread_had_the_cpu_or_waited_for_it() {
        let entry = |name: &str, carrier: Option<&str>| LedgerEntry {
            cause: CauseWord::KernelThread,
            leg: "out".into(),
            end: Some("pong".into()),
            cpu: Some(1),
            thread: Some("receiver".into()),
            by: Some(CausedBy { carrier: carrier.map(str::to_owned), ..CausedBy::named(name.into()) }),
            ns_low: 300,
            ns_high: 300,
            evidence: Evidence::Seen,
        };
        let had = "`receiver` of the pong end waited for CPU 1, which the kernel thread `kworker/1:0` had";
        assert_eq!(cause(&entry("kworker/1:0", None)), had);
        let waited = "the kernel thread `ksoftirqd/1`, which the message needed, waited while `hog` had CPU 1";
        assert_eq!(cause(&entry("hog", Some("ksoftirqd/1"))), waited);
    }
}
