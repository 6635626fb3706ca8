//! Asks the driver for the stages that the messages of an end passed, and sends them to the supervisor.

use super::driver_report::json;
use crate::connection::Connection;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use tailbound_driver::{Endpoint, Session};
use tailbound_model::*;
use tailbound_wire::{Message, Stamped};

/// Number of messages whose times are sent at once, about 2 MB.
const ROWS: usize = 20_000;

/// What a driver answers to the query `stamps` about a writer.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    /// Sequence number, stage and time (ns) of each stamp.
    stamps: Vec<(u64, String, i64)>,
    unread: u64,
    left_out: u64,
}

/// Sends the stamps of the messages of a writer to the supervisor: of the kernel in CLOCK_REALTIME, of the network card in its own
/// clock. A driver that gives no stamps is none of its errors. Adds a warning if the study asks for stamps of the card and there is
/// none.
///
/// # Errors
/// The supervisor is gone.
pub(super) fn send(
    connection: &mut Connection,
    end: &str,
    (session, writer): (&Session, Endpoint),
    warnings: &mut Vec<Warning>,
) -> io::Result<()> {
    let mut rows = BTreeMap::new();
    let mut last = None;
    while let Some(answer) = json(session, writer, "stamps").and_then(|json| Answer::deserialize(json).ok()) {
        let is_end = answer.stamps.is_empty();
        add(&mut rows, &answer.stamps);
        last = Some(answer);
        if is_end {
            break;
        }
    }
    let Some(Answer { unread, left_out, .. }) = last else { return Ok(()) };
    let wanted = json(session, Endpoint::SESSION, "transport").is_some_and(|t| t["timestamps"] == "hardware");
    if wanted && !rows.is_empty() && rows.values().all(|row| row.card_ns == NO_TIME) {
        let text = "the network card stamped none of the sent messages";
        let remedy = "look whether the card can stamp all frames that it sends (`ethtool -T INTERFACE`: hardware-transmit), and whether \
                      another program changed what it stamps (`hwstamp_ctl -i INTERFACE`)";
        warnings.push(Warning::new("card_stamps", Severity::Warning, text, remedy).at_end(end));
    }
    let rows: Vec<StageRow> = rows.into_values().collect();
    // At least one message, so that the numbers reach the record.
    let mut parts = rows.chunks(ROWS);
    let mut part = parts.next().unwrap_or_default();
    let (mut unread, mut left_out) = (unread, left_out);
    loop {
        let stamped = Stamped { end: end.to_owned(), rows: part.to_vec(), unread, left_out };
        connection.send(Message::Stamped(Box::new(stamped)))?;
        (unread, left_out) = (0, 0);
        part = match parts.next() {
            Some(next) => next,
            None => return Ok(()),
        };
    }
}

/// Adds stamps to the rows of their messages. A message that is sent to several readers has the times of the first datagram.
fn add(rows: &mut BTreeMap<u64, StageRow>, stamps: &[(u64, String, i64)]) {
    for (seq, stage, at_ns) in stamps {
        let none = StageRow { seq: *seq, queued_ns: NO_TIME, sent_ns: NO_TIME, card_ns: NO_TIME };
        let row = rows.entry(*seq).or_insert(none);
        let time = match stage.as_str() {
            "queued" => &mut row.queued_ns,
            "sent" => &mut row.sent_ns,
            "wire" => &mut row.card_ns,
            // A stage of a later driver.
            _ => continue,
        };
        if *time == NO_TIME {
            *time = *at_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stamp_of_each_stage_counts() {
        let mut rows = BTreeMap::new();
        let stamp = |seq, stage: &str, at_ns| (seq, stage.to_owned(), at_ns);
        add(&mut rows, &[stamp(7, "queued", 5), stamp(8, "queued", 9), stamp(7, "sent", 6)]);
        add(&mut rows, &[stamp(7, "queued", 50), stamp(7, "wire", 8), stamp(7, "echoed", 3)]);
        let [first, second] = [7, 8].map(|seq| rows[&seq]);
        assert_eq!(first, StageRow { seq: 7, queued_ns: 5, sent_ns: 6, card_ns: 8 });
        assert_eq!(second, StageRow { seq: 8, queued_ns: 9, sent_ns: NO_TIME, card_ns: NO_TIME });
    }
}
