//! Computes the document of a report from a record.

use crate::bins::Bins;
use crate::clocks::Clocks;
use crate::pass_error::PassError;
use crate::passes::{Figures, FirstPass, Rows, Tally};
use crate::sample_faults::SampleFaults;
use crate::series::Group;
use crate::worst::MessageKey;
use crate::{
    circumstances, clock_history, flow, gates, launch, metrics, names, next_steps, nodes, over_time, overhead,
    parallel, passes, path_proof, patterns, published, range, sample_faults, side_by_side, stages, tools, warm_up, why,
};
use std::collections::BTreeMap;
use tailbound_document::{
    ConditionReport, ConditionStatus, Counts, Course, FORMAT_MAJOR, FORMAT_MINOR, FormatVersion, MetricReport,
    PatternReport, Report, ReportStatus, View,
};
use tailbound_model::{ByteSize, Condition, Flow, Metric, Plan, RangeSpec, Rate, Severity, Warning};
use tailbound_record::{Record, RecordError, Status, TrialStatus};
use tailbound_stats::Quantile;

/// Quantiles of the report if the study names no quantiles.
const USUAL: [Quantile; 5] = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P99_9, Quantile::P99_99];

/// Trials of a condition, and the trials from which its figures are computed.
pub(crate) struct Chosen {
    id: usize,
    all: Vec<usize>,
    pub used: Vec<usize>,
    /// Older trials, whose incidents are listed, and which no figure contains.
    kept: Vec<usize>,
    status: ConditionStatus,
}

/// Computes the report document of a record.
///
/// The samples are read three times, three more times if the study chooses a time range, and twice more if the study
/// compares levels with each other. As many threads as there are CPUs read them. The memory does not grow with the
/// number of samples.
///
/// If the samples of a trial are missing, damaged or from another trial, the trial is left out, and a warning makes the
/// report invalid.
///
/// # Errors
/// The record changes while it is being read.
pub fn analyse(record: &Record) -> Result<Report, RecordError> {
    analyse_with(record, std::iter::empty())
}

/// Computes the report document of a record, with the quantiles of the study and further quantiles.
pub(crate) fn analyse_with(record: &Record, more: impl Iterator<Item = Quantile>) -> Result<Report, RecordError> {
    let manifest = &record.manifest;
    let plan = &manifest.plan;
    let quantiles = quantiles(plan, more);
    let mut faults = sample_faults::faults(record);
    let Samples { clocks, chosen, whole: Passes { firsts, wanted, mut figures }, in_range, incidents } = loop {
        match read(record, &faults, &quantiles) {
            Ok(samples) => break samples,
            // If a trial shows a fault only while it is read, it is left out, and everything is read again without it.
            Err(PassError { trial: Some(trial), error }) if !faults.contains_key(&trial) => {
                faults.insert(trial, error);
            }
            Err(e) => return Err(e.error),
        }
    };

    let is_left_out = |trial| faults.contains_key(&trial);
    let (clock_history, of_history) = clock_history::of(record, &is_left_out).map_err(|e| e.error)?;
    let names = names::names(plan);
    let mut warnings: Vec<Warning> = manifest.warnings.clone();
    warnings.extend(sample_faults::missing_trials(manifest));
    warnings.extend(faults.iter().map(|(trial, fault)| sample_faults::warning(record, *trial, fault)));
    warnings.extend(clocks.warnings());
    warnings.extend(of_history);
    let mut conditions = Vec::new();
    for (id, condition) in plan.conditions.iter().enumerate() {
        let own = Group::COUNT * id..Group::COUNT * (id + 1);
        let mut report = report(
            record,
            condition,
            &names[id],
            &chosen[id],
            &firsts[own.clone()],
            &figures[own.clone()],
            &wanted[id],
        );
        report.flow = flow::of(record, condition, &chosen[id].used, &quantiles)?;
        report.gates = gates::of(record, condition, &chosen[id].used, &report.worst)?;
        report.launch = launch::of(record, condition, &chosen[id].used)?;
        report.stages = stages::of(record, condition, (&chosen[id].used, &clocks))?;
        let exact = |m| report.metric(m).is_some();
        let used = !chosen[id].used.is_empty();
        let limit = plan.report.above.filter(|_| used);
        report.above = limit.map(|limit| range::above(limit, &firsts[own.clone()], &exact));
        if let Some((range, passes)) = plan.report.range.zip(in_range.as_ref()).filter(|_| used) {
            let (firsts, figures) = (&passes.firsts[own.clone()], &passes.figures[own.clone()]);
            report.range = Some(range::of((condition, range), firsts, figures, report.counts.scheduled, limit));
            let ends = ends_ns(record, condition, &firsts[Group::Send as usize]);
            warnings.extend(range::beyond(&report, range, &ends));
        }
        warnings.extend(flow::without_latency(record, &report));
        warnings.extend(without_bins(plan, &report));
        let without = metrics::without_pong_row(&firsts[own.start]);
        if without > 0 {
            warnings.push(missing_rows(&report.name, without));
        }
        conditions.push(report);
    }
    let (facts, unreadable): (Vec<_>, Vec<_>) = record.hosts().into_iter().partition(Result::is_ok);
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    let unreadable = unreadable.iter().filter_map(|f| f.as_ref().err());
    warnings.extend(unreadable.map(|e| sample_faults::unreadable(record, "facts_unreadable", e)));
    let threads = circumstances::threads(record, &mut warnings);
    let mut trials =
        circumstances::trials(manifest, &|id| faults.contains_key(&id) || clocks.parted(id), courses(plan, &firsts));
    for groups in figures.chunks_mut(Group::COUNT) {
        let [answers, sends] =
            [Group::Answer, Group::Send].map(|group| std::mem::take(&mut groups[group as usize].over_time));
        for (id, over_time) in over_time::join(answers, sends) {
            trials.iter_mut().filter(|t| t.id == id).for_each(|t| t.over_time = Some(over_time.clone()));
        }
    }
    let against = overhead::of(record, &conditions, &warnings);
    let side_by_side = side_by_side::of(record, &conditions, &quantiles)?;
    let mut report = Report {
        format: FormatVersion { major: FORMAT_MAJOR, minor: FORMAT_MINOR },
        tailbound: env!("CARGO_PKG_VERSION").into(),
        study: plan.study.clone(),
        question: plan.question.clone(),
        status: match manifest.status {
            Status::Incomplete => ReportStatus::Incomplete,
            Status::Valid if warnings.iter().all(|w| w.severity != Severity::Invalid) => ReportStatus::Valid,
            Status::Valid | Status::Invalid => ReportStatus::Invalid,
        },
        functional_only: manifest.functional_only.clone(),
        findings: Vec::new(),
        warnings,
        view: View {
            title: plan.report.title.clone().unwrap_or_else(|| plan.question.clone()),
            x: plan.report.x.clone().unwrap_or_else(|| "payload".into()),
            quantiles: quantiles.iter().map(|q| q.as_f64()).collect(),
            tail_asked: plan.report.tail.is_some(),
        },
        published: Vec::new(),
        against,
        conditions,
        trials,
        run: circumstances::run(manifest),
        facts: facts.iter().cloned().map(circumstances::host).collect(),
        threads,
        loads: circumstances::loads(manifest),
        host_settings: manifest.host_settings.clone(),
        path: circumstances::paths(manifest),
        nodes: nodes::of(manifest),
        clocks: circumstances::clocks(manifest, &clocks),
        clock_history,
        drivers: manifest.drivers.clone(),
        tools: tools::of(manifest, &names),
        side_by_side,
        since: None,
        limits: Vec::new(),
        budget: None,
    };
    why::explain(record, &mut report, &incidents);
    next_steps::add(&mut report.conditions, manifest, &facts);
    for (id, (pattern, evidence)) in patterns::of_trials(record, &report) {
        if let Some(trial) = report.trials.iter_mut().find(|t| t.id == id) {
            trial.pattern = Some(PatternReport { name: pattern.words().into(), evidence });
        }
    }
    report.published = published::of(plan, &report);
    Ok(report)
}

/// For each trial, by trial id: the sender's measures M2, M3 and M4 over the trial; each column of the chart summarises
/// consecutive slots.
fn courses(plan: &Plan, firsts: &[FirstPass]) -> BTreeMap<usize, Course> {
    let of_sender = firsts.iter().skip(Group::Send as usize).step_by(Group::COUNT).zip(&plan.conditions);
    let courses = of_sender.flat_map(|(first, condition)| {
        let period_ns = match condition.spec.rate {
            Rate::Period(period) => Some(period.0),
            Rate::Max => None,
        };
        let with_schedule = move |(id, course): (&usize, &Course)| {
            let scheduled_ns = period_ns.map(|p| p * course.slots as i64);
            (*id, Course { scheduled_ns, ..course.clone() })
        };
        first.courses.of.iter().map(with_schedule)
    });
    courses.collect()
}

/// Time from the moment at which slot 0 was due to the end of each trial, in ns, by trial id.
fn ends_ns(record: &Record, condition: &Condition, sends: &FirstPass) -> BTreeMap<usize, i64> {
    // The last slot lasts for one period. With stop-and-wait, it lasts for the timeout.
    let spec = &condition.spec;
    let slot_ns = spec.rate.period().map_or(spec.measure.timeout().0, |period| period.0);
    let rows = Rows { record, trials: &[], within: None };
    let end = |(id, last): (&usize, &i64)| Some((*id, last.saturating_sub(rows.t0_ns(*id)?).saturating_add(slot_ns)));
    sends.lasts.iter().filter_map(end).collect()
}

/// Results of the passes in which all samples of a record are read.
struct Samples {
    clocks: Clocks,
    chosen: Vec<Chosen>,
    whole: Passes,
    /// Results of the passes that read only the messages of the chosen time range, if the study chooses a time range.
    in_range: Option<Passes>,
    incidents: Vec<why::TrialFacts>,
}

struct Passes {
    firsts: Vec<FirstPass>,
    wanted: Vec<Vec<MessageKey>>,
    figures: Vec<Figures>,
}

fn read(record: &Record, faults: &SampleFaults, quantiles: &[Quantile]) -> Result<Samples, PassError> {
    let conditions = record.manifest.plan.conditions.iter().enumerate();
    let clocks = clocks(record, faults)?;
    let chosen: Vec<Chosen> = conditions.map(|(id, c)| choose(record, faults, &clocks, id, c)).collect();
    // Rows without answers have no round trip.
    let answered = |c: usize| record.manifest.plan.conditions[c].spec.measure.flow().is_none_or(Flow::has_answers);
    let used = |c: usize| if answered(c) { chosen[c].used.as_slice() } else { &[] };
    let with_incidents =
        |c: usize| used(c).iter().chain(if answered(c) { chosen[c].kept.as_slice() } else { &[] }).copied();
    let stamped: Vec<bool> = (0..chosen.len()).map(|c| kernel_stamps(record, used(c))).collect::<Result<_, _>>()?;
    let rows_of = |c: usize, group| if group == Group::Network && !stamped[c] { &[] } else { used(c) };
    let tasks: Vec<(usize, Group)> = (0..chosen.len()).flat_map(|c| Group::ALL.map(|group| (c, group))).collect();
    let read = |within: Option<RangeSpec>| -> Result<Passes, PassError> {
        let rows = |c, group| Rows { record, trials: rows_of(c, group), within };
        let firsts = parallel::all(&tasks, |&(c, group)| passes::first(rows(c, group), group, &clocks))?;
        let wanted: Vec<Vec<MessageKey>> = firsts.chunks(Group::COUNT).map(worst_of).collect();
        let numbered: Vec<usize> = (0..tasks.len()).collect();
        let figures = parallel::all(&numbered, |&task| {
            let (c, group) = tasks[task];
            passes::figures(rows(c, group), group, &firsts[task], &clocks, quantiles, &wanted[c])
        })?;
        Ok(Passes { firsts, wanted, figures })
    };
    let with_answers =
        (0..chosen.len()).filter(|c| !record.manifest.plan.conditions[*c].spec.has_tool()).flat_map(with_incidents);
    let with_answers: Vec<usize> = with_answers.collect();
    // The search for incidents reads a long trial three times on one thread, which the passes leave idle on other CPUs.
    let (incidents, passes) = parallel::both(
        || why::facts(record, &with_answers, &clocks),
        || -> Result<_, PassError> {
            let whole = read(None)?;
            Ok((whole, record.manifest.plan.report.range.map(|range| read(Some(range))).transpose()?))
        },
    );
    let (whole, in_range) = passes?;
    Ok(Samples { clocks, chosen, whole, in_range, incidents: incidents? })
}

/// True if at least one row of samples of these trials has a receive timestamp of the kernel.
fn kernel_stamps(record: &Record, trials: &[usize]) -> Result<bool, PassError> {
    for &trial in trials {
        if record.has_kernel_stamps(trial).map_err(|error| PassError { trial: Some(trial), error })? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Computes, for all trials with answers whose ends have different clocks, the smallest and largest possible difference
/// between the two clocks, which follows from the times of the messages.
pub(crate) fn clocks(record: &Record, faults: &SampleFaults) -> Result<Clocks, PassError> {
    let manifest = &record.manifest;
    let answers = |c: &usize| manifest.plan.conditions[*c].spec.measure.flow().is_none_or(Flow::has_answers);
    let planned = manifest.plan.trials.iter().filter(|t| answers(&t.condition) && !faults.contains_key(&t.id));
    let there = |id: &usize| record.has_slots(*id);
    Clocks::of(record, &planned.map(|t| t.id).filter(there).collect::<Vec<_>>())
}

fn quantiles(plan: &Plan, more: impl Iterator<Item = Quantile>) -> Vec<Quantile> {
    let mut quantiles: Vec<Quantile> = plan.report.quantiles.iter().filter_map(|q| q.parse().ok()).collect();
    if quantiles.is_empty() {
        quantiles = USUAL.to_vec();
    }
    // Half a round trip is given for the median only, and findings begin with the median.
    quantiles.push(Quantile::P50);
    quantiles.extend(published::quantiles(plan));
    quantiles.extend(more);
    quantiles.sort_unstable();
    quantiles.dedup();
    quantiles
}

pub(crate) fn choose(
    record: &Record,
    faults: &SampleFaults,
    clocks: &Clocks,
    id: usize,
    condition: &Condition,
) -> Chosen {
    let manifest = &record.manifest;
    let mut all: Vec<usize> = manifest.plan.trials.iter().filter(|t| t.condition == id).map(|t| t.id).collect();
    all.sort_unstable();
    let (kept, all): (Vec<usize>, Vec<usize>) = all.into_iter().partition(|id| manifest.is_kept_for_incidents(*id));
    let with = |wanted: &[TrialStatus]| -> Vec<usize> {
        let is = |id: &&usize| manifest.trials.iter().any(|t| t.id == **id && wanted.contains(&t.status));
        all.iter().filter(is).copied().collect()
    };
    let whole = |ids: Vec<usize>| -> Vec<usize> { ids.into_iter().filter(|id| !faults.contains_key(id)).collect() };
    let mut used = whole(with(&[TrialStatus::Valid, TrialStatus::Running]));
    used.retain(|id| !clocks.parted(*id));
    let ended = with(&[TrialStatus::Valid, TrialStatus::Invalid]).len() == all.len();
    let mut invalid = whole(with(&[TrialStatus::Invalid]));
    invalid.extend(whole(with(&[TrialStatus::Valid])).into_iter().filter(|id| clocks.parted(*id)));
    invalid.sort_unstable();
    let none_valid = used.is_empty() && all.iter().any(|id| faults.contains_key(id) || invalid.contains(id));
    let status = if condition.not_possible.is_some() {
        ConditionStatus::NotPossible
    } else if none_valid {
        used = invalid;
        ConditionStatus::Invalid
    } else if ended {
        ConditionStatus::Valid
    } else {
        ConditionStatus::Incomplete
    };
    let mut kept = whole(kept);
    kept.retain(|id| !clocks.parted(*id));
    Chosen { id, all, used, kept, status }
}

/// Finds the messages with the longest time `from_intended`. Stop-and-wait has no `from_intended`, so there the
/// messages with the longest round trips are found.
fn worst_of(groups: &[FirstPass]) -> Vec<MessageKey> {
    let [round_trip, from_intended] = [Group::Answer, Group::Send].map(|group| groups[group as usize].worst.keys());
    if from_intended.is_empty() { round_trip } else { from_intended }
}

fn report(
    record: &Record,
    condition: &Condition,
    name: &str,
    chosen: &Chosen,
    firsts: &[FirstPass],
    figures: &[Figures],
    worst: &[MessageKey],
) -> ConditionReport {
    let tally = firsts[0].tally;
    let trials = &record.manifest.trials;
    let finding = |id: &usize| trials.iter().find(|t| t.id == *id).and_then(|t| t.finding.clone());
    let mut given: BTreeMap<Metric, MetricReport> = metrics::metrics(condition, firsts, figures);
    let median = figures[0].median.as_ref().map(|part| part.key);
    let mut parts: Vec<_> = figures.iter().flat_map(|f| &f.messages).collect();
    parts.extend(figures[0].median.as_ref());
    let message = |key: &MessageKey| metrics::message(*key, &parts);
    let mtu = |id: &usize| {
        let path = trials.iter().find(|t| t.id == *id)?.path.as_ref()?;
        path.ends.iter().map(|e| e.mtu).filter(|m| *m > 0).min()
    };
    let ByteSize(payload_bytes) = condition.spec.payload;
    let period_ns = match condition.spec.rate {
        Rate::Period(period) => Some(period.0),
        Rate::Max => None,
    };
    ConditionReport {
        id: chosen.id,
        name: name.to_owned(),
        levels: condition.levels.clone(),
        status: chosen.status,
        not_possible: condition.not_possible.clone(),
        tool: condition.spec.drivers().find(|d| d.tool.is_some()).map(|d| d.name.clone()),
        payload_bytes,
        period_ns,
        mtu_bytes: chosen.all.iter().filter_map(mtu).min(),
        trials: chosen.all.len(),
        trial_ids: [chosen.kept.as_slice(), &chosen.all].concat(),
        used_trial_ids: chosen.used.clone(),
        finding: chosen.all.iter().find_map(finding),
        path_proof: path_proof::of(record, &chosen.used, &condition.spec),
        counts: counts(&tally),
        round_trip: given.remove(&Metric::RoundTrip),
        half_round_trip: given.remove(&Metric::HalfRoundTrip),
        out: given.remove(&Metric::Out),
        out_range: metrics::range(Metric::Out, firsts, figures),
        out_network: given.remove(&Metric::OutNetwork),
        out_network_range: metrics::range(Metric::OutNetwork, firsts, figures),
        turnaround: given.remove(&Metric::Turnaround),
        back: given.remove(&Metric::Back),
        back_range: metrics::range(Metric::Back, firsts, figures),
        back_network: given.remove(&Metric::BackNetwork),
        back_network_range: metrics::range(Metric::BackNetwork, firsts, figures),
        from_intended: given.remove(&Metric::FromIntended),
        send_lateness: given.remove(&Metric::SendLateness),
        send_duration: given.remove(&Metric::SendDuration),
        wake_to_sent: given.remove(&Metric::WakeToSent),
        wake_period: given.remove(&Metric::WakePeriod),
        warm_up: warm_up::of(&firsts[0].medians),
        bins: firsts.iter().find_map(|f| f.bins.clone()).map(Bins::report),
        median_message: median.as_ref().and_then(message),
        worst: worst.iter().filter_map(message).collect(),
        range: None,
        above: None,
        late_limits: Vec::new(),
        incidents: Vec::new(),
        incident_totals: None,
        causes: Vec::new(),
        usual: None,
        without_cause: Vec::new(),
        next_steps: Vec::new(),
        recordings: Vec::new(),
        gates: Vec::new(),
        launch: None,
        stages: Vec::new(),
        hold_and_release: Vec::new(),
        movements: Vec::new(),
        losses: Vec::new(),
        misses: None,
        flow: None,
    }
}

fn counts(tally: &Tally) -> Counts {
    let [answered, after_timeout, lost, not_sent] = tally.outcomes;
    Counts {
        scheduled: tally.outcomes.iter().sum(),
        answered,
        after_timeout,
        lost,
        not_sent,
        duplicate: tally.duplicates,
        out_of_order: tally.out_of_order,
        warm_up: tally.warm_up,
    }
}

/// Warning for a study that asks for bins of a leg, if the leg is known only as a range or cannot be computed without
/// kernel timestamps.
fn without_bins(plan: &Plan, report: &ConditionReport) -> Option<Warning> {
    let metric = plan.report.histogram.as_ref()?.metric;
    let network = matches!(metric, Metric::OutNetwork | Metric::BackNetwork);
    if network && report.metric(metric).or(report.range(metric).map(|r| &r.low)).is_none() {
        let answered = report.counts.answered + report.counts.after_timeout;
        let text =
            format!("{}: no bins of {}: no message has a receive stamp of the kernel", report.name, metric.key());
        let remedy = "Measure with a driver that has kernel timestamps: `udp` with `timestamps: on`.";
        return (answered > 0).then(|| Warning::new("bins_without_stamps", Severity::Warning, text, remedy));
    }
    report.range(metric)?;
    let text = format!(
        "{}: no bins of {}: the ends have different clocks, so that each message has a range and no single bin",
        report.name,
        metric.key()
    );
    Some(Warning::new("bins_between_clocks", Severity::Warning, text, "Request bins of `round_trip` in the study."))
}

fn missing_rows(name: &str, without: u64) -> Warning {
    let count = tailbound_document::number::count(without);
    let text = format!("{name}: {count} answered messages have no row of the pong; the legs leave these messages out");
    Warning::new("pong_rows_missing", Severity::Warning, text, "Run the condition again.")
}
