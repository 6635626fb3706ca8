//! The hardware clocks of network cards that stamp the messages of the ends.

use std::path::PathBuf;
use tailbound_host::{self as host, OffsetTrack, PtpClock, ptp_device_of};
use tailbound_model::ClockOffset;
use tailbound_wire::Order;

/// The clocks of the network cards of a trial's ends, and the readings of them.
#[derive(Debug, Default)]
pub(super) struct CardClocks(Vec<(String, PtpClock, OffsetTrack)>);

impl CardClocks {
    /// Opens the clocks of the cards that are to stamp messages. Without a clock of its card, an end has no stamps of it, which the
    /// measuring process reports.
    pub fn open(order: &Order) -> CardClocks {
        let wanted = order.spec.driver.options.get("timestamps").is_some_and(|stamps| stamps == "hardware");
        let clock = |end: &tailbound_wire::EndOrder| {
            let (_, interface) = end.options.iter().find(|(key, _)| key == "interface")?;
            let device = PathBuf::from(format!("/dev/ptp{}", ptp_device_of(interface).ok()?));
            Some((end.role.word().to_owned(), PtpClock::open(&device).ok()?, OffsetTrack::new()))
        };
        CardClocks(order.ends.iter().filter(|_| wanted).filter_map(clock).collect())
    }

    /// Reads how far each clock is ahead of CLOCK_MONOTONIC.
    pub fn read(&mut self) {
        for (_, clock, track) in &mut self.0 {
            // A clock that cannot be read now leaves a gap, in which its stamps cannot be converted.
            let Ok(reading) = clock.read() else { continue };
            let wall = host::read_offset();
            let realtime_ns = reading.clock_ns - reading.middle_ns();
            track.push(ClockOffset {
                at_ns: realtime_ns - wall.offset_ns,
                offset_ns: reading.middle_ns() + wall.offset_ns,
                width_ns: 2 * reading.half_width_ns() + wall.width_ns,
            });
        }
    }

    /// The readings of the clock of an end's card.
    pub fn readings(&self, end: &str) -> Vec<ClockOffset> {
        let own = self.0.iter().find(|(name, ..)| name == end);
        own.map_or_else(Vec::new, |(_, _, track)| track.readings().to_vec())
    }
}
