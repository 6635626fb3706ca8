//! The loop: baseline, screening, leaving out, confirmation.

use crate::bench::{Arms, Bench, PairError, Stage};
use crate::candidate::Candidate;
use crate::pair::{BASELINE_PAIRS, MOST_PAIRS, Pair, cpu_time, geometric_mean, guard, needed_for_a_gain};
use crate::receipt::{Baseline, Gain, LeftOut, Outcome, Receipt, RuleName, Tried, Verdict};
use std::time::Duration;
use tailbound_stats::SplitMix64;
use tailbound_stats::sequential::{Decider, Looks, Margins, Order, Rule, Step, ratio};

/// Choices of the user.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rule of the decisions.
    pub rule: RuleName,
    /// Error rate of all decisions about candidates together.
    pub alpha: f64,
    /// Seed of the order within the pairs.
    pub seed: u64,
    /// Time after which no further candidate is begun, such that the confirmation ends in time; `None` = no limit.
    pub budget: Option<Duration>,
    /// Largest ratio of the CPU times per message that a kept change may have; `None` = no limit.
    pub cpu_most: Option<f64>,
}

/// Why the loop ended without a receipt.
#[derive(Debug)]
pub enum TuneError<E> {
    /// The figure varies so much between equal trials that a gain of 20 % needs this number of pairs.
    TooNoisy {
        /// Number of pairs that a gain of 20 % would need.
        needed: f64,
    },
    /// The study itself cannot be measured: the reason.
    NotPossible(String),
    /// The measurement failed, or was interrupted.
    Failed(E),
}

impl<E> From<E> for TuneError<E> {
    fn from(error: E) -> TuneError<E> {
        TuneError::Failed(error)
    }
}

/// Runs the loop. `receipt` has the members that describe the study and the machine; the loop fills in the others.
///
/// # Errors
/// The A/A check refuses, or a measurement fails.
pub fn tune<B: Bench>(bench: &mut B, options: &Options, receipt: Receipt) -> Result<Receipt, TuneError<B::Error>> {
    let mut search = Search { bench, options, random: SplitMix64(options.seed), pairs: 0, receipt };
    search.baseline()?;
    let candidates = search.bench.candidates()?;
    let mut kept = search.screen_all(&candidates)?;
    search.leave_out(&mut kept)?;
    search.confirm(&kept)?;
    search.receipt.seconds = search.bench.elapsed().as_secs();
    search.receipt.reboots = search.bench.reboots();
    Ok(search.receipt)
}

/// Measures the kept settings of a receipt against the original ones again, and returns the gain.
///
/// # Errors
/// A measurement fails, or the settings cannot be used here.
pub fn confirm<B: Bench>(bench: &mut B, options: &Options, receipt: &Receipt) -> Result<Gain, TuneError<B::Error>> {
    let random = SplitMix64(options.seed);
    let mut search = Search { bench, options, random, pairs: 0, receipt: receipt.clone() };
    let arms = Arms { without: Vec::new(), with: receipt.kept.clone() };
    search.fresh_gain(&arms)
}

struct Search<'a, B> {
    bench: &'a mut B,
    options: &'a Options,
    random: SplitMix64,
    /// Number of pairs that were measured, to know how long one takes.
    pairs: usize,
    receipt: Receipt,
}

/// Pairs of one decision, and its result.
struct Decision {
    verdict: Verdict,
    pairs: Vec<Pair>,
}

impl Decision {
    /// Figure with the change divided by the figure without it: value and ends of the interval.
    fn ratio(&self) -> Option<[f64; 3]> {
        let logs: Vec<f64> = self.pairs.iter().map(Pair::log_ratio).collect();
        ratio(&logs).map(|found| [found.ratio, found.low, found.high])
    }
}

impl<B: Bench> Search<'_, B> {
    /// The rule of one of `count` decisions.
    fn decider(&self, count: usize) -> Decider {
        let alpha = self.options.alpha / count.max(1) as f64;
        let rule = match self.options.rule {
            RuleName::Looks => Rule::Looks(Looks::new(&Looks::SHORT, alpha)),
            RuleName::LongLooks => Rule::Looks(Looks::new(&Looks::LONG, alpha)),
            RuleName::Symmetry => Rule::Symmetry { alpha, most: 20 },
        };
        Decider { rule, margins: Margins::default() }
    }

    /// Largest number of pairs of one decision.
    fn most_pairs(&self) -> usize {
        match self.options.rule {
            RuleName::Looks => Looks::SHORT[Looks::SHORT.len() - 1],
            RuleName::LongLooks | RuleName::Symmetry => 20,
        }
    }

    fn measure(
        &mut self,
        stage: &Stage,
        arms: &Arms,
        (have, until): (usize, usize),
        last_order: &mut bool,
    ) -> Result<Vec<Pair>, PairError<B::Error>> {
        let order = match self.options.rule {
            RuleName::Looks | RuleName::LongLooks => Order::Balanced,
            RuleName::Symmetry => Order::Independent,
        };
        let mut orders = Vec::new();
        for pair in have..until {
            *last_order = order.with_first(pair, *last_order, self.random.bits() >> 63 == 1);
            orders.push(*last_order);
        }
        let measured = self.bench.pairs(stage, have, arms, &orders)?;
        self.pairs += measured.len();
        Ok(measured)
    }

    fn baseline(&mut self) -> Result<(), TuneError<B::Error>> {
        let arms = Arms::default();
        let measured = self.measure(&Stage::Baseline, &arms, (0, BASELINE_PAIRS), &mut false);
        let pairs = measured.map_err(refused)?;
        let needed_pairs = needed_for_a_gain(&pairs, self.options.alpha);
        if needed_pairs > MOST_PAIRS {
            return Err(TuneError::TooNoisy { needed: needed_pairs });
        }
        let figures = pairs.iter().flat_map(|p| [p.without.figure_ns, p.with.figure_ns]);
        self.receipt.baseline = Baseline { pairs: pairs.len(), figure_ns: geometric_mean(figures), needed_pairs };
        self.receipt.causes_before = self.bench.causes(&Stage::Baseline)?;
        Ok(())
    }

    /// Tries the candidates in order, each on top of those that helped; returns their positions.
    fn screen_all(&mut self, candidates: &[Candidate]) -> Result<Vec<usize>, TuneError<B::Error>> {
        let decider = self.decider(candidates.len());
        let mut kept: Vec<usize> = Vec::new();
        for (position, candidate) in candidates.iter().enumerate() {
            let mut tried = Tried {
                candidate: candidate.clone(),
                outcome: Outcome::NoTimeLeft,
                verdict: None,
                ratio: None,
                pairs: 0,
                cpu_time: None,
                left_out: None,
            };
            if self.has_time_for_another(kept.len()) {
                let without = settings(candidates, &kept);
                let with = [without.clone(), candidate.settings.clone()].concat();
                let stage = Stage::Screen(candidate.key.clone());
                match self.decide(&stage, &decider, &Arms { without, with }) {
                    Ok(decision) => tried.take(&decision, self.options.cpu_most),
                    Err(PairError::NotPossible(reason)) => tried.outcome = Outcome::NotPossible(reason),
                    Err(PairError::Failed(e)) => return Err(TuneError::Failed(e)),
                }
            }
            if tried.outcome == Outcome::Kept {
                kept.push(position);
            }
            self.bench.tried(&tried);
            self.receipt.tried.push(tried);
        }
        Ok(kept)
    }

    /// Leaves out each kept candidate in turn, the first one first: the later ones were found to help beside it. It stays only
    /// if the figure is better with it.
    fn leave_out(&mut self, kept: &mut Vec<usize>) -> Result<(), TuneError<B::Error>> {
        if kept.len() < 2 {
            return Ok(());
        }
        let decider = self.decider(kept.len());
        for position in kept.clone() {
            if kept.len() < 2 {
                break;
            }
            let rest: Vec<usize> = kept.iter().copied().filter(|other| *other != position).collect();
            let candidates: Vec<Candidate> = self.receipt.tried.iter().map(|t| t.candidate.clone()).collect();
            let arms = Arms { without: settings(&candidates, &rest), with: settings(&candidates, kept) };
            let stage = Stage::Drop(candidates[position].key.clone());
            let decision = self.decide(&stage, &decider, &arms).map_err(refused)?;
            let left_out = LeftOut { verdict: decision.verdict, ratio: decision.ratio(), pairs: decision.pairs.len() };
            self.receipt.tried[position].left_out = Some(left_out);
            if decision.verdict != Verdict::Better {
                self.receipt.tried[position].outcome = Outcome::NotNeeded;
                *kept = rest;
            }
        }
        Ok(())
    }

    fn confirm(&mut self, kept: &[usize]) -> Result<(), TuneError<B::Error>> {
        let candidates: Vec<Candidate> = self.receipt.tried.iter().map(|t| t.candidate.clone()).collect();
        self.receipt.kept = settings(&candidates, kept);
        if kept.is_empty() {
            return Ok(());
        }
        let gain = self.fresh_gain(&Arms { without: Vec::new(), with: self.receipt.kept.clone() })?;
        self.receipt.gain = Some(gain);
        self.receipt.causes_after = self.bench.causes(&Stage::Confirm)?;
        Ok(())
    }

    /// The gain on a fixed number of pairs, so that its interval is the one of a single look.
    fn fresh_gain(&mut self, arms: &Arms) -> Result<Gain, TuneError<B::Error>> {
        let number = (0, self.most_pairs());
        let pairs = self.measure(&Stage::Confirm, arms, number, &mut false).map_err(refused)?;
        let logs: Vec<f64> = pairs.iter().map(Pair::log_ratio).collect();
        let found = ratio(&logs).ok_or(TuneError::NotPossible("the confirmation has fewer than two pairs".into()))?;
        let broke_guard = guard(&pairs, self.options.cpu_most);
        Ok(Gain {
            without_ns: geometric_mean(pairs.iter().map(|p| p.without.figure_ns)),
            with_ns: geometric_mean(pairs.iter().map(|p| p.with.figure_ns)),
            ratio: [found.ratio, found.low, found.high],
            pairs: pairs.len(),
            cpu_time: cpu_time(&pairs),
            confirmed: found.high < 1.0 && broke_guard.is_none(),
            broke_guard,
        })
    }

    fn decide(&mut self, stage: &Stage, decider: &Decider, arms: &Arms) -> Result<Decision, PairError<B::Error>> {
        let mut pairs: Vec<Pair> = Vec::new();
        let mut last_order = false;
        loop {
            let logs: Vec<f64> = pairs.iter().map(Pair::log_ratio).collect();
            match decider.step(&logs) {
                Step::Stop(verdict) => return Ok(Decision { verdict: verdict.into(), pairs }),
                Step::Until(until) => {
                    let more = self.measure(stage, arms, (pairs.len(), until), &mut last_order)?;
                    pairs.extend(more);
                }
            }
        }
    }

    /// True if another candidate, leaving out each kept one, and the confirmation still fit into the time.
    fn has_time_for_another(&self, kept: usize) -> bool {
        let Some(budget) = self.options.budget else { return true };
        let each = self.bench.elapsed().as_secs_f64() / self.pairs.max(1) as f64;
        // The next candidate, leaving out `kept` and this one if there are two or more, and the confirmation.
        let decisions = if kept == 0 { 2 } else { kept + 3 };
        self.bench.elapsed().as_secs_f64() + each * (decisions * self.most_pairs()) as f64 <= budget.as_secs_f64()
    }
}

impl Tried {
    fn take(&mut self, decision: &Decision, cpu_most: Option<f64>) {
        self.verdict = Some(decision.verdict);
        self.ratio = decision.ratio();
        self.pairs = decision.pairs.len();
        self.cpu_time = cpu_time(&decision.pairs);
        self.outcome = match (decision.verdict, guard(&decision.pairs, cpu_most)) {
            (Verdict::Better, None) => Outcome::Kept,
            (Verdict::Better, Some(guard)) => Outcome::BrokeGuard(guard),
            _ => Outcome::Reverted,
        };
    }
}

fn refused<E>(error: PairError<E>) -> TuneError<E> {
    match error {
        PairError::NotPossible(reason) => TuneError::NotPossible(reason),
        PairError::Failed(e) => TuneError::Failed(e),
    }
}

/// Settings of the candidates at these positions, in order.
fn settings(candidates: &[Candidate], at: &[usize]) -> Vec<String> {
    at.iter().flat_map(|i| candidates[*i].settings.iter().cloned()).collect()
}
