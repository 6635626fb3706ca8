//! Go, silence, done: the measured part of a trial, all agents at once.

use super::agent::{Agent, Lost};
use super::trial::Part;
use super::{barrier, collect};
use std::path::Path;
use tailbound_record::{ClockApart, RecordError};
use tailbound_wire::*;
use tokio::sync::watch;
use tokio::time::Instant;

/// Runs the trial; agents that fail are marked lost. Those that only answer are stopped once the pings are through.
///
/// # Errors
/// Rows that are drained cannot be written.
pub(super) async fn measure(
    parts: &mut [Part],
    agents: &mut [(Vec<Role>, Agent)],
    dir: &Path,
    (unmatched, clocks): (bool, &[(Role, ClockApart)]),
    deadline: Instant,
) -> Result<(), RecordError> {
    let now_ns = tailbound_host::monotonic_ns();
    let broken = unmatched || parts.iter().any(|p| p.lost.is_some());
    // Those that only answer come first in the list: they listen before the first ping.
    for (part, (_, agent)) in parts.iter_mut().zip(agents.iter_mut()) {
        if part.lost.is_none() {
            agent.silent = !broken;
            let word = if broken { Message::Stop } else { barrier::word(clocks, part.roles[0], now_ns) };
            if let Err(Lost(why)) = agent.send(word).await {
                part.lost = Some(why);
            }
        }
    }
    let pings = parts.iter().filter(|p| sends(p) && p.lost.is_none()).count();
    let (through, _) = watch::channel((pings, None));
    let hearing =
        parts.iter_mut().zip(agents.iter_mut()).filter(|(part, _)| part.lost.is_none()).map(|(part, (_, agent))| {
            let (through, is_ping) = (&through, sends(part));
            let is_flow = part.order.spec.measure.flow().is_some();
            async move {
                let stop = (!is_ping && !broken).then(|| through.subscribe());
                let heard = hear(part, agent, dir, stop, deadline).await;
                agent.silent = false;
                if is_ping {
                    let sent = part.done.as_ref().filter(|_| is_flow).map(|d| d.ends.iter().map(|e| e.sent).sum());
                    through.send_modify(|(left, all): &mut (usize, Option<u64>)| {
                        *left -= 1;
                        *all = sent.map_or(*all, |sent: u64| Some(all.unwrap_or(0) + sent));
                    });
                }
                heard
            }
        });
    futures_util::future::try_join_all(hearing).await.map(drop)
}

/// One that sends is among the ends of a part.
fn sends(part: &Part) -> bool {
    part.roles.iter().any(|role| !role.receives())
}

/// Listens to one agent until its ends are through; with `stop`, tells it when the pings are.
async fn hear(
    part: &mut Part,
    agent: &mut Agent,
    dir: &Path,
    mut stop: Option<watch::Receiver<(usize, Option<u64>)>>,
    deadline: Instant,
) -> Result<(), RecordError> {
    loop {
        let pings_through = async {
            match &mut stop {
                // The sender lives as long as all who listen.
                Some(stop) => stop.wait_for(|(left, _)| *left == 0).await.map_or(None, |through| through.1),
                None => std::future::pending().await,
            }
        };
        let frame = tokio::select! {
            frame = agent.frame(deadline) => frame,
            sent = pings_through => {
                stop = None;
                match agent.send(sent.map_or(Message::Stop, Message::Sent)).await {
                    Ok(()) => continue,
                    Err(lost) => Err(lost),
                }
            }
        };
        let taken = match frame {
            Ok(Frame::Message(message)) => match *message {
                Message::Done(done) => {
                    part.done = Some(*done);
                    return Ok(());
                }
                Message::Failed(failed) => Err(Lost(failed.text)),
                Message::Draining(draining) => {
                    draining.clock.into_iter().for_each(|reading| part.track.push(reading));
                    if let Some(incoming) = part.incoming.get_mut(draining.end as usize) {
                        incoming.t0_ns = draining.t0_ns;
                    }
                    Ok(())
                }
                other => Err(Lost(format!("it said {other:?} in place of `done`"))),
            },
            Ok(Frame::Memory { end, offset, bytes }) => collect::take(&mut part.incoming, end, offset, &bytes),
            Err(lost) => Err(lost),
        };
        match taken {
            Ok(()) => collect::close_full(agent, &mut part.incoming, dir, &part.order, &part.track).await?,
            Err(Lost(why)) => {
                part.lost = Some(why);
                return Ok(());
            }
        }
    }
}
