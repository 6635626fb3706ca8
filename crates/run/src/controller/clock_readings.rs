//! Readings of the clock of an agent by questions.

use super::agent::Agent;
use super::agent_protocol::Lost;
use std::time::Duration;
use tailbound_model::{Answer, Ask, ClockReading};
use tailbound_wire::Message;
use tokio::time::Instant;

/// Longest time for an agent to read its clock and answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads the clock of an agent `count` times, each time between two readings of the controller's clock.
pub(super) async fn readings(agent: &mut Agent, count: usize) -> Result<Vec<ClockReading>, Lost> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let before_ns = tailbound_host::monotonic_ns();
        agent.send(Message::Ask(Ask::Clock)).await?;
        let answer = agent.message(Instant::now() + PATIENCE).await?;
        let after_ns = tailbound_host::monotonic_ns();
        let Message::Answer(Answer::Clock(other_ns)) = answer else {
            return Err(Lost::unexpected(&answer, "its clock"));
        };
        all.push(ClockReading { before_ns, other_ns, after_ns });
    }
    Ok(all)
}
