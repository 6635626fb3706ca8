//! Several that send begin together: each is told a time of its own clock.

use super::agent::{Agent, Lost};
use super::trial::Part;
use std::time::Duration;
use tailbound_model::{Ask, Told};
use tailbound_record::ClockApart;
use tailbound_wire::{Message, Role};
use tokio::time::Instant;

/// So often a clock on another host is read; the quickest answer counts.
const READINGS: usize = 5;
/// Until the word has reached all, and each has fallen asleep once.
const LEAD_NS: i64 = 50_000_000;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads the clocks of those that send: how far each is from this process's. Empty where one sends alone.
pub(super) async fn clocks(parts: &mut [Part], agents: &mut [(Vec<Role>, Agent)]) -> Vec<(Role, ClockApart)> {
    let own = tailbound_host::clock_id().unwrap_or_default();
    let sending = |part: &&mut Part| !part.roles[0].receives() && part.lost.is_none();
    if parts.iter_mut().filter(sending).count() < 2 {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (part, (_, agent)) in parts.iter_mut().zip(agents).filter(|(part, _)| sending(part)) {
        let apart = if agent.clock == own { Ok(ClockApart::default()) } else { apart(agent).await };
        match apart {
            Ok(apart) => all.push((part.roles[0], apart)),
            Err(Lost(why)) => part.lost = Some(why),
        }
    }
    all
}

/// By the quickest of some round trips over the control stream.
async fn apart(agent: &mut Agent) -> Result<ClockApart, Lost> {
    let mut best: Option<ClockApart> = None;
    for _ in 0..READINGS {
        let before = tailbound_host::monotonic_ns();
        agent.send(Message::Ask(Ask::Clock)).await?;
        let told = agent.message(Instant::now() + PATIENCE).await?;
        let after = tailbound_host::monotonic_ns();
        let Message::Told(Told::Clock(theirs)) = told else {
            return Err(Lost(format!("it said {told:?} in place of its clock")));
        };
        let within_ns = (after - before) / 2 + 1;
        if best.is_none_or(|b| within_ns < b.within_ns) {
            best = Some(ClockApart { offset_ns: theirs - (before + after) / 2, within_ns });
        }
    }
    best.ok_or_else(|| Lost("its clock was not read".into()))
}

/// The word with which an end begins.
pub(super) fn word(clocks: &[(Role, ClockApart)], role: Role, now_ns: i64) -> Message {
    let slowest = clocks.iter().map(|(_, c)| c.within_ns).max().unwrap_or(0);
    let own = clocks.iter().find(|(r, _)| *r == role);
    // A word takes half a round trip; they go out one after the other.
    let lead_ns = LEAD_NS + 4 * slowest;
    own.map_or(Message::Go, |(_, clock)| Message::GoAt(now_ns + lead_ns + clock.offset_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_told_the_same_moment_each_by_its_own_clock() {
        let near = ClockApart::default();
        let far = ClockApart { offset_ns: -7_000_000_000, within_ns: 2_000_000 };
        let clocks = [(Role::Ping, near), (Role::Publisher(2), far)];
        assert_eq!(word(&clocks, Role::Ping, 1_000), Message::GoAt(58_001_000));
        assert_eq!(word(&clocks, Role::Publisher(2), 1_000), Message::GoAt(58_001_000 - 7_000_000_000));
        assert_eq!(word(&clocks, Role::Pong, 1_000), Message::Go, "who receives has no moment");
        assert_eq!(word(&[], Role::Ping, 1_000), Message::Go);
    }
}
