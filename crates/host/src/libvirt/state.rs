//! Whether a domain runs; starting it.

use super::{Domain, DomainError};
use crate::clock::monotonic_ns;
use crate::journal::{EntryId, Journal};
use std::time::Duration;
use tailbound_model::Undo;

/// State of a domain, with its reason: `running (booted)`, `paused (user)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainState(pub String);

impl DomainState {
    /// It runs.
    pub fn runs(&self) -> bool {
        self.0.starts_with("running") || self.0.starts_with("idle")
    }

    /// It can be started.
    pub fn is_off(&self) -> bool {
        self.0.starts_with("shut off")
    }
}

impl Domain {
    /// Whether it runs.
    ///
    /// # Errors
    /// libvirt does not answer, or has it no more.
    pub fn state(&self) -> Result<DomainState, DomainError> {
        self.virsh.ask(&["domstate", &self.uuid, "--reason"]).map(DomainState)
    }

    /// Starts it if it is shut off; `None` = it ran already. Put back, it is asked to shut down, and ended when it has not
    /// within `patience`.
    ///
    /// # Errors
    /// It is paused, has crashed, or cannot be started.
    pub fn start(&self, patience: Duration, journal: &Journal) -> Result<Option<EntryId>, DomainError> {
        let state = self.state()?;
        if state.runs() {
            return Ok(None);
        }
        if !state.is_off() {
            return Err(self.unfit(state));
        }
        let undo = |process| Undo::StopDomain {
            connect: self.virsh.connect().map(str::to_owned),
            name: self.name.clone(),
            uuid: self.uuid.clone(),
            process,
            asked_ns: monotonic_ns(),
            patience_ms: patience.as_millis() as u64,
        };
        let entry = journal.before(undo(None))?;
        if let Err(error) = self.virsh.ask(&["start", &self.uuid]) {
            // Nothing began, or somebody else was faster: what runs then is theirs.
            if self.state().is_ok_and(|now| now.is_off() || now.runs()) {
                journal.done(entry)?;
            }
            return Err(error);
        }
        match self.threads() {
            Ok(threads) => journal.update(entry, undo(Some(threads.process)))?,
            Err(error) => {
                // Nobody could find it again.
                self.virsh.ask(&["destroy", &self.uuid, "--graceful"])?;
                journal.done(entry)?;
                return Err(error);
            }
        }
        Ok(Some(entry))
    }

    pub(super) fn must_run(&self) -> Result<(), DomainError> {
        let state = self.state()?;
        if state.runs() { Ok(()) } else { Err(self.unfit(state)) }
    }

    fn unfit(&self, state: DomainState) -> DomainError {
        let name = &self.name;
        let mend = match state.0.split(' ').next() {
            Some("paused") => {
                format!("`virsh resume {name}` lets it go on; one that libvirt paused for an error says why in its log")
            }
            Some("pmsuspended") => format!("`virsh dompmwakeup {name}` wakes it"),
            Some("crashed") => format!("`virsh destroy {name}` and `virsh start {name}` begin anew"),
            Some("shut") => format!("`virsh start {name}` starts it"),
            _ => "wait until it is running or shut off".to_owned(),
        };
        DomainError::Unfit { domain: name.clone(), state: state.0, mend }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Virsh;
    use super::*;

    #[test]
    fn each_state_has_its_own_advice() {
        let domain = Domain { virsh: Virsh::new(None), name: "rt1".into(), uuid: "u".into() };
        let text = |state: &str| domain.unfit(DomainState(state.into())).to_string();
        assert_eq!(
            text("paused (I/O error)"),
            "domain rt1 is paused (I/O error): `virsh resume rt1` lets it go on; one that libvirt paused for an error says \
             why in its log"
        );
        assert_eq!(
            text("crashed (panicked)"),
            "domain rt1 is crashed (panicked): `virsh destroy rt1` and `virsh start rt1` begin anew"
        );
        assert_eq!(text("shut off (destroyed)"), "domain rt1 is shut off (destroyed): `virsh start rt1` starts it");
        assert_eq!(
            text("in shutdown (user)"),
            "domain rt1 is in shutdown (user): wait until it is running or shut off"
        );
    }
}
