//! Checks and resolves the keys that describe how the report shows a study.

use crate::error::{Fault, advice};
use crate::factors::Factor;
use crate::format::{
    Duration, FiguresKeys, HistogramKeys, HistogramMetric, Named, PatternKeys, PublishedKeys, RangeKeys, ReportKeys,
    TailKeys,
};
use crate::read::At;
use crate::tree::{Kind, Node};
use crate::{levels, miss_window, shape};
use tailbound_model::{
    AgainstSpec, HistogramSpec, Metric, Nanos, Pattern, Published, PublishedFigures, RangeSpec, ReportSpec,
    SPREAD_METRICS, TailSpec,
};

/// Largest number of bins in a table that a report page can show.
const MAX_BINS: u32 = 100;

/// Smallest rarity for a tail estimate: more common messages are measured, not estimated.
const COMMON: u64 = 100;

/// Checks and resolves the keys of `report`; `on_axis` are the names of factors that may be on an axis.
pub(crate) fn report(keys: Option<&ReportKeys>, on_axis: &[&str], factors: &[Factor]) -> Result<ReportSpec, Fault> {
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
    let published = keys.published.iter().flatten().map(|p| published(p, histogram)).collect::<Result<_, _>>()?;
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
    Ok(HistogramSpec { metric: self::metric(*metric), bin: bin.value.0, bins: bins.value })
}

/// Metric of the model that a study file names; the round trip if it names none.
fn metric(keys: Option<HistogramMetric>) -> Metric {
    match keys.unwrap_or(HistogramMetric::RoundTrip) {
        HistogramMetric::RoundTrip => Metric::RoundTrip,
        HistogramMetric::HalfRoundTrip => Metric::HalfRoundTrip,
        HistogramMetric::Out => Metric::Out,
        HistogramMetric::OutNetwork => Metric::OutNetwork,
        HistogramMetric::Back => Metric::Back,
        HistogramMetric::BackNetwork => Metric::BackNetwork,
        HistogramMetric::FromIntended => Metric::FromIntended,
        HistogramMetric::WakeToSent => Metric::WakeToSent,
    }
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

fn published(keys: &At<PublishedKeys>, table: Option<HistogramSpec>) -> Result<Published, Fault> {
    let PublishedKeys { name, text, histogram, patterns, figures } = &keys.value;
    if text.is_none() && histogram.is_none() && patterns.is_none() && figures.is_none() {
        let reason = format!("the published result `{name}` has no content");
        return Err(Fault::new(keys.at, reason).help("give `text`, `histogram`, `patterns` or `figures`"));
    }
    if let Some(counts) = histogram {
        let Some(table) = table else {
            let reason = "published counts of bins need the bins of `report.histogram`";
            return Err(Fault::new(counts.at, reason).help("give `histogram: { bin: ..., bins: ... }` in `report` too"));
        };
        if counts.value.len() != table.bins as usize + 1 {
            let reason = format!("{} counts are given for {} bins and the open bin", counts.value.len(), table.bins);
            return Err(Fault::new(counts.at, reason).help(format!("{} numbers, the open bin last", table.bins + 1)));
        }
    }
    let pattern = |keys: &PatternKeys, pattern| match pattern {
        Pattern::DiscoveryStarved => keys.discovery_starved,
        Pattern::PublishBlocked => keys.publish_blocked,
        Pattern::SenderStarved => keys.sender_starved,
        Pattern::MainThreadBlocked => keys.main_thread_blocked,
        Pattern::MessagesLost => keys.messages_lost,
        Pattern::AnswersLate => keys.answers_late,
        Pattern::TotalTimeLonger => keys.total_time_longer,
        Pattern::NoEffect => keys.no_effect,
    };
    let patterns = patterns.iter().flat_map(|k| Pattern::ALL.map(|p| (p, pattern(k, p))));
    Ok(Published {
        name: name.clone(),
        text: text.clone(),
        histogram: histogram.as_ref().map(|h| h.value.clone()).unwrap_or_default(),
        patterns: patterns.filter_map(|(p, n)| Some((p, n?))).collect(),
        figures: figures.as_ref().map(published_figures).transpose()?,
    })
}

fn published_figures(keys: &At<FiguresKeys>) -> Result<PublishedFigures, Fault> {
    let FiguresKeys { metric: of, mean, mean_above, stddev, max } = &keys.value;
    let pair = |key: &Option<At<Vec<Duration>>>| {
        let Some(times) = key else { return Ok(None) };
        match times.value.as_slice() {
            [one] => Ok(Some([one.0; 2])),
            [low, high] if low.0 <= high.0 => Ok(Some([low.0, high.0])),
            _ => Err(Fault::new(times.at, "a published figure is one time, or the smallest and the largest one")
                .help("for example `[300 us]` or `[7 us, 27 us]`")),
        }
    };
    let metric = metric(*of);
    if !SPREAD_METRICS.contains(&metric) {
        let reason = format!("the table of means, standard deviations and maxima has no {}", metric.key());
        return Err(Fault::new(keys.at, reason).help("`round-trip`, `out`, `out-network`, `back` or `back-network`"));
    }
    let figures = PublishedFigures {
        metric,
        mean: pair(mean)?,
        mean_above: pair(mean_above)?,
        stddev: pair(stddev)?,
        max: pair(max)?,
    };
    if [figures.mean, figures.mean_above, figures.stddev, figures.max].iter().all(Option::is_none) {
        return Err(Fault::new(keys.at, "the published figures have no content")
            .help("give `mean`, `mean_above`, `stddev` or `max`"));
    }
    Ok(figures)
}
