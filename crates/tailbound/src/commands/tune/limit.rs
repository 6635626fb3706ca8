//! The limit of a budget file that declares the figure of `tune`, and whether the trials keep it.

use super::state::{State, usual_metric};
use crate::cli::Declared;
use crate::failure::Failure;
use crate::output::{colour_of_errors, width};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::{AtMost, Budget, ExitCode, Limit, LimitSet, Metric, Nanos, Plan};
use tailbound_record::Record;
use tailbound_report::BudgetOutcome;
use tailbound_study::Usable;
use tailbound_tune::{DeclaredLimit, Met, OfLimit, Side, Stage};

/// Quantiles of a budget that can be the declared figure: the ones that `--for` knows.
const QUANTILES: [&str; 3] = ["p50", "p99", "p99.9"];

/// Sets the figure of a run, its metric, and the limit if a budget file names it.
pub fn declare(declared: &Declared, plan: &Plan, state: &mut State) -> Result<(), Failure> {
    let usual = usual_metric(plan);
    state.metric = Some(usual);
    let path = match declared {
        Declared::Figure(name) => {
            state.figure.clone_from(name);
            return Ok(());
        }
        Declared::Budget(path) => path,
    };
    let both = [usual, Metric::RoundTrip];
    let metrics = if usual == Metric::RoundTrip { &both[..1] } else { &both[..] };
    let none = BTreeMap::new();
    let condition = plan.conditions.iter().find(|c| c.not_possible.is_none());
    let levels = condition.map_or(&none, |c| &c.levels);
    let limit = tailbound_study::declared_limit(path, &Usable { quantiles: &QUANTILES, metrics, levels })
        .map_err(|e| Failure::bad_input(e.render(colour_of_errors(), width())))?;
    state.metric = Some(limit.metric);
    state.figure.clone_from(&limit.quantile);
    let budget = path.display().to_string();
    let metric = limit.metric.key().to_owned();
    state.limit = Some(DeclaredLimit { budget, figure: limit.quantile, metric, at_most_ns: limit.at_most.0 });
    Ok(())
}

/// Whether the trials keep the limit, as `tailbound budget` decides it: the ones of the confirmation, or without a kept change the
/// ones of the baseline.
pub fn judge(state: &State, metric: Metric, run: &Path, has_gain: bool) -> Result<Option<OfLimit>, Failure> {
    let Some(declared) = state.limit.clone() else { return Ok(None) };
    let stage = if has_gain { Stage::Confirm } else { Stage::Baseline };
    let record = Record::open(&run.join(format!("{}-1", stage.name())));
    let record = record.map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let limit = Limit { metric, at_most: AtMost::Quantile(state.figure.clone(), Nanos(declared.at_most_ns)) };
    let set = LimitSet {
        levels: BTreeMap::new(),
        limits: vec![limit],
        throughput: Vec::new(),
        misses: None,
        on_wire: Vec::new(),
    };
    let budget = Budget { name: declared.budget.clone(), limits: vec![set], baseline: None };
    let judged = tailbound_report::judge_budget(&record, &budget, None);
    let judged = judged.map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    // The trials with the change are the last condition.
    let mut sides = judged.checks.into_iter().map(|check| Side {
        met: match check.outcome {
            BudgetOutcome::Holds => Met::Met,
            BudgetOutcome::Broken => Met::NotMet,
            BudgetOutcome::Undecided => Met::Undecided,
        },
        found: [check.found, check.why].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; "),
    });
    let (before, after) = (sides.next(), sides.next());
    Ok(Some(OfLimit { declared, before, after: after.filter(|_| has_gain) }))
}
