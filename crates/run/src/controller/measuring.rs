//! The measured part of a trial, for all agents at the same time: the message `go`, silence, the message `done`.

use super::agent::Agent;
use super::agent_protocol::Lost;
use super::meanwhile::{Clocks, Meanwhile};
use super::progress::Progress;
use super::trial_state::Part;
use super::{collect, common_start};
use std::path::Path;
use tailbound_model::UntilCondition;
use tailbound_record::{ClockApart, RecordError};
use tailbound_wire::*;
use tokio::sync::watch;
use tokio::time::Instant;

/// Runs the measured part of a trial. Agents that fail are marked as lost. When all senders are done, ends that only
/// answer are stopped.
///
/// # Errors
/// Drained rows cannot be written.
pub(super) async fn measure(
    parts: &mut [Part],
    agents: &mut [(Vec<Role>, Agent)],
    dir: &Path,
    (unmatched, clocks, until): (bool, &[(Role, ClockApart)], Option<&UntilCondition>),
    (all_clocks, progress): (&Clocks, &mut dyn Progress),
    deadline: Instant,
) -> Result<(), RecordError> {
    let now_ns = tailbound_host::monotonic_ns();
    let broken_off = unmatched || parts.iter().any(|p| p.lost.is_some());
    // Ends that only answer come first in the list, so that they receive before the first ping is sent.
    for (part, (_, agent)) in parts.iter_mut().zip(agents.iter_mut()) {
        if part.lost.is_none() {
            agent.silent = !broken_off;
            let message =
                if broken_off { Message::Stop } else { common_start::start_message(clocks, part.roles[0], now_ns) };
            if let Err(lost) = agent.send(message).await {
                part.lost = Some(lost.to_string());
            }
        }
    }
    let meanwhile = Meanwhile::new(agents);
    for (number, (_, agent)) in agents.iter_mut().enumerate() {
        agent.meanwhile = Some((number, meanwhile.sender()));
    }
    let writers = agents.iter().map(|(_, agent)| agent.spares.then(|| agent.writer())).collect();
    let senders = parts.iter().filter(|p| p.sends() && p.lost.is_none()).count();
    let (senders_left, _) = watch::channel((senders, None));
    let listening =
        parts.iter_mut().zip(agents.iter_mut()).filter(|(part, _)| part.lost.is_none()).map(|(part, (_, agent))| {
            let (senders_left, is_sender) = (&senders_left, part.sends());
            let is_flow = part.order.spec.measure.flow().is_some();
            async move {
                let stop = (!is_sender && !broken_off).then(|| senders_left.subscribe());
                let result = listen(part, agent, dir, stop, until, deadline).await;
                agent.silent = false;
                if is_sender {
                    let sent = part.done.as_ref().filter(|_| is_flow).map(|d| d.ends.iter().map(|e| e.sent).sum());
                    senders_left.send_modify(|(left, all): &mut (usize, Option<u64>)| {
                        *left -= 1;
                        *all = sent.map_or(*all, |sent: u64| Some(all.unwrap_or(0) + sent));
                    });
                }
                result
            }
        });
    tokio::select! {
        heard = futures_util::future::try_join_all(listening) => heard.map(drop),
        () = meanwhile.pass_on(all_clocks, writers, progress) => Ok(()),
    }
}

/// Receives messages from one agent until its ends are done. If `stop` is given, sends the message `stop` when all
/// senders are done. If a row that was collected live fulfils the condition `until`, lets the senders end early.
async fn listen(
    part: &mut Part,
    agent: &mut Agent,
    dir: &Path,
    mut stop: Option<watch::Receiver<(usize, Option<u64>)>>,
    mut until: Option<&UntilCondition>,
    deadline: Instant,
) -> Result<(), RecordError> {
    loop {
        let senders_done = async {
            match &mut stop {
                // The watch channel lives as long as all its receivers.
                Some(stop) => stop.wait_for(|(left, _)| *left == 0).await.map_or(None, |done| done.1),
                None => std::future::pending().await,
            }
        };
        let frame = tokio::select! {
            frame = agent.frame(deadline) => frame,
            sent = senders_done => {
                stop = None;
                match agent.send(sent.map_or(Message::Stop, Message::Sent)).await {
                    Ok(()) => continue,
                    Err(lost) => Err(lost),
                }
            }
        };
        let result = match frame {
            Ok(Frame::Message(message)) => match *message {
                Message::Done(done) => {
                    part.done = Some(*done);
                    return Ok(());
                }
                Message::Failed(failed) => Err(Lost::Reported(failed.problem.what)),
                Message::Stamped(stamped) => {
                    part.stamped.push(*stamped);
                    Ok(())
                }
                // The answer to a question about its clock, for which nobody waits any longer.
                Message::Answer(_) => Ok(()),
                Message::Draining(draining) => {
                    draining.clock.into_iter().for_each(|reading| part.track.push(reading));
                    if let Some(incoming) = part.incoming.get_mut(draining.end as usize) {
                        incoming.t0_ns = draining.t0_ns;
                    }
                    Ok(())
                }
                other => Err(Lost::unexpected(&other, "`done`")),
            },
            Ok(Frame::Memory { end, offset, bytes }) => collect::take(&mut part.incoming, end, offset, &bytes),
            Err(lost) => Err(lost),
        };
        if until.is_some_and(|condition| collect::fulfilled(&mut part.incoming, &part.order, condition)) {
            until = None;
            part.ended_early = true;
            // The code that waits for an answer notices that the agent no longer reads.
            let _ = agent.send(Message::EndEarly).await;
        }
        match result {
            Ok(()) => collect::close_full(agent, &mut part.incoming, dir, &part.order, &part.track).await?,
            Err(lost) => {
                part.lost = Some(lost.to_string());
                return Ok(());
            }
        }
    }
}
