//! Compares a schedule that was recovered with the schedule that was configured.

use super::{Recovered, RecoveredWindow, Recovery};
use crate::Gate;
use serde::Serialize;

/// Largest difference between the cycles, as a share of the cycle, with which windows are compared.
const SAME_CYCLE: f64 = 0.01;

/// The configured schedule of the gate, beside a recovered one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfiguredGate {
    /// Configured cycle, ns.
    pub cycle_ns: i64,
    /// Whether the interval of the recovered cycle holds it.
    pub cycle_holds: bool,
    /// First and last time of each configured window at which a message may pass, ns after the begin of a cycle.
    pub windows: Vec<(i64, i64)>,
    /// For each recovered window, the configured window that opens nearest to it; empty if the cycles differ by more than 1 %, if
    /// frames have launch times, or if there is no configured window.
    pub nearest: Vec<NearestWindow>,
    /// Time after its arrival in the queue at which a frame is launched at the earliest, ns; absent if frames have no launch times.
    /// With launch times, frames leave at other times than without them, so that the windows are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_delay_ns: Option<i64>,
}

/// A configured window, beside a recovered one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NearestWindow {
    /// First time at which a message may pass, after the reference time of the recovered schedule, ns.
    pub opens_ns: f64,
    /// Whether the recovered interval holds it, if the clock of the schedule is as wrong as it can be.
    pub opens_holds: bool,
    /// Last time at which a message may pass, ns.
    pub closes_ns: f64,
    /// Whether the recovered interval holds it.
    pub closes_holds: bool,
}

impl Recovery {
    /// The same schedule, which refers to the last begin of a cycle of `gate` before its reference time, and the schedule of `gate`
    /// beside it. If the cycles differ by more than 1 %, or frames have launch times, the reference time remains as it is, and windows
    /// are not compared.
    pub fn beside(mut self, gate: &Gate) -> (Recovery, ConfiguredGate) {
        let cycle_ns = gate.cycle_ns();
        let launch_delay_ns = Some(gate.delay_ns()).filter(|ns| *ns > 0);
        let is_compared = launch_delay_ns.is_none() && (self.cycle.ns / cycle_ns as f64 - 1.0).abs() <= SAME_CYCLE;
        if is_compared {
            let later_ns = gate.phase_ns(self.reference_ns);
            self.reference_ns -= later_ns;
            self.windows = self.windows.iter().map(|window| window.later(later_ns as f64, self.cycle.ns)).collect();
            self.windows.sort_by(|a, b| a.opens.ns.total_cmp(&b.opens.ns));
        }
        let windows = gate.starts();
        let within_ns = gate.within_ns() as f64;
        // The difference between a recovered time and the nearest configured time.
        let apart = |recovered: &Recovered, of: i64| {
            let ns = of as f64 - recovered.ns;
            ns - cycle_ns as f64 * (ns / cycle_ns as f64).round()
        };
        let side = |recovered: &Recovered, of: i64| {
            let ns = recovered.ns + apart(recovered, of);
            (ns, (recovered.low_ns - within_ns..=recovered.high_ns + within_ns).contains(&ns))
        };
        let nearest = |window: &RecoveredWindow| {
            let distance = |(opens_ns, _): &&(i64, i64)| apart(&window.opens, *opens_ns).abs();
            let (opens, closes) = windows.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
            let ((opens_ns, opens_holds), (closes_ns, closes_holds)) =
                (side(&window.opens, *opens), side(&window.closes, *closes));
            Some(NearestWindow { opens_ns, opens_holds, closes_ns, closes_holds })
        };
        let nearest = if is_compared { self.windows.iter().filter_map(nearest).collect() } else { Vec::new() };
        let cycle_holds = (self.cycle.low_ns..=self.cycle.high_ns).contains(&(cycle_ns as f64));
        (self, ConfiguredGate { cycle_ns, cycle_holds, windows, nearest, launch_delay_ns })
    }
}

impl Recovered {
    /// The same time, if the reference time is earlier by `by_ns`.
    pub(super) fn later(self, by_ns: f64) -> Recovered {
        Recovered { ns: self.ns + by_ns, low_ns: self.low_ns + by_ns, high_ns: self.high_ns + by_ns }
    }
}

impl RecoveredWindow {
    /// The same window, if the reference time is earlier by `by_ns`: the first one that opens at the reference time or later.
    pub(super) fn later(self, by_ns: f64, cycle_ns: f64) -> RecoveredWindow {
        // An interval that holds the reference time is not moved.
        let by_ns = by_ns - cycle_ns * ((self.opens.high_ns + by_ns) / cycle_ns).floor();
        RecoveredWindow { opens: self.opens.later(by_ns), closes: self.closes.later(by_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Frame, Rule, Schedule};

    const MS: f64 = 1e6;

    fn recovered(ms: f64) -> Recovered {
        Recovered { ns: ms * MS, low_ns: (ms - 0.1) * MS, high_ns: (ms + 0.1) * MS }
    }

    /// Windows from 0 to 8 ms and from 20 to 25 ms in 40 ms; the schedule began at 1 ms.
    fn gate() -> Gate {
        let entry = |gates, ms: u64| Entry { gates, interval_ns: ms * 1_000_000 };
        let entries = vec![entry(1, 8), entry(2, 12), entry(1, 5), entry(2, 15)];
        let frame = Frame { bytes: 60, speed: "10Gbps".parse().unwrap() };
        Gate::new(0, (Schedule { entries, cycle_ns: 0 }.windows(0, Rule::Kernel), frame), 1_000_000, 1_000)
    }

    fn recovery(cycle_ms: f64, windows: &[(f64, f64)]) -> Recovery {
        let window =
            |(opens, closes): &(f64, f64)| RecoveredWindow { opens: recovered(*opens), closes: recovered(*closes) };
        Recovery {
            reference_ns: 411_000_000,
            cycle: recovered(cycle_ms),
            windows: windows.iter().map(window).collect(),
            probes: 1_000,
            shortest_way_ns: 0,
            largest_gap_ns: 0.0,
        }
    }

    #[test]
    fn intervals_hold_the_configured_edges_or_do_not() {
        // The reference time is 10 ms after the begin of a cycle.
        let (found, beside) = recovery(40.0, &[(10.05, 15.3), (29.95, 37.95)]).beside(&gate());
        assert_eq!(found.reference_ns, 401_000_000);
        let ms = |ns: f64| (ns / MS * 1e3).round() / 1e3;
        let opens: Vec<_> = found.windows.iter().map(|w| (ms(w.opens.ns), ms(w.closes.ns))).collect();
        assert_eq!(opens, [(-0.05, 7.95), (20.05, 25.3)]);
        let nearest: Vec<_> =
            beside.nearest.iter().map(|n| (ms(n.opens_ns), n.opens_holds, ms(n.closes_ns), n.closes_holds)).collect();
        assert_eq!(nearest, [(0.0, true, 8.0, true), (20.0, true, 25.0, false)]);
        assert!(beside.cycle_holds && beside.windows.len() == 2);
    }

    #[test]
    fn windows_are_not_compared_if_frames_have_launch_times() {
        let gate = gate().launched_after(500_000);
        let (found, beside) = recovery(40.0, &[(10.5, 18.5), (30.5, 35.5)]).beside(&gate);
        assert_eq!((found.reference_ns, beside.nearest.len(), beside.cycle_holds), (411_000_000, 0, true));
        assert_eq!((found.windows[0].opens, beside.launch_delay_ns), (recovered(10.5), Some(500_000)));
    }

    #[test]
    fn windows_of_another_cycle_are_not_compared() {
        let (found, beside) = recovery(20.0, &[(10.0, 15.0)]).beside(&gate());
        assert_eq!((found.reference_ns, beside.nearest.len(), beside.cycle_holds), (411_000_000, 0, false));
    }
}
