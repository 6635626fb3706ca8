//! The stream of the ping: at which monotonic times its messages are due, when they are launched, and which launch times the kernel
//! refused.

use serde::Deserialize;
use serde_json::Value;
use tailbound_host as host;
use tailbound_host::ptp_clock::{PtpClock, PtpError};
use tailbound_model::*;
use tailbound_wire::{Failed, Order};

/// Base of the stream of a trial, as computed when the trial began.
pub(super) struct Stream {
    /// Monotonic time at which slot 0 is due, ns.
    pub t0_ns: i64,
    /// Time from the due time of a slot (monotonic) to its launch time (CLOCK_TAI), ns; `None` = messages have no launch time.
    pub launch_after_ns: Option<i64>,
    fact: StreamFact,
    card: Option<PtpClock>,
}

/// The stream of the trial: slot 0 is due at its first time that is not before `earliest_ns` (monotonic). `None` = the trial has no
/// stream.
///
/// # Errors
/// The messages are due by a hardware clock that cannot be read.
pub(super) fn begin(order: &Order, earliest_ns: i64) -> Result<Option<Stream>, Failed> {
    let (Some(stream), Rate::Period(period)) = (order.spec.stream, order.spec.rate) else { return Ok(None) };
    let tai = host::clock::read_offset_with(host::monotonic_ns, host::clock::tai_ns);
    let refused = |error: PtpError| {
        let problem = error.problem();
        let text = format!("the ping sends by the clock of its gates: {}", problem.what);
        Failed::new("stream_clock", ExitCode::MachineNotFit, text, &problem.remedy)
    };
    let card = order.stream_card.map(PtpClock::numbered).transpose().map_err(refused)?;
    let by_card = card.as_ref().map(PtpClock::ahead_of_monotonic).transpose().map_err(refused)?;
    let base_ns = order.stream_base_ns;
    let due_clock = by_card.unwrap_or(tai);
    let t0_ns = first_due_ns(&stream, (base_ns - due_clock.offset_ns, period), earliest_ns);
    // The kernel knows launch times of CLOCK_TAI only.
    let launch_after_ns = stream.launch.map(|launch| launch.lead.0 + tai.offset_ns);
    let of_card = |(number, of): (u32, ClockOffset)| StreamCard {
        number,
        ahead_ns: of.offset_ns,
        within_ns: half(of),
        moved_ns: None,
    };
    let fact = StreamFact {
        base_ns,
        ahead_ns: tai.offset_ns,
        within_ns: half(tai),
        card: order.stream_card.zip(by_card).map(of_card),
        ..StreamFact::default()
    };
    Ok(Some(Stream { t0_ns, launch_after_ns, fact, card }))
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
        let uses_tai = self.card.is_none() || self.launch_after_ns.is_some();
        if uses_tai && change.abs() > half(clock) + self.fact.within_ns {
            let text = format!(
                "CLOCK_TAI was set by {} during the trial, so that the messages were not at their times of this clock",
                Nanos(change)
            );
            let remedy = "start the run when the time service of the machine has set the clock";
            warnings.push(Warning::new("stream_clock", Severity::Invalid, text, remedy).at_end("ping"));
        }
        let mut fact = self.fact;
        if let Some((of, card)) = fact.card.as_mut().zip(self.card.as_ref()) {
            warnings.extend(moved(of, card.ahead_of_monotonic()).map(|warning| warning.at_end("ping")));
        }
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

/// Stores by how much the hardware clock of a stream moved during the trial, by this reading at its end. The warning says that
/// messages were not at their times of this clock.
fn moved(card: &mut StreamCard, now: Result<ClockOffset, PtpError>) -> Option<Warning> {
    let clock = format!("/dev/ptp{}", card.number);
    let now = match now {
        Ok(now) => now,
        Err(error) => {
            let text = format!("how far {clock} moved during the trial is not known: {}", error.problem().what);
            return Some(Warning::new("stream_clock", Severity::Warning, text, ""));
        }
    };
    let moved_ns = now.offset_ns - card.ahead_ns;
    card.moved_ns = Some(moved_ns);
    let text = format!(
        "{clock} moved by {} against CLOCK_MONOTONIC during the trial, so that the last messages were due this much away from their \
         times of this clock",
        Nanos(moved_ns)
    );
    let remedy = "keep the clocks of the machine and of the card in step (phc2sys), or measure for a shorter time";
    let is_certain = moved_ns.abs() > half(now) + card.within_ns;
    is_certain.then(|| Warning::new("stream_clock", Severity::Warning, text, remedy))
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
        let launch = LaunchSpec { lead: Nanos(300), ahead: Nanos(100), priority: 3, ..LaunchSpec::default() };
        let (at_once, launched) =
            (StreamSpec { offset: Nanos(20), launch: None }, StreamSpec { offset: Nanos(20), launch: Some(launch) });
        let first = |stream: &StreamSpec, earliest_ns| first_due_ns(stream, (1_000, Nanos(500)), earliest_ns);
        // To leave at 1,020, 1,520, 2,020 and so on.
        assert_eq!([1_020, 1_021, 1_520, 5].map(|ns| first(&at_once, ns)), [1_020, 1_520, 1_520, 20]);
        assert_eq!([1_020, 1_220, 1_221].map(|ns| first(&launched, ns)), [1_220, 1_220, 1_720]);
    }

    #[test]
    fn a_hardware_clock_that_moved_more_than_the_readings_explain_is_a_warning() {
        let before = StreamCard { number: 3, ahead_ns: 5_000, within_ns: 100, moved_ns: None };
        let at_end = |offset_ns, width_ns| {
            let mut card = before;
            let found = moved(&mut card, Ok(ClockOffset { at_ns: 0, offset_ns, width_ns }));
            (card.moved_ns, found.map(|warning| warning.problem.what))
        };
        assert_eq!(at_end(5_199, 196), (Some(199), None));
        let (moved_ns, what) = at_end(4_801, 196);
        assert_eq!((moved_ns, what), (Some(-199), None));
        let (moved_ns, what) = at_end(4_800, 196);
        assert!(moved_ns == Some(-200) && what.unwrap().starts_with("/dev/ptp3 moved by -200 ns against"));
        let mut card = before;
        let unread = moved(&mut card, Err(PtpError::NoClock)).unwrap();
        assert!(card.moved_ns.is_none() && unread.problem.what.contains("is not known"), "{}", unread.problem.what);
    }
}
