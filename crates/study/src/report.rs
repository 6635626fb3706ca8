//! Checks and resolves the keys that describe how the report shows a study.

use crate::error::{Fault, advice};
use crate::factors::Factor;
use crate::format::{Duration, HistogramKeys, HistogramMetric, Named, RangeKeys, ReportKeys, TailKeys};
use crate::published::published;
use crate::published_table::Conditions;
use crate::read::At;
use crate::tree::{Kind, Node};
use crate::{levels, miss_window, shape};
use tailbound_model::{AgainstSpec, HistogramSpec, Nanos, RangeSpec, ReportSpec, TailSpec};

/// Largest number of bins in a table that a report page can show.
const MAX_BINS: u32 = 100;

/// Smallest rarity for a tail estimate: more common messages are measured, not estimated.
const COMMON: u64 = 100;

/// Checks and resolves the keys of `report`; `on_axis` are the names of factors that may be on an axis.
pub(crate) fn report(
    keys: Option<&ReportKeys>,
    on_axis: &[&str],
    factors: &[Factor],
    conditions: &Conditions<'_>,
) -> Result<ReportSpec, Fault> {
    let Some(keys) = keys else { return Ok(ReportSpec::default()) };
    if let Some(x) = keys.x.as_ref().filter(|x| !on_axis.contains(&x.value.as_str())) {
        return Err(no_factor(x, on_axis));
    }
    let against = keys.against.as_ref().map(|keys| against(keys, factors)).transpose()?.flatten();
    let quantiles: Vec<String> =
        keys.quantiles.iter().flat_map(|q| q.value.iter().map(|quantile| quantile.0.clone())).collect();
    if let Some(list) = keys.quantiles.as_ref().filter(|q| q.value.is_empty()) {
        return Err(
            Fault::new(list.at, "the list of quantiles is empty").help("remove `quantiles` to get the default list")
        );
    }
    let histogram = keys.histogram.as_ref().map(histogram).transpose()?;
    let tail = keys.tail.as_ref().map(tail).transpose()?;
    let published = keys.published.iter().flatten().map(|p| published(p, histogram, conditions));
    let published = published.collect::<Result<_, _>>()?;
    let x = keys.x.as_ref().map(|x| x.value.clone());
    let range = keys.range.as_ref().map(range).transpose()?;
    let above = limit(keys.above.as_ref())?;
    let late_above = limit(keys.late_above.as_ref())?;
    Ok(ReportSpec {
        title: keys.title.clone(),
        quantiles,
        x,
        against,
        histogram,
        tail,
        range,
        above,
        late_above,
        misses: keys.misses.as_ref().map(|m| miss_window::checked(&m.m, &m.k)).transpose()?,
        published,
    })
}

/// A latency limit of the study, which must be above 0.
fn limit(key: Option<&At<Duration>>) -> Result<Option<Nanos>, Fault> {
    match key.filter(|above| above.value.0.0 <= 0) {
        Some(above) => {
            Err(Fault::new(above.at, "the limit is not above 0, so every message is above it")
                .help("for example `503 us`"))
        }
        None => Ok(key.map(|above| above.value.0)),
    }
}

fn no_factor(name: &At<String>, there: &[&str]) -> Fault {
    Fault::new(name.at, format!("`{}` is not a factor of this study", name.value)).help(advice(&name.value, there))
}

/// The factor and the level with which the other levels are compared; `None` if `--set` has left only one level of the
/// factor.
fn against(keys: &At<Named<At<String>>>, factors: &[Factor]) -> Result<Option<AgainstSpec>, Fault> {
    let [(name, level)] = keys.value.0.as_slice() else {
        let reason = format!("`against` needs one factor with one of its levels, found {} factors", keys.value.0.len());
        return Err(Fault::new(keys.at, reason).help("for example `against: { place.network: host }`"));
    };
    let Some(factor) = factors.iter().find(|f| f.path == name.value) else {
        return Err(no_factor(name, &factors.iter().map(|f| f.path.as_str()).collect::<Vec<_>>()));
    };
    let there: Vec<String> = (0..factor.levels.len()).map(|i| factor.level(i)).collect();
    if there.len() == 1 {
        return Ok(None);
    }
    // `64B` is the level `64 B`; a level that is a map has the name that reports use.
    let written = Node { at: level.at, kind: Kind::Text(level.value.clone()) };
    let spelled = shape::at(&factor.path).map(|shape| levels::text(&written, shape));
    let found = there.iter().find(|l| **l == level.value || Some(*l) == spelled.as_ref());
    let Some(found) = found else {
        let reason = format!("`{}` is not a level of `{}` in this study", level.value, factor.path);
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        return Err(Fault::new(level.at, reason).help(advice(&level.value, &there)));
    };
    Ok(Some(AgainstSpec { factor: factor.path.clone(), level: found.clone() }))
}

fn histogram(keys: &At<HistogramKeys>) -> Result<HistogramSpec, Fault> {
    let HistogramKeys { metric, bin, bins } = &keys.value;
    if bin.value.0.0 <= 0 {
        return Err(Fault::new(bin.at, "the width of a bin must be above 0").help("for example `100 us`"));
    }
    if bins.value == 0 || bins.value > MAX_BINS {
        let reason = format!("a report cannot show a table of {} bins", bins.value);
        return Err(
            Fault::new(bins.at, reason).help(format!("write 1 to {MAX_BINS} bins; an open bin above them is added"))
        );
    }
    Ok(HistogramSpec { metric: HistogramMetric::metric(*metric), bin: bin.value.0, bins: bins.value })
}

fn range(keys: &At<RangeKeys>) -> Result<RangeSpec, Fault> {
    let (from, to) = (keys.value.from.0, keys.value.to.0);
    if from.0 < 0 || from >= to {
        let reason = format!("the range from {from} to {to} is empty");
        return Err(
            Fault::new(keys.at, reason).help("write a `from` before `to`, for example `{ from: 60 s, to: 360 s }`")
        );
    }
    Ok(RangeSpec { from, to })
}

fn tail(keys: &TailKeys) -> Result<TailSpec, Fault> {
    let one_in = &keys.one_in;
    if one_in.value < COMMON {
        let reason = format!("a rarity of 1 in {} is too common for a tail estimate", one_in.value);
        return Err(Fault::new(one_in.at, reason).help(format!("{COMMON} or more, for example 10000000")));
    }
    Ok(TailSpec { one_in: one_in.value })
}
