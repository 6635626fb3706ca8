//! Frequencies that occur in the times of events, by a Fourier transform.
//!
//! Input: times with weights. Output: the frequencies of the local maxima of the spectrum, as candidates: it is not known here
//! which of them is the frequency of a cycle, and which a multiple of it.

use std::f64::consts::TAU;

/// Sampling frequency of the spectrum, Hz: more than twice the highest frequency of a candidate.
const SAMPLES_PER_S: f64 = 8_192.0;
/// Lowest and highest frequency of a candidate, Hz: the longest cycle, and the shortest cycle with two and a half windows.
const LOWEST_HZ: f64 = 9.9;
const HIGHEST_HZ: f64 = 2_500.0;
/// Longest time of which a spectrum is computed, ns. For it, at most 128 MB exist at the same time: 64 MB of the transform, 32 MB of
/// its turns, and 32 MB of the powers of the events, which exist while the transform of the send times is computed.
pub(super) const LONGEST_NS: i64 = 250_000_000_000;
/// Least power of a candidate, relative to the strongest one.
const LEAST_POWER: f64 = 0.1;
/// Largest share of the events that may be in step with a candidate because of the times of sending alone.
const MOST_IN_STEP: f64 = 0.3;
/// Number of candidates with the lowest frequencies, and number of those with the greatest power.
const CANDIDATES: usize = 12;

/// Number of events by which the frequencies are sharpened.
const SHARPENED_BY: usize = 1_500;

/// Number with a real and an imaginary part.
type Complex = (f64, f64);

/// Frequencies of the candidates, Hz. `events` are times of events, s, with their weights; `sent_s` are the times at which the
/// messages of these events were sent, which may have frequencies of their own. The last event is at most [`LONGEST_NS`] after
/// time 0.
pub(super) fn frequencies(events: &[(f64, f64)], sent_s: &[f64]) -> Vec<f64> {
    let span_s = events.iter().map(|(at_s, _)| *at_s).fold(1.0, f64::max);
    // Twice the time, so that no maximum lies between two frequencies of the transform.
    let size = ((span_s * SAMPLES_PER_S * 2.0) as usize + 2).next_power_of_two();
    let power = powers(size, events);
    let sent: Vec<_> = sent_s.iter().map(|at_s| (*at_s, 1.0)).collect();
    let in_step = powers(size, &sent);
    let most_in_step = (MOST_IN_STEP * sent.len() as f64).powi(2);
    let hz = |bin: usize| bin as f64 * SAMPLES_PER_S / size as f64;
    let bins = (LOWEST_HZ * size as f64 / SAMPLES_PER_S) as usize..(HIGHEST_HZ * size as f64 / SAMPLES_PER_S) as usize;
    let is_candidate = |&bin: &usize| {
        power[bin] >= power[bin - 1]
            && power[bin] > power[bin + 1]
            && (bin - 1..=bin + 1).all(|b| in_step[b] < most_in_step)
    };
    let mut found: Vec<usize> = bins.filter(is_candidate).collect();
    let strongest = found.iter().map(|bin| power[*bin]).fold(0.0, f64::max);
    found.retain(|bin| power[*bin] >= LEAST_POWER * strongest);
    let mut chosen: Vec<usize> = found.iter().copied().take(CANDIDATES).collect();
    found.sort_by(|a, b| power[*b].total_cmp(&power[*a]));
    chosen.extend(found.iter().take(CANDIDATES));
    chosen.sort_unstable();
    chosen.dedup();
    let some: Vec<_> = events.iter().copied().step_by(events.len().div_ceil(SHARPENED_BY)).collect();
    chosen.into_iter().map(|bin| sharpened(hz(bin), &some, span_s)).collect()
}

/// The power of each frequency of a transform of this size.
fn powers(size: usize, events: &[(f64, f64)]) -> Vec<f64> {
    let mut values: Vec<Complex> = vec![(0.0, 0.0); size];
    for (at_s, weight) in events {
        values[((at_s * SAMPLES_PER_S).max(0.0) as usize).min(size - 1)].0 += weight;
    }
    transform(&mut values);
    values.iter().map(|(re, im)| re * re + im * im).collect()
}

/// Fast Fourier transform in place, for a power of two (Cooley & Tukey, Math. Comp. 19, 1965).
fn transform(values: &mut [Complex]) {
    let size = values.len();
    let bits = size.trailing_zeros();
    for i in 0..size {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            values.swap(i, j);
        }
    }
    let turns: Vec<Complex> = (0..size / 2).map(|k| (-TAU * k as f64 / size as f64).sin_cos()).collect();
    let mut half = 1;
    while half < size {
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let (sin, cos) = turns[k * (size / 2 / half)];
                let turned = (b.0 * cos - b.1 * sin, b.0 * sin + b.1 * cos);
                (*a, *b) = ((a.0 + turned.0, a.1 + turned.1), (a.0 - turned.0, a.1 - turned.1));
            }
        }
        half *= 2;
    }
}

/// The frequency near `hz` at which the events are most in step, also at its multiples 2, 4, 8, …, which are known more exactly.
fn sharpened(hz: f64, events: &[(f64, f64)], span_s: f64) -> f64 {
    let power = |hz: f64| {
        let add = |(re, im): Complex, (at_s, weight): &(f64, f64)| {
            let (sin, cos) = (TAU * (at_s * hz).fract()).sin_cos();
            (re + weight * cos, im + weight * sin)
        };
        let (re, im) = events.iter().fold((0.0, 0.0), add);
        re * re + im * im
    };
    let (mut best_hz, mut multiple) = (hz, 1.0);
    let mut multiples = Vec::new();
    while multiple == 1.0 || multiple * hz <= SAMPLES_PER_S / 2.0 {
        multiples.push(multiple);
        // Half of the width of a maximum at this multiple, in ten steps.
        let step_hz = 0.1 / span_s / multiple;
        // A single multiple can be absent.
        let last = &multiples[multiples.len().saturating_sub(2)..];
        let at = |hz: f64| last.iter().map(|m| power(m * hz)).sum::<f64>();
        let steps = (-5..=5).map(|step| best_hz + f64::from(step) * step_hz);
        let better = steps.map(|hz| (at(hz), hz)).max_by(|a, b| a.0.total_cmp(&b.0));
        best_hz = better.map_or(best_hz, |(_, hz)| hz);
        multiple *= 2.0;
    }
    best_hz
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_what_its_definition_says() {
        let values: Vec<Complex> = (0..16).map(|k| (f64::from(k * k % 7), f64::from(k % 3))).collect();
        let mut found = values.clone();
        transform(&mut found);
        for (k, found) in found.iter().enumerate() {
            let term = |(n, (re, im)): (usize, &Complex)| {
                let (sin, cos) = (-TAU * (n * k) as f64 / 16.0).sin_cos();
                (re * cos - im * sin, re * sin + im * cos)
            };
            let expected = values.iter().enumerate().map(term).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            assert!((found.0 - expected.0).abs() < 1e-9 && (found.1 - expected.1).abs() < 1e-9, "{k}");
        }
    }

    #[test]
    fn the_frequency_of_events_is_found() {
        let events: Vec<_> = (0..500).map(|k| (f64::from(k) / 37.25 + 0.004, 1.0)).collect();
        let sent: Vec<_> = (0..500).map(|k| f64::from(k) * 0.0311 + f64::from(k * k % 101) * 1e-4).collect();
        let found = frequencies(&events, &sent);
        assert!(found.iter().any(|hz| (hz - 37.25).abs() < 1e-4), "{found:?}");
    }
}
