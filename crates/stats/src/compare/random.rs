//! Random draws that are the same on every machine, so that a repeated comparison gives the same result.

use crate::SplitMix64;

/// Generator of random numbers that depend on a seed only.
pub(crate) struct Random {
    state: SplitMix64,
    spare: Option<f64>,
}

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Random { state: SplitMix64(seed), spare: None }
    }

    pub fn bits(&mut self) -> u64 {
        self.state.bits()
    }

    /// Draws a random number that is uniform in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Draws a uniform number in `0..n`; `n` is far below 2^32, so the bias of the multiplication is negligible.
    pub fn below(&mut self, n: usize) -> usize {
        (((self.bits() >> 32) * n as u64) >> 32) as usize
    }

    /// Draws a standard normal number by the polar method: Marsaglia & Bray, A Convenient Method for Generating Normal
    /// Variables, SIAM Review 6 (1964).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                let scale = (-2.0 * s.ln() / s).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }
}
