//! The limit of the CPU time that `tailbound watch` takes for reading packets.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use tailbound_watch::Watch;

/// How often the CPU time is compared with the limit.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Keeps the thread that reads packets below a share of one CPU, by reading fewer topics.
pub struct CpuLimit {
    share: f64,
    begin: Instant,
    at: Instant,
    cpu: Duration,
    /// Topics that are no longer read, and since when.
    left_out: Vec<(String, Duration)>,
    /// Whether the limit was exceeded when no topic was left.
    is_beyond: bool,
}

impl CpuLimit {
    /// `share`: of one CPU, for the calling thread.
    pub fn new(share: f64) -> CpuLimit {
        let now = Instant::now();
        CpuLimit { share, begin: now, at: now, cpu: thread_time(), left_out: Vec::new(), is_beyond: false }
    }

    /// Compares the CPU time of the last second with the limit, once a second.
    pub fn turn(&mut self, state: &mut Watch) {
        let wall = self.at.elapsed();
        if wall < BETWEEN_LOOKS {
            return;
        }
        let cpu = thread_time();
        let took = cpu.saturating_sub(self.cpu);
        (self.at, self.cpu) = (Instant::now(), cpu);
        let is_above = took.as_secs_f64() > self.share * wall.as_secs_f64();
        match state.leave_out_busiest(is_above) {
            Some(topic) => self.left_out.push((topic, self.begin.elapsed())),
            None => self.is_beyond |= is_above,
        }
    }

    /// What the report has to say about it.
    pub fn warning(&self) -> Option<String> {
        if self.left_out.is_empty() && !self.is_beyond {
            return None;
        }
        let topics: Vec<String> = self
            .left_out
            .iter()
            .map(|(topic, since)| format!("{topic} (since {:.0} s)", since.as_secs_f64()))
            .collect();
        let limit = format!("--cpu {}%", self.share * 100.0);
        let mut text = match topics.is_empty() {
            true => format!("{limit}: reading took more"),
            false => format!("{limit}: no longer read, so that their figures end there: {}", topics.join(", ")),
        };
        if self.is_beyond {
            text +=
                "; the limit was exceeded when nothing was left to leave out: every packet of DDS has to be looked at";
        }
        Some(text)
    }
}

/// CPU time of the calling thread.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
