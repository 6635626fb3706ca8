//! Distinguishes a phase that sweeps through a gate cycle from a clock that is wrong, by how the times on both ways move over a trial.
//!
//! Input: the medians of consecutive time spans on the way out and on the way back, each as the difference of the times of two ends.
//! Output: which of both it was, with the evidence, or nothing if the data are not clear.
//!
//! A message that waits for a gate whose cycle slowly drifts against its period waits for less and less time (or more and more),
//! then jumps: a ramp with wrap-around, between no wait and the worst wait, in one direction. An error of a clock moves both ways by
//! the same time in opposite directions, and leaves their sum.

/// Smallest number of spans from which anything is concluded.
const LEAST_SPANS: usize = 40;
/// Smallest number of spans of a ramp between two jumps.
const LEAST_RAMP: usize = 5;
/// Smallest number of spans of which all complete ramps consist together.
const LEAST_ON_RAMPS: usize = 15;
/// A movement counts if it is at least this many times the noise, that is, the usual change from one span to the next one.
const ABOVE_NOISE: f64 = 12.0;
/// Largest deviation of the slope of a ramp from the median slope, as a share of it.
const SAME_SLOPE: f64 = 0.15;
/// Largest distance of the spans of a ramp from its line, and from the place without a wait, as a share of the whole movement.
const ON_LINE: f64 = 0.06;
/// Smallest share of the spans that the model of a sweep must explain. The span of a jump has a median between both sides.
const EXPLAINED: f64 = 0.93;
/// Largest movement of the way without a sweep, and of the sum of both ways with a clock error, as a share of the movement.
const AT_REST: f64 = 0.1;

/// Medians of a span of time of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaySpan {
    /// Middle of the span, ns.
    pub at_ns: f64,
    /// Median time on the way out, ns.
    pub out_ns: f64,
    /// Median time on the way back, ns.
    pub back_ns: f64,
}

/// What moved the times on the ways of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Movement {
    /// The phase of the messages swept through the cycle of a gate on one way.
    PhaseSweep {
        /// Whether it was the way out; `None` = only the sum of both ways shows the sweep, because a clock moved meanwhile.
        out: Option<bool>,
        /// Change of the wait over time, parts per million: by how much the rates of cycle and period differ.
        ppm: f64,
        /// Largest wait beyond the shortest time on this way, ns.
        worst_wait_ns: f64,
        /// Number of ramps with at least five spans each.
        ramps: usize,
    },
    /// The difference between the clocks of the ends changed, not at a steady rate.
    ClockError {
        /// Largest difference between two times of the trial by which the clocks moved against a steady rate, ns.
        moved_ns: f64,
        /// Fastest change between two tenths of the trial, parts per million, with the steady rate.
        ppm: f64,
        /// Largest change of the sum of both ways, ns.
        sum_moved_ns: f64,
    },
}

/// What moved the times on the ways; `None` if nothing did, or if it is not clear. With `one_clock`, no clock can be wrong.
pub fn movement(spans: &[WaySpan], one_clock: bool) -> Option<Movement> {
    if spans.len() < LEAST_SPANS {
        return None;
    }
    let series = |of: fn(&WaySpan) -> f64| -> Vec<(f64, f64)> { spans.iter().map(|s| (s.at_ns, of(s))).collect() };
    let [out, back] = [series(|s| s.out_ns), series(|s| s.back_ns)];
    if one_clock {
        return sweep_of_one_way(&out, &back);
    }
    let sum = series(|s| s.out_ns + s.back_ns);
    clock_error(&out, &back, &sum).or_else(|| sweep_of_the_sum(&out, &back, &sum))
}

/// A sweep of the sum of both ways, in which an error of a clock does not show. If one of the ways moves at a steady rate only, which is
/// the rate of the clocks, the sweep is on the other one.
fn sweep_of_the_sum(out: &[(f64, f64)], back: &[(f64, f64)], sum: &[(f64, f64)]) -> Option<Movement> {
    let Sweep { slope, worst_wait_ns, ramps } = sweep(sum)?;
    let rests =
        |way: &[(f64, f64)]| line(way).is_some_and(|line| moved(&residuals(way, &line)) <= AT_REST * worst_wait_ns);
    let out = match (rests(out), rests(back)) {
        (false, true) => Some(true),
        (true, false) => Some(false),
        _ => None,
    };
    Some(Movement::PhaseSweep { out, ppm: slope * 1e6, worst_wait_ns, ramps })
}

/// A sweep of one way while the other one rests.
fn sweep_of_one_way(out: &[(f64, f64)], back: &[(f64, f64)]) -> Option<Movement> {
    let of = |way: &[(f64, f64)], other: &[(f64, f64)], out: bool| {
        let sweep = sweep(way)?;
        (moved(other) <= AT_REST * sweep.worst_wait_ns).then_some(Movement::PhaseSweep {
            out: Some(out),
            ppm: sweep.slope * 1e6,
            worst_wait_ns: sweep.worst_wait_ns,
            ramps: sweep.ramps,
        })
    };
    match (of(out, back, true), of(back, out, false)) {
        (Some(one), None) | (None, Some(one)) => Some(one),
        _ => None,
    }
}

/// Both ways move in opposite directions, and their sum rests.
fn clock_error(out: &[(f64, f64)], back: &[(f64, f64)], sum: &[(f64, f64)]) -> Option<Movement> {
    let half: Vec<(f64, f64)> = out.iter().zip(back).map(|((at, out), (_, back))| (*at, (out - back) / 2.0)).collect();
    let around = residuals(&half, &line(&half)?);
    let moved_ns = moved(&around);
    let sum_moved_ns = moved(sum);
    let is_large = moved_ns >= ABOVE_NOISE * noise(&around).max(noise(sum));
    let tenth = half.len() / 10;
    let steps = half.iter().zip(&half[tenth..]);
    let ppm = steps
        .map(|((a, x), (b, y))| 1e6 * (y - x) / (b - a))
        .fold(0.0_f64, |most, ppm| if ppm.abs() > most.abs() { ppm } else { most });
    (is_large && sum_moved_ns <= AT_REST * moved_ns).then_some(Movement::ClockError { moved_ns, ppm, sum_moved_ns })
}

struct Sweep {
    slope: f64,
    worst_wait_ns: f64,
    ramps: usize,
}

/// A straight line: its value at 0 and its slope.
struct Line {
    at_0: f64,
    slope: f64,
}

/// Ramps of one slope between jumps in the opposite direction, and spans without a wait.
fn sweep(way: &[(f64, f64)]) -> Option<Sweep> {
    let (low, high) = extent(way);
    let height = high - low;
    if height <= 0.0 || height < ABOVE_NOISE * noise(way) {
        return None;
    }
    let waits: Vec<(f64, f64)> = way.iter().map(|(at, ns)| (*at, ns - low)).collect();
    // Without a wait, and at a jump, a ramp ends.
    let ends = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1).abs() > height / 4.0;
    let resting = |(_, wait): &(f64, f64)| *wait <= ON_LINE * height;
    let mut parts: Vec<&[(f64, f64)]> = Vec::new();
    let mut from = 0;
    for at in 1..=waits.len() {
        let is_end = at == waits.len() || ends(&waits[at - 1..=at]) || resting(&waits[at - 1]) != resting(&waits[at]);
        if is_end {
            parts.push(&waits[from..at]);
            from = at;
        }
    }
    let ramps: Vec<(&[(f64, f64)], Line)> = parts
        .iter()
        .filter(|part| part.len() >= LEAST_RAMP && !part.iter().all(resting))
        .map(|part| Some((*part, line(part)?)))
        .collect::<Option<_>>()?;
    let slope = median(&ramps.iter().map(|(_, line)| line.slope).collect::<Vec<_>>())?;
    let of_slope = |line: &Line| (line.slope - slope).abs() <= SAME_SLOPE * slope.abs();
    let straight = |part: &[(f64, f64)], line: &Line| moved(&residuals(part, line)) <= 2.0 * ON_LINE * height;
    if slope == 0.0 || !ramps.iter().all(|(part, line)| of_slope(line) && straight(part, line)) {
        return None;
    }
    let on_ramps: usize = ramps.iter().map(|(part, _)| part.len()).sum();
    // Each jump up begins a falling ramp, and each jump down ends a rising one.
    let jumps: Vec<f64> =
        waits.windows(2).map(|pair| pair[1].1 - pair[0].1).filter(|by| by.abs() > height / 4.0).collect();
    let wrapped = jumps.iter().filter(|by| by.signum() != slope.signum()).count();
    // A ramp that falls to the place without a wait, or rises from it, passes the whole height.
    let rise: f64 = ramps.iter().map(|(part, _)| extent(part)).map(|(low, high)| high - low).fold(0.0, f64::max);
    let at_rest = waits.iter().filter(|wait| resting(wait)).count();
    let explained = (on_ramps + at_rest + jumps.len()) as f64 >= EXPLAINED * waits.len() as f64;
    let is_sweep = ramps.len() >= 2
        && on_ramps >= LEAST_ON_RAMPS
        && wrapped >= 1
        && wrapped == jumps.len()
        && rise >= height / 2.0
        && explained;
    is_sweep.then_some(Sweep { slope, worst_wait_ns: height, ramps: ramps.len() })
}

/// Least squares.
fn line(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), (at, ns)| (x + at / n, y + ns / n));
    let (xx, xy) =
        points.iter().fold((0.0, 0.0), |(xx, xy), (at, ns)| (xx + (at - x).powi(2), xy + (at - x) * (ns - y)));
    let slope = xy / xx;
    (xx > 0.0).then_some(Line { at_0: y - slope * x, slope })
}

fn residuals(points: &[(f64, f64)], line: &Line) -> Vec<(f64, f64)> {
    points.iter().map(|(at, ns)| (*at, ns - line.at_0 - line.slope * at)).collect()
}

/// The values between which all but one in fifty at each side lie.
fn extent(points: &[(f64, f64)]) -> (f64, f64) {
    let mut values: Vec<f64> = points.iter().map(|(_, ns)| *ns).collect();
    values.sort_unstable_by(f64::total_cmp);
    let cut = values.len() / 50;
    (values[cut], values[values.len() - 1 - cut])
}

fn moved(points: &[(f64, f64)]) -> f64 {
    let (low, high) = extent(points);
    high - low
}

/// Usual change from one span to the next one, of which a steady change is no part.
fn noise(points: &[(f64, f64)]) -> f64 {
    let changes: Vec<f64> =
        points.windows(3).map(|p| (p[2].1 - 2.0 * p[1].1 + p[0].1).abs() / 6.0_f64.sqrt()).collect();
    median(&changes).unwrap_or(f64::INFINITY) * 1.483
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    const US: f64 = 1e3;
    const S: f64 = 1e9;
    /// Number of simulated trials of each kind.
    const TRIALS: u64 = 500;

    struct Random(SplitMix64);

    impl Random {
        fn unit(&mut self) -> f64 {
            (self.0.bits() >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
        }
    }

    /// 240 spans over 900 s; the median of the times on a way has a noise of 1 us.
    fn trial(random: &mut Random, mut moves: impl FnMut(f64, &mut Random) -> (f64, f64)) -> Vec<WaySpan> {
        let span = |n: u32| {
            let at_ns = f64::from(n) * 900.0 / 240.0 * S;
            let (out, back) = moves(at_ns, random);
            let [out_noise, back_noise] = [random.normal() * US, random.normal() * US];
            WaySpan { at_ns, out_ns: 60.0 * US + out + out_noise, back_ns: 70.0 * US + back + back_noise }
        };
        (0..240).map(span).collect()
    }

    /// Wait for a window that is open for a part of the cycle, if the phase moves at this rate, ns.
    fn wait_ns(at_ns: f64, ppm: f64, (open, cycle): (f64, f64), begin: f64) -> f64 {
        let phase = (begin + at_ns * ppm / 1e6).rem_euclid(cycle);
        if phase < open { 0.0 } else { cycle - phase }
    }

    /// A cycle of 503 us whose phase moves by 1 to 4 ppm in either direction.
    fn drift(random: &mut Random) -> f64 {
        let ppm = 1.2 + 2.8 * random.unit();
        if random.unit() < 0.5 { -ppm } else { ppm }
    }

    /// The movement of a clock whose servo hunts: a swing of 40 to 400 us over 60 to 250 s.
    fn hunting(random: &mut Random) -> impl Fn(f64) -> f64 + use<> {
        let (height, period, begin) =
            ((40.0 + 360.0 * random.unit()) * US, (60.0 + 190.0 * random.unit()) * S, random.unit());
        move |at_ns| height * (2.0 * ((at_ns / period + begin).fract() - 0.5).abs() - 0.5)
    }

    #[test]
    fn a_phase_that_sweeps_through_a_gate_cycle_is_found_on_its_way() {
        let mut found = 0;
        for seed in 0..TRIALS {
            let random = &mut Random(SplitMix64(seed));
            let (ppm, open, begin) = (drift(random), (20.0 + 181.0 * random.unit()) * US, random.unit() * 503.0 * US);
            let way_out = seed % 2 == 0;
            let spans = trial(random, |at_ns, _| {
                let wait = wait_ns(at_ns, ppm, (open, 503.0 * US), begin);
                if way_out { (wait, 0.0) } else { (0.0, wait) }
            });
            let Some(Movement::PhaseSweep { out, ppm: slope, worst_wait_ns, ramps }) = movement(&spans, true) else {
                continue;
            };
            found += 1;
            assert_eq!(out, Some(way_out), "{seed}");
            // The wait falls while the phase rises.
            assert!((slope + ppm).abs() < 0.05 * ppm.abs(), "{seed}: {slope} {ppm}");
            assert!((worst_wait_ns - (503.0 * US - open)).abs() < 0.08 * 503.0 * US, "{seed}: {worst_wait_ns} {open}");
            assert!(ramps >= 2, "{seed}");
        }
        assert!(found * 100 >= TRIALS * 98, "{found} of {TRIALS}");
    }

    /// Test: between two clocks, the sum of both ways shows the sweep, also if a clock hunts meanwhile; the way is only known if none
    /// does.
    #[test]
    fn a_sweep_between_two_clocks_is_found_in_the_sum_of_both_ways() {
        for hunts in [false, true] {
            let mut found = 0;
            for seed in 0..TRIALS {
                let random = &mut Random(SplitMix64(seed));
                let (ppm, open, begin) =
                    (drift(random), (20.0 + 181.0 * random.unit()) * US, random.unit() * 503.0 * US);
                let (error, rate, way_out) = (hunting(random), 40e-6 * (random.unit() - 0.5), seed % 2 == 0);
                let spans = trial(random, |at_ns, _| {
                    let wait = wait_ns(at_ns, ppm, (open, 503.0 * US), begin);
                    let clock = 5.0 * S + rate * at_ns + if hunts { error(at_ns) } else { 0.0 };
                    if way_out { (wait + clock, -clock) } else { (clock, wait - clock) }
                });
                let Some(Movement::PhaseSweep { out, ppm: slope, worst_wait_ns, .. }) = movement(&spans, false) else {
                    assert_eq!(movement(&spans, false), None, "{seed}: no error of a clock");
                    continue;
                };
                found += 1;
                // A clock that hunts by little can leave the way known.
                assert!(out == Some(way_out) || hunts && out.is_none(), "{seed}, hunts {hunts}: {out:?}");
                assert!((slope + ppm).abs() < 0.05 * ppm.abs(), "{seed}: {slope} {ppm}");
                assert!(
                    (worst_wait_ns - (503.0 * US - open)).abs() < 0.08 * 503.0 * US,
                    "{seed}: {worst_wait_ns} {open}"
                );
            }
            println!("hunts {hunts}: {found} of {TRIALS}");
            assert!(found * 100 >= TRIALS * 98, "{found} of {TRIALS}");
        }
    }

    #[test]
    fn a_clock_that_hunts_is_found_and_a_steady_one_is_not() {
        let mut found = 0;
        for seed in 0..TRIALS {
            let random = &mut Random(SplitMix64(seed));
            let (error, rate) = (hunting(random), 40e-6 * (random.unit() - 0.5));
            let spans = trial(random, |at_ns, _| (rate * at_ns + error(at_ns), -rate * at_ns - error(at_ns)));
            let Some(Movement::ClockError { moved_ns, sum_moved_ns, .. }) = movement(&spans, false) else { continue };
            found += 1;
            let most = |of: &dyn Fn(f64) -> f64| {
                let all: Vec<f64> = spans.iter().map(|span| of(span.at_ns)).collect();
                all.iter().copied().fold(f64::MIN, f64::max) - all.iter().copied().fold(f64::MAX, f64::min)
            };
            // A part of the swing may be taken for a steady rate.
            assert!(
                moved_ns < 1.3 * most(&error) && moved_ns > 0.5 * most(&error),
                "{seed}: {moved_ns} {}",
                most(&error)
            );
            assert!(sum_moved_ns < 10.0 * US, "{seed}");
            let steady = trial(random, |at_ns, _| (rate * at_ns, -rate * at_ns));
            assert_eq!(movement(&steady, false), None, "{seed}");
        }
        assert!(found * 100 >= TRIALS * 90, "{found} of {TRIALS}");
    }

    /// Test: whatever moved the times, nothing is claimed that is not clear: random walks, steps of the load, slow rises, daily
    /// curves, sweeps of both ways, and noise.
    #[test]
    fn nothing_is_said_about_other_movements() {
        type Moves = Box<dyn FnMut(f64, &mut Random) -> (f64, f64)>;
        type Decoy = fn(&mut Random) -> Moves;
        let decoys: [(&str, Decoy); 8] = [
            ("noise", |_| Box::new(|_, _| (0.0, 0.0))),
            ("random walk", |_| {
                let mut at = [0.0; 2];
                Box::new(move |_, random| {
                    at.iter_mut().for_each(|at| *at += 20.0 * US * random.normal());
                    (at[0], at[1])
                })
            }),
            ("random walk of one way", |_| {
                let mut at = 0.0;
                Box::new(move |_, random| {
                    at += 20.0 * US * random.normal();
                    (at, 0.0)
                })
            }),
            ("load step", |random| {
                let (from, height) = (random.unit() * 900.0 * S, 300.0 * US * random.unit());
                Box::new(move |at, _| if at > from { (height, height / 3.0) } else { (0.0, 0.0) })
            }),
            ("load that comes and goes on one way", |random| {
                let (period, height) = ((50.0 + 200.0 * random.unit()) * S, 300.0 * US * random.unit());
                Box::new(move |at, _| (if (at / period).fract() < 0.5 { height } else { 0.0 }, 0.0))
            }),
            ("slow rise of one way", |random| {
                let height = 400.0 * US * random.unit();
                Box::new(move |at, _| (height * at / (900.0 * S), 0.0))
            }),
            ("wave of one way", |random| {
                let (period, height) = ((50.0 + 300.0 * random.unit()) * S, 300.0 * US * random.unit());
                Box::new(move |at, _| (height * (at / period * std::f64::consts::TAU).sin(), 0.0))
            }),
            ("sweeps of both ways", |random| {
                let (ppm, begin) = (drift(random), random.unit() * 503.0 * US);
                Box::new(move |at, _| {
                    let wait = |begin| wait_ns(at, ppm, (101.0 * US, 503.0 * US), begin);
                    (wait(begin), wait(begin + 100.0 * US))
                })
            }),
        ];
        for (name, decoy) in decoys {
            for one_clock in [true, false] {
                let mut wrong = 0;
                for seed in 0..TRIALS {
                    let random = &mut Random(SplitMix64(seed));
                    let moves = decoy(random);
                    let spans = trial(random, moves);
                    wrong += u64::from(movement(&spans, one_clock).is_some());
                }
                assert!(wrong == 0, "{name}, one clock: {one_clock}: {wrong} of {TRIALS}");
            }
        }
    }
}
