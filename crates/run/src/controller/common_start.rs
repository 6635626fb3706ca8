//! A common start of several senders: each sender gets the start time on its own clock.

use super::agent::Agent;
use super::agent_protocol::Lost;
use super::clock_readings::readings;
use super::trial_state::Part;
use tailbound_model::ClockReading;
use tailbound_record::ClockApart;
use tailbound_wire::{Message, Role};

/// Number of readings of a clock on another host. The reading with the shortest round trip is used.
const READINGS: usize = 5;
/// Time until the start message has reached all ends and each end has fallen asleep once, ns.
const LEAD_NS: i64 = 50_000_000;

/// Reads the clocks of all senders. Returns the difference of each clock to the clock of the controller; if there is
/// only one sender, the list is empty.
pub(super) async fn clocks(parts: &mut [Part], agents: &mut [(Vec<Role>, Agent)]) -> Vec<(Role, ClockApart)> {
    let own = tailbound_host::clock_id().unwrap_or_default();
    let sending = |part: &&mut Part| !part.roles[0].receives() && part.lost.is_none();
    if parts.iter_mut().filter(sending).count() < 2 {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (part, (_, agent)) in parts.iter_mut().zip(agents).filter(|(part, _)| sending(part)) {
        let apart = if agent.clock == own { Ok(ClockApart::default()) } else { difference(agent).await };
        match apart {
            Ok(apart) => all.push((part.roles[0], apart)),
            Err(lost) => part.lost = Some(lost.to_string()),
        }
    }
    all
}

/// Measures the difference of an agent's clock to the clock of the controller, from the shortest of several round
/// trips.
pub(super) async fn difference(agent: &mut Agent) -> Result<ClockApart, Lost> {
    let readings = readings(agent, READINGS).await?;
    let shortest = readings.iter().min_by_key(|reading| reading.after_ns - reading.before_ns).ok_or(Lost::NoAnswer)?;
    let ClockReading { before_ns, other_ns, after_ns } = *shortest;
    Ok(ClockApart { offset_ns: other_ns - (before_ns + after_ns) / 2, within_ns: (after_ns - before_ns) / 2 + 1 })
}

/// Makes the message that starts an end: `go`, or `go-at` with the start time on the clock of the end.
pub(super) fn start_message(clocks: &[(Role, ClockApart)], role: Role, now_ns: i64) -> Message {
    let slowest = clocks.iter().map(|(_, c)| c.within_ns).max().unwrap_or(0);
    let own = clocks.iter().find(|(r, _)| *r == role);
    // A message takes half a round trip; the messages are sent one after the other.
    let lead_ns = LEAD_NS + 4 * slowest;
    own.map_or(Message::Go, |(_, clock)| Message::GoAt(now_ns + lead_ns + clock.offset_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_senders_start_at_the_same_moment_each_by_its_own_clock() {
        let near = ClockApart::default();
        let far = ClockApart { offset_ns: -7_000_000_000, within_ns: 2_000_000 };
        let clocks = [(Role::Ping, near), (Role::Publisher(2), far)];
        assert_eq!(start_message(&clocks, Role::Ping, 1_000), Message::GoAt(58_001_000));
        assert_eq!(start_message(&clocks, Role::Publisher(2), 1_000), Message::GoAt(58_001_000 - 7_000_000_000));
        assert_eq!(start_message(&clocks, Role::Pong, 1_000), Message::Go, "a receiver has no start time");
        assert_eq!(start_message(&[], Role::Ping, 1_000), Message::Go);
    }
}
