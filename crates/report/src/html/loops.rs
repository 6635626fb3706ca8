//! The section of the HTML page about the sender's loop: a chart over the slots, and M1 to M4 of every condition.

use crate::html::choices;
use crate::html::table::{Head, left, number, right, table};
use crate::picture::variants::{picture, variants};
use crate::tables::loops::{run_times, span};
use tailbound_document::number::{Unit, count, label};
use tailbound_document::{ConditionReport, Report};
use tailbound_model::Metric;

const METRICS: [(&str, Metric); 3] =
    [("M2", Metric::WakeToSent), ("M3", Metric::RoundTrip), ("M4", Metric::WakePeriod)];

const SHOWN: [f64; 2] = [0.5, 0.99];

/// True if the report contains the measures of the sender's loop, slot by slot, for at least one trial.
pub(crate) fn is_there(report: &Report) -> bool {
    report.trials.iter().any(|t| t.course.as_ref().is_some_and(|c| c.slots > 0))
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    format!(
        "<section id=\"loop\"><h2>The sender's loop</h2>\n<p class=\"lead\">Every measured slot of every repeat, over \
         the loop number: each column from the lowest to the highest of its slots, so that no maximum is left out. \
         A triangle marks the maximum of its trial.<span class=\"keys\">{}</span></p>\n{}{}\n<p class=\"lead\">M1 of each trial: time from the \
         moment at which the first slot was due until the last answer arrived or the last send call returned. M2: \
         wake-up to sent. M3: round trip. M4: wake-up to wake-up.\
         </p>\n{}</section>\n",
        crate::picture::sender_loop::keys(report),
        choices::over(report, "loop"),
        picture(variants(report, "loop")),
        summary(report)
    )
}

fn summary(report: &Report) -> String {
    let table_of_all = crate::tables::summary::summary(report);
    let times: Vec<Vec<i64>> = report.conditions.iter().map(|c| run_times(report, c)).collect();
    let unit = Unit::of_all(times.iter().flatten().copied()).unwrap_or(Unit::S);
    let scheduled = |c: &ConditionReport| {
        let course = c.used_trial_ids.iter().find_map(|id| report.trial(*id)?.course.as_ref());
        course.and_then(|c| c.scheduled_ns).map_or(String::new(), |ns| unit.number(ns as f64))
    };
    let mut heads: Vec<Head> =
        vec![left("condition"), right("trials", ""), right("schedule", unit.name()), right("M1", unit.name())];
    let mut columns: Vec<(Metric, Option<f64>, Unit)> = Vec::new();
    for (name, metric) in METRICS {
        let all = || report.conditions.iter().filter_map(|c| c.metric(metric));
        for q in SHOWN {
            let Some(unit) = Unit::of_all(all().filter_map(|m| m.quantile(q)?.value_ns())) else { continue };
            heads.push(right(format!("{name} {}", label(q)), unit.name()));
            columns.push((metric, Some(q), unit));
        }
        let Some(unit) = Unit::of_all(all().filter_map(|m| m.max_ns)) else { continue };
        heads.push(right(format!("{name} max"), unit.name()));
        columns.push((metric, None, unit));
    }
    let rows: Vec<String> = report
        .conditions
        .iter()
        .zip(&times)
        .map(|(c, times)| {
            let mut cells = super::conditions::row_head(&table_of_all, c)
                + &number(&count(times.len() as u64))
                + &number(&scheduled(c))
                + &number(&span(times, unit));
            for (metric, q, unit) in &columns {
                let figures = c.metric(*metric);
                cells.push_str(&match q {
                    Some(q) => super::conditions::quantile(figures.and_then(|m| m.quantile(*q)), *unit),
                    None => number(&figures.and_then(|m| m.max_ns).map_or(String::new(), |v| unit.number(v as f64))),
                });
            }
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    table(&heads, &rows)
}
