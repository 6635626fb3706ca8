//! Reads the state of a libvirt domain, and starts a libvirt domain.

use super::domain::Domain;
use super::error::DomainError;
use crate::clock::monotonic_ns;
use crate::journal::{EntryId, Journal};
use std::time::Duration;
use tailbound_model::Undo;

/// State of a libvirt domain with its reason, such as `running (booted)` or `paused (user)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainState(pub String);

impl DomainState {
    /// Whether the libvirt domain (virtual machine) runs.
    pub fn runs(&self) -> bool {
        self.0.starts_with("running") || self.0.starts_with("idle")
    }

    /// Whether the libvirt domain is shut off, so that it can be started.
    pub fn is_off(&self) -> bool {
        self.0.starts_with("shut off")
    }
}

impl Domain {
    /// Reads the state of the libvirt domain.
    ///
    /// # Errors
    /// libvirt does not answer, or the libvirt domain does not exist any more.
    pub fn state(&self) -> Result<DomainState, DomainError> {
        Ok(DomainState(self.virsh.ask(&["domstate", &self.uuid, "--reason"])?))
    }

    /// Starts the libvirt domain if it is shut off; returns `None` if the libvirt domain ran already. The undo shuts
    /// the libvirt domain down. If the libvirt domain still runs after `patience`, the undo ends it.
    ///
    /// # Errors
    /// The libvirt domain is paused, has crashed, or cannot be started.
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
            // The libvirt domain was not started, or somebody else started it: then it belongs to them.
            if self.state().is_ok_and(|now| now.is_off() || now.runs()) {
                journal.done(entry)?;
            }
            return Err(error.into());
        }
        match self.threads() {
            Ok(threads) => journal.update(entry, undo(Some(threads.process)))?,
            Err(error) => {
                // Without its process id the undo could not find the libvirt domain again.
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
        let remedy = match state.0.split(' ').next() {
            Some("paused") => {
                format!(
                    "`virsh resume {name}` continues the domain; if libvirt paused the domain because of an error, the log \
                     of the domain gives the reason"
                )
            }
            Some("pmsuspended") => format!("`virsh dompmwakeup {name}` wakes the domain"),
            Some("crashed") => format!("`virsh destroy {name}` and `virsh start {name}` restart the domain"),
            Some("shut") => format!("`virsh start {name}` starts the domain"),
            _ => "wait until the domain is running or shut off".to_owned(),
        };
        DomainError::Unfit { domain: name.clone(), state: state.0, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virsh::Virsh;

    #[test]
    fn each_state_has_its_own_remedy() {
        let domain = Domain { virsh: Virsh::new(None), name: "rt1".into(), uuid: "u".into() };
        let text = |state: &str| domain.unfit(DomainState(state.into())).to_string();
        assert_eq!(
            text("paused (I/O error)"),
            "domain rt1 is paused (I/O error): `virsh resume rt1` continues the domain; if libvirt paused the \
             domain because of an error, the log of the domain gives the reason"
        );
        assert_eq!(
            text("crashed (panicked)"),
            "domain rt1 is crashed (panicked): `virsh destroy rt1` and `virsh start rt1` restart the domain"
        );
        assert_eq!(
            text("shut off (destroyed)"),
            "domain rt1 is shut off (destroyed): `virsh start rt1` starts the domain"
        );
        assert_eq!(
            text("in shutdown (user)"),
            "domain rt1 is in shutdown (user): wait until the domain is running or shut off"
        );
    }
}
