//! The order of trials: every condition runs once per repetition, in random order within each lab, and the labs are in
//! random order too.
//!
//! Drift of the machine therefore favours no condition, and each lab is built once per repetition for all conditions
//! that share the lab. The order depends only on the seed and stays the same in later releases; a test checks this.

use tailbound_model::{Condition, Discovery, KnobSpec, PathSpec, PlaceSpec, Trial, TrialSpec, VlanSpec};
use tailbound_stats::SplitMix64;

/// The settings that decide which lab a trial needs; the host settings are included, because they are set and restored
/// with the lab.
type Lab<'a> =
    ((&'a PathSpec, Option<&'a VlanSpec>), &'a PlaceSpec, &'a PlaceSpec, (u32, u32, bool), Discovery, &'a [KnobSpec]);

fn lab(spec: &TrialSpec) -> Lab<'_> {
    let apart = spec.measure.flow().is_some_and(|f| f.apart);
    let ends = (spec.measure.publishers(), spec.measure.subscribers(), apart);
    ((&spec.path, spec.vlan.as_ref()), &spec.ping.place, &spec.pong.place, ends, spec.discovery, &spec.host)
}

/// True if trials of both kinds can run one after another in the same lab with the same host settings.
pub(crate) fn needs_same_lab(a: &TrialSpec, b: &TrialSpec) -> bool {
    lab(a) == lab(b)
}

/// Makes the ordered list of trials of all conditions that can be run.
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
        shuffle(&mut random, &mut order);
        for index in order {
            // If the last lab of a repetition is the first lab of the next repetition, the lab is kept.
            block += usize::from(last.is_some_and(|last| last != index));
            last = Some(index);
            let mut members = labs[index].1.clone();
            shuffle(&mut random, &mut members);
            for condition in members {
                trials.push(Trial { id: trials.len(), condition, repeat, block });
            }
        }
    }
    trials
}

/// Draws a uniform random number in `0..n`. A 64-bit value that is not below the largest multiple of `n` in 64 bits is
/// drawn again, because its remainder would favour small numbers.
fn below(random: &mut SplitMix64, n: u64) -> u64 {
    let limit = u64::MAX - u64::MAX % n;
    loop {
        let value = random.bits();
        if value < limit {
            return value % n;
        }
    }
}

/// Puts items into random order (Fisher-Yates shuffle, from the end).
fn shuffle(random: &mut SplitMix64, items: &mut [usize]) {
    for i in (1..items.len()).rev() {
        let j = below(random, i as u64 + 1) as usize;
        items.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::{SplitMix64, shuffle};

    #[test]
    fn shuffle_is_pinned() {
        let mut items: Vec<usize> = (0..10).collect();
        shuffle(&mut SplitMix64(1), &mut items);
        assert_eq!(items, [4, 2, 8, 1, 9, 3, 0, 6, 7, 5]);
    }
}
