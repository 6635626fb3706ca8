//! What a run of `tune` needs to go on after an interruption: the file `tune.json` in its directory.

use super::reboot::HostOfRun;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tailbound_model::{Metric, Plan, Rate};
use tailbound_tune::{DeclaredLimit, RuleName};

/// Choices of the user, and the study as it was when the run began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// Name of the study's file, for messages.
    pub name: String,
    /// Text of the study.
    pub study: String,
    /// Directory against which the study's configuration files are named.
    pub directory: PathBuf,
    /// Arguments of `--set`.
    pub settings: Vec<String>,
    /// Name of the figure, e.g. `p99`.
    pub figure: String,
    /// Metric of the figure; absent in the files of earlier releases.
    #[serde(default)]
    pub metric: Option<Metric>,
    /// The limit of a budget file that declared the figure.
    #[serde(default)]
    pub limit: Option<DeclaredLimit>,
    /// Rule of the decisions.
    pub rule: RuleName,
    /// Seed of the order within the pairs.
    pub seed: u64,
    /// Time limit, s.
    pub budget_s: Option<u64>,
    /// Keys to which the candidates are limited.
    pub only: Vec<String>,
    /// Settings of the user that are tried after the candidates of the rules, each `key=value`.
    #[serde(default)]
    pub tries: Vec<String>,
    /// Largest number of candidates.
    pub candidates: usize,
    /// Largest ratio of the CPU times per message that a kept change may have.
    #[serde(default)]
    pub cpu_most: Option<f64>,
    /// The host at the begin of the run, or after its last reboot.
    #[serde(default)]
    pub host: Option<HostOfRun>,
    /// What changed with reboots of the host, each in words.
    #[serde(default)]
    pub changed: Vec<String>,
    /// Whether the run may measure beside programs that change settings on their own.
    pub beside: bool,
}

impl State {
    /// The plan of the study with further settings.
    pub fn plan(&self, more: &[String]) -> Result<Plan, Failure> {
        let settings = [self.settings.clone(), more.to_vec()].concat();
        crate::commands::run::load_text(&self.name, &self.study, &self.directory, &settings)
    }

    /// Options of the loop.
    pub fn options(&self) -> tailbound_tune::Options {
        let budget = self.budget_s.map(Duration::from_secs);
        tailbound_tune::Options { rule: self.rule, alpha: 0.05, seed: self.seed, budget, cpu_most: self.cpu_most }
    }

    /// The metric of the figure: the declared one, or the usual one of the plan.
    pub fn metric(&self, plan: &Plan) -> Metric {
        self.metric.unwrap_or_else(|| usual_metric(plan))
    }

    /// Writes the file into the directory of the run.
    pub fn write(&self, run: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(Failure::unexpected)?;
        write(&run.join("tune.json"), &text)
    }

    /// Reads the file from the directory of a run.
    pub fn read(run: &Path) -> Result<State, Failure> {
        let path = run.join("tune.json");
        let text = std::fs::read_to_string(&path).map_err(|e| {
            let what =
                format!("{} is not the directory of a run of `tune`: tune.json cannot be read: {e}", run.display());
            Failure::bad_input(what).help("name the directory that `tailbound tune` made")
        })?;
        serde_json::from_str(&text)
            .map_err(|e| Failure::bad_input(format!("{} is damaged: {e}", path.display())).help("begin a new run"))
    }
}

/// The metric of a figure without a budget: from due to answered, or the round trip of stop-and-wait, which has no due times.
pub fn usual_metric(plan: &Plan) -> Metric {
    match plan.conditions.first().map(|c| c.spec.rate) {
        Some(Rate::Max) => Metric::RoundTrip,
        _ => Metric::FromIntended,
    }
}

/// Writes a file under another name first, so that a killed process leaves no half of it.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let partial = path.with_extension("partial");
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|e| Failure::run_failed(format!("{} cannot be written: {e}", path.display())))
}
