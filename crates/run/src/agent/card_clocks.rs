//! The hardware clocks of network cards that stamp the messages of the ends.

use super::card_stamping::StampingCards;
use std::path::PathBuf;
use tailbound_host::{self as host, OffsetTrack, PtpClock, ptp_device_of};
use tailbound_model::{ClockOffset, Problem, Severity, Warning};
use tailbound_wire::Order;

/// The clocks of the network cards of a trial's ends, and the readings of them.
#[derive(Debug, Default)]
pub(super) struct CardClocks {
    of_ends: Vec<(String, PtpClock, OffsetTrack)>,
    /// The cards that were set to stamp messages in this trial.
    stamping: StampingCards,
    /// Clocks that cannot be read, so that the stamps of their cards cannot be used, and cards that cannot be set to stamp messages.
    pub warnings: Vec<Warning>,
}

impl CardClocks {
    /// Opens the clocks of the cards that are to stamp messages, and lets these cards stamp what they send and receive.
    pub fn open(order: &Order) -> CardClocks {
        let wanted = order.spec.wants_card_stamps();
        let mut clocks = CardClocks::default();
        for end in order.ends.iter().filter(|_| wanted) {
            let name = end.role.word();
            let interface = end.options.iter().find(|(key, _)| key == "interface").map(|(_, value)| value.as_str());
            let device = |number| PathBuf::from(format!("/dev/ptp{number}"));
            // On the loopback interface, no card is asked for.
            let Some(interface) = interface else { continue };
            match ptp_device_of(interface).and_then(|number| PtpClock::open(&device(number))) {
                Ok(clock) => {
                    clocks.of_ends.push((name.to_owned(), clock, OffsetTrack::new()));
                    if let Err(problem) = clocks.stamping.add(interface, &format!("{}.cards-{name}", order.run_id)) {
                        let Problem { code, what, remedy, .. } = problem;
                        clocks.warnings.push(Warning::new(&code, Severity::Warning, what, remedy).at_end(name));
                    }
                }
                Err(e) => {
                    let what = format!("stamps of the network card cannot be used: {}", e.problem().what);
                    clocks
                        .warnings
                        .push(Warning::new("card_clock", Severity::Warning, what, e.problem().remedy).at_end(name));
                }
            }
        }
        clocks
    }

    /// Reads how far each clock is ahead of CLOCK_MONOTONIC.
    pub fn read(&mut self) {
        for (_, clock, track) in &mut self.of_ends {
            let before = host::read_offset();
            // A clock that cannot be read now leaves a gap, in which its stamps cannot be converted.
            let Ok(reading) = clock.read() else { continue };
            let wall = host::read_offset();
            let realtime_ns = reading.clock_ns - reading.middle_ns();
            // CLOCK_REALTIME, by which the clock is read, may have been set meanwhile.
            let set_ns = (wall.offset_ns - before.offset_ns).abs();
            track.push(ClockOffset {
                at_ns: realtime_ns - wall.offset_ns,
                offset_ns: reading.middle_ns() + wall.offset_ns,
                width_ns: 2 * reading.half_width_ns() + before.width_ns.max(wall.width_ns) + set_ns,
            });
        }
    }

    /// The readings of the clock of an end's card.
    pub fn readings(&self, end: &str) -> Vec<ClockOffset> {
        let own = self.of_ends.iter().find(|(name, ..)| name == end);
        own.map_or_else(Vec::new, |(_, _, track)| track.readings().to_vec())
    }
}
