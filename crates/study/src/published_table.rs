//! Checks and resolves a table of published numbers, with the figures of the study that stand beside them.

use crate::error::{Fault, advice};
use crate::format::{ChosenKeys, ColumnKeys, ComparedWord, HereKeys, HereMetric, Named, RowKeys, TableKeys};
use crate::read::At;
use crate::tree::{Kind, Node};
use crate::{levels, shape};
use std::collections::{BTreeMap, BTreeSet};
use tailbound_model::{
    ChosenLevels, Condition, FigureCompared, FigureMetric, FigureStatistic, FigureUnit, Metric, OwnFigure,
    PublishedColumn, PublishedRow, PublishedTable,
};
use tailbound_stats::Quantile;

/// The conditions of the study, for which the levels of a table are checked.
pub(crate) struct Conditions<'a> {
    pub of: &'a [Condition],
    /// True if the study is as its file describes it. After `--set`, a table may name levels that the run does not have.
    pub whole: bool,
}

impl Conditions<'_> {
    fn factors(&self) -> BTreeSet<&str> {
        self.of.iter().flat_map(|c| c.levels.keys().map(String::as_str)).collect()
    }

    /// The level as conditions write it, e.g. `64 B` for `64B`.
    fn level(&self, factor: &At<String>, level: &At<String>) -> Result<String, Fault> {
        let all = self.factors();
        if !all.contains(factor.value.as_str()) {
            let all: Vec<&str> = all.into_iter().collect();
            let reason = format!("`{}` is not a factor of this study", factor.value);
            return Err(Fault::new(factor.at, reason).help(advice(&factor.value, &all)));
        }
        let there: BTreeSet<&str> =
            self.of.iter().filter_map(|c| c.levels.get(&factor.value).map(String::as_str)).collect();
        let written = Node { at: level.at, kind: Kind::Text(level.value.clone()) };
        let spelled = shape::at(&factor.value).map(|shape| levels::text(&written, shape));
        let found = there.iter().find(|l| **l == level.value || Some(**l) == spelled.as_deref());
        match found {
            Some(found) => Ok((*found).to_owned()),
            None if !self.whole => Ok(spelled.unwrap_or_else(|| level.value.clone())),
            None => {
                let reason = format!("`{}` is not a level of `{}` in this study", level.value, factor.value);
                let there: Vec<&str> = there.into_iter().collect();
                Err(Fault::new(level.at, reason).help(advice(&level.value, &there)))
            }
        }
    }

    fn chosen(&self, keys: Option<&ChosenKeys>) -> Result<ChosenLevels, Fault> {
        let mut chosen = ChosenLevels::new();
        for (factor, levels) in keys.iter().flat_map(|keys| &keys.value.0) {
            if levels.0.is_empty() {
                return Err(Fault::new(factor.at, format!("`{}` has an empty list of levels", factor.value))
                    .help("name one level, or leave the factor out for all levels"));
            }
            let levels = levels.0.iter().map(|level| self.level(factor, level)).collect::<Result<_, _>>()?;
            chosen.insert(factor.value.clone(), levels);
        }
        Ok(chosen)
    }

    fn baseline(&self, keys: &Named<At<String>>) -> Result<BTreeMap<String, String>, Fault> {
        keys.0.iter().map(|(factor, level)| Ok((factor.value.clone(), self.level(factor, level)?))).collect()
    }

    fn has(&self, levels: &ChosenLevels) -> bool {
        self.of.iter().any(|c| levels.iter().all(|(f, all)| c.levels.get(f).is_some_and(|l| all.contains(l))))
    }
}

/// Checks and resolves a table of published numbers.
pub(crate) fn published_table(keys: &At<TableKeys>, conditions: &Conditions<'_>) -> Result<PublishedTable, Fault> {
    let TableKeys { axis, levels, columns, rows } = &keys.value;
    let empty = |at, what| Err(Fault::new(at, format!("the table has no {what}")).help(format!("give its {what}")));
    if columns.value.is_empty() {
        return empty(columns.at, "columns");
    }
    if rows.value.is_empty() {
        return empty(rows.at, "rows");
    }
    let of_table = conditions.chosen(levels.as_ref())?;
    let column = |keys: &At<ColumnKeys>| column(keys, &of_table, levels.as_ref(), conditions);
    let columns: Vec<PublishedColumn> = columns.value.iter().map(column).collect::<Result<_, _>>()?;
    let row = |keys: &At<RowKeys>| row(keys, &columns, conditions);
    let rows = rows.value.iter().map(row).collect::<Result<_, _>>()?;
    Ok(PublishedTable { axis: axis.clone().unwrap_or_else(|| "row".into()), columns, rows })
}

fn column(
    keys: &At<ColumnKeys>,
    of_table: &ChosenLevels,
    table: Option<&ChosenKeys>,
    conditions: &Conditions<'_>,
) -> Result<PublishedColumn, Fault> {
    let ColumnKeys { name, unit, levels, here } = &keys.value;
    let symbols = FigureUnit::ALL.map(FigureUnit::symbol);
    let Some(of_unit) = FigureUnit::ALL.into_iter().find(|u| u.symbol() == unit.value.trim()) else {
        let reason = format!("`{}` is not a unit of published numbers", unit.value);
        return Err(Fault::new(unit.at, reason).help(advice(&unit.value, &symbols)));
    };
    let mut chosen = conditions.chosen(levels.as_ref())?;
    twice(levels.as_ref(), table.map(|_| of_table), "the table")?;
    chosen.extend(of_table.clone());
    let here = here.as_ref().map(|keys| figure(keys, (of_unit, unit), conditions)).transpose()?;
    Ok(PublishedColumn { name: name.clone(), unit: of_unit, levels: chosen, here })
}

/// Refuses a factor whose levels are chosen in two places.
fn twice(keys: Option<&ChosenKeys>, other: Option<&ChosenLevels>, place: &str) -> Result<(), Fault> {
    let mut named = keys.iter().flat_map(|keys| &keys.value.0).map(|(factor, _)| factor);
    match named.find(|factor| other.is_some_and(|other| other.contains_key(&factor.value))) {
        Some(factor) => {
            let reason = format!("{place} names levels of `{}` too", factor.value);
            Err(Fault::new(factor.at, reason).help("name the levels of a factor in one place"))
        }
        None => Ok(()),
    }
}

fn row(keys: &At<RowKeys>, columns: &[PublishedColumn], conditions: &Conditions<'_>) -> Result<PublishedRow, Fault> {
    let RowKeys { name, levels, run, cells } = &keys.value;
    if cells.value.len() != columns.len() {
        let many = |n: usize, what| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (cells_there, wanted) = (many(cells.value.len(), "cell"), many(columns.len(), "column"));
        return Err(Fault::new(cells.at, format!("the row `{name}` has {cells_there} for {wanted}"))
            .help("one number for each column, `none` where the publication gives none"));
    }
    if let Some(run) = run {
        of_one_run(run, columns)?;
    }
    let chosen = conditions.chosen(levels.as_ref())?;
    for column in columns {
        twice(levels.as_ref(), Some(&column.levels), &format!("the column `{}`", column.name))?;
        let both: ChosenLevels = chosen.clone().into_iter().chain(column.levels.clone()).collect();
        if column.here.is_some() && conditions.whole && !conditions.has(&both) {
            let reason = format!("no condition of this study has the levels of this row and of `{}`", column.name);
            return Err(Fault::new(levels.as_ref().map_or(keys.at, |l| l.at), reason)
                .help("change the levels, or leave out `here` of the column"));
        }
    }
    let run = run.as_ref().map(|run| run.value);
    let cells = cells.value.iter().map(|cell| cell.0).collect();
    Ok(PublishedRow { name: name.clone(), levels: chosen, run, cells })
}

/// Checks that every figure beside the numbers of a single run is known for single runs.
fn of_one_run(run: &At<u32>, columns: &[PublishedColumn]) -> Result<(), Fault> {
    if run.value == 0 {
        return Err(Fault::new(run.at, "repetitions are counted from 1").help("write 1 for the first repetition"));
    }
    let known = |here: &OwnFigure| match here.metric {
        FigureMetric::Latency(Metric::RoundTrip | Metric::WakeToSent | Metric::WakePeriod) => {
            matches!(here.statistic, FigureStatistic::Min | FigureStatistic::Max)
        }
        FigureMetric::Latency(_) => false,
        FigureMetric::Throughput | FigureMetric::TotalTime | FigureMetric::TotalWithDiscovery => true,
    };
    let unknown = |c: &&PublishedColumn| c.here.as_ref().is_some_and(|h| !known(h) || !h.baseline.is_empty());
    match columns.iter().find(unknown) {
        Some(column) => {
            let reason = format!("the figure of the column `{}` is not known for a single run", column.name);
            Err(Fault::new(run.at, reason).help(
                "for single runs: `min` and `max` of `round-trip`, `wake-to-sent` and `wake-period`, and metrics with \
                 one value for each trial, without `baseline`",
            ))
        }
        None => Ok(()),
    }
}

fn figure(
    keys: &At<HereKeys>,
    (unit, unit_text): (FigureUnit, &At<String>),
    conditions: &Conditions<'_>,
) -> Result<OwnFigure, Fault> {
    let HereKeys { metric, statistic: asked, baseline, compared } = &keys.value;
    let of_metric = figure_metric(metric.value);
    let of_statistic = statistic(asked.as_ref())?;
    if let Some(asked) = asked.as_ref().filter(|_| of_metric.is_of_trials() && !is_of_trials(&of_statistic)) {
        let reason =
            format!("`{}` needs one value for each message, and this metric has one for each trial", asked.value);
        return Err(Fault::new(asked.at, reason).help("`p50` (the median of the trials), `min` or `max`"));
    }
    let compared = match (compared, baseline) {
        (Some(word), None) => {
            return Err(Fault::new(word.at, "`compared` needs a baseline")
                .help("for example `baseline: { place.network: host }`"));
        }
        (None, None) => FigureCompared::Alone,
        (None, Some(_)) if unit == FigureUnit::PerCent => FigureCompared::Change,
        (None, Some(_)) => FigureCompared::Difference,
        (Some(word), Some(_)) => match word.value {
            ComparedWord::Difference => FigureCompared::Difference,
            ComparedWord::Change => FigureCompared::Change,
            ComparedWord::Overhead => FigureCompared::Overhead,
        },
    };
    let fits = match (compared, of_metric) {
        (FigureCompared::Change | FigureCompared::Overhead, _) => unit == FigureUnit::PerCent,
        (_, FigureMetric::Throughput) => matches!(unit, FigureUnit::MbitPerS | FigureUnit::PerS),
        _ => unit.nanoseconds().is_some(),
    };
    if !fits {
        let help = match (compared, of_metric) {
            (FigureCompared::Change | FigureCompared::Overhead, _) => "a change or an overhead is in `%`",
            (_, FigureMetric::Throughput) => "a throughput is in `Mbit/s` or `1/s`; `%` needs a `baseline`",
            _ => "a time is in `ns`, `us`, `ms` or `s`; `%` needs a `baseline`",
        };
        let reason = format!("the figure in `here` has no values in `{}`", unit_text.value);
        return Err(Fault::new(unit_text.at, reason).help(help));
    }
    let baseline = baseline.as_ref().map(|keys| conditions.baseline(&keys.value)).transpose()?.unwrap_or_default();
    Ok(OwnFigure { metric: of_metric, statistic: of_statistic, compared, baseline })
}

/// True for statistics of metrics that have one value for each trial.
fn is_of_trials(statistic: &FigureStatistic) -> bool {
    match statistic {
        FigureStatistic::Min | FigureStatistic::Max => true,
        FigureStatistic::Quantile(q) => q == "0.5",
        FigureStatistic::Mean | FigureStatistic::Sd => false,
    }
}

fn figure_metric(word: HereMetric) -> FigureMetric {
    match word {
        HereMetric::RoundTrip => FigureMetric::Latency(Metric::RoundTrip),
        HereMetric::HalfRoundTrip => FigureMetric::Latency(Metric::HalfRoundTrip),
        HereMetric::Out => FigureMetric::Latency(Metric::Out),
        HereMetric::OutNetwork => FigureMetric::Latency(Metric::OutNetwork),
        HereMetric::Back => FigureMetric::Latency(Metric::Back),
        HereMetric::BackNetwork => FigureMetric::Latency(Metric::BackNetwork),
        HereMetric::FromIntended => FigureMetric::Latency(Metric::FromIntended),
        HereMetric::WakeToSent => FigureMetric::Latency(Metric::WakeToSent),
        HereMetric::WakePeriod => FigureMetric::Latency(Metric::WakePeriod),
        HereMetric::Throughput => FigureMetric::Throughput,
        HereMetric::TotalTime => FigureMetric::TotalTime,
        HereMetric::TotalWithDiscovery => FigureMetric::TotalWithDiscovery,
    }
}

fn statistic(asked: Option<&At<String>>) -> Result<FigureStatistic, Fault> {
    let Some(asked) = asked else { return Ok(FigureStatistic::Quantile("0.5".into())) };
    let text = asked.value.trim();
    let quantile = || {
        let per_cent: f64 = text.strip_prefix('p')?.parse().ok()?;
        let parts = Quantile::from_f64(per_cent / 100.0).ok()?.parts();
        Some(FigureStatistic::Quantile(format!("0.{parts:015}").trim_end_matches('0').to_owned()))
    };
    match text {
        "mean" => Ok(FigureStatistic::Mean),
        "sd" => Ok(FigureStatistic::Sd),
        "min" => Ok(FigureStatistic::Min),
        "max" => Ok(FigureStatistic::Max),
        _ => quantile().ok_or_else(|| {
            Fault::new(asked.at, format!("`{text}` is not a statistic"))
                .help("`mean`, `sd`, `min`, `max`, or a quantile such as `p50` or `p99.9`")
        }),
    }
}
