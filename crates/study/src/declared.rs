//! The limit of a budget file that declares the figure of `tailbound tune`: the first one that `tune` can use.

use crate::budget::{at_most, budget, map, metric, metrics, parsed, read};
use crate::error::{Fault, StudyError};
use crate::tree::{Key, Kind, Node};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::{AtMost, MISSES, Metric, Nanos, THROUGHPUT, is_same_level};

/// Limits that can be used: the figures that `tune` can make smaller, and the condition that it measures.
#[derive(Debug, Clone)]
pub struct Usable<'a> {
    /// Labels of quantiles, e.g. `p99`.
    pub quantiles: &'a [&'a str],
    /// Metrics of these quantiles.
    pub metrics: &'a [Metric],
    /// Level of each factor of the condition.
    pub levels: &'a BTreeMap<String, String>,
}

/// A limit of a latency quantile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredLimit {
    /// The metric whose quantile is limited.
    pub metric: Metric,
    /// Label of the quantile, e.g. `p99`.
    pub quantile: String,
    /// Largest allowed value.
    pub at_most: Nanos,
}

/// Reads the first usable limit of a budget file.
///
/// # Errors
/// The file is no budget, or has no usable limit: the error names the first limit and why it cannot be used.
pub fn declared_limit(path: &Path, usable: &Usable) -> Result<DeclaredLimit, StudyError> {
    let name = path.display().to_string();
    parsed(&name, &read(path)?, |root, stem| {
        budget(root, stem)?;
        first(root, usable)
    })
}

fn first(root: &Node, usable: &Usable) -> Result<DeclaredLimit, Fault> {
    let sets = map(root)?.iter().filter(|(key, _)| key.text == "limits");
    let sets = sets.filter_map(|(_, node)| if let Kind::List(sets) = &node.kind { Some(sets) } else { None });
    let mut refused = None;
    for set in sets.flatten() {
        match of_set(set, usable)? {
            Ok(limit) => return Ok(limit),
            Err(fault) => refused = refused.or(Some(fault)),
        }
    }
    let fault = refused.unwrap_or_else(|| Fault::new(root.at, "the budget has no `limits`"));
    let metrics: Vec<&str> = usable.metrics.iter().map(|metric| metric.key()).collect();
    Err(fault.help(format!(
        "`tune` uses the first limit of {} that is one of {}, for example `{}: {{ p99: 1 ms }}`",
        metrics.join(" or "),
        usable.quantiles.join(", "),
        metrics.first().copied().unwrap_or_default(),
    )))
}

/// The first usable limit of one entry of `limits`; otherwise the reason why its first limit cannot be used.
fn of_set(set: &Node, usable: &Usable) -> Result<Result<DeclaredLimit, Fault>, Fault> {
    if let Some(fault) = of_another_condition(set, usable) {
        return Ok(Err(fault));
    }
    let mut refused = None;
    for (key, node) in map(set)?.iter().filter(|(key, _)| key.text != "where") {
        if [THROUGHPUT, MISSES].contains(&key.text.as_str()) {
            refused.get_or_insert_with(|| unusable(key, format!("`{}`", key.text)));
            continue;
        }
        let metric = metric(key, &metrics())?;
        for (statistic, value) in map(node)? {
            match at_most(statistic, value)? {
                AtMost::Quantile(quantile, at_most)
                    if usable.metrics.contains(&metric) && usable.quantiles.contains(&quantile.as_str()) =>
                {
                    return Ok(Ok(DeclaredLimit { metric, quantile, at_most }));
                }
                _ => {
                    refused
                        .get_or_insert_with(|| unusable(statistic, format!("`{}` of `{}`", statistic.text, key.text)));
                }
            }
        }
    }
    Ok(Err(refused.unwrap_or_else(|| Fault::new(set.at, "nothing is limited here"))))
}

fn unusable(key: &Key, what: String) -> Fault {
    Fault::new(key.at, format!("`tune` cannot use the limit of {what}, and the budget has no other usable limit"))
}

/// The fault of limits that are for another condition than the study's.
fn of_another_condition(set: &Node, usable: &Usable) -> Option<Fault> {
    set.get("where")?.entries().iter().find_map(|(factor, level)| {
        let own = usable.levels.get(&factor.text);
        if own.is_some_and(|own| is_same_level(own, level.text().unwrap_or_default())) {
            return None;
        }
        let of_study = own.map_or("has no such factor".into(), |own| format!("has `{own}`"));
        Some(Fault::new(level.at, format!("the limits here are for another `{}`: the study {of_study}", factor.text)))
    })
}
