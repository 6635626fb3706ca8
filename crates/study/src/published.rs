//! Checks and resolves the keys of results that other people published.

use crate::error::Fault;
use crate::format::{Duration, FiguresKeys, HistogramMetric, PatternKeys, PublishedKeys};
use crate::published_table::{Conditions, published_table};
use crate::read::At;
use tailbound_model::{HistogramSpec, Pattern, Published, PublishedFigures, SPREAD_METRICS};

/// Checks and resolves one published result; `bins` are the bins of the study's histogram.
pub(crate) fn published(
    keys: &At<PublishedKeys>,
    bins: Option<HistogramSpec>,
    conditions: &Conditions<'_>,
) -> Result<Published, Fault> {
    let PublishedKeys { name, source, text, histogram, patterns, figures, table, differs } = &keys.value;
    let no_numbers = histogram.is_none() && patterns.is_none() && figures.is_none() && table.is_none();
    if text.is_none() && no_numbers {
        let reason = format!("the published result `{name}` has no content");
        return Err(Fault::new(keys.at, reason).help("give `text`, `histogram`, `patterns`, `figures` or `table`"));
    }
    if let Some(counts) = histogram {
        let Some(bins) = bins else {
            let reason = "published counts of bins need the bins of `report.histogram`";
            return Err(Fault::new(counts.at, reason).help("give `histogram: { bin: ..., bins: ... }` in `report` too"));
        };
        if counts.value.len() != bins.bins as usize + 1 {
            let reason = format!("{} counts are given for {} bins and the open bin", counts.value.len(), bins.bins);
            return Err(Fault::new(counts.at, reason).help(format!("{} numbers, the open bin last", bins.bins + 1)));
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
        source: source.clone(),
        text: text.clone(),
        histogram: histogram.as_ref().map(|h| h.value.clone()).unwrap_or_default(),
        patterns: patterns.filter_map(|(p, n)| Some((p, n?))).collect(),
        figures: figures.as_ref().map(published_figures).transpose()?,
        table: table.as_ref().map(|keys| published_table(keys, conditions)).transpose()?,
        differs: differs.clone().unwrap_or_default(),
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
    let metric = HistogramMetric::metric(*of);
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
