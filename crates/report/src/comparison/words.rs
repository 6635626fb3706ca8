//! Formats the results of a comparison as sentences.

use crate::compared::ratio;
use tailbound_document::number::count;
use tailbound_document::{Compared, Comparison, Pair, Side, VerdictWord};

/// Sentences about a comparison, which are shown above its table.
pub(crate) fn findings(comparison: &Comparison) -> Vec<String> {
    let (a, b) = (&comparison.a, &comparison.b);
    let mut all = Vec::new();
    for side in [a, b] {
        if let Some(why) = &side.functional_only {
            all.push(format!(
                "{} is functional only: {why}. The ratios show that the messages arrive, not how fast.",
                side.name
            ));
        }
    }
    let left: usize = comparison.pairs.iter().map(|p| p.a.left_out.len() + p.b.left_out.len()).sum();
    if left > 0 {
        let what = if left == 1 { "1 trial is".to_owned() } else { format!("{} trials are", count(left as u64)) };
        all.push(format!("{what} left out: invalid, or not ended."));
    }
    all.push(summary(comparison));
    all.extend(comparison.pairs.iter().filter_map(|p| opposite(p, b)));
    all.extend(too_few(comparison));
    all
}

fn summary(comparison: &Comparison) -> String {
    let cells: Vec<&Compared> = comparison.pairs.iter().flat_map(|p| &p.statistics).collect();
    let (a, b) = (&comparison.a.name, &comparison.b.name);
    let counted = [
        (VerdictWord::Slower, "slower"),
        (VerdictWord::Faster, "faster"),
        (VerdictWord::Equal, "equal within the margin"),
        (VerdictWord::NoDifferenceFound, "no difference found"),
        (VerdictWord::NotEnoughData, "not enough data"),
    ];
    let said: Vec<String> = counted
        .iter()
        .map(|(verdict, word)| (cells.iter().filter(|c| c.verdict == *verdict).count(), word))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| if n == cells.len() { (*word).to_owned() } else { format!("{word} in {n}") })
        .collect();
    let of = if said.len() == 1 { String::new() } else { format!(" of {} figures", cells.len()) };
    let largest = cells.iter().filter(|c| matches!(c.verdict, VerdictWord::Slower | VerdictWord::Faster));
    let largest = largest.rev().max_by(|x, y| {
        let size = |c: &Compared| c.ratio.map_or(f64::INFINITY, |r| r.ln().abs());
        size(x).total_cmp(&size(y))
    });
    let largest = largest.map_or(String::new(), |c| {
        format!(" Farthest apart: {} of {} ({}).", c.statistic, c.metric.replace('_', " "), ratio(c))
    });
    format!("{b} against {a}: {}{of}.{largest}", said.join(", "))
}

/// Sentence about a pair whose median and tail have opposite verdicts; `None` if they agree.
fn opposite(pair: &Pair, b: &Side) -> Option<String> {
    let decided = |c: &&Compared| matches!(c.verdict, VerdictWord::Faster | VerdictWord::Slower);
    pair.statistics.iter().filter(decided).find_map(|median| {
        let tail = pair
            .statistics
            .iter()
            .rev()
            .filter(decided)
            .find(|c| c.metric == median.metric && c.verdict != median.verdict && c.statistic.starts_with("p99"))?;
        (median.statistic == "p50").then(|| {
            let word = |c: &Compared| if c.verdict == VerdictWord::Faster { "faster" } else { "slower" };
            format!(
                "{}: the median and the tail have opposite verdicts: {} is {} at p50 ({}) and {} at {} ({}).",
                pair.name,
                b.name,
                word(median),
                ratio(median),
                word(tail),
                tail.statistic,
                ratio(tail)
            )
        })
    })
}

/// Sentences about the number of trials that a verdict needs. Conditions that need the same number share one sentence.
fn too_few(comparison: &Comparison) -> Vec<String> {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for (pair, lack) in comparison.pairs.iter().filter_map(|p| Some((p, lack(p)?))) {
        match said.iter_mut().find(|(other, _)| *other == lack) {
            Some((_, names)) => names.push(&pair.name),
            None => said.push((lack, vec![&pair.name])),
        }
    }
    let told = |(lack, names): (String, Vec<&str>)| match names.len() {
        1 => format!("{}: {lack}", names[0]),
        all if all == comparison.pairs.len() => format!("All {all} conditions: {lack}"),
        _ => format!("{}: {lack}", names.join("; ")),
    };
    said.into_iter().map(told).collect()
}

fn lack(pair: &Pair) -> Option<String> {
    let more = pair.statistics.iter().filter_map(|c| c.more_trials).max()?;
    let plural = if more == 1 { "" } else { "s" };
    let within = match pair.statistics.iter().any(|c| c.within_runs) {
        true => ", so the intervals describe only these runs",
        false => "",
    };
    let trials = pair.a.trials.len().min(pair.b.trials.len()) + more;
    Some(format!(
        "{}{within}. A verdict takes {more} more trial{plural} a side: `--set repeat={trials}`.",
        trials_text(pair)
    ))
}

/// Number of trials on each side of a pair of compared conditions, as text.
pub(crate) fn trials_text(pair: &Pair) -> String {
    let (a, b) = (pair.a.trials.len(), pair.b.trials.len());
    match (a, b) {
        (1, 1) => "1 trial a side".into(),
        (a, b) if a == b => format!("{a} trials a side"),
        _ => format!("{a} and {b} trials"),
    }
}
