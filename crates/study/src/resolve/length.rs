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
    let slots = keys.slots.as_ref().map(|slots| (slots.at, "slots"));
    let duration = keys.duration.as_ref().map(|duration| (duration.at, "duration"));
    let loops = keys.loops.as_ref().map(|loops| (loops.at, "loops"));
    let mut given: Vec<(Pos, &str)> = [slots, duration, loops].into_iter().flatten().collect();
    // The key that comes later in the file is reported as superfluous.
    given.sort_by_key(|(at, _)| at.start);
    if let [(_, first), (at, second), ..] = given[..] {
        return Err(Fault::new(at, format!("`{first}` and `{second}` both give the length of a trial"))
            .help("keep one of the two keys"));
    }
    if let Some(slots) = &keys.slots {
        return counted(slots, "slots", 1, rate).map(Length::Slots);
    }
    if let Some(loops) = &keys.loops {
        if rate.period().is_none() {
            let reason = "`loops` leaves missed slots out: with `rate: max` there are none";
            return Err(
                Fault::new(loops.at, reason).help("write `slots` in place of `loops`, or give a rate such as `1 kHz`")
            );
        }
        if keys.on_overrun.as_ref().map(|o| o.value) != Some(OverrunChoice::Skip) {
            let reason = "`loops` counts the messages that are sent, so that missed slots must not be sent later";
            return Err(
                Fault::new(loops.at, reason).help("write `on_overrun: skip` too, or `slots` in place of `loops`")
            );
        }
        return counted(loops, "loops", Length::MOST_SLOTS_PER_LOOP, rate).map(Length::Loops);
    }
    let length = positive(keys.duration.as_ref(), "a duration")?.unwrap_or(Nanos::from_secs(10));
    if let Some(period) = rate.period().filter(|p| p.0 > length.0) {
        let reason = format!("a trial of {length} ends before its first slot: a slot is due every {period}");
        let at = keys.duration.as_ref().map_or(measure, |d| d.at);
        return Err(Fault::new(at, reason).help("use a longer duration, a number of `slots`, or a higher rate"));
    }
    Ok(Length::Duration(length))
}

/// A length that is a number of `what`, each with at most `slots` slots.
fn counted(number: &At<u64>, what: &str, slots: u64, rate: Rate) -> Result<u64, Fault> {
    if number.value == 0 {
        return Err(Fault::new(number.at, format!("a trial of 0 {what} measures nothing")).help("at least 1"));
    }
    let most = number.value.saturating_mul(slots);
    let time = rate.period().map_or(0, |p| p.0.saturating_mul(i64::try_from(most).unwrap_or(i64::MAX)));
    if most >= 1 << tailbound_model::COUNTER_BITS || time > LONGEST.0 {
        let reason = format!("a trial of {} {what} could last longer than 30 days", number.value);
        return Err(Fault::new(number.at, reason).help(format!("use fewer {what} or a higher rate")));
    }
    Ok(number.value)
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
