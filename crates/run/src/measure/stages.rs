//! Asks the driver for the stages that the messages of an end passed, and sends them to the supervisor.

use super::driver_report::json;
use crate::connection::Connection;
use crate::hot::CardReceipts;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use tailbound_driver::{Endpoint, Session};
use tailbound_model::*;
use tailbound_wire::{Message, Order, Role, Stamped};

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
/// clock, of an executor in the monotonic clock. A driver that gives no stamps is none of its errors. Adds a warning if the study asks for stamps of the card and there is
/// none.
///
/// # Errors
/// The supervisor is gone.
pub(super) fn send(
    connection: &mut Connection,
    end: &str,
    ((session, writer), receipts): ((&Session, Endpoint), Option<&CardReceipts>),
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
    let received = receipts.into_iter().flat_map(CardReceipts::kept);
    add(&mut rows, &received.map(|(seq, ns)| (seq, "received".to_owned(), ns)).collect::<Vec<_>>());
    if receipts.is_some() && !rows.is_empty() {
        warnings.extend(without_card_stamps(rows.values()).map(|warning| warning.at_end(end)));
    }
    let left_out = left_out + receipts.map_or(0, CardReceipts::left_out);
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

/// Warnings that the network card stamped none of the messages that the end sent, or that it received.
fn without_card_stamps<'a>(rows: impl Iterator<Item = &'a StageRow>) -> impl Iterator<Item = Warning> {
    let (mut sent, mut received) = (false, false);
    for row in rows {
        sent |= row.card_ns != NO_TIME;
        received |= row.card_rx_ns != NO_TIME;
    }
    let of = |word, option| {
        let what = format!("the network card stamped none of the {word} messages");
        let remedy = format!(
            "look whether the card can stamp all {word} frames (`ethtool -T INTERFACE`: {option}), and whether another program \
             changed what it stamps (`hwstamp_ctl -i INTERFACE`)"
        );
        Warning::new("card_stamps", Severity::Warning, what, remedy)
    };
    let missing = [(!sent, "sent", "hardware-transmit"), (!received, "received", "hardware-receive, filter all")];
    missing.into_iter().filter(|(is_missing, ..)| *is_missing).map(move |(_, word, option)| of(word, option))
}

/// Adds stamps to the rows of their messages. A message that is sent to several readers has the times of the first datagram.
fn add(rows: &mut BTreeMap<u64, StageRow>, stamps: &[(u64, String, i64)]) {
    for (seq, stage, at_ns) in stamps {
        let row = rows.entry(*seq).or_insert(StageRow::without_stamps(*seq));
        let time = match stage.as_str() {
            "queued" => &mut row.queued_ns,
            "sent" => &mut row.sent_ns,
            "wire" => &mut row.card_ns,
            "received" => &mut row.card_rx_ns,
            "taken" => &mut row.taken_ns,
            // A stage of a later driver.
            _ => continue,
        };
        if *time == NO_TIME {
            *time = *at_ns;
        }
    }
}

/// Memory for the times at which the network card receives the messages of an end, if the study asks for them. It is never freed,
/// because threads of the driver may use it.
pub(super) fn receipts(order: &Order, role: Role) -> Option<&'static CardReceipts> {
    let wanted = order.spec.wants_card_stamps() && matches!(role, Role::Ping | Role::Pong);
    // Messages can come twice.
    let messages = order.slots + order.slots / 8 + 1024;
    wanted.then(|| &*Box::leak(Box::new(CardReceipts::new(messages))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stamp_of_each_stage_counts() {
        let mut rows = BTreeMap::new();
        let stamp = |seq, stage: &str, at_ns| (seq, stage.to_owned(), at_ns);
        add(&mut rows, &[stamp(7, "queued", 5), stamp(8, "queued", 9), stamp(7, "sent", 6), stamp(7, "received", 12)]);
        add(&mut rows, &[stamp(7, "queued", 50), stamp(7, "wire", 8), stamp(7, "echoed", 3), stamp(7, "received", 13)]);
        let [first, second] = [7, 8].map(|seq| rows[&seq]);
        assert_eq!(first, StageRow { seq: 7, queued_ns: 5, sent_ns: 6, card_ns: 8, card_rx_ns: 12, taken_ns: NO_TIME });
        assert_eq!(second, StageRow { queued_ns: 9, ..StageRow::without_stamps(8) });
    }

    #[test]
    fn a_card_that_stamps_nothing_is_named_with_the_direction() {
        let none = StageRow::without_stamps(3);
        let [sent, received] = [StageRow { card_ns: 5, ..none }, StageRow { card_rx_ns: 5, ..none }];
        let of = |rows: &[StageRow]| without_card_stamps(rows.iter()).collect::<Vec<_>>();
        assert_eq!((of(&[sent, received]), of(&[none]).len()), (Vec::new(), 2));
        let texts = [of(&[none, sent]), of(&[received])].concat().into_iter().map(|w| w.problem.to_string());
        insta::assert_snapshot!(texts.collect::<Vec<_>>().join("\n"));
    }
}
