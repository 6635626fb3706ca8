//! What `tailbound clock` found, as it is printed in JSON. Pairs are the smallest and the largest value that the readings permit.
//! Times are ns since the command began, by CLOCK_MONOTONIC_RAW. Rates are by CLOCK_MONOTONIC_RAW, too.

use serde::Serialize;
use tailbound_host::PtpReading;
use tailbound_model::Problem;
use tailbound_stats::{ClockReading, SteadySearch, TwoClocks};

#[derive(Debug, Serialize)]
pub struct Found {
    /// CLOCK_TAI - CLOCK_REALTIME, s; `null` if the kernel does not report it.
    pub tai_offset_s: Option<i32>,
    /// Largest rate that a clock is assumed to have without a step, parts per million.
    pub most_rate_ppm: f64,
    pub clocks: Vec<ClockFound>,
}

#[derive(Debug, Default, Serialize)]
pub struct ClockFound {
    /// Path of the device, or name of the clock of the system.
    pub clock: String,
    pub name: String,
    /// Network interfaces that stamp packets with this clock.
    pub interfaces: Vec<String>,
    /// Interface of the kernel by which the clock was read.
    pub read_by: String,
    /// Largest change of the rate that the driver of a hardware clock permits, parts per billion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_adjustment_ppb: Option<i32>,
    /// Reason why the clock was not read, or not until the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_read: Option<Problem>,
    pub readings: Vec<ReadingFound>,
    /// Time spans in which the clock was steady.
    pub steady: Vec<SteadyFound>,
    /// Time spans in which the clock was stepped or changed its rate.
    pub changes: Vec<ChangeFound>,
}

#[derive(Debug, Serialize)]
pub struct ReadingFound {
    pub at_ns: i64,
    /// Clock - CLOCK_REALTIME; absent for CLOCK_REALTIME itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<[i64; 2]>,
    /// Half the time, rounded up, between the two readings of the other clock: of CLOCK_REALTIME for a hardware clock, of
    /// CLOCK_MONOTONIC_RAW for CLOCK_REALTIME.
    pub half_width_ns: i64,
    /// Rate since the reading before; absent if it is above `most_rate_ppm`, and for the first reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_ppb: Option<[f64; 2]>,
}

#[derive(Debug, Serialize)]
pub struct SteadyFound {
    pub from_ns: i64,
    pub to_ns: i64,
    pub rate_ppb: [f64; 2],
}

#[derive(Debug, Serialize)]
pub struct ChangeFound {
    pub from_ns: i64,
    pub to_ns: i64,
    /// Change of the offset; absent if there are no readings on one side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ns: Option<[i64; 2]>,
    /// Change of the rate; absent if there are no readings on one side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_change_ppb: Option<[i64; 2]>,
}

impl ReadingFound {
    /// What is printed of a reading, with the reading before it, for a clock of the system or of hardware.
    pub fn new(reading: &PtpReading, before: Option<&PtpReading>, (begin_ns, is_system): (i64, bool)) -> ReadingFound {
        let [before_ns, after_ns] = reading.unadjusted_ns;
        ReadingFound {
            at_ns: before_ns - begin_ns,
            offset_ns: (!is_system).then(|| reading.offset_ns()),
            half_width_ns: if is_system { (after_ns - before_ns + 1) / 2 } else { reading.half_width_ns() },
            rate_ppb: before.and_then(|before| rate_ppb(before, reading)),
        }
    }
}

/// Rate of a clock between two readings by CLOCK_MONOTONIC_RAW, smallest and largest, ppb (ns per s).
fn rate_ppb(before: &PtpReading, reading: &PtpReading) -> Option<[f64; 2]> {
    let mut clocks = TwoClocks::default();
    for PtpReading { clock_ns, unadjusted_ns: [earliest, latest], .. } in [before, reading] {
        clocks.there(*earliest, *clock_ns);
        clocks.back(*clock_ns, *latest);
    }
    clocks.bounds().ok().map(|bounds| bounds.drift_ns_per_s())
}

impl ClockFound {
    /// Adds what all readings of the clock together prove.
    pub fn with_changes(self, readings: &[PtpReading], begin_ns: i64) -> ClockFound {
        let mut search = SteadySearch::default();
        for PtpReading { clock_ns, unadjusted_ns: [before_a_ns, after_a_ns], .. } in readings.iter().copied() {
            search.add_reading(&ClockReading { before_a_ns, clock_b_ns: clock_ns, after_a_ns });
        }
        // Readings bound the offset from both sides, so that the search fails only without any reading.
        let Ok(parts) = search.finish() else { return self };
        let steady = |((from_ns, to_ns), bounds): ((i64, i64), &tailbound_stats::ClockBounds)| SteadyFound {
            from_ns: from_ns - begin_ns,
            to_ns: to_ns - begin_ns,
            rate_ppb: bounds.drift_ns_per_s(),
        };
        let change = |change: &tailbound_stats::ClockChange| ChangeFound {
            from_ns: change.from_ns - begin_ns,
            to_ns: change.to_ns - begin_ns,
            step_ns: change.step_ns,
            rate_change_ppb: change.rate_change_ns_per_s,
        };
        ClockFound {
            steady: parts.parts().map(steady).collect(),
            changes: parts.changes().iter().map(change).collect(),
            ..self
        }
    }
}
