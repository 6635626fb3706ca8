//! Stores the stages that the messages of each end passed.

use super::trial_state::Part;
use std::path::Path;
use tailbound_host::OffsetTrack;
use tailbound_model::*;
use tailbound_record::{RecordError, RecordWriter, write_stages};

/// Converts the stamps of an agent's ends to the monotonic clock, and writes them into the record.
///
/// # Errors
/// A file cannot be written.
pub(super) fn store(record: &mut RecordWriter, dir: &Path, part: &mut Part) -> Result<(), RecordError> {
    let trial = part.order.trial;
    for role in part.roles.clone() {
        let end = role.word();
        let mut fact: Option<StageFact> = None;
        let mut rows = Vec::new();
        for stamped in part.stamped.iter_mut().filter(|stamped| stamped.end == end) {
            let fact = fact.get_or_insert_default();
            fact.unread += stamped.unread;
            fact.left_out += stamped.left_out;
            rows.append(&mut stamped.rows);
        }
        let (Some(mut fact), Some(done)) = (fact, part.end_done(role)) else { continue };
        let tracks = [done.clock.clone(), done.card_clock.clone()].map(OffsetTrack::from);
        convert(&mut rows, &tracks, &mut fact);
        fact.messages = rows.len() as u64;
        if !rows.is_empty() {
            write_stages(&RecordWriter::stages_path(dir, trial, end), &rows)?;
        }
        record.manifest.trial_mut(trial).ends.entry(end.into()).or_default().stages = Some(fact);
    }
    Ok(())
}

/// Converts the times of the kernel and of the network card to the monotonic clock, by the readings of both clocks.
fn convert(rows: &mut [StageRow], [kernel, card]: &[OffsetTrack; 2], fact: &mut StageFact) {
    let StageFact { width_ns, card_width_ns, unconverted, .. } = fact;
    let mut converted = |at_ns: &mut i64, track: &OffsetTrack, width_ns: &mut Option<i64>| {
        if *at_ns == NO_TIME {
            return;
        }
        *at_ns = match track.convert(*at_ns) {
            Some((monotonic_ns, width)) => {
                *width_ns = (*width_ns).max(Some(width));
                monotonic_ns
            }
            None => {
                *unconverted += 1;
                NO_TIME
            }
        };
    };
    for row in rows {
        converted(&mut row.queued_ns, kernel, width_ns);
        converted(&mut row.sent_ns, kernel, width_ns);
        converted(&mut row.card_ns, card, card_width_ns);
        converted(&mut row.card_rx_ns, card, card_width_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stamp_is_converted_by_the_clock_that_gave_it() {
        let reading = |at_ns, offset_ns, width_ns| ClockOffset { at_ns, offset_ns, width_ns };
        let kernel = vec![reading(0, 1_000_000, 40), reading(1_000_000, 1_000_000, 60)].into();
        let card = vec![reading(0, -5_000_000, 400), reading(1_000_000, -5_000_010, 300)].into();
        let row = |queued_ns, sent_ns, card_ns, card_rx_ns| StageRow {
            queued_ns,
            sent_ns,
            card_ns,
            card_rx_ns,
            ..StageRow::without_stamps(3)
        };
        let mut rows = [row(1_000_500, 1_000_700, -4_999_005, -4_998_005), row(1_000_900, 3_000_000, NO_TIME, NO_TIME)];
        let mut fact = StageFact::default();
        convert(&mut rows, &[kernel, card], &mut fact);
        // The card lost 10 ns in 1 ms, and the stamp is a thousandth of this time after the first reading.
        assert_eq!(rows, [row(500, 700, 995, 1_995), row(900, NO_TIME, NO_TIME, NO_TIME)]);
        assert_eq!((fact.width_ns, fact.card_width_ns, fact.unconverted), (Some(60), Some(410), 1));
    }
}
