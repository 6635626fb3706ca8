//! The stream of the ping: at which monotonic times its messages are due, when they are launched, and which launch times the kernel
//! refused.

use serde::Deserialize;
use serde_json::Value;
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::Order;

/// Base of the stream of a trial, as computed when the trial began.
pub(super) struct Stream {
    /// Monotonic time at which slot 0 is due, ns.
    pub t0_ns: i64,
    /// Time from the due time of a slot (monotonic) to its launch time (CLOCK_TAI), ns; `None` = messages have no launch time.
    pub launch_after_ns: Option<i64>,
    fact: StreamFact,
}

/// The stream of the trial: slot 0 is due at its first time that is not before `earliest_ns` (monotonic). `None` = the trial has no
/// stream.
pub(super) fn begin(order: &Order, earliest_ns: i64) -> Option<Stream> {
    let (stream, Rate::Period(period)) = (order.spec.stream?, order.spec.rate) else { return None };
    let clock = host::clock::read_offset_with(host::monotonic_ns, host::clock::tai_ns);
    let base_ns = order.stream_base_ns;
    let t0_ns = first_due_ns(&stream, (base_ns - clock.offset_ns, period), earliest_ns);
    let launch_after_ns = stream.launch.map(|launch| launch.lead.0 + clock.offset_ns);
    let within_ns = half(clock);
    let fact = StreamFact { base_ns, ahead_ns: clock.offset_ns, within_ns, ..StreamFact::default() };
    Some(Stream { t0_ns, launch_after_ns, fact })
}

/// The first time at which a message of the stream is due, not before `earliest_ns`. Messages are to leave at `base_ns` plus the offset
/// plus a multiple of the period; all times are of one clock.
fn first_due_ns(stream: &StreamSpec, (base_ns, period): (i64, Nanos), earliest_ns: i64) -> i64 {
    let any_ns = base_ns + stream.offset.0 - stream.lead().0;
    earliest_ns + (any_ns - earliest_ns).rem_euclid(period.0.max(1))
}

fn half(clock: ClockOffset) -> i64 {
    clock.width_ns / 2 + 1
}

impl Stream {
    /// What the record contains about the stream, after the trial. Adds a warning if CLOCK_TAI was set meanwhile.
    ///
    /// `launches` is the driver's answer about refused launch times.
    pub fn end(self, order: &Order, launches: Option<&Value>, warnings: &mut Vec<Warning>) -> StreamFact {
        let clock = host::clock::read_offset_with(host::monotonic_ns, host::clock::tai_ns);
        let change = clock.offset_ns - self.fact.ahead_ns;
        if change.abs() > half(clock) + self.fact.within_ns {
            let text = format!(
                "CLOCK_TAI was set by {} during the trial, so that the messages were not at their times of this clock",
                Nanos(change)
            );
            let remedy = "start the run when the time service of the machine has set the clock";
            warnings.push(Warning::new("stream_clock", Severity::Invalid, text, remedy).at_end("ping"));
        }
        let mut fact = self.fact;
        let (Some(after_ns), Rate::Period(period)) = (self.launch_after_ns, order.spec.rate) else { return fact };
        let all = launches.and_then(|answer| Vec::<(i64, u8)>::deserialize(&answer["refused"]).ok());
        fact.reports_full = launches.is_some_and(|answer| answer["full"] == true);
        let Some(all) = all else {
            let text = "the driver did not report which launch times the kernel refused";
            warnings.push(Warning::new("launch_reports", Severity::Warning, text, "").at_end("ping"));
            return fact;
        };
        let slot = |launch_ns: i64| u64::try_from((launch_ns - after_ns - self.t0_ns) / period.0.max(1)).ok();
        let why = |code| if code == MISSED { LaunchRefusal::Missed } else { LaunchRefusal::Invalid };
        let mut refused: Vec<RefusedLaunch> =
            all.iter().filter_map(|(ns, code)| Some(RefusedLaunch { slot: slot(*ns)?, why: why(*code) })).collect();
        refused.sort_by_key(|refused| refused.slot);
        refused.dedup_by_key(|refused| refused.slot);
        fact.refused_more = refused.len().saturating_sub(StreamFact::MOST_REFUSED) as u64;
        refused.truncate(StreamFact::MOST_REFUSED);
        fact.refused = refused;
        fact
    }
}

/// What to do about messages that the kernel does not take because of their launch time.
pub(super) const LAUNCH_HELP: &str =
    "if the losses of the report name the launch time, make `stream.launch.lead` longer by the time of a late wake-up";

/// Code of a launch time that passed in the queue (SO_EE_CODE_TXTIME_MISSED of linux/errqueue.h).
const MISSED: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_before_they_are_to_leave() {
        let launch = LaunchSpec { lead: Nanos(300), ahead: Nanos(100), mode: LaunchMode::Strict, priority: 3 };
        let (at_once, launched) =
            (StreamSpec { offset: Nanos(20), launch: None }, StreamSpec { offset: Nanos(20), launch: Some(launch) });
        let first = |stream: &StreamSpec, earliest_ns| first_due_ns(stream, (1_000, Nanos(500)), earliest_ns);
        // To leave at 1,020, 1,520, 2,020 and so on.
        assert_eq!([1_020, 1_021, 1_520, 5].map(|ns| first(&at_once, ns)), [1_020, 1_520, 1_520, 20]);
        assert_eq!([1_020, 1_220, 1_221].map(|ns| first(&launched, ns)), [1_220, 1_220, 1_720]);
    }
}
