//! Computes the table of a comparison: reads the trials, judges the logarithms of their statistics, and puts the
//! verdicts into the document.

use crate::clocks::Clocks;
use crate::compare::options::{CompareError, CompareOptions};
use crate::compare::statistics::{LATENCIES, Of, Wanted};
use crate::compare::trials::{OfTrial, TrialRead};
use crate::compare::{statistics, trials};
use crate::{parallel, sample_faults};
use tailbound_document::number::count;
use tailbound_document::{
    COMPARISON_MAJOR, COMPARISON_MINOR, Compared, Comparison, ComparisonOf, FormatVersion, NotCompared, OneSide, Pair,
    ReportStatus, Side, VerdictWord,
};
use tailbound_model::{Condition, Flow};
use tailbound_record::{Record, TrialStatus};
use tailbound_stats::compare::{Cell, Chunks, EXACT_TRIALS, Group, Judged, Verdict, judge, within_runs};

/// A pair of conditions to be compared: the condition of side a (the baseline) and the condition of side b.
pub(crate) struct PairOf<'r> {
    pub name: String,
    pub a: (&'r Record, &'r Condition),
    pub b: (&'r Record, &'r Condition),
}

/// Statistics of the condition on one side (a or b) of a comparison, read from its trials.
struct SideRead {
    side: OneSide,
    trials: Vec<TrialRead>,
}

pub(crate) fn comparison(
    of: ComparisonOf,
    a: Side,
    b: Side,
    pairs: Vec<PairOf<'_>>,
    not_compared: Vec<NotCompared>,
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    let sides: Vec<(&Record, &Condition)> = pairs.iter().flat_map(|p| [p.a, p.b]).collect();
    let read = parallel::all(&sides, |&(record, condition)| read(record, condition, options))?;
    let read: Vec<(&SideRead, &SideRead)> = read.chunks_exact(2).map(|p| (&p[0], &p[1])).collect();
    // Cells that cannot be judged (too few messages in a trial) are in no group.
    let wanted: Vec<Vec<Wanted>> = pairs.iter().map(|p| statistics::of(p.a.1, options)).collect();
    let cells: Vec<Vec<Result<Cell, String>>> =
        read.iter().zip(&wanted).map(|((a, b), wanted)| cells(a, b, wanted)).collect();
    let group = |of_pair: &Vec<Result<Cell, String>>| Group {
        cells: of_pair.iter().filter_map(|c| c.as_ref().ok().cloned()).collect(),
    };
    let groups: Vec<Group> = cells.iter().map(group).collect();
    let judged = judge(&groups, options.margin);
    let mut all: Vec<Pair> = Vec::new();
    for ((((pair, (side_a, side_b)), cells), wanted), judged) in
        pairs.iter().zip(&read).zip(&cells).zip(&wanted).zip(judged)
    {
        let mut judged = judged.into_iter();
        let within = within(side_a, side_b, wanted);
        let statistics = wanted
            .iter()
            .zip(cells)
            .zip(within)
            .map(|((wanted, cell), within)| match cell {
                Ok(cell) => {
                    let judged = judged.next().expect("`judge` returns one result for each cell that could be judged");
                    compared(*wanted, cell, judged, within, options)
                }
                Err(why) => not_told(*wanted, why, [side_a, side_b].map(|s| value(s, *wanted))),
            })
            .collect();
        let same = |(f, l): &(&String, &String)| pair.b.1.levels.get(*f) == Some(l);
        all.push(Pair {
            name: pair.name.clone(),
            levels: pair.a.1.levels.iter().filter(same).map(|(f, l)| (f.clone(), l.clone())).collect(),
            a: side_a.side.clone(),
            b: side_b.side.clone(),
            statistics,
        });
    }
    all.sort_by(|x, y| effect(y).total_cmp(&effect(x)));
    let mut comparison = Comparison {
        format: FormatVersion { major: COMPARISON_MAJOR, minor: COMPARISON_MINOR },
        tailbound: env!("CARGO_PKG_VERSION").into(),
        of,
        a,
        b,
        caution: None,
        changed: Vec::new(),
        not_compared,
        margin: options.margin,
        findings: Vec::new(),
        pairs: all,
    };
    // A faulty trial is detected only when it is read.
    let left = |of: fn(&Pair) -> &OneSide| comparison.pairs.iter().any(|p| !of(p).left_out.is_empty());
    let (left_a, left_b) = (left(|p| &p.a), left(|p| &p.b));
    for (side, left) in [(&mut comparison.a, left_a), (&mut comparison.b, left_b)] {
        if left && side.status == ReportStatus::Valid {
            side.status = ReportStatus::Invalid;
        }
    }
    Ok(comparison)
}

fn read(record: &Record, condition: &Condition, options: &CompareOptions) -> Result<SideRead, CompareError> {
    let manifest = &record.manifest;
    let mut ids: Vec<usize> =
        manifest.plan.trials.iter().filter(|t| t.condition == condition.id).map(|t| t.id).collect();
    // A trial that was kept for its worst incident is not a fair sample.
    ids.retain(|id| !manifest.is_kept_for_incidents(*id));
    ids.sort_unstable();
    let faulty = sample_faults::faults_of(record, &ids);
    let answers = condition.spec.measure.flow().is_none_or(Flow::has_answers);
    let has_slots = |id: &usize| answers && record.has_slots(*id);
    let sound: Vec<usize> = ids.iter().copied().filter(|id| !faulty.contains_key(id) && has_slots(id)).collect();
    let clocks = Clocks::of(record, &sound).map_err(|e| e.error)?;
    let valid = |id: &usize| {
        !faulty.contains_key(id)
            && !clocks.parted(*id)
            && manifest.trials.iter().any(|t| t.id == *id && t.status == TrialStatus::Valid)
    };
    let (used, left_out): (Vec<usize>, Vec<usize>) = ids.into_iter().partition(valid);
    let trials =
        used.iter().map(|id| trials::read(record, condition, *id, &options.metrics)).collect::<Result<Vec<_>, _>>()?;
    let sum = |of: fn(&TrialRead) -> u64| trials.iter().map(of).sum();
    let side = OneSide {
        condition: condition.id,
        scheduled: sum(|t| t.tally.outcomes.iter().sum()),
        lost: sum(|t| t.tally.outcomes[2]),
        not_sent: sum(|t| t.tally.outcomes[3]),
        trials: used,
        left_out,
    };
    Ok(SideRead { side, trials })
}

/// The logarithms of each statistic on both sides, or the reason why the statistic cannot be judged.
fn cells(a: &SideRead, b: &SideRead, wanted: &[Wanted]) -> Vec<Result<Cell, String>> {
    let cell = |wanted: &Wanted| {
        let side = |of: &SideRead| -> Result<Vec<f64>, String> {
            of.trials.iter().map(|t| log(t.value(*wanted), wanted.metric)).collect()
        };
        Ok(Cell { a: side(a)?, b: side(b)? })
    };
    wanted.iter().map(cell).collect()
}

fn log(of: OfTrial, metric: &str) -> Result<f64, String> {
    match of {
        OfTrial::Value(v) if v > 0.0 => Ok(v.ln()),
        OfTrial::Value(_) => Err(format!("{metric} is not above zero in every trial, so there is no ratio")),
        OfTrial::Beyond => Ok(f64::INFINITY),
        OfTrial::Needs(needs, there) => Err(format!(
            "the statistic needs {} messages in every trial; there are about {}",
            count(needs),
            count(there)
        )),
        OfTrial::Nothing => Err(format!("a trial has no {metric}")),
    }
}

/// Intervals that describe only the compared runs, used if there are too few trials for intervals over trials. Only
/// statistics that are computed from rows of samples have such intervals.
fn within(a: &SideRead, b: &SideRead, wanted: &[Wanted]) -> Vec<Option<(f64, f64)>> {
    let few = a.trials.len().min(b.trials.len()) < EXACT_TRIALS;
    let statistics = LATENCIES.map(|(_, of)| of);
    let of_metric = |m: usize| {
        let chunks = |s: &SideRead| {
            s.trials.iter().filter_map(|t| Some(t.metrics.get(m)?.chunks.clone())).collect::<Vec<Chunks>>()
        };
        within_runs(&chunks(a), &chunks(b), &statistics)
    };
    let metrics = wanted.iter().filter(|_| few).filter_map(|w| match w.of {
        Of::Rows(metric, _) => Some(metric + 1),
        _ => None,
    });
    let intervals: Vec<Vec<_>> = (0..metrics.max().unwrap_or(0)).map(of_metric).collect();
    let one = |w: &Wanted| match w.of {
        Of::Rows(metric, statistic) if few => intervals[metric][statistics.iter().position(|s| *s == statistic)?],
        _ => None,
    };
    wanted.iter().map(one).collect()
}

/// Geometric mean of a statistic over the trials of one side (a or b) of a comparison.
fn value(side: &SideRead, wanted: Wanted) -> Option<f64> {
    let log = |t: &TrialRead| match t.value(wanted) {
        OfTrial::Value(v) if v > 0.0 => Some(v.ln()),
        _ => None,
    };
    mean(&side.trials.iter().map(log).collect::<Option<Vec<f64>>>()?)
}

fn mean(logs: &[f64]) -> Option<f64> {
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (!logs.is_empty() && mean.is_finite()).then(|| mean.exp())
}

fn not_told(wanted: Wanted, why: &str, [a, b]: [Option<f64>; 2]) -> Compared {
    Compared {
        metric: wanted.metric.into(),
        statistic: wanted.name.into(),
        unit: wanted.unit.into(),
        a,
        b,
        ratio: None,
        interval: None,
        within_runs: false,
        verdict: VerdictWord::NotEnoughData,
        within_margin: false,
        more_trials: None,
        trials_for_margin: None,
        why: Some(why.to_owned()),
    }
}

fn compared(
    wanted: Wanted,
    cell: &Cell,
    judged: Judged,
    within: Option<(f64, f64)>,
    options: &CompareOptions,
) -> Compared {
    let better =
        |higher: bool| if higher == wanted.higher_is_better { VerdictWord::Faster } else { VerdictWord::Slower };
    let (mut more_trials, mut trials_margin) = (None, None);
    let verdict = match judged.verdict {
        Verdict::Lower => better(false),
        Verdict::Higher => better(true),
        Verdict::Equal => VerdictWord::Equal,
        Verdict::NoDifference { trials_for_margin } => {
            trials_margin = trials_for_margin;
            VerdictWord::NoDifferenceFound
        }
        Verdict::NotEnough { more_trials: more } => {
            more_trials = Some(more);
            VerdictWord::NotEnoughData
        }
    };
    let within = within.filter(|_| verdict == VerdictWord::NotEnoughData);
    let lost = |side: &[f64]| side.iter().any(|v| !v.is_finite());
    let whose = match (lost(&cell.a), lost(&cell.b)) {
        (false, false) => None,
        (true, false) => Some("A"),
        (false, true) => Some("B"),
        (true, true) => Some("both sides"),
    };
    Compared {
        metric: wanted.metric.into(),
        statistic: wanted.name.into(),
        unit: wanted.unit.into(),
        a: mean(&cell.a),
        b: mean(&cell.b),
        ratio: judged.log_ratio.map(f64::exp),
        interval: judged.interval.or(within).map(|(low, high)| [low.exp(), high.exp()]),
        within_runs: judged.interval.is_none() && within.is_some(),
        verdict,
        within_margin: options.margin.is_some_and(|m| judged.within(m)),
        more_trials,
        trials_for_margin: trials_margin,
        why: whose.map(|w| {
            format!(
                "in trials of {w}, this statistic lies among the messages that were not answered: there is no ratio, \
                and the verdict follows from the ranks"
            )
        }),
    }
}

/// Size of the difference between the two sides of a pair of conditions: the sort key for the table of pairs. A
/// difference with the verdict better or worse is larger than every difference without such a verdict.
pub(crate) fn effect(pair: &Pair) -> f64 {
    let of = |c: &Compared| {
        let size = c.ratio.map_or(0.0, |r| r.ln().abs());
        match c.verdict {
            VerdictWord::Faster | VerdictWord::Slower => 1e3 + size,
            _ => size,
        }
    };
    pair.statistics.iter().map(of).fold(0.0, f64::max)
}
