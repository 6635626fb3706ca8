//! Runs `tailbound tune replay`: measures the kept changes of a receipt against the original again.

use super::bench::Measured;
use super::fighting;
use super::limit::judge;
use super::run::{ask, end, failure, watchdog};
use super::state::{State, write};
use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use std::path::{Path, PathBuf};
use tailbound_model::{ExitCode, Metric};
use tailbound_tune::{Logged, Receipt, Replayed, TuneError};

/// Reads a receipt.
pub fn read(path: &Path) -> Result<Receipt, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        let what = format!("{} cannot be read: {e}", path.display());
        Failure::bad_input(what).help("name a file `receipt.json` of `tailbound tune`")
    })?;
    Receipt::read(&text).map_err(|problem| Failure::of(ExitCode::BadInput, problem.context(path.display())))
}

pub fn replay(path: &Path, out: Option<&Path>, beside: bool, yes: bool) -> CommandResult {
    let receipt = read(path)?;
    if receipt.kept.is_empty() {
        let what =
            format!("nothing was kept by the receipt {}, so that there is nothing to measure again", path.display());
        return Err(Failure::bad_input(what));
    }
    let state = State {
        name: receipt.name.clone(),
        study: receipt.study.clone(),
        directory: receipt.directory.clone(),
        settings: receipt.settings.clone(),
        figure: receipt.figure.clone(),
        metric: Metric::ALL.into_iter().find(|metric| metric.key() == receipt.metric),
        limit: receipt.limit.as_ref().map(|limit| limit.declared.clone()),
        rule: receipt.rule,
        seed: receipt.seed.wrapping_add(1),
        budget_s: None,
        only: Vec::new(),
        tries: Vec::new(),
        candidates: 0,
        cpu_most: receipt.cpu_most,
        host: None,
        changed: Vec::new(),
        beside,
    };
    let directory = out.map_or_else(|| PathBuf::from(format!("tailbound-replay-{}", receipt.name)), Path::to_owned);
    let plan = state.plan(&[])?;
    fighting::refuse(beside)?;
    ask(yes)?;
    std::fs::create_dir(&directory).map_err(|e| {
        let what = format!("{} cannot be created: {e}", directory.display());
        Failure::bad_input(what).help("name another directory with --out")
    })?;
    let watchdog = watchdog()?;
    let metric = state.metric(&plan);
    let bench = Measured::new(&state, &directory, metric)?;
    let gain = Logged::open(bench, &directory.join("pairs.jsonl"), "")
        .map_err(TuneError::Failed)
        .and_then(|mut logged| tailbound_tune::confirm(&mut logged, &state.options(), &receipt));
    end(watchdog, gain.is_ok());
    let gain = gain.map_err(|e| failure(e, "begin again with another --out", &state))?;
    let limit = judge(&state, metric, &directory, true)?;
    let replayed = Replayed { gain, limit };
    let json = serde_json::to_string_pretty(&replayed).map_err(Failure::unexpected)?;
    write(&directory.join("gain.json"), &json)?;
    outln!("{}", tailbound_tune::render_replay(&receipt, &replayed));
    Ok(if gain.confirmed { ExitCode::Done } else { ExitCode::Undecided })
}
