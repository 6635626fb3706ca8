//! The messages of a trial as slices, with flows from the send call to the pong, and from there to the receipt.

use crate::perfetto::lanes::Lanes;
use crate::perfetto::machines::Conversion;
use crate::perfetto::packets::{Packets, Slice, Track};
use crate::perfetto::spans::{Span, meeting};
use std::io;
use tailbound_model::{NO_TIME, Outcome};
use tailbound_record::{Record, RecordError, SlotBatch};

/// Largest number of messages of one time span that are drawn.
const MOST_IN_SPAN: usize = 5_000;
/// The sequence number of a message contains its stream above these bits.
const SLOT_BITS: u64 = (1 << 48) - 1;

/// Tracks of the two ends, below which messages are drawn. Without `pong`, its part is not drawn.
pub(super) struct Ends {
    pub ping: Track,
    pub pong: Option<Track>,
}

/// What became of the messages of a trial.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub messages: u64,
    pub left_out: u64,
    /// Error that ended the reading of the samples.
    pub error: Option<RecordError>,
}

/// Draws the messages that meet one of `spans`; `late_above_ns` is the limit above which a message of the trial is late.
/// `pong_clock` converts the times of the pong, if it has another clock.
pub(super) fn write(
    packets: &mut Packets,
    (record, trial): (&Record, usize),
    (spans, late_above_ns): (&[Span], Option<i64>),
    ends: &Ends,
    pong_clock: Option<&Conversion>,
) -> io::Result<Drawn> {
    let mut drawn = Drawn::default();
    if spans.is_empty() {
        return Ok(drawn);
    }
    let ping = Lanes::new("messages", ends.ping);
    let pong = ends.pong.map(|pong| Lanes::new("messages", pong));
    let mut pen = Pen { packets, ping, pong, pong_clock, late_above_ns, in_span: vec![0; spans.len()] };
    let mut result = Ok(());
    let read = record.slots(trial, &mut |batch| {
        for i in 0..batch.len() {
            let message = Message::of(batch, i);
            if result.is_ok()
                && let Some(message) = message
                && let Some(span) = meeting(spans, message.due_ns, message.end_ns)
            {
                result = pen.draw(&message, span).map(|done| {
                    drawn.messages += u64::from(done);
                    drawn.left_out += u64::from(!done);
                });
            }
        }
    });
    drawn.error = read.err();
    result.map(|()| drawn)
}

/// Times and outcome of one message. A time that does not exist is [`NO_TIME`].
#[derive(Debug, Clone, Copy)]
struct Message {
    slot: u64,
    due_ns: i64,
    /// The receipt of the answer; without an answer, the end of the send call, or the due time.
    end_ns: i64,
    wake_ns: i64,
    send_begin_ns: i64,
    send_end_ns: i64,
    receive_ns: i64,
    kernel_rx_ns: i64,
    echo_in_ns: i64,
    echo_begin_ns: i64,
    echo_end_ns: i64,
    outcome: Outcome,
    duplicates: u32,
    warm_up: bool,
}

impl Message {
    /// The message in row `i`; `None` if it has no time.
    fn of(batch: &SlotBatch, i: usize) -> Option<Message> {
        let (intended, begun) = (batch.intended_ns[i], batch.send_begin_ns[i]);
        let due_ns = if intended == NO_TIME { begun } else { intended };
        let received = batch.receive_ns[i];
        let end_ns = if received == NO_TIME { batch.send_end_ns[i].max(begun) } else { received };
        (due_ns != NO_TIME).then(|| Message {
            slot: batch.seq[i] & SLOT_BITS,
            due_ns,
            end_ns: end_ns.max(due_ns),
            wake_ns: batch.wake_ns[i],
            send_begin_ns: begun,
            send_end_ns: batch.send_end_ns[i],
            receive_ns: received,
            kernel_rx_ns: batch.kernel_rx_ns[i],
            echo_in_ns: batch.echo_in_ns[i],
            echo_begin_ns: batch.echo_begin_ns[i],
            echo_end_ns: batch.echo_end_ns[i],
            outcome: Outcome::ALL.get(usize::from(batch.outcome[i])).copied().unwrap_or(Outcome::Lost),
            duplicates: batch.duplicates[i],
            warm_up: batch.warm_up[i],
        })
    }

    /// The same message with the times of the pong in the clock of the ping.
    fn converted(&self, clock: &Conversion) -> Message {
        let at = |at_ns: i64| if at_ns == NO_TIME { NO_TIME } else { clock.at_ns(at_ns) };
        Message {
            echo_in_ns: at(self.echo_in_ns),
            echo_begin_ns: at(self.echo_begin_ns),
            echo_end_ns: at(self.echo_end_ns),
            ..*self
        }
    }

    fn is_received(&self) -> bool {
        self.receive_ns != NO_TIME
    }

    fn name(&self) -> String {
        match self.outcome {
            Outcome::Answered => format!("message {}", self.slot),
            outcome => format!("message {} ({})", self.slot, outcome.word().replace('_', " ")),
        }
    }
}

/// Draws messages one after the other.
struct Pen<'a, 'b> {
    packets: &'a mut Packets<'b>,
    ping: Lanes,
    pong: Option<Lanes>,
    pong_clock: Option<&'a Conversion>,
    late_above_ns: Option<i64>,
    /// Number of messages that were drawn in each time span.
    in_span: Vec<usize>,
}

impl Pen<'_, '_> {
    /// Draws a message of the time span with this index; false if there is no room for it.
    fn draw(&mut self, message: &Message, span: usize) -> io::Result<bool> {
        if self.in_span[span] == MOST_IN_SPAN {
            return Ok(false);
        }
        let Some(track) = self.ping.take(self.packets, (message.due_ns, message.end_ns))? else { return Ok(false) };
        self.in_span[span] += 1;
        let message = &self.pong_clock.map_or(*message, |clock| message.converted(clock));
        let answer_ns = if message.echo_begin_ns == NO_TIME { message.echo_in_ns } else { message.echo_begin_ns };
        let echo = (message.echo_in_ns, message.echo_end_ns.max(answer_ns));
        let pong = match &mut self.pong {
            Some(lanes) if message.echo_in_ns != NO_TIME => lanes.take(self.packets, echo)?,
            _ => None,
        };
        let sent = message.send_begin_ns != NO_TIME;
        let out = (sent && pong.is_some()).then(|| self.packets.flow());
        let answered = message.echo_begin_ns != NO_TIME && message.is_received();
        let back = (answered && pong.is_some()).then(|| self.packets.flow());
        self.at_ping(track, message, (out, back))?;
        if let Some(pong) = pong {
            self.at_pong(pong, message, (echo.1, out, back))?;
        }
        Ok(true)
    }

    fn at_ping(&mut self, track: Track, message: &Message, flows: (Option<u64>, Option<u64>)) -> io::Result<()> {
        let Message { due_ns, end_ns, .. } = *message;
        let late = self.late_above_ns.is_some_and(|limit| message.is_received() && end_ns - due_ns > limit);
        let category = match () {
            () if message.warm_up => Some("warm-up"),
            () if late => Some("late"),
            () if !message.is_received() => Some("lost"),
            () => None,
        };
        let slice = annotated(Slice::new(message.name(), "message").category(category), message);
        if end_ns == due_ns {
            return self.packets.instant(track, due_ns, slice);
        }
        self.packets.begin_slice(track, due_ns, slice)?;
        if message.send_begin_ns != NO_TIME {
            // A send call can last until after the receipt of the answer.
            let begin_ns = message.send_begin_ns.clamp(due_ns, end_ns);
            let call_ns = (begin_ns, message.send_end_ns.clamp(begin_ns, end_ns));
            if begin_ns > due_ns {
                self.packets.slice(track, (due_ns, begin_ns), Slice::new("before sending", "message"))?;
            }
            self.packets.slice(track, call_ns, Slice::new("send call", "message").begins(flows.0))?;
        }
        if message.is_received() {
            self.packets.instant(track, end_ns, Slice::new("answer received", "message").ends(flows.1))?;
        }
        self.packets.end_slice(track, end_ns)
    }

    fn at_pong(
        &mut self,
        track: Track,
        message: &Message,
        (end_ns, out, back): (i64, Option<u64>, Option<u64>),
    ) -> io::Result<()> {
        let slice = Slice::new(format!("turnaround of message {}", message.slot), "message").ends(out);
        self.packets.begin_slice(track, message.echo_in_ns, slice)?;
        if message.echo_begin_ns != NO_TIME {
            let begin_ns = message.echo_begin_ns.max(message.echo_in_ns);
            self.packets.slice(track, (begin_ns, end_ns), Slice::new("answer call", "message").begins(back))?;
        }
        self.packets.end_slice(track, end_ns)
    }
}

/// Adds the times of a message, as the samples have them, to its slice.
fn annotated(slice: Slice, message: &Message) -> Slice {
    let times = [
        ("wake_ns", message.wake_ns),
        ("send_begin_ns", message.send_begin_ns),
        ("send_end_ns", message.send_end_ns),
        ("receive_ns", message.receive_ns),
        ("kernel_rx_ns", message.kernel_rx_ns),
    ];
    let slice = slice.with("slot", message.slot).with("outcome", message.outcome.word());
    let slice = times.into_iter().filter(|(_, ns)| *ns != NO_TIME).fold(slice, |s, (name, ns)| s.with(name, ns));
    if message.duplicates > 0 { slice.with("duplicates", message.duplicates) } else { slice }
}
