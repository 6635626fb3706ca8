//! Opens the ends of a flow, waits for the last messages of the flow, and derives warnings from the counts.

use super::Stop;
use super::driver_report::qos;
use super::ends::{Ends, Opening, Points};
use crate::hot::*;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tailbound_driver::Session;
use tailbound_model::*;
use tailbound_wire::{EndDone, Order, Role};

/// Time without a message after which a best-effort subscriber expects no more messages.
const QUIET: Duration = Duration::from_secs(1);
/// Time without a message after which a reliable subscriber expects no more messages. It is longer than [`QUIET`],
/// because a lost last message is sent again only after the next heartbeat of the writer, and Fast DDS sends heartbeats
/// every 3 s.
const QUIET_RELIABLE: Duration = Duration::from_secs(5);
/// Longest time for which a subscriber waits for the last messages of a flow.
const LONGEST: Duration = Duration::from_secs(30);
/// Time between two checks of the subscriber's message counts.
const LOOK: Duration = Duration::from_millis(5);

impl<C: Clock> Ends<C> {
    /// Opens the publisher or the subscriber of a flow.
    pub(super) fn open_flow(
        &mut self,
        flow: &Flow,
        opening: Opening<'_, C>,
        memory: Memory,
        counts: FlowCells,
    ) -> Result<&'static Session, Stop> {
        match opening.plan.role.publisher() {
            Some(number) => self.open_publisher(flow, number, opening, memory, counts),
            None => self.open_subscriber(flow, opening, memory, counts),
        }
    }

    fn open_publisher(
        &mut self,
        flow: &Flow,
        number: u8,
        opening: Opening<'_, C>,
        memory: Memory,
        counts: FlowCells,
    ) -> Result<&'static Session, Stop> {
        let plan = opening.plan;
        let pace = FlowPace {
            publisher: number,
            period_ns: opening.order.spec.rate.period().map(|p| p.0),
            parts_ns: [flow.ramp_up.0, flow.window.0, flow.drain.0],
            row_every: flow.row_every().filter(|_| number == 0).unwrap_or(0),
            batching: flow.batching,
        };
        let sink = |memory: &Memory, clock: C, writer: Option<Port>| Publisher {
            clock,
            hook: NoHook,
            writer: writer.expect("a publisher has a writer"),
            counts,
            rows: memory.sender(),
            header: memory.header(),
            payload: plan.payload(),
            pace,
            answered: AtomicU64::new(0),
            highest: AtomicU64::new(0),
        };
        let points = Points { writer: true, reader: flow.has_answers() && number == 0 };
        Ok(self.publisher.insert(opening.open(memory, points, sink)?).session)
    }

    fn open_subscriber(
        &mut self,
        flow: &Flow,
        opening: Opening<'_, C>,
        memory: Memory,
        counts: FlowCells,
    ) -> Result<&'static Session, Stop> {
        let answers = flow.has_answers() && opening.plan.role == Role::Pong;
        let has_rows = answers || !flow.has_answers();
        let sink = |memory: &Memory, clock: C, writer: Option<Port>| Subscriber {
            clock,
            writer,
            counts,
            rows: memory.echo(),
            header: memory.header(),
            row_every: flow.row_every().filter(|_| has_rows).unwrap_or(0),
            received: Received::by_publisher(flow.publishers),
            part: AtomicU64::new(0),
        };
        let opened = opening.open(memory, Points { writer: answers, reader: true }, sink)?;
        opened.sink.begin();
        Ok(self.subscriber.insert(opened).session)
    }

    /// Returns the results of the ends of a flow, and adds warnings.
    pub(super) fn flow_results(&self, order: &Order, warnings: &mut Vec<Warning>, log: &mut String) -> Vec<EndDone> {
        let mut done = Vec::new();
        if let Some(end) = &self.publisher {
            let counts = end.sink.counts.read();
            let sent = counts.messages();
            let result = end.result(order, warnings, log);
            let asked = order.spec.measure.flow();
            let of =
                asked.and_then(|f| limit_difference(f, result.told.as_ref())).into_iter().chain(of_publisher(&counts));
            warnings.extend(of.map(|warning| warning.at_end(end.role.word())));
            done.push(EndDone { sent, ..result });
        }
        if let Some(end) = &self.subscriber {
            done.push(end.result(order, warnings, log));
            warnings.extend(of_subscriber(end.role, &end.sink.counts.read()));
        }
        done
    }

    /// Waits until the subscriber has received all messages that were sent, or until no more messages arrive.
    pub(super) fn await_messages(&self, sent: Option<u64>) {
        let (Some(end), Some(sent)) = (&self.subscriber, sent) else { return };
        let reliable = qos(end.session, None, end.reader).get("reliability").is_some_and(|r| r == "reliable");
        let quiet = if reliable { QUIET_RELIABLE } else { QUIET };
        let came = || end.sink.counts.read().messages();
        let (began, mut last, mut since) = (std::time::Instant::now(), came(), std::time::Instant::now());
        while last < sent && since.elapsed() < quiet && began.elapsed() < LONGEST {
            std::thread::sleep(LOOK);
            let now = came();
            if now != last {
                (last, since) = (now, std::time::Instant::now());
            }
        }
    }
}

impl<C: Clock> Publisher<C> {
    /// Sends the whole flow, flushes the writer, then waits for the last answers.
    pub(super) fn run_flow(&self, t0_ns: i64, timeout_ns: i64, flush: impl FnOnce()) {
        let rows = self.run(t0_ns);
        flush();
        if self.pace.row_every > 0 && timeout_ns > 0 {
            self.await_answers(rows, timeout_ns);
        }
        self.header.rows.store(rows, std::sync::atomic::Ordering::Release);
    }
}

/// Makes a warning if the driver refused send calls of a publisher.
pub(super) fn of_publisher(counts: &FlowCounts) -> Option<Warning> {
    let code = tailbound_driver::Code(counts.refusal as i32);
    let text = format!(
        "the driver refused {} of {} send calls; its last refusal: {code}",
        counts.refused_in_all,
        counts.messages() + counts.refused_in_all
    );
    (counts.refused_in_all > 0).then(|| Warning::new("send_refused", Severity::Note, text, ""))
}

/// Warns if the driver reports another limit of unacknowledged messages than the study asks for. The trial is then
/// invalid.
pub(super) fn limit_difference(flow: &Flow, report: Option<&serde_json::Value>) -> Option<Warning> {
    let asked = flow.unacked_limit?;
    let found = report.and_then(|t| t["unacked_limit"].as_u64());
    let why = report.and_then(|t| t["by"]["unacked_limit"].as_str()).unwrap_or("the driver does not report this limit");
    let found_text = found.map_or("none".to_owned(), |n| n.to_string());
    let text = format!("the study asks for unacked_limit {asked}, the driver reports {found_text} ({why})");
    (found != Some(u64::from(asked))).then(|| Warning::new("unacked_limit_not_as_asked", Severity::Invalid, text, ""))
}

/// Makes warnings about messages that a subscriber could not count.
pub(super) fn of_subscriber(role: Role, counts: &FlowCounts) -> Vec<Warning> {
    let mut all = Vec::new();
    let mut say = |code: &str, text: String, remedy: &str| {
        all.push(Warning::new(code, Severity::Invalid, text, remedy).at_end(role.word()));
    };
    if counts.foreign > 0 {
        let text = format!("{} messages did not belong to this flow", counts.foreign);
        say("foreign_samples", text, "end the other program that writes to the topic of this trial");
    }
    if counts.stale > 0 {
        let text = format!("{} messages came so late that they cannot be distinguished from duplicates", counts.stale);
        say("stale_messages", text, "ask for a lower rate or a shorter history");
    }
    all
}
