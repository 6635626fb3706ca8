//! The ends of a flow: opening them, waiting for what is on its way, what their counts say of the trial.

use super::end::{Ends, count_memory, memory, open_end};
use super::told::qos;
use super::{Stop, failed};
use crate::hot::*;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tailbound_driver::Driver;
use tailbound_model::*;
use tailbound_wire::{EndDone, Order, Role};

/// A subscriber of which nothing came for this long has what will come.
const QUIET: Duration = Duration::from_secs(1);
/// The same of a reliable one: a last message that was lost is sent again after the writer's next heartbeat, and those of
/// Fast DDS come every 3 s.
const QUIET_RELIABLE: Duration = Duration::from_secs(5);
/// The longest that is waited for what is on its way.
const LONGEST: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(5);

impl<C: Clock> Ends<C> {
    /// Opens publisher and subscriber, those of them that this process has.
    pub(super) fn open_flow(
        &mut self,
        order: &Order,
        flow: &Flow,
        memories: &[OwnedFd],
        driver: &Driver,
        clock: C,
    ) -> Result<(), Stop> {
        let row_every = flow.row_every().unwrap_or(0);
        let mut shared = None;
        let mut indices: Vec<usize> = (0..order.ends.len()).collect();
        indices.sort_by_key(|i| !order.ends[*i].role.receives());
        for index in indices {
            let (end, samples) = (&order.ends[index], memory(order, memories, index)?);
            let counts = count_memory(order, memories, index)?;
            if let Some(publisher) = end.role.publisher() {
                let row_every = if publisher == 0 { row_every } else { 0 };
                let payload = (0..order.spec.message_octets()).map(|i| i as u8).collect();
                let parts_ns = [flow.ramp_up.0, flow.window.0, flow.drain.0];
                let period_ns = order.spec.rate.period().map(|p| p.0);
                let pace = FlowPace { publisher, period_ns, parts_ns, row_every, batching: flow.batching };
                let sink = |memory: &Memory, clock: C, writer: Option<Port>| Publisher {
                    clock,
                    hook: NoHook,
                    writer: writer.expect("a publisher has a writer"),
                    counts,
                    rows: memory.sender(),
                    header: memory.header(),
                    payload,
                    pace,
                    answered: AtomicU64::new(0),
                    highest: AtomicU64::new(0),
                };
                let points = (true, flow.has_answers() && publisher == 0);
                let opened = open_end(clock, order, (end, points), driver, shared, samples, sink)?;
                shared = order.spec.is_one_session().then_some(opened.session);
                self.publisher = Some(opened);
            } else {
                let answers = flow.has_answers() && end.role == Role::Pong;
                let sink = |memory: &Memory, clock: C, writer: Option<Port>| Subscriber {
                    clock,
                    writer,
                    counts,
                    rows: memory.echo(),
                    header: memory.header(),
                    row_every: if flow.has_answers() && !answers { 0 } else { row_every },
                    seen: Seen::of(flow.publishers),
                    part: AtomicU64::new(0),
                };
                let opened = open_end(clock, order, (end, (answers, true)), driver, shared, samples, sink)?;
                opened.sink.begin();
                shared = order.spec.is_one_session().then_some(opened.session);
                self.subscriber = Some(opened);
            }
        }
        Ok(())
    }

    /// What the ends of a flow came to.
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

    /// The publisher has sent so many messages: waits until all are here, or no more come.
    pub(super) fn subscribe(&self, sent: Option<u64>) {
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
    /// Sends, and waits for answers; with the subscriber in this process, for what is on its way.
    pub(super) fn run_flow(&self, t0_ns: i64, timeout_ns: i64, flush: impl FnOnce()) {
        let rows = self.run(t0_ns);
        flush();
        if self.pace.row_every > 0 && timeout_ns > 0 {
            self.await_answers(rows, timeout_ns);
        }
        self.header.rows.store(rows, std::sync::atomic::Ordering::Release);
    }
}

/// What the counts of a publisher say.
pub(super) fn of_publisher(counts: &FlowCounts) -> Option<Warning> {
    let code = tailbound_driver::Code(counts.refusal as i32);
    let text = format!(
        "the driver refused {} of {} calls that send; its last refusal: {code}",
        counts.refused_in_all,
        counts.messages() + counts.refused_in_all
    );
    (counts.refused_in_all > 0).then(|| Warning::new("send_refused", Severity::Note, text, ""))
}

/// A limit that came out other than asked makes the trial invalid.
pub(super) fn limit_difference(flow: &Flow, told: Option<&serde_json::Value>) -> Option<Warning> {
    let asked = flow.unacked_limit?;
    let found = told.and_then(|t| t["unacked_limit"].as_u64());
    let why = told.and_then(|t| t["by"]["unacked_limit"].as_str()).unwrap_or("the driver does not tell");
    let found_text = found.map_or("none".to_owned(), |n| n.to_string());
    let text = format!("unacked_limit was asked to be {asked}, the driver reports {found_text} ({why})");
    (found != Some(u64::from(asked))).then(|| Warning::new("unacked_limit_not_as_asked", Severity::Invalid, text, ""))
}

/// What the counts of a subscriber say.
pub(super) fn of_subscriber(role: Role, counts: &FlowCounts) -> Vec<Warning> {
    let mut all = Vec::new();
    let mut say = |code: &str, text: String, mend: &str| {
        all.push(Warning::new(code, Severity::Invalid, text, mend).at_end(role.word()));
    };
    if counts.foreign > 0 {
        let text = format!("{} messages were not of this flow", counts.foreign);
        say("foreign_samples", text, "another program writes to this trial's topic");
    }
    if counts.stale > 0 {
        let text = format!("{} messages came so late that they cannot be told from duplicates", counts.stale);
        say("stale_messages", text, "ask for a lower rate or a shorter history");
    }
    all
}

/// The counts of an end cannot be mapped.
pub(super) fn no_counts(e: &std::io::Error) -> tailbound_wire::Failed {
    let text = format!("the memory of the counts cannot be mapped: {e}");
    failed("sample_memory", ExitCode::MachineNotFit, text, "use a shorter flow")
}
