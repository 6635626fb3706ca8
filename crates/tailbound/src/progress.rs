//! Shows the progress of a run on standard error: a bar on a terminal, plain lines elsewhere.

use crate::output::{errln, width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use tailbound_model::{Counter, Nanos};
use tailbound_record::FiguresSoFar;
use tailbound_report::number::{count, time};
use tailbound_report::{CauseWord, CausedBy, cause_words};
use tailbound_run::{KnownCause, KnownCauses, LateSoFar, Progress, ProgressEvent};

/// Number of columns below which a terminal is too narrow for a progress bar.
const NARROW: usize = 70;

/// Shows the progress of a run. While a trial is measured, nothing is computed, and one line is written every 30 s, in trials of
/// more than a minute only; `tailbound ping` on a terminal shows figures once a second, which the agent has counted. The figures shown after a trial are read from the record.
pub struct Display {
    bar: Option<ProgressBar>,
    /// Whether only warnings are shown.
    quiet: bool,
    /// Whether the figures of each trial that ended, and lines before trials, are shown.
    trials_shown: bool,
    record: PathBuf,
    trials: usize,
    left: Nanos,
    /// Position of the current trial in the order of trials, from 1.
    number: usize,
    /// Levels of the current trial's condition, as text.
    what: String,
    /// Texts of the warnings that were printed already.
    warned: Vec<String>,
    /// Time and number of messages of the last figures of the trial that runs.
    last: (Duration, u64),
}

impl Display {
    pub fn new((quiet, trials_shown): (bool, bool), record: PathBuf) -> Display {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            // A narrow terminal shows the time left and the condition only.
            let template = match width() {
                0..NARROW => "{pos}/{len} {wide_msg}",
                _ => "{bar:24} trial {pos}/{len} {wide_msg}",
            };
            let style = ProgressStyle::with_template(template);
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        let (what, warned, last) = (String::new(), Vec::new(), (Duration::ZERO, 0));
        Display { bar, quiet, trials_shown, record, trials: 0, left: Nanos(0), number: 0, what, warned, last }
    }

    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| errln!("{text}")),
            None => errln!("{text}"),
        }
    }

    fn began(&mut self, trials: usize, estimate: Nanos) {
        self.trials = trials;
        self.left = estimate;
        if let Some(bar) = &self.bar {
            bar.set_length(trials as u64);
        } else if !self.quiet {
            let word = if trials == 1 { "trial" } else { "trials" };
            self.line(&format!("{trials} {word}, about {estimate} of measuring"));
        }
    }

    fn trial(&mut self, number: usize, what: &str, estimate: Nanos) {
        self.last = (Duration::ZERO, 0);
        let left = self.left_words();
        self.left = Nanos((self.left.0 - estimate.0).max(0));
        (self.number, self.what) = (number + 1, what.to_owned());
        match &self.bar {
            Some(bar) => {
                bar.set_position(number as u64 + 1);
                bar.set_message(format!("{left}: {what}"));
                bar.tick();
            }
            None if !self.quiet && self.trials_shown => {
                self.line(&format!("trial {}/{}: {what}, {left}", number + 1, self.trials))
            }
            None => {}
        }
    }

    /// Prints the figures of a trial that ended, and the causes of its late messages, in lines that stay on the screen.
    fn done(&self, number: usize, trial: usize) {
        if self.quiet || !self.trials_shown {
            return;
        }
        // An unreadable record is reported at the end of the run.
        if let Ok(Some(figures)) = tailbound_report::trial_line(&self.record, trial) {
            // A bar already shows the next trial, so the line names the condition. Without a bar, the previous line does.
            let what = if self.bar.is_some() { format!("{}: ", self.what) } else { String::new() };
            self.line(&format!("trial {}/{}: {what}{figures}", number + 1, self.trials));
        }
        if let Ok(Some(causes)) = tailbound_report::trial_causes(&self.record, trial) {
            self.line(&format!("trial {}/{}: {causes}", number + 1, self.trials));
        }
    }

    /// Shows the round trips of the trial that runs, on a terminal only.
    fn figures(&mut self, after: Duration, figures: &FiguresSoFar) {
        let (earlier, messages) = std::mem::replace(&mut self.last, (after, figures.messages));
        let seconds = after.saturating_sub(earlier).as_secs_f64();
        let per_second = (seconds > 0.0).then(|| figures.messages.saturating_sub(messages) as f64 / seconds);
        if let Some(bar) = &self.bar {
            if let (Duration::ZERO, Ok(style)) = (earlier, ProgressStyle::with_template("{wide_msg}")) {
                bar.set_style(style);
            }
            bar.set_message(live_line(after, per_second.unwrap_or(0.0), figures));
        }
    }

    fn left_words(&self) -> String {
        let about = if self.bar.is_some() && width() < NARROW { "" } else { "about " };
        format!("{about}{} left", Nanos(self.left.0 / 100_000_000 * 100_000_000))
    }
}

impl Progress for Display {
    fn event(&mut self, event: ProgressEvent<'_>) {
        match event {
            ProgressEvent::Began { trials, estimate } => self.began(trials, estimate),
            ProgressEvent::Waiting { what } if !self.quiet => self.line(&format!("waiting {what}")),
            ProgressEvent::Trial { number, what, estimate } => self.trial(number, what, estimate),
            ProgressEvent::SoFar(late) if !self.quiet => {
                self.line(&format!("trial {}/{}: {}", self.number, self.trials, so_far(late)));
            }
            ProgressEvent::TrialDone { number, trial, .. } => self.done(number, trial),
            ProgressEvent::Figures { after, figures } => self.figures(after, &figures),
            // Notes are shown in the report only.
            ProgressEvent::Warned(w) if w.severity > tailbound_model::Severity::Note => {
                let text = format!("warning: {}", w.problem);
                // Several trials may raise the same warning; the report says in how many trials it was raised.
                if !self.warned.contains(&text) {
                    self.line(&text);
                    self.warned.push(text);
                }
            }
            _ => {}
        }
    }
}

/// The round trips of a trial that still runs, for example `3 s: 1,000/s, p50 62.1 us, p99 120 us, max 2.10 ms, 0 lost`.
fn live_line(after: Duration, per_second: f64, figures: &FiguresSoFar) -> String {
    let FiguresSoFar { lost, p50_ns, p99_ns, max_ns, .. } = *figures;
    let round_trip = |ns: Option<i64>| ns.map_or("lost".to_owned(), |ns| time(ns as f64));
    format!(
        "{} s: {}/s, p50 {}, p99 {}, max {}, {} lost",
        after.as_secs(),
        count(per_second.round() as u64),
        round_trip(p50_ns),
        round_trip(p99_ns),
        round_trip(max_ns),
        count(lost)
    )
}

/// Describes the late messages of a trial that still runs.
fn so_far(late: &LateSoFar) -> String {
    let LateSoFar { after, incidents, worst_after, worst_excess, moved, causes, .. } = late;
    let after = after.as_secs();
    if *incidents == 0 {
        return format!("after {after} s, no incident of late or lost messages has ended so far (preliminary)");
    }
    let word = if *incidents == 1 { "incident" } else { "incidents" };
    let numbers = [(late.late, "late"), (late.lost, "lost")];
    let numbers: Vec<String> =
        numbers.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{} {word}", count(*n))).collect();
    let mut text = format!("after {after} s, {} in {} {word} so far", numbers.join(" and "), count(*incidents));
    if worst_excess.0 > 0 {
        text.push_str(&format!("; the worst, {}", took(*worst_after, *worst_excess)));
        let is_worst = |causes: &&KnownCauses| (causes.after, causes.excess) == (*worst_after, *worst_excess);
        match causes.as_ref().filter(is_worst) {
            Some(causes) => text.push_str(&divided(causes)),
            // A summary of an hour ago has the causes of the worst incident.
            None => causes.iter().for_each(|causes| {
                let newest = took(causes.after, causes.excess);
                text.push_str(&format!("; the worst recent one, {newest}{}", divided(causes)));
            }),
        }
    }
    if !moved.is_empty() {
        let words: Vec<String> =
            moved.iter().map(|(counter, agent)| format!("{} ({agent})", counted(*counter))).collect();
        text.push_str(&format!("; counted by the kernel around incidents: {}", words.join(", ")));
    }
    text + match (causes, late.no_free_cpu) {
        (Some(_), true) => {
            " (preliminary; all causes follow after the trial, because at one end no CPU is free to look for them now)"
        }
        (None, true) => " (preliminary; causes follow after the trial, because no CPU is free to look for them now)",
        (Some(_), false) => " (preliminary; all causes follow after the trial)",
        (None, false) => " (preliminary; causes follow after the trial)",
    }
}

/// When an incident began, and its time beyond the usual.
fn took(after: Nanos, excess: Nanos) -> String {
    let (excess, at) = (time(excess.0 as f64), after.0 / 1_000_000_000);
    format!("{at} s after the first message, took {excess} beyond the usual")
}

/// The causes of an incident with their times, which are lower bounds, and what has no cause.
fn divided(of: &KnownCauses) -> String {
    let one = |cause: &KnownCause| {
        let (word, by) = match (&cause.by, cause.cause) {
            // Without the name, nothing is left to say of the thread that had the CPU.
            (None, CauseWord::KernelThread) => (CauseWord::WaitedForCpu, None),
            (by, word) => (word, by.clone().map(CausedBy::named)),
        };
        (cause.time.0, cause_words(word, Some(&cause.end), by.as_ref()))
    };
    let known: Vec<(i64, String)> = of.causes.iter().map(one).collect();
    let attributed: i64 = known.iter().map(|(ns, _)| *ns).sum::<i64>() + of.others.0 + of.not_seen.0;
    let rest = [
        (of.others.0, "other causes"),
        (of.not_seen.0, "at the other end or on the way, which this end does not see"),
        ((of.excess.0 - attributed).max(0), "not attributed"),
    ];
    let rest = rest.into_iter().map(|(ns, words)| (ns, words.to_owned()));
    let parts = known.into_iter().chain(rest).filter(|(ns, _)| *ns > 0);
    let parts: Vec<String> = parts.map(|(ns, words)| format!("{} {words}", time(ns as f64))).collect();
    format!(": {}", parts.join(", "))
}

/// What the kernel counts with this counter.
fn counted(counter: Counter) -> &'static str {
    match counter {
        Counter::QuotaThrottledNs => "stops by a CPU quota",
        Counter::FrozenNs => "stops by the freezer",
        Counter::StealNs => "time that the hypervisor took",
        Counter::RunDelayNs => "waits for a CPU",
        Counter::MinorFaults | Counter::MajorFaults => "page faults",
        Counter::SocketBufferDrops => "full receive buffers",
        Counter::ReassemblyFailures => "missing fragments",
        Counter::InterfaceReceiveDrops => "packets dropped by an interface that received",
        Counter::InterfaceSendDrops => "packets dropped by an interface that sent",
        Counter::BacklogDrops => "full backlogs of CPUs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_of_a_trial_that_runs_are_one_line() {
        let (p50_ns, p99_ns, max_ns) = (Some(62_100), Some(120_400), Some(2_100_000));
        let figures = FiguresSoFar { messages: 3_000, lost: 0, p50_ns, p99_ns, max_ns };
        let after = Duration::from_millis(3_050);
        let bad = FiguresSoFar { lost: 1_000, p99_ns: None, ..figures };
        let shown = [figures, bad].map(|figures| live_line(after, 1_000.2, &figures)).join("\n");
        insta::assert_snapshot!(shown.replace(tailbound_report::number::THIN, " "), @r"
        3 s: 1,000/s, p50 62.1 us, p99 120 us, max 2.10 ms, 0 lost
        3 s: 1,000/s, p50 62.1 us, p99 lost, max 2.10 ms, 1,000 lost
        ");
    }

    #[test]
    fn late_messages_of_a_trial_that_runs_are_described() {
        let after = Duration::from_millis(60_400);
        let none = LateSoFar { after, ..LateSoFar::default() };
        let lost = LateSoFar { incidents: 1, lost: 1, ..none.clone() };
        let moved = [(Counter::StealNs, "ping"), (Counter::SocketBufferDrops, "pong")];
        let moved = moved.map(|(counter, agent)| (counter, agent.to_owned())).to_vec();
        let (worst_after, worst_excess) = (Nanos(35_200_000_000), Nanos(41_000_000));
        let late = LateSoFar { incidents: 12, late: 3_400, lost: 2, worst_after, worst_excess, moved, ..none.clone() };
        let shown =
            [none, lost, late].map(|late| so_far(&late)).join("\n").replace(tailbound_report::number::THIN, " ");
        insta::assert_snapshot!(shown, @r"
        after 60 s, no incident of late or lost messages has ended so far (preliminary)
        after 60 s, 1 lost in 1 incident so far (preliminary; causes follow after the trial)
        after 60 s, 3,400 late and 2 lost in 12 incidents so far; the worst, 35 s after the first message, took 41 ms beyond the usual; counted by the kernel around incidents: time that the hypervisor took (ping), full receive buffers (pong) (preliminary; causes follow after the trial)
        ");
    }

    #[test]
    fn causes_of_a_trial_that_runs_are_described() {
        let ms = |ms: i64| Nanos(ms * 1_000_000);
        let cause = |cause, end: &str, by: Option<&str>, time| KnownCause {
            cause,
            end: end.to_owned(),
            by: by.map(str::to_owned),
            time,
        };
        let (after, excess) = (ms(34_000), ms(219));
        let stopped = cause(CauseWord::Stopped, "pong", None, ms(211));
        let causes = KnownCauses { after, excess, causes: vec![stopped], ..KnownCauses::default() };
        let worst = LateSoFar {
            after: Duration::from_secs(60),
            incidents: 12,
            late: 3_400,
            worst_after: after,
            worst_excess: excess,
            causes: Some(causes),
            ..LateSoFar::default()
        };
        let waited = cause(CauseWord::WaitedForCpu, "ping", Some("stress-ng"), ms(5));
        let of_kernel = cause(CauseWord::KernelThread, "pong", None, ms(3));
        let causes = vec![waited, of_kernel];
        let (others, not_seen) = (ms(1), ms(2));
        let newer = KnownCauses { after: ms(82_000), excess: ms(12), causes, others, not_seen };
        let later = LateSoFar { after: Duration::from_secs(90), causes: Some(newer), ..worst.clone() };
        let no_cpu = LateSoFar { causes: None, no_free_cpu: true, ..worst.clone() };
        let shown = [worst, later, no_cpu].map(|late| so_far(&late)).join("\n");
        insta::assert_snapshot!(shown.replace(tailbound_report::number::THIN, " "), @r"
        after 60 s, 3,400 late in 12 incidents so far; the worst, 34 s after the first message, took 219 ms beyond the usual: 211 ms stopped by a signal or a debugger (pong end), 8 ms not attributed (preliminary; all causes follow after the trial)
        after 90 s, 3,400 late in 12 incidents so far; the worst, 34 s after the first message, took 219 ms beyond the usual; the worst recent one, 82 s after the first message, took 12 ms beyond the usual: 5 ms waiting for a CPU that `stress-ng` had (ping end), 3 ms waiting for a CPU (pong end), 1 ms other causes, 2 ms at the other end or on the way, which this end does not see, 1 ms not attributed (preliminary; all causes follow after the trial)
        after 60 s, 3,400 late in 12 incidents so far; the worst, 34 s after the first message, took 219 ms beyond the usual (preliminary; causes follow after the trial, because no CPU is free to look for them now)
        ");
    }
}
