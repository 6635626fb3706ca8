//! Random draws. A draw depends on seed, direction, sequence number and purpose (for example delay or loss), not on the
//! order in which draws are made.

use super::{Delay, Direction, LONGEST_NS, Pick};

const DELAY: u64 = 1;
const DELAY_SECOND: u64 = 2;
pub(super) const LOSS: u64 = 3;
pub(super) const DUPLICATE: u64 = 4;
pub(super) const REORDER: u64 = 5;

/// Mask of a message's counter: the lower 48 bits of the sequence number. The upper 16 bits are the stream number.
const COUNTER: u64 = (1 << 48) - 1;

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws a uniform number in the open interval (0, 1).
fn unit(seed: u64, direction: Direction, seq: u64, purpose: u64) -> f64 {
    let bits = mix(mix(mix(seed) ^ ((direction as u64) << 8 | purpose)) ^ seq);
    ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

pub(super) fn delay(delay: &Delay, seed: u64, direction: Direction, seq: u64) -> u64 {
    let u = unit(seed, direction, seq, DELAY);
    let drawn = match *delay {
        Delay::Constant(ns) => ns,
        Delay::Uniform(low, high) => low + (u * ((high - low) as f64 + 1.0)) as u64,
        Delay::Exponential { shift_ns, mean_ns } => shift_ns.saturating_add((-mean_ns * u.ln()).round() as u64),
        Delay::Lognormal { median_ns, sigma } => {
            // Box-Muller: two uniform draws give one normal draw.
            let angle = std::f64::consts::TAU * unit(seed, direction, seq, DELAY_SECOND);
            let normal = (-2.0 * u.ln()).sqrt() * angle.cos();
            (median_ns * (sigma * normal).exp()).round() as u64
        }
        Delay::Pareto { scale_ns, shape } => (scale_ns * u.powf(-1.0 / shape)).round() as u64,
        Delay::List(ref list) => list.get((seq & COUNTER) as usize % list.len().max(1)).copied().unwrap_or(0),
    };
    drawn.min(LONGEST_NS)
}

pub(super) fn picked(pick: &Pick, seed: u64, direction: Direction, seq: u64, purpose: u64) -> bool {
    pick.counters.contains(&(seq & COUNTER)) || unit(seed, direction, seq, purpose) < pick.probability
}
