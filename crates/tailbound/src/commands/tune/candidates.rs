//! Candidates of `tune`: what the rules of advice give for the causes of the baseline.

use super::state::{State, usual_metric};
use tailbound_advice::{Situation, Watch};
use tailbound_document::{ConditionReport, Report};
use tailbound_record::Record;
use tailbound_report::cause_words;
use tailbound_tune::{Candidate, CauseLine, Prediction};

/// Rule of the candidates for which the user asks.
pub const ASKED: &str = "asked";

/// Causes of a condition, the largest first, with their share of the excess that has a ledger.
pub fn causes(condition: &ConditionReport) -> Vec<CauseLine> {
    let line = |cause: &tailbound_document::CauseShare| CauseLine {
        text: cause_words(cause.cause, cause.end.as_deref(), cause.by.as_ref()),
        share: cause.share,
    };
    condition.causes.iter().filter(|c| c.explains).map(line).collect()
}

/// Candidates that settings of a study can make, the most promising first.
pub fn of(record: &Record, report: &Report, state: &State) -> Vec<Candidate> {
    let Some(condition) = report.conditions.first() else { return Vec::new() };
    let plan = &record.manifest.plan;
    let Some(spec) = plan.conditions.first().map(|c| &c.spec) else { return Vec::new() };
    let hosts = record.hosts();
    // Facts of several hosts do not say on which of them a thread was delayed.
    let facts = if let [Ok(facts)] = hosts.as_slice() { Some(facts) } else { None };
    let allowed = facts.map_or(Vec::new(), tailbound_analysis::allowed_cpus);
    let situation = Situation {
        spec,
        causes: &condition.causes,
        without: &condition.without_cause,
        losses: &condition.losses,
        cpus: &allowed,
        facts,
        q: state
            .figure
            .strip_prefix('p')
            .and_then(|percent| percent.parse::<f64>().ok())
            .map(|percent| percent / 100.0),
    };
    let wanted = |c: &tailbound_advice::Candidate| !c.settings.is_empty() && is_among(&c.settings, &state.only);
    let chosen = tailbound_advice::candidates(&situation).into_iter().filter(wanted).take(state.candidates);
    // An estimate exists for quantiles of the usual metric of the study only.
    let has_estimate = situation.q.is_some() && state.metric.is_none_or(|metric| metric == usual_metric(plan));
    let mut all: Vec<Candidate> =
        chosen.enumerate().map(|(position, candidate)| named(position, candidate, has_estimate)).collect();
    all.extend(asked(&state.tries, &all));
    all
}

/// The settings that the user asks to try, without those that are candidates already.
fn asked(tries: &[String], known: &[Candidate]) -> Vec<Candidate> {
    let is_new = |setting: &&String| known.iter().all(|c| c.settings.as_slice() != std::slice::from_ref(*setting));
    let candidate = |(position, setting): (usize, &String)| Candidate {
        key: format!("{}-asked", known.len() + position + 1),
        rule: ASKED.to_owned(),
        text: format!("Set `{setting}`, as asked with --try."),
        settings: vec![setting.clone()],
        answers: "--try".to_owned(),
        scope: "restart".to_owned(),
        undo: "leave the setting out".to_owned(),
        watches_cpu_time: false,
        predicted: None,
    };
    tries.iter().filter(is_new).enumerate().map(candidate).collect()
}

/// True if all settings are below these keys of the study; without keys every setting is wanted.
fn is_among(settings: &[String], only: &[String]) -> bool {
    let key = |setting: &String| setting.split('=').next().unwrap_or_default().to_owned();
    only.is_empty() || settings.iter().all(|s| key(s).split('.').any(|part| only.iter().any(|wanted| wanted == part)))
}

/// `has_estimate`: the estimate of the rule is about the declared figure.
fn named(position: usize, candidate: tailbound_advice::Candidate, has_estimate: bool) -> Candidate {
    let answers = match &candidate.answers {
        tailbound_advice::Answers::Cause { word, end, by } => cause_words(*word, end.as_deref(), by.as_ref()),
        tailbound_advice::Answers::Loss { end, .. } => format!("lost messages to the {end}"),
    };
    Candidate {
        key: format!("{}-{}", position + 1, candidate.rule.key),
        rule: candidate.rule.key.to_owned(),
        text: candidate.text,
        settings: candidate.settings,
        answers,
        scope: candidate.rule.scope.word().to_owned(),
        undo: candidate.rule.undo.to_owned(),
        watches_cpu_time: candidate.rule.watch.contains(&Watch::CpuTime),
        predicted: candidate
            .predicted_ns
            .filter(|_| has_estimate)
            .map(|p| Prediction { now_ns: p.now_ns as f64, then_ns: p.then_ns as f64 }),
    }
}

#[cfg(test)]
mod tests {
    use super::is_among;

    #[test]
    fn only_names_a_part_of_the_key() {
        let settings = |text: &str| vec![text.to_owned()];
        let only = settings("scheduling");
        assert!(is_among(&settings("ends.pong.scheduling.receive={ policy: fifo, priority: 60 }"), &only));
        assert!(!is_among(&settings("ends.pong.cpus=1"), &only));
        assert!(!is_among(&settings("host.governor=scheduling"), &only));
        assert!(is_among(&settings("ends.pong.cpus=1"), &[]));
        let two = ["driver.udp.buffer=8MiB".to_owned(), "host.sysctl.net.core.rmem_max=8388608".to_owned()];
        assert!(!is_among(&two, &settings("driver")));
    }
}
