//! What a capture costs the programs that send and receive (`watch --cost`), measured by pairs of times with and without one.

use super::watch_capture::failed;
use crate::failure::Failure;
use std::time::{Duration, Instant};
use tailbound_host::{Capture, namespace_cpu};
use tailbound_report::WatchedCost;

/// Number of pairs. Of ten differences, the second smallest and the second largest enclose their median with a confidence of 97.9 %.
const PAIRS: usize = 10;
/// Length of each time with or without a capture.
const WINDOW: Duration = Duration::from_millis(500);
/// How often packets are read.
const TURN: Duration = Duration::from_millis(100);

/// Measures the CPU time of all other programs in the network namespace of this thread, with and without a capture.
///
/// # Errors
/// Packets cannot be captured, or the kernel does not count the CPU time of threads.
pub fn measure(interface: Option<&str>) -> Result<WatchedCost, Failure> {
    let mut without = Vec::new();
    let mut added = Vec::new();
    for pair in 0..PAIRS {
        // The order alternates, so that a load that grows or falls is not taken for a difference.
        let is_first = pair % 2 == 0;
        let one = share(is_first.then_some(interface))?;
        let other = share((!is_first).then_some(interface))?;
        let (with_share, without_share) = if is_first { (one, other) } else { (other, one) };
        without.push(without_share);
        added.push(with_share - without_share);
    }
    without.sort_by(f64::total_cmp);
    added.sort_by(f64::total_cmp);
    let median = |sorted: &[f64]| (sorted[PAIRS / 2 - 1] + sorted[PAIRS / 2]) / 2.0;
    Ok(WatchedCost {
        pairs: PAIRS as u64,
        without: median(&without),
        added: median(&added),
        within: (added[1], added[PAIRS - 2]),
    })
}

/// The CPU time of the programs as a share of one CPU, for one window; `capture`: at which interface packets are captured meanwhile.
fn share(capture: Option<Option<&str>>) -> Result<f64, Failure> {
    let mut capture = capture.map(Capture::open).transpose().map_err(failed)?;
    let not_counted = |e: std::io::Error| {
        Failure::not_fit(format!("--cost: the CPU time of threads cannot be read: {e}")).help("leave out --cost")
    };
    let before = namespace_cpu().map_err(not_counted)?;
    let begin = Instant::now();
    while let Some(left) = WINDOW.checked_sub(begin.elapsed()) {
        match &mut capture {
            Some(capture) => drop(capture.read(left.min(TURN), |_| {}).map_err(failed)?),
            None => std::thread::sleep(left.min(TURN)),
        }
    }
    let length = begin.elapsed();
    let after = namespace_cpu().map_err(not_counted)?;
    // Threads that began or ended meanwhile are in neither sum.
    let spent_ns: u64 = after.iter().filter_map(|(thread, ns)| Some(ns.saturating_sub(*before.get(thread)?))).sum();
    Ok(spent_ns as f64 / length.as_nanos() as f64)
}
