//! Error rates and power of the rules by simulation, with fixed seeds.

use super::{Decider, Looks, Margins, Rule, Step, Verdict};
use crate::compare::Random;

/// Number of simulated decisions for each row: a rate of 5 % then has a standard error of 0.3 %.
const RECORDS: u64 = 6_000;

/// Error rate that the rules are asked to keep, two-sided.
const ALPHA: f64 = 0.05;

/// Kinds of noise of the logarithm of a per-trial quantile.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Normal; the log ratio of a pair has the standard deviation 0.25.
    Normal,
    /// Student's t with 3 degrees of freedom: heavy tails.
    HeavyTails,
    /// Normal, and 15 % of the trials are hit by something that makes them up to ten times as late.
    Bursts,
    /// Normal, and the second trial of each pair is 0.6 higher.
    Drift,
}

/// Difference of the logarithms of two trials; the trial with the change is `effect` lower. `with_first`: its trial is the first
/// one of the pair.
fn pair(noise: Noise, random: &mut Random, effect: f64, with_first: bool) -> f64 {
    let trial = |random: &mut Random| match noise {
        Noise::Normal | Noise::Drift => 0.25 / 2.0_f64.sqrt() * random.normal(),
        Noise::HeavyTails => {
            let chi = (0..3).map(|_| random.normal().powi(2)).sum::<f64>();
            0.2 * random.normal() / (chi / 3.0).sqrt()
        }
        Noise::Bursts => {
            let hit = random.below(100) < 15;
            0.15 * random.normal() + if hit { random.below(1000) as f64 / 1000.0 * 10.0_f64.ln() } else { 0.0 }
        }
    };
    let drift = if matches!(noise, Noise::Drift) { 0.6 } else { 0.0 };
    let (first, second) = (trial(random), trial(random) + drift);
    if with_first { first - second - effect } else { second - first - effect }
}

/// Verdict and number of pairs of one decision.
fn decide(decider: &Decider, noise: Noise, random: &mut Random, effect: f64) -> (Verdict, usize) {
    let (mut logs, mut with_first) = (Vec::new(), false);
    loop {
        match decider.step(&logs) {
            Step::Stop(verdict) => return (verdict, logs.len()),
            Step::Until(pairs) => {
                while logs.len() < pairs {
                    with_first = decider.rule.order().with_first(logs.len(), with_first, random.below(2) == 0);
                    logs.push(pair(noise, random, effect, with_first));
                }
            }
        }
    }
}

/// Share of the decisions that end as better or worse, and the mean number of pairs.
fn found(decider: &Decider, noise: Noise, effect: f64) -> (f64, f64) {
    let mut random = Random::seeded(7);
    let ends: Vec<(Verdict, usize)> = (0..RECORDS).map(|_| decide(decider, noise, &mut random, effect)).collect();
    let effects = ends.iter().filter(|(v, _)| matches!(v, Verdict::Better | Verdict::Worse)).count();
    let pairs = ends.iter().map(|(_, pairs)| *pairs).sum::<usize>();
    (effects as f64 / RECORDS as f64, pairs as f64 / RECORDS as f64)
}

fn rules() -> [(&'static str, Decider); 3] {
    // Stopping for futility only lowers the rates, so that no interval reaches the margin here.
    let margins = Margins { gain: f64::INFINITY, worse: 1.05 };
    let looks = |pairs: &[usize]| Decider { rule: Rule::Looks(Looks::new(pairs, ALPHA)), margins };
    let symmetry = Decider { rule: Rule::Symmetry { alpha: ALPHA, most: 20 }, margins };
    [("4, 6, 9, 12", looks(&Looks::SHORT)), ("6, 9, 12, 16, 20", looks(&Looks::LONG)), ("symmetry", symmetry)]
}

const NOISES: [Noise; 4] = [Noise::Normal, Noise::HeavyTails, Noise::Bursts, Noise::Drift];

/// Test: without an effect, at most 5 % of the decisions find one, with every kind of noise. The upper limit is the rate with
/// three standard errors.
#[test]
fn without_an_effect_the_error_rate_is_kept() {
    let most = ALPHA + 3.0 * (ALPHA * (1.0 - ALPHA) / RECORDS as f64).sqrt();
    for (name, decider) in rules() {
        for noise in NOISES {
            let (rate, _) = found(&decider, noise, 0.0);
            println!("{name}, {noise:?}: {:.1} % false verdicts", 100.0 * rate);
            assert!(rate <= most, "{name}, {noise:?}: {rate}");
        }
    }
}

/// Test: a paired t test after every pair, without limits for repeated looks, exceeds the rate: the simulation can fail.
#[test]
fn looking_after_every_pair_without_a_rule_exceeds_the_rate() {
    let mut random = Random::seeded(7);
    let peeks = |logs: &[f64]| super::ratio(logs).is_some_and(|r| r.low > 1.0 || r.high < 1.0);
    let wrong = (0..RECORDS).filter(|_| {
        let logs: Vec<f64> = (0..20).map(|_| pair(Noise::Normal, &mut random, 0.0, true)).collect();
        (5..=20).any(|n| peeks(&logs[..n]))
    });
    assert!(wrong.count() as f64 / RECORDS as f64 > 0.12);
}

/// Test: effects are found as often as in the simulation on which the choice of the rules is based.
#[test]
fn effects_are_found() {
    for (effect, noise, least) in [
        (1.0_f64 / 0.65, Noise::Normal, [0.95, 0.99, 0.95]),
        (1.0 / 0.65, Noise::HeavyTails, [0.80, 0.95, 0.80]),
        (1.0 / 0.8, Noise::Normal, [0.70, 0.90, 0.65]),
        (10.0, Noise::Bursts, [0.97, 0.99, 0.99]),
    ] {
        for ((name, decider), least) in rules().into_iter().zip(least) {
            let (rate, pairs) = found(&decider, noise, effect.ln());
            println!("{name}, {noise:?}, ratio {:.2}: found {:.0} %, {pairs:.1} pairs", 1.0 / effect, 100.0 * rate);
            assert!(rate >= least, "{name}, {noise:?}, {effect}: {rate}");
        }
    }
}
