//! Watches the clock of this host for a controller on another host, by the time service of this host.

use crate::clock_watch::ClockWatch;
use tailbound_host::journal::{self, Journal};
use tailbound_model::{Answer, Ask, ClockSpec, Problem};

/// The clock of this host, if the controller has asked to watch it.
#[derive(Default)]
pub(super) struct HostClock {
    watch: Option<(ClockWatch, Journal)>,
}

impl HostClock {
    /// Answers a question of the controller about the clock of this host. Returns `None` if the question is about something else.
    pub fn answer(&mut self, ask: &Ask) -> Option<Answer> {
        let made = match ask {
            Ask::WatchClock { run, spec } => self.begin(run, spec),
            Ask::ClockState | Ask::ClockHistory(_) => Ok(()),
            _ => return None,
        };
        Some(match (made, &self.watch, ask) {
            (Err(problem), ..) => Answer::Failed(problem, None),
            (Ok(()), None, _) => {
                Answer::Failed(Problem::new("clock_watch", "the clock of the host is not watched", ""), None)
            }
            (Ok(()), Some((watch, _)), Ask::ClockHistory(from_ns)) => {
                Answer::ClockHistory(Box::new(watch.history(*from_ns)))
            }
            (Ok(()), Some((watch, _)), _) => Answer::ClockState(watch.not_in_step()),
        })
    }

    fn begin(&mut self, run: &str, spec: &ClockSpec) -> Result<(), Problem> {
        self.end();
        // What a killed run has left is removed. If that fails, `tailbound lab cleanup` tries again.
        let _ = journal::cleanup(&mut |_| ());
        // Two agents of one run may be on this host.
        let run = format!("{run}-there-{}", std::process::id());
        let journal = Journal::create(&run)?;
        match ClockWatch::begin(spec, &run, &journal) {
            Ok(watch) => {
                self.watch = Some((watch, journal));
                Ok(())
            }
            Err(mut problem) => {
                if let Err(left) = journal.finish() {
                    problem.what.push_str(&format!("; and {left}"));
                }
                Err(problem)
            }
        }
    }

    /// Ends the watch. Returns the reasons why something could not be removed.
    pub fn end(&mut self) -> Vec<String> {
        let Some((watch, journal)) = self.watch.take() else { return Vec::new() };
        let left: Vec<String> = watch.end(&journal).into_iter().collect();
        if left.is_empty() { journal.finish().err().map(|e| e.to_string()).into_iter().collect() } else { left }
    }
}
