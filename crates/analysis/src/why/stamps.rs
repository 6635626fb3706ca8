//! Reads the times of single messages of a trial, and counts where messages were lost.

use crate::why::drops::{Drops, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tailbound_document::LossPlace;
use tailbound_model::{Metric, NO_TIME, Outcome, counter_of};
use tailbound_record::{Columns, Record, RecordError, SlotBatch};

/// Messages that are handled in less time delay no other message by much, ns.
const LEAST_CALL_NS: i64 = 20_000;
/// Largest number of handled messages of an end that are kept.
const MOST_CALLS: usize = 500_000;

/// Times of one message, monotonic ns of the sender, unless a conversion of the pong's times is still to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamps {
    pub slot: u64,
    /// Time at which the message was due; with stop-and-wait, at which its send call began.
    pub due_ns: i64,
    /// Earliest time at which the message could leave: if it has a launch time, the time at which its queue may give it to the
    /// device, otherwise the time at which it was due.
    pub leaves_ns: i64,
    pub send_ns: i64,
    pub sent_ns: i64,
    /// Time at which the send call of the previous slot returned.
    pub previous_sent_ns: Option<i64>,
    pub received_ns: i64,
    /// Times at the pong: receipt of the message, begin and end of the send call for the answer; `None` if they are not
    /// known in the clock of the ping.
    pub echo: Option<[i64; 3]>,
    /// Ids of the threads that had the message at the pong and the answer at the ping, if the record contains them.
    pub receivers: [Option<i32>; 2],
}

/// A part of the time from the due time of a message to the receipt of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leg {
    pub metric: Metric,
    /// Name of the end whose thread ends the leg.
    pub end: &'static str,
    pub from_ns: i64,
    pub to_ns: i64,
    /// Begin and end of a send call inside the leg, and the name of the end that made it.
    pub call: Option<(i64, i64, &'static str)>,
    /// Id of the thread that received the message or the answer at this end, if the record contains it. It ends the leg,
    /// except that a second thread ends the turnaround with a hand-off.
    pub thread: Option<i32>,
}

impl Stamps {
    /// The legs of the message in the order of time. If the times at the pong are unknown, the whole round trip is one
    /// leg.
    pub fn legs(&self) -> Vec<Leg> {
        let [at_pong, at_ping] = self.receivers;
        let leg = |metric, end, from_ns, to_ns, call| {
            let thread = match metric {
                Metric::Out | Metric::Turnaround => at_pong,
                Metric::Back | Metric::RoundTrip => at_ping,
                _ => None,
            };
            Leg { metric, end, from_ns, to_ns, call, thread }
        };
        let call = Some((self.send_ns, self.sent_ns, "ping"));
        // While the previous message is still in its send call, the sender cannot begin the next one.
        let previous = self.previous_sent_ns.filter(|sent| *sent > self.due_ns).map(|sent| (self.due_ns, sent, "ping"));
        let first = leg(Metric::SendLateness, "ping", self.due_ns, self.send_ns, previous);
        let mut legs = match self.echo {
            Some([into, begun, answered]) => vec![
                first,
                leg(Metric::Out, "pong", self.send_ns, into, call),
                leg(Metric::Turnaround, "pong", into, answered, Some((begun, answered, "pong"))),
                leg(Metric::Back, "ping", answered, self.received_ns, None),
            ],
            None => vec![first, leg(Metric::RoundTrip, "ping", self.send_ns, self.received_ns, call)],
        };
        legs.retain(|l| l.from_ns < l.to_ns);
        legs
    }

    /// `launch_ns`: time by which a message is due before it may leave.
    fn read(batch: &SlotBatch, i: usize, previous_sent_ns: i64, wanted: (bool, i64)) -> Option<Stamps> {
        let (with_echo, launch_ns) = wanted;
        let time = |column: &[i64]| column.get(i).copied().filter(|t| *t != NO_TIME);
        let thread = |column: &[i64]| i32::try_from(time(column)?).ok();
        let send_ns = time(&batch.send_begin_ns)?;
        let echo = || Some([time(&batch.echo_in_ns)?, time(&batch.echo_begin_ns)?, time(&batch.echo_end_ns)?]);
        let due_ns = time(&batch.intended_ns).unwrap_or(send_ns);
        Some(Stamps {
            slot: counter_of(*batch.seq.get(i)?),
            due_ns,
            leaves_ns: due_ns + launch_ns,
            send_ns,
            sent_ns: time(&batch.send_end_ns).unwrap_or(send_ns),
            previous_sent_ns: (previous_sent_ns != NO_TIME).then_some(previous_sent_ns),
            received_ns: time(&batch.receive_ns)?,
            echo: echo().filter(|_| with_echo),
            receivers: [thread(&batch.echo_in_thread), thread(&batch.receive_thread)],
        })
    }
}

/// Numbers of messages of a trial without an answer, by the place of the loss and its reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lost(pub BTreeMap<(LossPlace, Option<Reason>), u64>);

impl Lost {
    fn add(&mut self, batch: &SlotBatch, i: usize, drops: &Drops) {
        let time = |column: &[i64]| column.get(i).copied().filter(|t| *t != NO_TIME);
        let due_ns = time(&batch.intended_ns).or_else(|| time(&batch.send_begin_ns));
        let slot = batch.seq.get(i).map_or(u64::MAX, |seq| counter_of(*seq));
        let reason = |sender, receiver| drops.of_message(slot, (sender, receiver), due_ns?);
        let at = match () {
            () if batch.outcome[i] == Outcome::NotSent as u8 => {
                // The kernel refused only what was given to it.
                let tried_ns = due_ns.filter(|_| time(&batch.send_begin_ns).is_some());
                (LossPlace::NeverSent, drops.refused(slot, tried_ns))
            }
            () if time(&batch.echo_in_ns).is_none() => (LossPlace::OnTheWayOut, reason("ping", "pong")),
            () if time(&batch.echo_end_ns).is_none() => (LossPlace::AtThePong, None),
            () => (LossPlace::OnTheWayBack, reason("pong", "ping")),
        };
        *self.0.entry(at).or_default() += 1;
    }
}

impl Lost {
    /// Gives losses without another reason to the gates for received packets, but not more than they dropped. `early`: losses of the
    /// warm-up, for which the gates dropped packets too.
    fn name_policed(&mut self, early: &Lost, drops: &Drops) {
        for (place, end) in [(LossPlace::OnTheWayOut, "pong"), (LossPlace::OnTheWayBack, "ping")] {
            let Some((dropped, why)) = drops.policed(end) else { continue };
            let of = |lost: &Lost, reason| lost.0.get(&(place, reason)).copied().unwrap_or_default();
            let policed = || Some(Reason::Policed(why));
            let named = of(self, policed()) + of(early, policed()) + of(early, None);
            let unnamed = of(self, None);
            let more = unnamed.min(dropped.saturating_sub(named));
            if more == 0 {
                continue;
            }
            *self.0.entry((place, policed())).or_default() += more;
            match unnamed - more {
                0 => drop(self.0.remove(&(place, None))),
                left => drop(self.0.insert((place, None), left)),
            }
        }
    }
}

/// Rows of samples of a trial whose times are needed.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Rows of messages whose times are all needed.
    pub messages: BTreeSet<u64>,
    /// Rows of messages of which only the due time and the receipt of the answer are needed; apart from each other, in
    /// rising order.
    pub times: Vec<Range<u64>>,
    /// Whether the times are wanted in which the ends handled messages.
    pub calls: bool,
    /// Time by which a message of the ping is due before it may leave, ns; 0 without launch times.
    pub launch_ns: i64,
}

/// What was read from the samples of a trial. Messages without an answer have no times.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Times of the messages, by row number.
    pub messages: BTreeMap<u64, Stamps>,
    /// Due time and receipt of the answer of each message, ns, without the messages of the warm-up.
    pub times: Vec<(i64, i64)>,
    /// Begin and end of the longer send calls of the ping, and of the longer times from the receipt at the pong to the end of the
    /// send call for the answer, if they are wanted, ns.
    pub calls: [Vec<(i64, i64)>; 2],
    pub lost: Lost,
}

/// Reads the times of messages of a trial, and counts its lost messages. Without `with_echo`, the times at the pong are
/// left out; with it they are in the clock of the pong.
pub(crate) fn read(
    record: &Record,
    trial: usize,
    wanted: &Wanted,
    with_echo: bool,
    drops: &Drops,
) -> Result<Read, RecordError> {
    let columns = Columns::of(&[Metric::FromIntended, Metric::SendDuration, Metric::Out, Metric::Turnaround]);
    let columns = columns.with_echo_begin().with_threads().with_seq();
    let (mut read, mut early) = (Read::default(), Lost::default());
    let (mut first, mut sent_before) = (0, NO_TIME);
    let mut least_ns = [LEAST_CALL_NS; 2];
    record.scan(trial, &columns, &mut |batch| {
        let unanswered = [Outcome::Lost as u8, Outcome::NotSent as u8];
        for (i, outcome) in batch.outcome.iter().enumerate() {
            if unanswered.contains(outcome) {
                let lost = if batch.warm_up[i] { &mut early } else { &mut read.lost };
                lost.add(batch, i, drops);
            }
        }
        let rows = first..first + batch.len() as u64;
        for row in wanted.messages.range(rows.clone()) {
            let i = (row - first) as usize;
            let previous = i.checked_sub(1).map_or(sent_before, |before| batch.send_end_ns[before]);
            read.messages
                .extend(Stamps::read(batch, i, previous, (with_echo, wanted.launch_ns)).map(|stamps| (*row, stamps)));
        }
        let before = wanted.times.partition_point(|r| r.end <= rows.start);
        for range in wanted.times[before..].iter().take_while(|r| r.start < rows.end) {
            let part = range.start.max(rows.start) - first..range.end.min(rows.end) - first;
            read.times.extend(part.filter_map(|i| times(batch, i as usize)));
        }
        if wanted.calls {
            let begin_and_end = [(&batch.send_begin_ns, &batch.send_end_ns), (&batch.echo_in_ns, &batch.echo_end_ns)];
            let ends = if with_echo { &begin_and_end[..] } else { &begin_and_end[..1] };
            for (((begin, end), calls), least_ns) in ends.iter().zip(&mut read.calls).zip(&mut least_ns) {
                add_calls(calls, begin, end, least_ns);
            }
        }
        sent_before = batch.send_end_ns.last().copied().unwrap_or(sent_before);
        first += batch.len() as u64;
    })?;
    read.lost.name_policed(&early, drops);
    Ok(read)
}

/// Adds the times between `begin` and `end` that are long enough to delay another message. If there are too many, the shorter ones
/// are left out.
fn add_calls(calls: &mut Vec<(i64, i64)>, begin: &[i64], end: &[i64], least_ns: &mut i64) {
    let both = begin.iter().copied().zip(end.iter().copied()).filter(|(b, e)| *b != NO_TIME && *e != NO_TIME);
    calls.extend(both.filter(|(begin, end)| end - begin >= *least_ns));
    while calls.len() > MOST_CALLS {
        *least_ns *= 2;
        calls.retain(|(begin, end)| end - begin >= *least_ns);
    }
}

/// Due time and receipt of the answer of one message, ns; `None` for a message of the warm-up or without an answer.
fn times(batch: &SlotBatch, i: usize) -> Option<(i64, i64)> {
    let time = |column: &[i64]| column.get(i).copied().filter(|t| *t != NO_TIME);
    let send_ns = time(&batch.send_begin_ns).filter(|_| !batch.warm_up[i])?;
    Some((time(&batch.intended_ns).unwrap_or(send_ns), time(&batch.receive_ns)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::drops::{self, PoliceReason};
    use tailbound_model::PoliceFact;
    use tailbound_record::EndRecord;

    #[test]
    fn a_gate_has_dropped_at_most_what_it_counted() {
        let (out, gate) = (LossPlace::OnTheWayOut, Some(Reason::Policed(PoliceReason::Closed)));
        let early = Lost([((out, None), 5)].into());
        let named = |dropped| {
            let police = Some(PoliceFact { dropped, ..PoliceFact::default() });
            let pong = EndRecord { police, ..EndRecord::default() };
            let drops = Drops::default().with_policed(&[("pong".to_owned(), pong)].into());
            let mut lost = Lost([((out, None), 10), ((LossPlace::OnTheWayBack, None), 2)].into());
            lost.name_policed(&early, &drops);
            assert_eq!(lost.0.get(&(LossPlace::OnTheWayBack, None)), Some(&2));
            [gate.clone(), None].map(|reason| lost.0.get(&(out, reason)).copied().unwrap_or_default())
        };
        assert_eq!([0, 5, 8, 15, 99].map(named), [[0, 10], [0, 10], [3, 7], [10, 0], [10, 0]]);
    }

    #[test]
    fn a_gate_drops_what_comes_while_it_is_closed_or_is_beyond_its_bytes() {
        let why = |dropped, overfull| {
            let police = Some(PoliceFact { dropped, overfull, ..PoliceFact::default() });
            let pong = EndRecord { police, ..EndRecord::default() };
            let drops = Drops::default().with_policed(&[("pong".to_owned(), pong)].into());
            drops.policed("pong").map(|(dropped, why)| (dropped, drops::words(&Reason::Policed(why), "pong")))
        };
        let text = [(9, 0), (9, 4), (9, 9)].map(|(dropped, overfull)| why(dropped, overfull).unwrap().1);
        let gate = "the gate for packets that the pong end receives";
        let (closed, bytes) = ("was closed", "had passed the bytes of its entry");
        assert_eq!(
            text,
            [
                format!("{gate} {closed} (policing)"),
                format!("{gate} {closed}, or {bytes} (policing)"),
                format!("{gate} {bytes} (policing)")
            ]
        );
    }
}
