//! Finds the pairs of conditions that a comparison of two records or two levels compares.

use crate::clocks;
use crate::compare::changed::{between, shared};
use crate::compare::definitions::{comparable, differ};
use crate::compare::options::{CompareError, CompareOptions};
use crate::compare::table;
use crate::compare::table::PairOf;
use crate::names::names;
use crate::series::is_between_ends;
use std::collections::{BTreeMap, BTreeSet};
use tailbound_document::{Comparison, ComparisonOf, NotCompared, ReportStatus, Side, short_factor};
use tailbound_model::{Condition, Metric, Plan, is_same_level};
use tailbound_record::{Record, Status};

/// Caution at the beginning of a comparison of separate runs.
const SEPARATE: &str = "separate runs: the ratios include everything that changed between them";

type Levels = BTreeMap<String, String>;

/// Compares two records. A pair consists of conditions with the same levels of all factors that at least one of the
/// records varies.
///
/// # Errors
/// No condition has a counterpart with figures of the same definitions, or a record cannot be read.
pub fn compare_records(a: &Record, b: &Record, options: &CompareOptions) -> Result<Comparison, CompareError> {
    comparable(&options.metrics)?;
    let (of_a, of_b) = (shared(a), shared(b));
    // A factor with a single level on each side does not distinguish conditions.
    let key = |c: &Condition| -> Levels {
        let varied = |f: &String| !(of_a.contains_key(f) && of_b.contains_key(f));
        let all = c.levels.iter().filter(|(f, _)| varied(f));
        all.map(|(f, l)| (f.clone(), l.clone())).collect()
    };
    let (names_a, names_b) = (names(&a.manifest.plan), names(&b.manifest.plan));
    let mut found = Found::default();
    for (i, condition) in a.manifest.plan.conditions.iter().enumerate() {
        let same = b.manifest.plan.conditions.iter().position(|c| key(c) == key(condition));
        match same {
            Some(j) => {
                let other = &b.manifest.plan.conditions[j];
                let name = name_of_both(condition, other, &names_a[i]);
                found.offer((a, condition), (b, other), name, None, options);
            }
            None => found.left(&names_a[i], "only A has it"),
        }
    }
    for (i, condition) in b.manifest.plan.conditions.iter().enumerate() {
        if !a.manifest.plan.conditions.iter().any(|c| key(c) == key(condition)) {
            found.left(&names_b[i], "only B has it");
        }
    }
    let (mut side_a, mut side_b) = (side(a, None), side(b, None));
    if side_a.name == side_b.name {
        (side_a.name, side_b.name) = (side_a.record.clone(), side_b.record.clone());
    }
    let mut comparison = found.comparison(ComparisonOf::Records, side_a, side_b, options)?;
    comparison.caution = Some(SEPARATE.into());
    comparison.changed = between(a, b);
    Ok(comparison)
}

/// Compares two levels of a factor inside one record. A pair consists of conditions that have the same levels of all
/// other factors. Without `factor`, the record must vary exactly one factor; without `levels`, the factor must have
/// exactly two levels.
///
/// # Errors
/// The factor or a level does not exist, several factors could be meant, or the record cannot be read.
pub fn compare_levels(
    record: &Record,
    factor: Option<&str>,
    levels: Option<[&str; 2]>,
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    comparable(&options.metrics)?;
    let (factor, of_factor) = the_factor(record, factor)?;
    let [level_a, level_b] = the_levels(&factor, &of_factor, levels)?;
    let plan = &record.manifest.plan;
    let without = |c: &Condition| -> Levels {
        c.levels.iter().filter(|(f, _)| !belongs_to(plan, &factor, f)).map(|(f, l)| (f.clone(), l.clone())).collect()
    };
    let with = |level: &str| {
        let level = level.to_owned();
        let factor = factor.clone();
        plan.conditions.iter().filter(move |c| c.levels.get(&factor) == Some(&level))
    };
    let mut found = Found::default();
    for condition in with(&level_a) {
        let name = name_without(&plan.conditions, condition, &factor);
        match with(&level_b).find(|c| without(c) == without(condition)) {
            Some(other) => found.offer((record, condition), (record, other), name, Some(&factor), options),
            None => {
                let why = format!(
                    "no condition with {factor} {level_b} has the same levels of the other factors as this condition"
                );
                found.left(&name, &why);
            }
        }
    }
    let sides = [&level_a, &level_b].map(|l| side(record, Some(format!("{} {l}", short_factor(&factor)))));
    let [a, b] = sides;
    found.comparison(ComparisonOf::Levels, a, b, options)
}

/// Whether the level of `other` follows from the level of `factor`: it is `factor` itself, or a key of the study that is no
/// factor, so that only a named level can set it.
pub(crate) fn belongs_to(plan: &Plan, factor: &str, other: &str) -> bool {
    let is_factor = |name: &str| plan.factors.iter().any(|f| f == name);
    other == factor || (is_factor(factor) && !is_factor(other))
}

/// Returns the factor to be compared, with its levels in the order of the study.
fn the_factor(record: &Record, asked: Option<&str>) -> Result<(String, Vec<String>), CompareError> {
    let plan = &record.manifest.plan;
    let factors: BTreeSet<&String> = plan.conditions.iter().flat_map(|c| c.levels.keys()).collect();
    let levels = |factor: &str| {
        let mut levels: Vec<String> = Vec::new();
        for level in plan.conditions.iter().filter_map(|c| c.levels.get(factor)) {
            if !levels.contains(level) {
                levels.push(level.clone());
            }
        }
        levels
    };
    let varied: Vec<&String> = factors.iter().filter(|f| levels(f).len() > 1).copied().collect();
    let there = || match varied.as_slice() {
        [] => "it varies no factor".to_owned(),
        some => some.iter().map(|f| format!("{f} ({})", levels(f).join(", "))).collect::<Vec<_>>().join("; "),
    };
    let one = |matching: Vec<&String>| match matching.as_slice() {
        [one] => Some((*one).clone()),
        _ => None,
    };
    let chosen = match asked {
        Some(asked) => one(varied.iter().filter(|f| f.as_str() == asked).copied().collect())
            .or_else(|| one(varied.iter().filter(|f| short_factor(f) == asked).copied().collect()))
            .ok_or_else(|| format!("{}: `{asked}` is not a factor that varies", record.dir().display())),
        None => one(varied.clone()).ok_or_else(|| format!("{}: one record, and no --factor", record.dir().display())),
    };
    match chosen {
        Ok(factor) => Ok((factor.clone(), levels(&factor))),
        Err(text) => Err(CompareError::refused(
            text,
            format!("name a second record, or two levels of one factor of this record: {}", there()),
        )),
    }
}

fn the_levels(factor: &str, there: &[String], asked: Option<[&str; 2]>) -> Result<[String; 2], CompareError> {
    let list = there.join(", ");
    match asked {
        None => match there {
            [a, b] => Ok([a.clone(), b.clone()]),
            _ => Err(CompareError::refused(
                format!("{factor} has {} levels", there.len()),
                format!("--levels with two of: {list}"),
            )),
        },
        Some([a, b]) => {
            let find = |asked: &str| {
                let found = there.iter().find(|l| is_same_level(l, asked)).cloned();
                found.ok_or_else(|| {
                    CompareError::refused(format!("{factor} has no level `{asked}`"), format!("choose two of: {list}"))
                })
            };
            let (a, b) = (find(a)?, find(b)?);
            match a == b {
                true => Err(CompareError::refused(format!("both levels are {a}"), format!("choose two of: {list}"))),
                false => Ok([a, b]),
            }
        }
    }
}

/// Name of a pair of conditions: the name of A's condition if both conditions have the same levels, otherwise the
/// levels that both have in common.
fn name_of_both(a: &Condition, b: &Condition, name: &str) -> String {
    if a.levels == b.levels {
        return name.to_owned();
    }
    let both = a.levels.iter().filter(|(f, l)| b.levels.get(*f) == Some(l));
    let told: Vec<String> = both.map(|(f, l)| format!("{} {l}", short_factor(f))).collect();
    if told.is_empty() { "all".into() } else { told.join(", ") }
}

/// The levels by which a condition differs from other conditions with the same level of `factor`.
fn name_without(all: &[Condition], condition: &Condition, factor: &str) -> String {
    let varies = |f: &str| all.iter().any(|c| c.levels.get(f) != condition.levels.get(f));
    let told: Vec<String> = condition
        .levels
        .iter()
        .filter(|(f, _)| *f != factor && varies(f))
        .map(|(f, l)| format!("{} {l}", short_factor(f)))
        .collect();
    if told.is_empty() { "all".into() } else { told.join(", ") }
}

/// Reason why a leg between two clocks cannot be compared: such a leg is a range, and a range has no ratio.
fn between_clocks((record, condition): (&Record, &Condition), metrics: &[Metric]) -> Option<String> {
    let metric = metrics.iter().find(|m| is_between_ends(**m))?;
    let trials = record.manifest.plan.trials.iter().filter(|t| t.condition == condition.id);
    let apart = trials.into_iter().any(|t| clocks::apart_in(record, t.id, "pong"));
    let metric = metric.key();
    apart.then(|| {
        format!(
            "the ends of this condition have different clocks: only the smallest and the largest possible \
            {metric} are known (`report` shows both)"
        )
    })
}

/// Reason why a leg that ends at a receive timestamp of the kernel cannot be compared, if the record has no such
/// timestamps.
fn without_stamps((record, condition): (&Record, &Condition), metrics: &[Metric]) -> Option<String> {
    let metric = metrics.iter().find(|m| matches!(m, Metric::OutNetwork | Metric::BackNetwork))?;
    let mut trials = record.manifest.plan.trials.iter().filter(|t| t.condition == condition.id);
    // If a trial cannot be read, the error is reported when the trial is read.
    let stamped = trials.any(|t| record.has_kernel_stamps(t.id).unwrap_or(true));
    let metric = metric.key();
    (!stamped).then(|| {
        format!(
            "no message has a receive timestamp of the kernel (`timestamps: on` of udp), so {metric} is \
            unknown"
        )
    })
}

/// Reason why the figures of two conditions have no ratio; `None` if they have a ratio.
pub(crate) fn apart(
    a: (&Record, &Condition),
    b: (&Record, &Condition),
    factor: Option<&str>,
    options: &CompareOptions,
) -> Option<String> {
    let impossible = a.1.not_possible.as_ref().or(b.1.not_possible.as_ref());
    let why = impossible.map(|why| format!("not possible: {why}"));
    let why = why.or_else(|| differ(a.1, b.1, factor, &options.metrics));
    let of = |side| between_clocks(side, &options.metrics).or_else(|| without_stamps(side, &options.metrics));
    why.or_else(|| of(a)).or_else(|| of(b))
}

fn side(record: &Record, name: Option<String>) -> Side {
    let manifest = &record.manifest;
    let dir = record.dir().display().to_string();
    let last = record.dir().file_name().map(|n| n.to_string_lossy().into_owned());
    Side {
        name: name.or(last).unwrap_or_else(|| dir.clone()),
        record: dir,
        study: manifest.plan.study.clone(),
        run_id: manifest.run_id.clone(),
        began_unix_ns: manifest.began_unix_ns,
        status: match manifest.status {
            Status::Valid => ReportStatus::Valid,
            Status::Invalid => ReportStatus::Invalid,
            Status::Incomplete => ReportStatus::Incomplete,
        },
        functional_only: manifest.functional_only.clone(),
    }
}

/// Pairs of conditions to be compared, and conditions without a counterpart.
#[derive(Default)]
struct Found<'r> {
    pairs: Vec<PairOf<'r>>,
    left: Vec<NotCompared>,
}

impl<'r> Found<'r> {
    fn left(&mut self, name: &str, why: &str) {
        self.left.push(NotCompared { condition: name.into(), why: why.into() });
    }

    fn offer(
        &mut self,
        a: (&'r Record, &'r Condition),
        b: (&'r Record, &'r Condition),
        name: String,
        factor: Option<&str>,
        options: &CompareOptions,
    ) {
        match apart(a, b, factor, options) {
            Some(why) => self.left(&name, &why),
            None => self.pairs.push(PairOf { name, a, b }),
        }
    }

    fn comparison(
        self,
        of: ComparisonOf,
        a: Side,
        b: Side,
        options: &CompareOptions,
    ) -> Result<Comparison, CompareError> {
        if self.pairs.is_empty() {
            let reasons: Vec<String> = self.left.iter().map(|l| format!("\n  {}: {}", l.condition, l.why)).collect();
            let what = format!(
                "no condition of {} can be compared with a condition of {}{}",
                a.name,
                b.name,
                reasons.concat()
            );
            return Err(CompareError::refused(what, ""));
        }
        table::comparison(of, a, b, self.pairs, self.left, options)
    }
}
