//! Resolves the length of a trial and the other options of ping-pong.

use super::Context;
use super::cpus::allowed;
use super::duration::{LONGEST, positive};
use crate::error::Fault;
use crate::format::{HandOffChoice, OverrunChoice, PingPongKeys, ReceiveChoice, WarmUp, WarmUpLength};
use crate::read::At;
use crate::source::Pos;
use tailbound_model::{HandOff, Length, Nanos, OnOverrun, PingPong, Rate, ReceiveMode};

/// Number of warm-up slots with stop-and-wait, which has no period from which the number could be computed.
const WARM_UP_AT_MAX: u64 = 1000;
pub(super) fn ping_pong(
    keys: &PingPongKeys,
    rate: Rate,
    measure: Pos,
    context: &Context<'_>,
) -> Result<PingPong, Fault> {
    let length = length(keys, rate, measure)?;
    let timeout = positive(keys.timeout.as_ref(), "a timeout")?.unwrap_or(Nanos::from_secs(1));
    Ok(PingPong {
        length,
        warm_up_slots: warm_up(keys.warm_up.as_ref(), rate)?,
        timeout,
        on_overrun: match keys.on_overrun.as_ref().map(|o| o.value) {
            None | Some(OverrunChoice::CatchUp) => OnOverrun::CatchUp,
            Some(OverrunChoice::Skip) => OnOverrun::Skip,
        },
        receive: receive_mode(keys.receive),
        hand_off: match keys.hand_off.as_ref().map(|h| &h.value) {
            None | Some(HandOffChoice::None) => HandOff::None,
            Some(HandOffChoice::Thread(thread)) => {
                HandOff::Thread { cpus: thread.cpus.as_ref().map(|c| allowed(c, context)).transpose()?.flatten() }
            }
        },
    })
}

pub(super) fn receive_mode(choice: Option<ReceiveChoice>) -> ReceiveMode {
    match choice {
        None | Some(ReceiveChoice::Listener) => ReceiveMode::Listener,
        Some(ReceiveChoice::Block) => ReceiveMode::Block,
        Some(ReceiveChoice::Spin) => ReceiveMode::Spin,
        Some(ReceiveChoice::Executor) => ReceiveMode::Executor,
    }
}

fn length(keys: &PingPongKeys, rate: Rate, measure: Pos) -> Result<Length, Fault> {
    match (&keys.slots, &keys.duration) {
        (Some(slots), Some(duration)) => {
            // The key that comes later in the file is reported as superfluous.
            let later = if duration.at.start > slots.at.start { duration.at } else { slots.at };
            Err(Fault::new(later, "`slots` and `duration` both give the length of a trial")
                .help("keep one of the two keys"))
        }
        (Some(slots), None) => {
            if slots.value == 0 {
                return Err(Fault::new(slots.at, "a trial of 0 slots measures nothing").help("at least 1"));
            }
            let time = rate.period().map_or(0, |p| p.0.saturating_mul(i64::try_from(slots.value).unwrap_or(i64::MAX)));
            if slots.value >= 1 << tailbound_model::COUNTER_BITS || time > LONGEST.0 {
                let reason = format!("a trial of {} slots would last longer than 30 days", slots.value);
                return Err(Fault::new(slots.at, reason).help("use fewer slots or a higher rate"));
            }
            Ok(Length::Slots(slots.value))
        }
        (None, duration) => {
            let length = positive(duration.as_ref(), "a duration")?.unwrap_or(Nanos::from_secs(10));
            if let Some(period) = rate.period().filter(|p| p.0 > length.0) {
                let reason = format!("a trial of {length} ends before its first slot: a slot is due every {period}");
                let at = duration.as_ref().map_or(measure, |d| d.at);
                return Err(Fault::new(at, reason).help("use a longer duration, a number of `slots`, or a higher rate"));
            }
            Ok(Length::Duration(length))
        }
    }
}

fn warm_up(keys: Option<&At<WarmUp>>, rate: Rate) -> Result<u64, Fault> {
    let slots_of = |time: Nanos| match rate.period() {
        Some(period) => (time.0 as u64).div_ceil(period.0.max(1) as u64),
        None => WARM_UP_AT_MAX,
    };
    let Some(keys) = keys else { return Ok(slots_of(Nanos::from_millis(200))) };
    match keys.value.0 {
        WarmUpLength::Slots(slots) if slots >= 1 << tailbound_model::COUNTER_BITS => {
            Err(Fault::new(keys.at, format!("a warm-up of {slots} slots is too long")))
        }
        WarmUpLength::Slots(slots) => Ok(slots),
        WarmUpLength::Duration(time) if time > LONGEST => {
            Err(Fault::new(keys.at, "a warm-up must be at most 30 days").help("is the unit right?"))
        }
        WarmUpLength::Duration(time) => Ok(slots_of(time)),
    }
}
