//! A fast generator of random numbers with a fixed seed, so that simulations repeat exactly.

/// The random number generator SplitMix64: Steele, Lea & Flood, Fast Splittable Pseudorandom Number Generators (2014).
pub struct Random(u64);

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Random(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a uniform random number in (0, 1], in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

#[allow(dead_code)]
impl Random {
    /// Draws a standard normal random number: G. E. P. Box, M. E. Muller (1958).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Draws an exponential random number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}
