//! The clocks that the study demands to be in step with their masters: the clock of this host, and the clocks of other hosts that have
//! a time service of their own. Before the first trial on a host, the run waits until its clock is in step; the history of each
//! clock during a trial is in the record.

use super::RunError;
use super::context::RunContext;
use super::places::{Host, Hosts, not_fit};
use crate::clock_watch::{ClockWatch, TURN};
use std::sync::Arc;
use tailbound_model::{ClockHistory, ClockSpec, ExitCode, HostFacts, PlaceSpec, Problem, Severity, Warning};

/// The clock of this host is watched as long as this value exists.
pub(super) struct Clocks {
    spec: ClockSpec,
    own: ClockWatch,
    own_clock: String,
}

/// A watched host, and the time of its CLOCK_MONOTONIC at which a trial began, ns.
pub(super) type Begun = Vec<(Arc<Host>, i64)>;

impl Clocks {
    /// Connects to the time service of this host, and begins to watch its clock.
    ///
    /// # Errors
    /// The service cannot be asked, with exit code 3.
    pub fn begin(spec: &ClockSpec, context: &RunContext) -> Result<Clocks, RunError> {
        let own = ClockWatch::begin(spec, &context.run_id, &context.journal);
        let own = own.map_err(|problem| RunError::of(ExitCode::MachineNotFit, problem))?;
        Ok(Clocks { spec: spec.clone(), own, own_clock: tailbound_host::clock_id().unwrap_or_default() })
    }

    /// What the run waits for, in words, for the clock of this host.
    pub fn what(&self) -> String {
        self.waits_for("the clock", &self.own.service())
    }

    fn waits_for(&self, clock: &str, service: &str) -> String {
        let ClockSpec { within, held, .. } = &self.spec;
        format!("until {clock} has been within {within} of its master for {held} ({service})")
    }

    /// Waits until the clock of this host has been in step for the time that the study asks for.
    ///
    /// # Errors
    /// The clock is not in step before the timeout ends, with exit code 3 and what was seen of the clock.
    pub async fn in_step(&self) -> Result<(), RunError> {
        let state = || Ok(self.own.not_in_step());
        self.wait(state).await
    }

    async fn wait(&self, state: impl Fn() -> Result<Option<Problem>, RunError>) -> Result<(), RunError> {
        let begin_ns = tailbound_host::monotonic_ns();
        while let Some(problem) = state()? {
            if tailbound_host::monotonic_ns() - begin_ns > self.spec.timeout.0 {
                return Err(RunError::of(ExitCode::MachineNotFit, problem));
            }
            tokio::time::sleep(TURN).await;
        }
        Ok(())
    }

    /// True if the time service of a host is asked: the host has another clock than this one, and is a machine that a user has
    /// set up. Guests and pods that Tailbound starts have no time service.
    fn asks(&self, host: &Host) -> bool {
        host.clock != self.own_clock && matches!(host.place, PlaceSpec::Ssh(_) | PlaceSpec::Domain(_))
    }

    /// A sentence for the user, if a host has another clock that is not watched.
    pub fn remark(&self, host: &Host) -> Option<String> {
        (host.clock != self.own_clock && !self.asks(host)).then(|| {
            format!("the clock of {} is not watched: Tailbound asks the time services of this host and of hosts by ssh or libvirt", host.facts.host)
        })
    }

    /// Begins to watch the clock of a host, and waits until it has been in step for the time that the study asks for. `begin` is
    /// called with what the run waits for.
    ///
    /// # Errors
    /// The time service of the host cannot be asked, its clock is not in step before the timeout ends, or a signal has arrived.
    pub async fn host_in_step(
        &self,
        host: &Host,
        context: &RunContext,
        begin: impl FnOnce(&str),
    ) -> Result<(), RunError> {
        if !self.asks(host) {
            return Ok(());
        }
        host.watch_clock(&context.run_id, &self.spec)?;
        begin(&self.waits_for(&format!("the clock of {}", host.facts.host), &self.spec.by.to_string()));
        let state = || match context.stop.came() {
            true => Err(not_fit(format!("the wait for the clock of {} was interrupted", host.facts.host), "")),
            false => host.clock_state(),
        };
        self.wait(state).await
    }

    /// Reads when a trial begins by the clocks of the watched hosts. A host that no longer answers is left out: its agents report
    /// it.
    pub fn begin_trial(&self, hosts: &Hosts) -> Begun {
        let watched = hosts.all().filter(|host| self.asks(host));
        watched.filter_map(|host| Some((Arc::clone(host), host.monotonic_ns()?))).collect()
    }

    /// The histories of a trial that has begun at `began_ns` by the clock of this host, and at `begun` by the clocks of the other hosts.
    /// Also warnings about hosts that did not send theirs.
    pub fn histories(&self, began_ns: i64, begun: &Begun, here: &HostFacts) -> (Vec<ClockHistory>, Vec<Warning>) {
        let own = ClockHistory { host: here.host.clone(), ..self.own.history(began_ns) };
        let (mut histories, mut missing) = (vec![own], Vec::new());
        for (host, from_ns) in begun {
            match host.clock_history(*from_ns) {
                Some(history) => histories.push(history),
                None => {
                    let text = format!("the host {} did not send the history of its clock", host.facts.host);
                    missing.push(Warning::new("clock_history_missing", Severity::Warning, text, ""));
                }
            }
        }
        (histories, missing)
    }

    /// Ends the watch of the clock of this host. Returns the reason if the directory of the socket cannot be removed.
    pub fn end(self, context: &RunContext) -> Option<String> {
        self.own.end(&context.journal)
    }
}
