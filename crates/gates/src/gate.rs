//! The gate of the class of the messages that an end sends (IEEE 802.1Q): by the schedule that the kernel reported, the time from
//! which a message may be sent.

use crate::{
    ETHERNET_BYTES, Frame, IP_UDP_BYTES, Prediction, Rule, Schedule, Speed, Windows, class_of_messages, predict,
};
use tailbound_model::{PathEnd, TrialSpec};

/// The gate of the class of the messages that an end sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// Number of the class.
    class: u32,
    windows: Windows,
    /// Begin of a cycle, monotonic ns, which is wrong by at most `within_ns`.
    base_ns: i64,
    within_ns: i64,
    frame: Frame,
    /// Time after its arrival in the queue at which a frame is launched at the earliest, ns.
    delay_ns: i64,
    /// Monotonic time at which the clock of the schedule was read, ns, if that is a hardware clock.
    hardware_read_at_ns: Option<i64>,
}

/// Speed of an interface that does not report one, Mbit/s.
const FAST_MBIT_S: u64 = 100_000;
/// Largest difference of the rates of a hardware clock and the monotonic clock, parts per million (IEEE 802.1AS: 100).
const HARDWARE_PPM: i64 = 100;

impl Gate {
    /// The gate of the messages that this end of the path sends; `None` if it has no gates, or if a message has several frames.
    /// Headers of the middleware are not known: with them, a message can wait longer.
    pub fn of(end: &PathEnd, spec: &TrialSpec) -> Option<Gate> {
        let (fact, payload) = (end.gates.as_ref()?, spec.payload.0 + IP_UDP_BYTES);
        // Of an interface whose speed is not known, frames are taken for as short as on a fast one, so that none seems to be outside.
        let mbit_s = end.speed_mbit_s.and_then(|speed| u64::try_from(speed).ok()).filter(|speed| *speed > 0);
        let speed = mbit_s.unwrap_or(FAST_MBIT_S).checked_mul(1_000_000)?;
        let frame = Frame { bytes: payload + ETHERNET_BYTES, speed: Speed::of_bits_per_second(speed)? };
        let schedule = Schedule::of_kernel(fact);
        let class = class_of_messages(spec, &fact.class_of_priority);
        let windows = schedule.windows(class, Rule::Kernel);
        let base_ns = fact.base_ns.checked_sub(fact.ahead_ns)?;
        // `taprio` leaves the launch time of a message as it is, and gives one to frames that have none.
        let has_launch_time = end.end == "ping" && spec.stream.is_some_and(|stream| stream.launch.is_some());
        (payload <= u64::from(end.mtu) && windows.cycle_ns > 0).then_some(Gate {
            class,
            windows,
            base_ns,
            within_ns: fact.within_ns,
            frame,
            delay_ns: if has_launch_time { 0 } else { fact.delay_ns.into() },
            hardware_read_at_ns: fact.hardware_clock.map(|_| fact.read_at_ns),
        })
    }

    /// The gates of the ends of a path, each with the name of its end.
    pub fn of_ends(ends: &[PathEnd], spec: &TrialSpec) -> Vec<(String, Gate)> {
        ends.iter().filter_map(|end| Some((end.end.clone(), Gate::of(end, spec)?))).collect()
    }

    /// The gate of the class with this number and these windows, for frames of this size. The schedule began at `base_ns`, which is
    /// wrong by at most `within_ns`, monotonic ns.
    pub fn new(class: u32, (windows, frame): (Windows, Frame), base_ns: i64, within_ns: i64) -> Gate {
        Gate { class, windows, base_ns, within_ns, frame, delay_ns: 0, hardware_read_at_ns: None }
    }

    /// The gate for frames that have launch times, at the earliest this time after their arrival in the queue, ns.
    pub fn launched_after(self, delay_ns: i64) -> Gate {
        Gate { delay_ns, ..self }
    }

    /// Time after its arrival in the queue at which a frame is launched at the earliest, ns; 0 = frames have no launch times.
    pub fn delay_ns(&self) -> i64 {
        self.delay_ns
    }

    /// Number of the class of the messages.
    pub fn class(&self) -> u32 {
        self.class
    }

    /// Length of the frame of a message, with the Ethernet header and without the checksum.
    pub fn frame_bytes(&self) -> u64 {
        self.frame.bytes
    }

    /// Time after which the schedule repeats, ns.
    pub fn cycle_ns(&self) -> i64 {
        self.windows.cycle_ns as i64
    }

    /// By how much the begin of the schedule can be wrong, ns.
    pub fn within_ns(&self) -> i64 {
        self.within_ns
    }

    /// First and last time of each window at which the frame of a message may be sent, ns after the begin of a cycle, in the order
    /// of time. A window at the end of a cycle can last until after it.
    pub fn starts(&self) -> Vec<(i64, i64)> {
        let starts = self.windows.starts(self.frame).into_iter();
        starts.map(|(from_ns, to_ns)| (from_ns as i64, to_ns as i64)).collect()
    }

    /// Whether the network card opens and closes the gate by its own clock, so that its driver gets frames before.
    pub fn is_by_card(&self) -> bool {
        self.hardware_read_at_ns.is_some()
    }

    /// Shortest time since the last time at which a frame might begin, at any time from `from_ns` to `to_ns` (monotonic ns), ns;
    /// 0 = it may have begun then. The error of the clock of the schedule is taken into account.
    pub fn closed_for_ns(&self, (from_ns, to_ns): (i64, i64)) -> i64 {
        let error_ns = self.error_ns(to_ns);
        let (first_ns, last_ns) = (from_ns.saturating_sub(error_ns), to_ns.saturating_add(error_ns));
        let (phase_ns, cycle_ns) = (self.phase_ns(last_ns), self.cycle_ns());
        let since =
            |(from_ns, to_ns): (i64, i64)| ((phase_ns - from_ns).rem_euclid(cycle_ns) - (to_ns - from_ns)).max(0);
        let since_ns = self.starts().into_iter().map(since).min().unwrap_or(0);
        (since_ns - (last_ns - first_ns)).max(0)
    }

    /// Time after the begin of a cycle at a time, ns (monotonic ns).
    pub fn phase_ns(&self, at_ns: i64) -> i64 {
        at_ns.saturating_sub(self.base_ns).rem_euclid(self.cycle_ns())
    }

    /// The waits of frames that are ready at any time of the cycle.
    pub fn prediction(&self) -> Prediction {
        predict(&self.windows, self.frame)
    }

    /// Time for which a frame that is ready at `ready_ns` (monotonic ns) waits for the gate, with the delay of launch times, ns;
    /// `None` if it fits into no window.
    pub fn wait_ns(&self, ready_ns: i64) -> Option<i64> {
        Some(self.delay_ns + self.wait_at(ready_ns + self.delay_ns)?)
    }

    fn wait_at(&self, at_ns: i64) -> Option<i64> {
        self.windows.wait_ns(self.phase_ns(at_ns) as u64, self.frame).map(|ns| ns as i64)
    }

    /// Largest error of the begin of the schedule at a time (monotonic ns), ns. A hardware clock can run at another rate.
    pub fn error_ns(&self, at_ns: i64) -> i64 {
        let away_ns = self.hardware_read_at_ns.map_or(0, |read_ns| at_ns.saturating_sub(read_ns).saturating_abs());
        self.within_ns.saturating_add(away_ns / (1_000_000 / HARDWARE_PPM))
    }

    /// The time from which a frame that is ready at `ready_ns` may be sent, at the earliest that is possible; monotonic ns. A
    /// frame that is ready later is permitted at this time or later.
    pub fn permitted_ns(&self, ready_ns: i64) -> i64 {
        let launch_ns = ready_ns + self.delay_ns;
        let within_ns = self.error_ns(ready_ns);
        let earliest_ns = launch_ns.saturating_sub(within_ns);
        match self.wait_at(earliest_ns) {
            // The window may still last.
            Some(0) => return ready_ns.max(earliest_ns - self.after_begin_ns(earliest_ns) - within_ns),
            // It may have opened.
            Some(wait_ns) if wait_ns <= within_ns.saturating_mul(2) => return ready_ns,
            _ => {}
        }
        launch_ns + (self.wait_at(launch_ns).unwrap_or(0) - within_ns).max(-self.delay_ns)
    }
}

impl Gate {
    /// Time since the begin of the window in which `at_ns` (monotonic ns) is, ns.
    fn after_begin_ns(&self, at_ns: i64) -> i64 {
        let phase_ns = self.phase_ns(at_ns);
        // A window can begin before the cycle.
        let since = |(from_ns, _): (i64, i64)| (phase_ns - from_ns).rem_euclid(self.cycle_ns());
        self.starts().into_iter().map(since).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    /// Open for 5 of 20 ms.
    fn gate() -> Gate {
        let entry = |gates, ms: u64| Entry { gates, interval_ns: ms * 1_000_000 };
        let windows = Schedule { entries: vec![entry(1, 5), entry(2, 15)], cycle_ns: 0 }.windows(0, Rule::Kernel);
        let frame = Frame { bytes: 106, speed: "10Gbps".parse().unwrap() };
        Gate::new(0, (windows, frame), 7_000, 100)
    }

    #[test]
    fn a_message_is_permitted_when_its_gate_opens_next() {
        let at = |after_base_ns: i64| gate().permitted_ns(7_000 + after_base_ns) - 7_000;
        assert_eq!(at(3_000_000), 3_000_000);
        // The clock of the schedule is known to within 100 ns.
        assert_eq!(at(6_000_000), 19_999_900);
        assert_eq!(at(-14_000_000), -100);
        // The last frame may begin 104 ns before the window ends, or up to 100 ns later.
        assert_eq!([at(4_999_996), at(4_999_997)], [4_999_996, 19_999_900]);
        assert_eq!(at(60_000_000_000 + 6_000_000), 60_000_000_000 + 19_999_900);
    }

    #[test]
    fn the_time_since_a_gate_closed_for_a_frame_is_known() {
        // The last frame may begin 104 ns before the window ends.
        let exact = Gate { within_ns: 0, ..gate() };
        let at = |after_base_ns: i64| exact.closed_for_ns((7_000 + after_base_ns, 7_000 + after_base_ns));
        assert_eq!([at(0), at(4_999_896), at(5_000_000), at(19_999_999)], [0, 0, 104, 15_000_103]);
        assert_eq!([at(-1), at(20_000_000)], [15_000_103, 0]);
        // The clock of the schedule is known to within 100 ns, and the stamp is not exact.
        let within = |from_ns: i64, to_ns: i64| gate().closed_for_ns((7_000 + from_ns, 7_000 + to_ns));
        assert_eq!([within(4_999_990, 5_000_010), within(5_000_500, 5_000_700)], [0, 504]);
        assert_eq!([within(19_999_950, 19_999_960), within(0, 60_000_000)], [0, 0]);
    }

    #[test]
    fn a_hardware_clock_is_known_less_exactly_after_a_while() {
        let fact = Gate { hardware_read_at_ns: Some(0), ..gate() };
        // 100 ppm of 60 s, and the error of the reading.
        assert_eq!([fact.error_ns(0), fact.error_ns(60_000_000_000)], [100, 6_000_100]);
        let at = |after_base_ns: i64| fact.permitted_ns(7_000 + after_base_ns) - 7_000;
        assert_eq!(at(60_000_000_000 + 12_000_000), 60_000_000_000 + 20_000_000 - 6_001_300);
        // The whole window lies within the error.
        assert_eq!(at(60_000_000_000 + 5_500_000), 60_000_000_000 + 5_500_000);
    }

    #[test]
    fn a_frame_with_a_launch_time_may_leave_early_only_within_its_window() {
        let gate = gate().launched_after(500_000);
        let at = |after_base_ns: i64| gate.permitted_ns(7_000 + after_base_ns) - 7_000;
        // Ready while the gate is closed: launched when it opens.
        assert_eq!((gate.wait_ns(7_000 + 6_000_000), at(6_000_000)), (Some(14_000_000), 19_999_900));
        // Its launch time is within the window: it may leave from the begin of the window on, if it is ready then.
        assert_eq!((gate.wait_ns(7_000 + 19_700_000), at(19_700_000)), (Some(500_000), 19_999_900));
        assert_eq!((gate.wait_ns(7_000 + 1_000_000), at(1_000_000)), (Some(500_000), 1_000_000));
        // Ready in the window and launched in the next one.
        assert_eq!((gate.wait_ns(7_000 + 4_800_000), at(4_800_000)), (Some(15_200_000), 19_999_900));
    }
}
