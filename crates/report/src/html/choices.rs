//! Makes the controls of the HTML page with which a reader chooses what the charts show. The script of the page listens
//! to these controls.

use crate::escape::escape;
use crate::picture::canvas::Medium;
use crate::picture::series::{Chart, METRICS, axes};
use crate::picture::variants::conditions_of;
use tailbound_document::{ConditionReport, Report};
use tailbound_model::Metric;

/// Makes a group of buttons of which exactly one is selected; empty if there is only one choice.
fn radios(name: &str, all: &[(String, String)]) -> String {
    let one = |(i, (value, words)): (usize, &(String, String))| {
        let checked = if i == 0 { " checked" } else { "" };
        format!(
            "<label><input type=\"radio\" name=\"{name}\" value=\"{}\" autocomplete=\"off\"{checked}><span>{}</span></label>\n",
            escape(value),
            escape(words)
        )
    };
    if all.len() < 2 { String::new() } else { all.iter().enumerate().map(one).collect() }
}

fn check(data: &str, checked: bool, words: &str) -> String {
    let checked = if checked { " checked" } else { "" };
    format!("<label><input type=\"checkbox\" {data} autocomplete=\"off\"{checked}><span>{words}</span></label>\n")
}

fn select(name: &str, label: &str, options: &[(String, String)]) -> String {
    let option = |(value, words): &(String, String)| format!("<option value=\"{value}\">{}</option>", escape(words));
    let options: String = options.iter().map(option).collect();
    format!("<select name=\"{name}\" aria-label=\"{label}\">{options}</select>\n")
}

fn chart(report: &Report) -> Chart<'_> {
    Chart::new(report, Medium::Page, Metric::RoundTrip, &report.view.x)
}

/// The controls of the HTML page that apply to all charts: the levels that are shown, and the metric.
pub(crate) fn for_all(report: &Report) -> String {
    let chart = chart(report);
    let mut rows = String::new();
    for factor in &chart.varied {
        let mut levels: Vec<&String> = Vec::new();
        for level in chart.measured.iter().filter_map(|c| c.levels.get(factor)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        let level =
            |l: &&String| check(&format!("data-level=\"{}\"", escape(&format!("{factor}={l}"))), true, &escape(l));
        rows.push_str(&format!(
            "<div class=\"choose\" role=\"group\" aria-label=\"{0}\"><span class=\"name\">{0}</span>\n{1}</div>\n",
            escape(factor),
            levels.iter().map(level).collect::<String>()
        ));
    }
    let known = |m: &&(Metric, &str)| chart.measured.iter().any(|c| c.metric(m.0).is_some());
    let metrics: Vec<_> = METRICS.iter().filter(known).map(|(m, w)| (m.key().to_owned(), (*w).to_owned())).collect();
    format!(
        "<div class=\"choose-levels\">{rows}</div><div class=\"choose choose-metric\" role=\"radiogroup\" \
         aria-label=\"Metric\">{}</div>",
        radios("metric", &metrics)
    )
}

/// The controls of the HTML page that apply to one chart.
pub(crate) fn over(report: &Report, id: &str) -> String {
    let chart = chart(report);
    let controls = match id {
        "latency" => {
            let axes: Vec<_> = axes(report).into_iter().map(|x| (x.clone(), format!("against {x}"))).collect();
            radios("x", &axes)
        }
        "tail" | "histogram" => overlay(&chart),
        "time" => time(report),
        _ => of_condition(report, id),
    };
    if controls.is_empty() { controls } else { format!("<div class=\"choose choose-{id}\">\n{controls}</div>\n") }
}

/// The control of the HTML page that selects the conditions whose curves are drawn in the same chart.
fn overlay(chart: &Chart<'_>) -> String {
    let shown = chart.overlay();
    let one = |c: &&ConditionReport| {
        let words = format!("<i class=\"key\"></i>{}", escape(&chart.short_name(c)));
        check(&format!("data-overlay=\"{}\"", c.id), shown.contains(&c.id), &words)
    };
    if chart.measured.len() < 2 { String::new() } else { chart.measured.iter().map(one).collect() }
}

/// The control of the HTML page that selects the condition of a chart; empty if there is only one condition.
fn of_condition(report: &Report, id: &str) -> String {
    let mut some = conditions_of(report, id);
    if some.len() < 2 {
        return String::new();
    }
    some.sort_by_key(|c| c.id);
    let mut options: Vec<_> = some.iter().map(|c| (c.id.to_string(), c.name.clone())).collect();
    if id == "legs" {
        options.push(("all".into(), "the median message of every condition".into()));
    }
    select(id, "Condition", &options)
}

/// The controls of the HTML page that select the trial of the chart over time, and the part of the trial that the chart
/// shows.
fn time(report: &Report) -> String {
    let followed = report.trials.iter().filter(|t| t.over_time.as_ref().is_some_and(|o| o.slots > 0));
    let option = |t: &tailbound_document::TrialReport| {
        format!("<option value=\"{0}\">trial {0} (repeat {1})</option>", t.id, t.repeat + 1)
    };
    let trials: String = followed.map(option).collect();
    let range = |name: &str, value: u32| {
        format!(
            "<label>{name} <input type=\"range\" min=\"0\" max=\"1000\" value=\"{value}\" name=\"{name}\" \
             aria-label=\"range {name}\"></label>\n"
        )
    };
    format!(
        "{}<select name=\"trial\" aria-label=\"Trial\">{trials}</select>\n<span class=\"range\">{}{}\
         <button type=\"button\" data-zoom=\"0.5\">zoom in</button>\
         <button type=\"button\" data-zoom=\"2\">zoom out</button>\
         <button type=\"button\" data-zoom=\"Infinity\">whole</button></span>\n",
        of_condition(report, "time"),
        range("from", 0),
        range("to", 1000)
    )
}
