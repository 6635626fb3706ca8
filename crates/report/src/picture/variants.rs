//! The charts of the page in all variants: each chart is drawn once for every value of a choice that changes its
//! geometry.

use crate::escape::{escape, prose};
use crate::picture::canvas::{Canvas, Medium};
use crate::picture::series::{Chart, METRICS, axes, words};
use crate::picture::{estimate, histogram, ladder, latency, legs, sender_loop, tail, time, waterfall};
use crate::stalls;
use crate::tables::remaining;
use std::collections::BTreeMap;
use tailbound_document::{ConditionReport, IncidentReport, Message, Report, TailReport};
use tailbound_model::Metric;

/// A chart for one combination of values of its choices.
pub(crate) struct Variant {
    /// Names of the choices (controls of the page), and the values for which the chart was drawn.
    keys: Vec<(&'static str, String)>,
    html: String,
}

impl Variant {
    fn new(keys: Vec<(&'static str, String)>, drawn: Vec<Canvas>) -> Variant {
        let html = match drawn.is_empty() {
            true => "Nothing to show.".into(),
            false => drawn.into_iter().map(Canvas::embed).collect(),
        };
        Variant { keys, html }
    }
}

/// HTML of a figure with its first variant. The other variants are in `template` elements, which a browser neither lays
/// out nor draws.
pub(crate) fn picture(variants: Vec<Variant>) -> String {
    let mut variants = variants.into_iter();
    let keys = |v: &Variant| -> String {
        v.keys.iter().map(|(name, value)| format!(" data-{name}=\"{}\"", escape(value))).collect()
    };
    let first = variants.next().unwrap_or(Variant { keys: Vec::new(), html: "Nothing to show.".into() });
    let others = variants.map(|v| format!("<template{}>{}</template>\n", keys(&v), v.html)).collect::<String>();
    format!("<figure><div class=\"picture\"{}>{}</div>\n{others}</figure>", keys(&first), first.html)
}

/// Draws all variants of the figure with this id.
pub(crate) fn variants(report: &Report, id: &str) -> Vec<Variant> {
    let x = report.view.x.as_str();
    let chart = |metric: Metric, x: &str| Chart::new(report, Medium::Page, metric, x);
    let first = chart(Metric::RoundTrip, x);
    let charts = || metrics(report).into_iter().map(|m| chart(m, x));
    let metric = |c: &Chart<'_>| ("metric", c.metric.key().to_owned());
    match id {
        "latency" => {
            let axes = axes(report);
            let one = |x: &String, m: Metric| {
                let chart = chart(m, x);
                Variant::new(vec![metric(&chart), ("x", x.clone())], latency::draw(&chart))
            };
            axes.iter().flat_map(|x| metrics(report).into_iter().map(move |m| one(x, m))).collect()
        }
        "tail" => charts().map(|c| Variant::new(vec![metric(&c)], tail::draw(&c).0)).collect(),
        "ladder" => charts().map(|c| Variant::new(vec![metric(&c)], ladder::draw(&c))).collect(),
        "histogram" => charts().map(|c| Variant::new(vec![metric(&c)], histogram::draw(&c).0)).collect(),
        "tail-estimate" => charts().flat_map(|c| estimates(&c)).collect(),
        "time" => {
            let one = |(trial, condition): (&tailbound_document::TrialReport, &ConditionReport)| {
                let of = |m: Metric| {
                    let chart = chart(m, x);
                    let keys = vec![metric(&chart), ("trial", trial.id.to_string()), ("of", condition.id.to_string())];
                    Variant::new(keys, time::draw(&chart, trial, condition))
                };
                time::metrics(trial).into_iter().map(of).collect::<Vec<_>>()
            };
            time::trials(&first).into_iter().flat_map(one).collect()
        }
        "legs" => {
            let one = |c: &&ConditionReport| {
                let mut variant = Variant::new(vec![("of", c.id.to_string())], legs::draw(&first, Some(c)));
                variant.html.push_str(&causes(report, c));
                variant
            };
            let all = Variant::new(vec![("of", "all".into())], legs::draw(&first, None));
            legs::conditions(&first).iter().map(one).chain([all]).collect()
        }
        "loop" => {
            let one = |c: &&ConditionReport| Variant::new(vec![("of", c.id.to_string())], sender_loop::draw(&first, c));
            sender_loop::conditions(&first).iter().map(one).collect()
        }
        _ => Vec::new(),
    }
}

/// The conditions among which a reader can choose in a figure that shows one condition.
pub(crate) fn conditions_of<'r>(report: &'r Report, id: &str) -> Vec<&'r ConditionReport> {
    let chart = Chart::new(report, Medium::Page, Metric::RoundTrip, &report.view.x);
    match id {
        "legs" => legs::conditions(&chart),
        "loop" => sender_loop::conditions(&chart),
        "tail-estimate" => {
            let some =
                |c: &ConditionReport| METRICS.iter().any(|(m, _)| c.metric(*m).is_some_and(|m| m.tail.is_some()));
            chart.measured.into_iter().filter(|c| some(c)).collect()
        }
        "time" => {
            let mut all: Vec<&ConditionReport> = time::trials(&chart).into_iter().map(|(_, c)| c).collect();
            all.sort_by_key(|c| c.id);
            all.dedup_by_key(|c| c.id);
            all
        }
        _ => Vec::new(),
    }
}

/// Metrics that at least one condition has.
fn metrics(report: &Report) -> Vec<Metric> {
    let known = |m: &Metric| report.conditions.iter().any(|c| c.round_trip.is_some() && c.metric(*m).is_some());
    METRICS.iter().map(|(m, _)| *m).filter(known).collect()
}

/// Draws the tail estimate of each condition, or gives the reason why there is none.
fn estimates(chart: &Chart<'_>) -> Vec<Variant> {
    let metric = ("metric", chart.metric.key().to_owned());
    let one = |(condition, figures): (&ConditionReport, &tailbound_document::MetricReport)| {
        let keys = vec![metric.clone(), ("of", condition.id.to_string())];
        let why = match &figures.tail {
            Some(TailReport::NotApplicable { one_in, not_applicable }) => {
                let number = tailbound_document::number::count(*one_in);
                Some(format!(
                    "<p class=\"not-applicable\">Not applicable to {}: {}. So nothing is said of 1 in {number}.</p>",
                    escape(&condition.name),
                    escape(not_applicable)
                ))
            }
            _ => None,
        };
        match why {
            Some(html) => Variant { keys, html },
            None => Variant::new(keys, estimate::draw(chart, condition, figures).unwrap_or_default()),
        }
    };
    let all: Vec<Variant> = estimate::conditions(chart).into_iter().map(one).collect();
    if all.is_empty() {
        let html = format!("There is no tail estimate of {}.", words(chart.metric));
        return vec![Variant { keys: vec![metric], html }];
    }
    all
}

/// One sentence for each group of incidents that are alike, with the picture of the worst of them; all shares of the time
/// of each incident are collapsed.
fn stall(report: &Report, condition: &ConditionReport, group: &stalls::Alike) -> String {
    let incidents = || group.0.iter().filter_map(|at| condition.incidents.get(*at));
    let texts: String = incidents().map(|i| format!("<li>{}</li>", prose(&i.text))).collect();
    let picture = group.0.first().and_then(|at| Some(course(condition, *at, condition.incidents.get(*at)?)));
    format!(
        "<li>{}{}<details><summary>All shares of the time</summary><ul>{texts}</ul></details></li>",
        prose(&stalls::sentence(report, condition, group)),
        picture.unwrap_or_default()
    )
}

/// Sentences about the worst incidents of a condition, what would remain without each cause, and how the
/// events were recorded.
fn causes(report: &Report, condition: &ConditionReport) -> String {
    let items: String = stalls::groups(condition).iter().map(|group| stall(report, condition, group)).collect();
    let without: String = remaining::sentences(condition).map(|text| format!("<li>{}</li>", prose(&text))).collect();
    let without = match without.is_empty() {
        true => without,
        false => format!(
            "<ul class=\"causes\">{without}</ul><p class=\"recorded\">{}</p>",
            prose(&remaining::rule(condition))
        ),
    };
    let recorded: Vec<String> = crate::tables::causes::recordings(report, condition).map(|text| prose(&text)).collect();
    let recorded = match recorded.is_empty() {
        true => String::new(),
        false => format!(
            "<details><summary>How the events were recorded</summary><p class=\"recorded\">{}</p></details>",
            recorded.join(" ")
        ),
    };
    format!("<ol class=\"causes\">{items}</ol>{without}{recorded}")
}

/// The picture of the latest message of an incident, with the words for its colours.
fn course(condition: &ConditionReport, at: usize, incident: &IncidentReport) -> String {
    let drawn = incident.waterfall.as_ref().zip(waterfall::draw(condition, at));
    drawn.map_or(String::new(), |(of, canvas)| {
        let key = |kind: waterfall::Kind| {
            let (hue, class) = kind.look();
            format!("<span class=\"kind\"><span class=\"key s{hue} {class}\"></span>{}</span> ", kind.words())
        };
        let keys: String = waterfall::kinds(of).into_iter().map(key).collect();
        format!("<div class=\"waterfall\">{}</div><span class=\"note keys\">{keys}</span>", canvas.embed())
    })
}

/// Short descriptions of the incidents to which the worst messages of a condition belong, by their numbers in the list of
/// incidents.
fn worst_stalls(report: &Report, condition: &ConditionReport) -> BTreeMap<usize, String> {
    let due = |m: &Message| m.intended_ns.or(m.send_begin_ns).unwrap_or(0);
    let of = |m: &Message| {
        let contains = |i: &IncidentReport| i.trial == m.trial && (i.begin_ns..=i.end_ns).contains(&due(m));
        condition.incidents.iter().position(contains)
    };
    let numbers = condition.worst.iter().filter_map(of);
    numbers.map(|at| (at, stalls::short(report, &condition.incidents[at]))).collect()
}

/// Data of the conditions for the script: hues and series for each factor on the horizontal axis, and the conditions
/// that are drawn in the same chart first.
pub(crate) fn choices(report: &Report) -> String {
    let chart = Chart::new(report, Medium::Page, Metric::RoundTrip, &report.view.x);
    let axes: Vec<serde_json::Value> = axes(report)
        .iter()
        .map(|x| {
            let chart = Chart::new(report, Medium::Page, Metric::RoundTrip, x);
            let hues: BTreeMap<usize, usize> = chart.measured.iter().map(|c| (c.id, chart.hue(c))).collect();
            let groups = chart.groups();
            let series: Vec<(&str, usize)> =
                groups.iter().flat_map(|g| &g.series).map(|s| (s.name.as_str(), s.hue)).collect();
            serde_json::json!({ "x": x, "hues": hues, "series": series })
        })
        .collect();
    let metrics: Vec<(&str, &str)> = metrics(report).into_iter().map(|m| (m.key(), words(m))).collect();
    let varied = &chart.varied;
    let stalls: Vec<_> = report.conditions.iter().map(|c| worst_stalls(report, c)).collect();
    let choices = serde_json::json!({
        "stalls": stalls, "axes": axes, "metrics": metrics, "overlay": chart.overlay(), "varied": varied,
    });
    choices.to_string().replace('<', "\\u003c")
}
