//! Progress on standard error: a bar on a terminal, plain lines elsewhere.

use crate::say::errln;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use tailbound_model::Nanos;
use tailbound_run::{Progress, ProgressEvent};

/// Shows how far a run got. It draws between trials only: while a trial is measured nothing is written.
pub struct Display {
    bar: Option<ProgressBar>,
    quiet: bool,
    trials: usize,
    left: Nanos,
}

impl Display {
    pub fn new(quiet: bool) -> Display {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:24} trial {pos}/{len} {wide_msg}");
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        Display { bar, quiet, trials: 0, left: Nanos(0) }
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
}

impl Progress for Display {
    fn event(&mut self, event: ProgressEvent<'_>) {
        match event {
            ProgressEvent::Began { trials, estimate } => {
                self.trials = trials;
                self.left = estimate;
                if let Some(bar) = &self.bar {
                    bar.set_length(trials as u64);
                } else if !self.quiet {
                    self.line(&format!("{trials} trials, about {estimate} of measuring"));
                }
            }
            ProgressEvent::Trial { number, what, estimate } => {
                let left = self.left;
                self.left = Nanos((left.0 - estimate.0).max(0));
                match &self.bar {
                    Some(bar) => {
                        bar.set_position(number as u64);
                        bar.set_message(format!("about {} left: {what}", Nanos(left.0 / 100_000_000 * 100_000_000)));
                        bar.tick();
                    }
                    None if !self.quiet => self.line(&format!("trial {}/{}: {what}", number + 1, self.trials)),
                    None => {}
                }
            }
            // Notes are for the report.
            ProgressEvent::Warned(w) if w.severity > tailbound_model::Severity::Note => {
                self.line(&format!(
                    "tailbound: {}{}",
                    w.text,
                    if w.mend.is_empty() { String::new() } else { format!("; {}", w.mend) }
                ));
            }
            _ => {}
        }
    }
}
