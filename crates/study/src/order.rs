//! The order of trials: every condition once per repetition, shuffled within labs, the labs shuffled too.
//!
//! Drift of the machine then favours no condition, and a lab is built once for all conditions that share it. The order
//! follows from the seed alone and stays the same across releases: a test pins it.

use tailbound_model::{Condition, Discovery, KnobSpec, PathSpec, PlaceSpec, Trial, TrialSpec, VlanSpec};

/// What makes two trials share a lab: settings of the host too, which are set and put back with it.
type Lab<'a> =
    ((&'a PathSpec, Option<&'a VlanSpec>), &'a PlaceSpec, &'a PlaceSpec, (u32, u32, bool), Discovery, &'a [KnobSpec]);

fn lab(spec: &TrialSpec) -> Lab<'_> {
    let apart = spec.measure.flow().is_some_and(|f| f.apart);
    let ends = (spec.measure.publishers(), spec.measure.subscribers(), apart);
    ((&spec.path, spec.vlan.as_ref()), &spec.ping.place, &spec.pong.place, ends, spec.discovery, &spec.host)
}

/// The trials of all conditions that are possible.
pub(crate) fn trials(conditions: &[Condition], seed: u64, repeat: usize) -> Vec<Trial> {
    let mut labs: Vec<(Lab<'_>, Vec<usize>)> = Vec::new();
    for condition in conditions.iter().filter(|c| c.not_possible.is_none()) {
        let key = lab(&condition.spec);
        match labs.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(condition.id),
            None => labs.push((key, vec![condition.id])),
        }
    }
    let mut random = SplitMix64(seed);
    let mut trials: Vec<Trial> = Vec::new();
    let mut block = 0;
    let mut last = None;
    for repeat in 0..repeat {
        let mut order: Vec<usize> = (0..labs.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            // The last lab of one repetition may be the first of the next: it is kept.
            block += usize::from(last.is_some_and(|last| last != index));
            last = Some(index);
            let mut members = labs[index].1.clone();
            random.shuffle(&mut members);
            for condition in members {
                trials.push(Trial { id: trials.len(), condition, repeat, block });
            }
        }
    }
    trials
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..n without bias: values of the incomplete last round are drawn again.
    fn below(&mut self, n: u64) -> u64 {
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let value = self.next();
            if value < limit {
                return value % n;
            }
        }
    }

    /// Fisher and Yates, from the end.
    fn shuffle(&mut self, items: &mut [usize]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    #[test]
    fn generator_matches_the_published_sequence() {
        // First values for the seed 1234567 of the authors' reference implementation.
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn shuffle_is_pinned() {
        let mut items: Vec<usize> = (0..10).collect();
        SplitMix64(1).shuffle(&mut items);
        assert_eq!(items, [4, 2, 8, 1, 9, 3, 0, 6, 7, 5]);
    }
}
