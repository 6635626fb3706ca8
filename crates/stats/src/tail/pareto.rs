//! The generalised Pareto distribution of excesses over a threshold, fitted by maximum likelihood.

/// Range of shapes of the distribution that a fit accepts. Below the lower end the likelihood is not regular: R. L.
/// Smith, Maximum Likelihood Estimation in a Class of Nonregular Cases, Biometrika 72 (1985). Tails heavier than the
/// upper end have no useful estimate.
pub(crate) const SHAPES: std::ops::RangeInclusive<f64> = -0.5..=1.5;

/// The generalised Pareto distribution: P(X > x) = (1 + shape x / scale)^(-1 / shape), or exp(-x / scale) if shape is
/// 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pareto {
    pub shape: f64,
    pub scale: f64,
}

impl Pareto {
    /// Negative logarithm of the probability that an excess is larger than `x`: -ln P(X > x). The result is infinite
    /// above the upper end of a bounded distribution.
    pub fn depth(self, x: f64) -> f64 {
        let z = self.shape * x / self.scale;
        match z {
            z if z <= -1.0 => f64::INFINITY,
            _ if self.shape.abs() < 1e-9 => x / self.scale,
            z => z.ln_1p() / self.shape,
        }
    }

    /// The value, in ns above the threshold, that one in `rarity` excesses over the threshold exceeds.
    pub fn level(self, rarity: f64) -> f64 {
        self.scale * growth(self.shape, rarity)
    }

    /// The log-likelihood of the generalised Pareto distribution for these excesses over the threshold.
    pub fn likelihood(self, excesses: &[f64]) -> f64 {
        let depth: f64 = excesses.iter().map(|x| self.depth(*x)).sum();
        -(excesses.len() as f64) * self.scale.ln() - (1.0 + self.shape) * depth
    }

    /// The maximum likelihood fit for excesses in rising order; `None` for fewer than two values.
    ///
    /// S. D. Grimshaw, Computing Maximum Likelihood Estimates for the Generalized Pareto Distribution, Technometrics 35
    /// (1993): for a given shape / scale the best shape is a mean of logarithms, so one variable remains.
    pub fn fit(excesses: &[f64]) -> Option<Pareto> {
        let (n, max) = (excesses.len() as f64, *excesses.last()?);
        let mean = excesses.iter().sum::<f64>() / n;
        if max <= excesses[0] {
            return None;
        }
        // With 1 + ratio max = exp(s), every s is allowed.
        let at = |s: f64| {
            let ratio = s.exp_m1() / max;
            if ratio.abs() * max < 1e-7 {
                return Pareto { shape: 0.0, scale: mean };
            }
            let shape = excesses.iter().map(|x| (ratio * x).ln_1p()).sum::<f64>() / n;
            Pareto { shape, scale: shape / ratio }
        };
        let likelihood = |s: f64| {
            let fit = at(s);
            if !SHAPES.contains(&fit.shape) { f64::NEG_INFINITY } else { -n * (fit.scale.ln() + fit.shape + 1.0) }
        };
        let grid = (-10..=24).map(|k| f64::from(k) / 2.0);
        let best = grid.map(|s| (likelihood(s), s)).max_by(|a, b| a.0.total_cmp(&b.0))?.1;
        Some(at(maximise(best - 0.5, best + 0.5, 26, likelihood)))
    }
}

/// The factor by which the return level grows with rarity, in units of the scale: (rarity^shape - 1) / shape.
pub(crate) fn growth(shape: f64, rarity: f64) -> f64 {
    if shape.abs() < 1e-9 { rarity.ln() } else { (shape * rarity.ln()).exp_m1() / shape }
}

/// Position of the maximum of a function with one maximum between two positions: golden section search, in which each
/// of `steps` steps multiplies the interval by 0.618.
pub(crate) fn maximise(mut low: f64, mut high: f64, steps: u32, value: impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_a, mut at_b) = (value(a), value(b));
    for _ in 0..steps {
        if at_a > at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - GOLDEN * (high - low);
            at_a = value(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + GOLDEN * (high - low);
            at_b = value(b);
        }
    }
    if at_a > at_b { a } else { b }
}
