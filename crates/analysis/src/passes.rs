//! Three streaming passes over the samples of one condition: histograms and counts, exact quantiles, dependence.
//!
//! Metrics form groups that need different columns. Each group of each condition is a separate task, so that two CPUs
//! share even a single long trial. The memory does not grow with the number of slots.

use crate::bins::Bins;
use crate::clocks::Clocks;
use crate::over_time::{Extent, Follow};
use crate::pass_error::PassError;
use crate::series::{Group, Series, is_between_ends};
use crate::slot_columns::Courses;
use crate::worst::{MessageKey, MessagePart, Worst};
use std::collections::BTreeMap;
use tailbound_document::OverTime;
use tailbound_model::{Metric, NO_TIME, Nanos, RangeSpec, Rate};
use tailbound_record::{Columns, Record, RecordError, SlotBatch};
use tailbound_stats::{
    BlockMedians, Distribution, Effective, Estimate, Exceedance, NotApplicable, PassesDiffer, Peaks, Quantile,
    SecondPass, TailEstimate, tail_estimate,
};

/// Number of the worst messages of a condition that are kept.
pub(crate) const WORST: usize = 50;

/// Numbers of slots of a condition, by the outcome of the slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub outcomes: [u64; 4],
    pub duplicates: u64,
    pub out_of_order: u64,
    pub warm_up: u64,
}

/// Result of the first pass over the samples of a condition, for one metric.
#[derive(Debug, Clone, Default)]
pub(crate) struct First {
    pub distribution: Distribution,
    /// Number of slots that were answered or sent, but have no value of the metric, because there is no row of samples
    /// of the pong or no previous wake-up.
    pub without: u64,
    /// Number of values of the metric above the latency limit of the study.
    pub above: u64,
}

/// Result of the first pass for one group of metrics.
#[derive(Debug, Clone)]
pub(crate) struct FirstPass {
    pub metrics: Vec<First>,
    pub tally: Tally,
    pub worst: Worst,
    /// Medians of the round trips in blocks of consecutive slots, by trial id.
    pub medians: BTreeMap<usize, BlockMedians>,
    /// The sender's measures M2, M3 and M4 over each trial; each column of the chart summarises consecutive slots. Only
    /// the group of the sender's own metrics has them, because it reads all necessary columns of the samples.
    pub courses: Courses,
    /// Number of slots of each trial, by trial id.
    pub extents: BTreeMap<usize, Extent>,
    /// Bins of equal width, if the study asks for bins of a metric of this group.
    pub bins: Option<Bins>,
    /// Time at which the last slot of each trial was due or its send call began, in ns, by trial id; only if the study
    /// chooses a time range.
    pub lasts: BTreeMap<usize, i64>,
}

/// Result of the second and third pass for one group of metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// For each metric of the group, one estimate per quantile.
    pub estimates: Vec<Vec<DependentEstimate>>,
    /// Tail estimate of the first metric of the group, if there are messages: the rarity (N of "one message in N"), and
    /// the estimate or the reason why there is no estimate.
    pub tail: Option<(u64, Result<TailEstimate, NotApplicable>)>,
    pub messages: Vec<MessagePart>,
    pub median: Option<MessagePart>,
    /// Values of the group's first metric over time, by trial id.
    pub over_time: BTreeMap<usize, OverTime>,
}

/// Estimate of a quantile, with an interval that takes the dependence between messages into account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DependentEstimate {
    pub estimate: Estimate,
    pub lag1: Option<f64>,
    pub worth: Effective,
}

/// Selects the rows of samples that one pass over a condition reads.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub record: &'a Record,
    pub trials: &'a [usize],
    /// Time range of each trial to which the reading of samples is limited, if there is a range.
    pub within: Option<RangeSpec>,
}

impl Rows<'_> {
    /// Time at which slot 0 of a trial was due, in ns.
    pub fn t0_ns(&self, trial: usize) -> Option<i64> {
        let trials = &self.record.manifest.trials;
        trials.iter().find(|t| t.id == trial)?.t0_ns.filter(|t0| *t0 != 0)
    }
}

fn rows_of(rows: Rows<'_>, columns: &Columns, each: &mut dyn FnMut(usize, u64, &SlotBatch)) -> Result<(), PassError> {
    let record = rows.record;
    for &trial in rows.trials {
        let mut row = 0;
        let mut columns = columns.clone();
        if let Some(RangeSpec { from, to }) = rows.within {
            // If the time of slot 0 is unknown, no message of the trial lies in the range.
            let at = |after: Nanos| rows.t0_ns(trial).map_or(i64::MAX, |t0| t0.saturating_add(after.0));
            columns = columns.within(at(from), at(to));
        }
        let scanned = record.scan(trial, &columns, &mut |batch| {
            each(trial, row, batch);
            row += batch.len() as u64;
        });
        scanned.map_err(|error| PassError { trial: Some(trial), error })?;
    }
    Ok(())
}

/// The first pass over the samples: counts the slots and values of all trials in `rows`.
pub(crate) fn first(rows: Rows<'_>, group: Group, clocks: &Clocks) -> Result<FirstPass, PassError> {
    let Rows { record, trials, within } = rows;
    let limit = record.manifest.plan.report.above;
    let mut lasts = BTreeMap::new();
    let metrics = group.metrics();
    let clocks_differ = clocks.differ(trials);
    let readings = group.readings(clocks_differ);
    let mut firsts = vec![First::default(); readings.len()];
    let mut tally = Tally::default();
    let mut worst = Worst::new(WORST);
    let mut courses = Courses::new(record.manifest.plan.trials.len());
    let mut medians: BTreeMap<usize, BlockMedians> = BTreeMap::new();
    let mut series = Series::default();
    let mut extents: BTreeMap<usize, Extent> = BTreeMap::new();
    let bins = record.manifest.plan.report.histogram.map(Bins::new);
    // A leg that is known only as a range cannot be counted in a bin.
    let read = group != Group::Network || !trials.is_empty();
    let told = |b: &Bins| read && metrics.contains(&b.source()) && !(clocks_differ && is_between_ends(b.source()));
    let mut bins = bins.filter(told);
    let counts = group == Group::Answer;
    let columns = group.columns(clocks_differ);
    let columns = if counts { columns.with_counts() } else { columns };
    rows_of(rows, &columns, &mut |trial, row, batch| {
        series.classify(batch);
        if within.is_some() {
            let times = batch.intended_ns.iter().zip(&batch.send_begin_ns);
            let last = times.rev().map(|(due, begun)| *due.max(begun)).find(|t| *t != NO_TIME);
            lasts.extend(last.map(|t| (trial, t)));
        }
        extents.entry(trial).or_default().add(batch);
        if counts {
            count(batch, &mut tally);
        } else if group == Group::Send {
            courses.offer(trial, batch);
        }
        for (i, (reading, first)) in readings.iter().zip(&mut firsts).enumerate() {
            series.load(batch, *reading, clocks.legs(trial));
            if i == 0 && group != Group::Network {
                worst.offer(trial, row, &series);
                if counts {
                    medians.entry(trial).or_default().push_all(series.values());
                }
            }
            if let Some(bins) = bins.as_mut().filter(|b| b.source() == reading.0) {
                bins.offer(&series);
            }
            first.without += series.without;
            if let Some(Nanos(limit)) = limit {
                let above = series.values().iter().filter(|v| **v > limit && **v != Series::BEYOND);
                first.above += above.count() as u64;
            }
            // Answered slots come in long runs, and slots without an answer are rare.
            for run in series.values().split(|v| *v == Series::BEYOND) {
                first.distribution.values(run);
            }
            (0..series.beyond).for_each(|_| first.distribution.beyond());
        }
    })?;
    Ok(FirstPass { metrics: firsts, tally, worst, medians, courses, extents, bins, lasts })
}

fn count(batch: &SlotBatch, tally: &mut Tally) {
    for i in 0..batch.len() {
        if batch.warm_up[i] {
            tally.warm_up += 1;
            continue;
        }
        tally.outcomes[batch.outcome[i] as usize & 3] += 1;
        tally.duplicates += u64::from(batch.duplicates[i]);
        tally.out_of_order += u64::from(batch.out_of_order[i]);
    }
}

/// The second and third pass over the samples: exact quantiles with their intervals, and the messages in `wanted`,
/// which must be sorted.
pub(crate) fn figures(
    rows: Rows<'_>,
    group: Group,
    first: &FirstPass,
    clocks: &Clocks,
    quantiles: &[Quantile],
    wanted: &[MessageKey],
) -> Result<Figures, PassError> {
    let Rows { record, trials, .. } = rows;
    let metrics = group.metrics();
    let clocks_differ = clocks.differ(trials);
    let readings = group.readings(clocks_differ);
    let mut plans: Vec<SecondPass> = first.metrics.iter().map(|f| f.distribution.plan(quantiles)).collect();
    let mut series = Series::default();
    let mut messages = Vec::new();
    let mut follow = follow(record, trials, metrics[0], first);
    rows_of(rows, &group.columns(clocks_differ).with_seq(), &mut |trial, row, batch| {
        let of_batch = |key: &&MessageKey| key.trial == trial && (row..row + batch.len() as u64).contains(&key.row);
        let legs = clocks.legs(trial);
        messages.extend(wanted.iter().filter(of_batch).map(|key| MessagePart::read(batch, *key, row, legs)));
        series.classify(batch);
        follow.offer(trial, row, batch);
        for (reading, plan) in readings.iter().zip(&mut plans) {
            if plan.needs_values() {
                series.load(batch, *reading, legs);
                series.values().iter().for_each(|v| plan.offer(*v));
            }
        }
    })?;
    let changed = |e| PassError { trial: None, error: changed(record, e) };
    let estimates: Vec<Vec<Estimate>> =
        plans.into_iter().map(|p| p.finish().map_err(changed)).collect::<Result<_, _>>()?;
    let distribution = &first.metrics[0].distribution;
    let unanswered = distribution.beyond_count();
    let mut peaks = (unanswered == 0 && group != Group::Network).then(|| Peaks::of(distribution));
    let (marks, median) = dependence(rows, group, clocks, &estimates, &mut peaks)?;
    let told = |((first, estimates), marks): ((&First, &Vec<Estimate>), &Vec<Exceedance>)| {
        let widened = |(estimate, mark): (&Estimate, &Exceedance)| {
            let worth = mark.effective();
            DependentEstimate { estimate: first.distribution.widened(*estimate, worth.slots), lag1: mark.lag1(), worth }
        };
        estimates.iter().zip(marks).map(widened).collect()
    };
    let estimates = first.metrics.iter().zip(&estimates).zip(&marks).map(told).collect();
    let tail = (distribution.scheduled() > 0 && group != Group::Network).then(|| {
        let one_in = record.manifest.plan.report.tail.map_or_else(|| rarity(distribution.scheduled()), |t| t.one_in);
        let none = || Err(NotApplicable::Unanswered { count: unanswered });
        (one_in, peaks.as_ref().map_or_else(none, |peaks| tail_estimate(peaks, one_in)))
    });
    Ok(Figures { estimates, tail, messages, median, over_time: follow.finish() })
}

fn follow(record: &Record, trials: &[usize], metric: Metric, first: &FirstPass) -> Follow {
    let plan = &record.manifest.plan;
    let rate = |id: &usize| Some(plan.conditions[plan.trials.iter().find(|t| t.id == *id)?.condition].spec.rate);
    let unscheduled = trials.first().and_then(rate).is_some_and(|r| r == Rate::Max);
    Follow::new(metric, unscheduled && metric == Metric::RoundTrip, &first.extents, plan.trials.len())
}

/// Error: the record changed between the first and the second pass.
pub(crate) fn changed(record: &Record, e: PassesDiffer) -> RecordError {
    RecordError::Damaged { path: record.dir().to_owned(), reason: format!("it changes while read: {e}") }
}

/// Rarity of the message for the tail estimate, if the study does not set it: a power of ten that is 3 to 30 times the
/// number of messages.
fn rarity(n: u64) -> u64 {
    10u64.saturating_pow((3 * n.max(1)).ilog10() + 1)
}

/// The third pass: the dependence between messages that exceed each quantile, the latest messages of the group's first
/// metric, and the first message whose round trip is the median.
fn dependence(
    rows: Rows<'_>,
    group: Group,
    clocks: &Clocks,
    estimates: &[Vec<Estimate>],
    peaks: &mut Option<Peaks>,
) -> Result<(Vec<Vec<Exceedance>>, Option<MessagePart>), PassError> {
    let clocks_differ = clocks.differ(rows.trials);
    let readings = group.readings(clocks_differ);
    let mut marks: Vec<Vec<Exceedance>> = estimates.iter().map(|e| vec![Exceedance::new(); e.len()]).collect();
    let half = |e: &&Estimate| e.q() == Quantile::P50;
    let median_ns = estimates[0].iter().find(half).and_then(Estimate::value_ns).filter(|_| group == Group::Answer);
    let mut median = None;
    let mut series = Series::default();
    let mut before = None;
    rows_of(rows, &group.columns(clocks_differ).with_seq(), &mut |trial, row, batch| {
        let legs = clocks.legs(trial);
        if before.replace(trial).is_some_and(|t| t != trial) {
            marks.iter_mut().flatten().for_each(Exceedance::end_sequence);
            peaks.iter_mut().for_each(Peaks::end_sequence);
        }
        series.classify(batch);
        for (i, (reading, (estimates, marks))) in readings.iter().zip(estimates.iter().zip(&mut marks)).enumerate() {
            if i > 0 && estimates.iter().all(|e| e.value_ns().is_none()) {
                continue;
            }
            series.load(batch, *reading, legs);
            if let Some(peaks) = peaks.as_mut().filter(|_| i == 0) {
                peaks.push_all(series.values());
            }
            if i == 0 && median.is_none() {
                let found = median_ns.and_then(|m| series.position(m));
                median =
                    found.map(|at| MessagePart::read(batch, MessageKey { trial, row: row + at as u64 }, row, legs));
            }
            for (estimate, mark) in estimates.iter().zip(marks) {
                if let Some(q) = estimate.value_ns() {
                    mark.push_all(series.values(), q);
                }
            }
        }
    })?;
    Ok((marks, median))
}

/// The group to which a metric belongs, and the index of the metric among the metrics of the group in
/// [`FirstPass::metrics`].
pub(crate) fn place(metric: Metric) -> Option<(Group, usize)> {
    Group::ALL.into_iter().find_map(|g| g.metrics().iter().position(|m| *m == metric).map(|at| (g, at)))
}
