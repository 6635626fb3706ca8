//! The waits of frames for their gate.

use crate::{Frame, Windows};
use serde::Serialize;

/// The waits of frames of one size for the gate of their class, other frames of the class aside. A frame may be sent at a time
/// from which its transmission ends before the gate closes, or when it closes. (The gate wait of `gates` in the reports.)
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Whether a window of the class is long enough for the frame. If not, it is never sent, and the other members are absent.
    pub fits: bool,
    /// Longest wait, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_wait_ns: Option<u64>,
    /// Time, since the schedule began again, at which a frame has to be ready to wait longest, ns; the first one if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_arrival_ns: Option<u64>,
    /// Mean wait of frames that are ready at any time of the cycle with the same probability, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_wait_ns: Option<f64>,
    /// Share of the times of the cycle at which a frame does not wait, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_without_wait: Option<f64>,
}

/// The waits of `frame` for these windows of its class.
pub fn predict(windows: &Windows, frame: Frame) -> Prediction {
    let cycle_ns = windows.cycle_ns;
    let starts = windows.starts(frame);
    let Some(&(first_ns, _)) = starts.first() else {
        let none = None;
        return Prediction {
            fits: false,
            worst_wait_ns: none,
            worst_arrival_ns: none,
            mean_wait_ns: None,
            share_without_wait: None,
        };
    };
    let (mut worst, mut sum, mut without) = ((0, first_ns), 0.0, 0);
    for (number, &(open_ns, last_ns)) in starts.iter().enumerate() {
        let next_ns = starts.get(number + 1).map_or(first_ns + cycle_ns, |(next_ns, _)| *next_ns);
        without += last_ns - open_ns + 1;
        // The frame that is ready just after the last time waits longest.
        let wait_ns = next_ns - last_ns - 1;
        sum += wait_ns as f64 * (wait_ns + 1) as f64 / 2.0;
        let arrival_ns = (last_ns + 1) % cycle_ns;
        if wait_ns > worst.0 || wait_ns == worst.0 && arrival_ns < worst.1 {
            worst = (wait_ns, arrival_ns);
        }
    }
    Prediction {
        fits: true,
        worst_wait_ns: Some(worst.0),
        worst_arrival_ns: Some(worst.1),
        mean_wait_ns: Some(sum / cycle_ns as f64),
        share_without_wait: Some(without as f64 / cycle_ns as f64),
    }
}

impl Windows {
    /// First and last time of each window at which a frame of this size may be sent, ns after the begin of a cycle, in the order of time.
    pub fn starts(&self, frame: Frame) -> Vec<(u64, u64)> {
        let need_ps = frame.wire_ps();
        let admissible = |&(open_ns, close_ns): &(u64, u64)| {
            // A gate that never closes lets every frame pass.
            let last_ns = match close_ns - open_ns == self.cycle_ns {
                true => u128::from(close_ns) - 1,
                false => (u128::from(close_ns) * 1_000).checked_sub(need_ps)? / 1_000,
            };
            u64::try_from(last_ns).ok().filter(|last_ns| *last_ns >= open_ns).map(|last_ns| (open_ns, last_ns))
        };
        self.open.iter().filter_map(admissible).collect()
    }

    /// Time for which a frame waits that is ready `phase_ns` after the begin of a cycle, ns; `None` if it fits into no window.
    pub fn wait_ns(&self, phase_ns: u64, frame: Frame) -> Option<u64> {
        let starts = self.starts(frame);
        let phase_ns = phase_ns % self.cycle_ns;
        // The last window of the cycle before may end in this one.
        let of_cycle = |before: u64| starts.iter().map(move |(first, last)| (first + before, last + before));
        let ready_ns = phase_ns + self.cycle_ns;
        let mut all = of_cycle(0).chain(of_cycle(self.cycle_ns)).chain(of_cycle(2 * self.cycle_ns));
        all.find(|(_, last_ns)| ready_ns <= *last_ns).map(|(first_ns, _)| first_ns.saturating_sub(ready_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Rule, Schedule};

    fn of(entries: &[(u32, u64)], class: u32, bytes: u64) -> Prediction {
        let entries = entries.iter().map(|&(gates, us)| Entry { gates, interval_ns: us * 1_000 }).collect();
        let frame = Frame { bytes, speed: "1Gbps".parse().expect("a speed") };
        predict(&Schedule { entries, cycle_ns: 0 }.windows(class, Rule::Kernel), frame)
    }

    /// Test: the published schedule of 503 us, whose class 0 is open for 101 us.
    #[test]
    fn a_frame_waits_for_the_rest_of_the_cycle_at_most() {
        let found = of(&[(3, 101), (2, 103), (6, 109), (10, 190)], 0, 126);
        // The frame needs 1.2 us: a frame that is ready 1 ns too late waits until the cycle ends.
        assert_eq!((found.worst_wait_ns, found.worst_arrival_ns), (Some(403_199), Some(99_801)));
        let (mean, share) = (found.mean_wait_ns.expect("a mean"), found.share_without_wait.expect("a share"));
        assert!((mean - 161_600.0).abs() < 1.0 && (share - 0.198_41).abs() < 1e-5, "{mean} {share}");
    }

    #[test]
    fn a_gate_that_never_closes_lets_every_frame_pass() {
        let found = of(&[(1, 10), (3, 20)], 0, 1_000_000);
        assert_eq!(
            (found.worst_wait_ns, found.mean_wait_ns, found.share_without_wait),
            (Some(0), Some(0.0), Some(1.0))
        );
    }

    #[test]
    fn a_frame_that_no_window_can_hold_does_not_fit() {
        // 12.304 us in a window of 12 us.
        assert!(!of(&[(1, 12), (2, 20)], 0, 1_514).fits);
        assert!(!of(&[(1, 12), (2, 20)], 2, 60).fits);
        assert!(of(&[(1, 12), (2, 20)], 1, 1_514).fits);
    }
}
