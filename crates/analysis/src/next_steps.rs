//! Chooses the next steps of a condition: changes that answer its causes, with the commands that try them.

use tailbound_advice::{Candidate, Prediction, Situation, candidates};
use tailbound_document::number::label;
use tailbound_document::{ConditionReport, NEXT_STEPS, NextStep};
use tailbound_model::{CpuList, FactValue, HostFacts, Plan, TrialSpec};
use tailbound_record::Manifest;

/// A second step has at least this part of the rank of the first one; otherwise it would only be a guess beside an answer.
const LEAST_OF_FIRST: f64 = 0.4;

/// Adds the next steps to each condition. `facts` are the facts of all hosts of the record.
pub(crate) fn add(conditions: &mut [ConditionReport], manifest: &Manifest, facts: &[HostFacts]) {
    // Facts of several hosts do not say on which of them a thread was delayed.
    let facts = if let [of_all] = facts { Some(of_all) } else { None };
    for condition in conditions {
        let Some(planned) = manifest.plan.conditions.get(condition.id) else { continue };
        condition.next_steps = of_condition(condition, &planned.spec, facts, &Study::of(manifest, condition.id));
    }
}

fn of_condition(
    condition: &ConditionReport,
    spec: &TrialSpec,
    facts: Option<&HostFacts>,
    study: &Study<'_>,
) -> Vec<NextStep> {
    let cpus = facts.map_or(Vec::new(), allowed_cpus);
    let situation = Situation {
        spec,
        causes: &condition.causes,
        without: &condition.without_cause,
        losses: &condition.losses,
        cpus: &cpus,
        facts,
        q: None,
    };
    let metric = condition.without_cause.first().map(|of| of.metric.as_str());
    let mut steps: Vec<Candidate> = Vec::new();
    for candidate in candidates(&situation) {
        // A second step that changes the same key would hardly be another one.
        let is_other = |step: &Candidate| key(step) != key(&candidate) && candidate.rank >= LEAST_OF_FIRST * step.rank;
        if steps.len() < NEXT_STEPS && steps.iter().all(is_other) {
            steps.push(candidate);
        }
    }
    steps.into_iter().map(|candidate| step(candidate, metric, study)).collect()
}

/// What a candidate changes first: the key of its first setting, or its rule.
fn key(candidate: &Candidate) -> &str {
    let first = candidate.settings.first().and_then(|setting| setting.split_once('='));
    first.map_or(candidate.rule.key, |(key, _)| key)
}

fn step(candidate: Candidate, metric: Option<&str>, study: &Study<'_>) -> NextStep {
    let predicted = candidate.predicted_ns.filter(Prediction::is_clear);
    let is_tried = !candidate.settings.is_empty();
    NextStep {
        rule: candidate.rule.key.to_owned(),
        text: candidate.text,
        command: is_tried.then(|| study.run(&candidate.settings)).flatten(),
        tune: is_tried.then(|| study.tune(predicted.map(|of| of.q))).flatten(),
        settings: candidate.settings,
        metric: predicted.and(metric).map(str::to_owned),
        q: predicted.map(|of| of.q),
        now_ns: predicted.map(|of| of.now_ns),
        then_ns: predicted.map(|of| of.then_ns),
        scope: candidate.rule.scope.word().to_owned(),
    }
}

/// CPUs that processes of a host may use, in rising order.
pub fn allowed_cpus(facts: &HostFacts) -> Vec<u32> {
    let Some(FactValue::Text(text)) = facts.get("cpu.allowed") else { return Vec::new() };
    text.parse::<CpuList>().map_or(Vec::new(), |cpus| cpus.0.into_iter().collect())
}

/// A study, as a command names it.
struct Study<'a> {
    /// File or name of the study, as the command of the record named it; `None` if it named none, so that no command can run it again.
    name: Option<&'a str>,
    /// Settings with which the study ran.
    settings: &'a [String],
    /// Settings that choose the levels of the condition, because `tune` works on one condition.
    levels: Vec<String>,
}

impl<'a> Study<'a> {
    /// The study of a record, as the command of the record named it.
    fn of(manifest: &'a Manifest, condition: usize) -> Study<'a> {
        let Plan { study, settings, .. } = &manifest.plan;
        let is_file = |word: &&String| {
            let word = word.to_lowercase();
            word.ends_with(".yaml") || word.ends_with(".yml")
        };
        let command = manifest.command.get(1).map(String::as_str);
        let settings_of = |word: &&String| !settings.contains(word) && !word.starts_with('-');
        let words = || manifest.command.iter().skip(2).filter(settings_of);
        let file = words().find(is_file).map(String::as_str);
        let built_in = (command == Some("quick") || (command == Some("run") && words().any(|word| word == study)))
            .then_some(study.as_str());
        let name = match command {
            // The study of a ping is in the file to which the ping wrote it.
            Some("ping") => saved(&manifest.command),
            Some("run" | "quick") => file.or(built_in),
            _ => None,
        };
        Study { name, settings, levels: levels(&manifest.plan, condition) }
    }

    /// The command that runs the study with further settings.
    fn run(&self, more: &[String]) -> Option<String> {
        self.command("run", &[], more)
    }

    /// The command that tunes the study for a quantile.
    fn tune(&self, q: Option<f64>) -> Option<String> {
        // `tune` decides about no maximum, because the maximum of a trial says little about the next one.
        let figure = q.filter(|q| *q < 1.0).map_or("p99".to_owned(), label);
        self.command("tune", &["--for", &figure], &self.levels)
    }

    fn command(&self, what: &str, options: &[&str], more: &[String]) -> Option<String> {
        let mut words = vec!["tailbound".to_owned(), what.to_owned(), shell_word(self.name?)];
        words.extend(options.iter().map(|word| shell_word(word)));
        for setting in self.settings.iter().chain(more) {
            words.extend(["--set".to_owned(), shell_word(setting)]);
        }
        Some(words.join(" "))
    }
}

/// The file to which a ping wrote its study.
fn saved(command: &[String]) -> Option<&str> {
    const FLAG: &str = "--save-study";
    let after = command.iter().position(|word| word == FLAG).and_then(|at| command.get(at + 1));
    let joined = || command.iter().find_map(|word| word.strip_prefix(FLAG)?.strip_prefix('='));
    after.map(String::as_str).or_else(joined)
}

/// The levels of a condition, as `--set` chooses them, for the factors that vary in the plan.
fn levels(plan: &Plan, condition: usize) -> Vec<String> {
    let level = |of: usize, factor: &String| plan.conditions.get(of).and_then(|c| c.levels.get(factor));
    let varies = |factor: &&String| (0..plan.conditions.len()).any(|of| level(of, factor) != level(condition, factor));
    let setting = |factor: &String| level(condition, factor).map(|level| format!("{factor}={level}"));
    plan.factors.iter().filter(varies).filter_map(setting).collect()
}

/// A word for a POSIX shell: quoted if it contains more than letters, digits and a few characters without a meaning.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = ["study.yaml", "payload=64B", "a b", "it's", "", "$HOME", "x={ y: 1 }", "~/x"].map(shell_word);
        let expected = ["study.yaml", "payload=64B", "'a b'", r"'it'\''s'", "''", "'$HOME'", "'x={ y: 1 }'", "'~/x'"];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_study_is_named_as_the_command_named_it() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let plan = Plan {
            study: "ping-pong".into(),
            question: String::new(),
            seed: 1,
            factors: Vec::new(),
            conditions: Vec::new(),
            trials: Vec::new(),
            report: serde_json::from_str("{\"quantiles\": []}").unwrap(),
            clock: None,
            source: String::new(),
            settings: vec!["driver.config=a.yaml".into(), "rate=2 kHz".into()],
        };
        let of = |command: &str| {
            let manifest = Manifest::begun(plan.clone(), "run", words(command));
            Study::of(&manifest, 0).run(&["ends.pong.cpus=2".into()])
        };
        let with = |name: &str| {
            Some(format!("tailbound run {name} --set driver.config=a.yaml --set 'rate=2 kHz' --set ends.pong.cpus=2"))
        };
        assert_eq!(of("tailbound run ping-pong --set driver.config=a.yaml"), with("ping-pong"));
        assert_eq!(of("tailbound run my/study.yaml --out x"), with("my/study.yaml"));
        assert_eq!(of("tailbound quick"), with("ping-pong"));
        assert_eq!(of("tailbound run ping-pong --set=driver.config=a.yaml"), with("ping-pong"));
        assert_eq!(of("tailbound ping udp --out a.yaml"), None);
        assert_eq!(of("tailbound ping udp --save-study my.yaml"), with("my.yaml"));
        assert_eq!(of("tailbound ping --save-study=my.yaml --for 5s"), with("my.yaml"));
        assert_eq!(of("tailbound tune trials baseline-1.plan.json baseline-1"), None);
    }
}
