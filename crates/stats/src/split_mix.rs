//! Random numbers that depend on the seed only and are the same on every machine.

/// The generator SplitMix64: Steele, Lea & Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
#[derive(Debug, Clone)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns the next 64 bits of the pseudo-random sequence.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    #[test]
    fn generator_matches_the_published_sequence() {
        // The first values for the seed 1234567 of the authors' reference implementation.
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }
}
