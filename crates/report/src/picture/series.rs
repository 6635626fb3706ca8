//! Sorts conditions into series (lines), hues and panels of charts.

use crate::picture::canvas::{Canvas, Medium};
use crate::picture::look::HUES;
use tailbound_document::{ConditionReport, MetricReport, QuantileReport, Report};
use tailbound_model::Metric;

/// Metrics that a reader of the page can choose, with their words.
pub(crate) const METRICS: [(Metric, &str); 5] = [
    (Metric::RoundTrip, "round trip"),
    (Metric::FromIntended, "from intended"),
    (Metric::Out, "out"),
    (Metric::Turnaround, "turnaround"),
    (Metric::Back, "back"),
];

/// The content of a drawing: conditions with round trips, and what the reader chose.
pub(crate) struct Chart<'r> {
    pub report: &'r Report,
    pub medium: Medium,
    pub metric: Metric,
    /// The factor on the horizontal axis of the drawing. This factor determines the hues.
    pub x: String,
    /// Factors with more than one level, in the order of the study.
    pub varied: Vec<String>,
    pub measured: Vec<&'r ConditionReport>,
    hues: Vec<(usize, usize)>,
}

/// Conditions that differ only in the factor on the horizontal axis.
pub(crate) struct Series<'r> {
    pub name: String,
    pub hue: usize,
    pub conditions: Vec<&'r ConditionReport>,
}

/// Series that are drawn in the same panel.
pub(crate) struct Group<'r> {
    pub title: String,
    pub series: Vec<Series<'r>>,
}

impl<'r> Chart<'r> {
    pub fn new(report: &'r Report, medium: Medium, metric: Metric, x: &str) -> Chart<'r> {
        let measured: Vec<&ConditionReport> = report.conditions.iter().filter(|c| c.round_trip.is_some()).collect();
        let mut chart =
            Chart { report, medium, metric, x: x.to_owned(), varied: varied(report), measured, hues: Vec::new() };
        let series = chart.groups().into_iter().flat_map(|g| g.series);
        chart.hues = series.flat_map(|s| s.conditions.into_iter().map(move |c| (c.id, s.hue))).collect();
        chart
    }

    pub fn canvas(&self, height: f64, label: impl Into<String>) -> Canvas {
        Canvas::new(self.medium, height, label)
    }

    /// Name of the chosen metric in words.
    pub fn words(&self) -> &'static str {
        words(self.metric)
    }

    pub fn hue(&self, condition: &ConditionReport) -> usize {
        self.hues.iter().find(|(id, _)| *id == condition.id).map_or(0, |(_, hue)| *hue)
    }

    /// Name of a condition within the report: the levels in which conditions differ.
    pub fn short_name(&self, condition: &ConditionReport) -> String {
        let name = self.levels(condition, &[]);
        if name.is_empty() { condition.name.clone() } else { name }
    }

    fn levels(&self, condition: &ConditionReport, without: &[&str]) -> String {
        let factors = self.varied.iter().filter(|f| !without.contains(&f.as_str()));
        factors.filter_map(|f| condition.levels.get(f).cloned()).collect::<Vec<_>>().join(", ")
    }

    /// Conditions for which the metric is known, with the figures of the metric.
    pub fn known(&self) -> impl Iterator<Item = (&'r ConditionReport, &'r MetricReport)> + '_ {
        self.measured.iter().filter_map(|c| Some((*c, c.metric(self.metric)?)))
    }

    /// Conditions for which at least one message has a value of the metric.
    pub fn answered(&self) -> Vec<(&'r ConditionReport, &'r MetricReport)> {
        self.known().filter(|(_, m)| m.n > 0).collect()
    }

    /// An axis that contains every value of the metric with its interval.
    pub fn whole_axis(&self) -> Option<(f64, f64)> {
        let of = |m: &MetricReport| -> Vec<i64> {
            let ends = m.quantiles.iter().flat_map(|q| match q {
                QuantileReport::Value { value_ns, low_ns, high_ns, .. } => [Some(*value_ns), Some(*low_ns), *high_ns],
                _ => [None; 3],
            });
            ends.chain([m.max_ns]).flatten().filter(|v| *v > 0).collect()
        };
        axis_of(self.known().flat_map(|(_, m)| of(m)))
    }

    /// An axis from the lowest to the highest value of the given conditions.
    pub fn axis_of_values(&self, some: &[(&ConditionReport, &MetricReport)]) -> Option<(f64, f64)> {
        axis_of(some.iter().flat_map(|(_, m)| [m.min_ns, m.max_ns]).flatten().map(|v| v.max(1)))
    }

    fn series(&self, of: &[&'r ConditionReport], without: &[&str]) -> Vec<Series<'r>> {
        let mut all: Vec<Series<'r>> = Vec::new();
        for condition in of {
            let name = self.levels(condition, without);
            match all.iter_mut().find(|s| s.name == name) {
                Some(known) => known.conditions.push(condition),
                None => all.push(Series { name, hue: all.len() % HUES, conditions: vec![condition] }),
            }
        }
        all
    }

    /// Divides the series into as few panels as possible, so that the series of each panel have different hues: one
    /// panel, or one panel per level of the outermost factor.
    pub fn groups(&self) -> Vec<Group<'r>> {
        let all = self.series(&self.measured, &[&self.x]);
        let outer = self.varied.iter().find(|f| **f != self.x).filter(|_| all.len() > HUES);
        let Some(outer) = outer else { return vec![Group { title: String::new(), series: all }] };
        let mut levels: Vec<Option<&String>> = Vec::new();
        for level in self.measured.iter().map(|c| c.levels.get(outer)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        let group = |level: &Option<&String>| {
            let within: Vec<_> = self.measured.iter().copied().filter(|c| c.levels.get(outer) == *level).collect();
            let title = format!("{outer} {}", level.map_or("", String::as_str));
            Group { title, series: self.series(&within, &[&self.x, outer]) }
        };
        levels.iter().map(group).collect()
    }

    /// Chooses the conditions that are shown first. If there are more conditions than hues, the last condition of each
    /// series is among them.
    pub fn overlay(&self) -> Vec<usize> {
        if self.measured.len() <= HUES {
            return self.measured.iter().map(|c| c.id).collect();
        }
        let series = self.groups().into_iter().flat_map(|g| g.series);
        series.filter_map(|s| s.conditions.last().map(|c| c.id)).take(HUES).collect()
    }

    /// Hues of conditions that are drawn in the same chart: their own hues if these differ, otherwise one hue after
    /// another.
    pub fn overlay_hue(&self, condition: &ConditionReport, among: &[usize]) -> usize {
        let hue = |id: &usize| self.hues.iter().find(|(known, _)| known == id).map_or(0, |(_, hue)| *hue);
        let mut own: Vec<usize> = among.iter().map(hue).collect();
        own.sort_unstable();
        own.dedup();
        let place = among.iter().position(|id| *id == condition.id).filter(|_| own.len() < among.len());
        place.unwrap_or_else(|| self.hue(condition)) % HUES
    }

    /// Conditions that are drawn in the same chart. The page draws all conditions, because its reader may choose
    /// others.
    pub fn overlaid(&self) -> (Vec<(&'r ConditionReport, &'r MetricReport)>, String) {
        let mut some = self.answered();
        if self.medium == Medium::Page || some.len() <= HUES {
            return (some, String::new());
        }
        some.sort_by_key(|(_, m)| std::cmp::Reverse(m.max_ns));
        some.truncate(HUES);
        some.sort_by_key(|(c, _)| c.id);
        (some, format!(", for the {HUES} conditions with the largest maximum"))
    }
}

fn axis_of(values: impl Iterator<Item = i64>) -> Option<(f64, f64)> {
    let ends = values.fold(None, |ends, v| match ends {
        None => Some((v, v)),
        Some((low, high)) => Some((v.min(low), v.max(high))),
    });
    ends.map(|(low, high): (i64, i64)| crate::picture::axis::nice(low as f64, high as f64))
}

/// Name of a metric in words.
pub(crate) fn words(metric: Metric) -> &'static str {
    METRICS.iter().find(|(m, _)| *m == metric).map_or(metric.key(), |(_, words)| words)
}

/// Factors with more than one level, in the order of the study.
fn varied(report: &Report) -> Vec<String> {
    let mut names: Vec<&String> = report.run.factors.iter().collect();
    for name in report.conditions.iter().flat_map(|c| c.levels.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let differs = |f: &&&String| {
        let first = report.conditions.first().map(|c| c.levels.get(**f));
        report.conditions.iter().any(|c| Some(c.levels.get(**f)) != first)
    };
    names.iter().filter(differs).map(|f| (*f).clone()).collect()
}

/// Position of a condition on the horizontal axis; `None` if its level is not a number.
pub(crate) fn x_value(condition: &ConditionReport, factor: &str) -> Option<f64> {
    let value = match factor {
        "payload" => Some(condition.payload_bytes as f64),
        "rate" => condition.period_ns.map(|p| 1e9 / p as f64),
        other => condition.levels.get(other)?.parse().ok(),
    };
    value.filter(|v| *v > 0.0)
}

/// Factors that can be on the horizontal axis: the factor that the study names, and other factors whose levels are
/// numbers.
pub(crate) fn axes(report: &Report) -> Vec<String> {
    let chart = Chart::new(report, Medium::Page, Metric::RoundTrip, &report.view.x);
    let numbers = |f: &&String| **f != report.view.x && chart.measured.iter().all(|c| x_value(c, f).is_some());
    [report.view.x.clone()].into_iter().chain(chart.varied.iter().filter(numbers).cloned()).collect()
}
