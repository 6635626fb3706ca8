//! Random numbers that are the same on every machine: a comparison told twice says the same twice.

/// splitmix64: Steele, Lea & Flood, Fast Splittable Pseudorandom Number Generators (2014).
pub(crate) struct Random {
    state: u64,
    spare: Option<f64>,
}

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Random { state: seed, spare: None }
    }

    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Uniform among `0..n`; `n` is far below 2^32, where the multiplication is as good as fair.
    pub fn below(&mut self, n: usize) -> usize {
        (((self.bits() >> 32) * n as u64) >> 32) as usize
    }

    /// Standard normal, by the polar method: Marsaglia & Bray, A Convenient Method for Generating Normal Variables,
    /// SIAM Review 6 (1964).
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
