//! Shows the progress of a run on standard error: a bar on a terminal, plain lines elsewhere.

use crate::output::{errln, width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use tailbound_model::Nanos;
use tailbound_run::{Progress, ProgressEvent};

/// Number of columns below which a terminal is too narrow for a progress bar.
const NARROW: usize = 70;

/// Shows the progress of a run. The display changes between trials only: while a trial is measured, nothing is written
/// and nothing is computed. The figures shown belong to the trial that ended last, and are read from the record.
pub struct Display {
    bar: Option<ProgressBar>,
    quiet: bool,
    record: PathBuf,
    trials: usize,
    left: Nanos,
    /// Levels of the current trial's condition, as text.
    what: String,
    /// Texts of the warnings that were printed already.
    warned: Vec<String>,
}

impl Display {
    pub fn new(quiet: bool, record: PathBuf) -> Display {
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
        Display { bar, quiet, record, trials: 0, left: Nanos(0), what: String::new(), warned: Vec::new() }
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
        let left = self.left_words();
        self.left = Nanos((self.left.0 - estimate.0).max(0));
        self.what = what.to_owned();
        match &self.bar {
            Some(bar) => {
                bar.set_position(number as u64 + 1);
                bar.set_message(format!("{left}: {what}"));
                bar.tick();
            }
            None if !self.quiet => self.line(&format!("trial {}/{}: {what}, {left}", number + 1, self.trials)),
            None => {}
        }
    }

    /// Prints the figures of a trial that ended, and the causes of its late messages, in lines that stay on the screen.
    fn done(&self, number: usize, trial: usize) {
        if self.quiet {
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
            ProgressEvent::TrialDone { number, trial, .. } => self.done(number, trial),
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
