//! Other hosts that a run uses: reached once, kept until its end. What runs there ends with its stream, or when it has
//! heard nothing for the time of its lease.

mod asked;
mod explain;
mod host;
mod link;
mod pod;
mod shell;
mod ssh;

pub(super) use host::Host;

use super::RunError;
use std::path::PathBuf;
use std::sync::Arc;
use tailbound_host::journal::Journal;
use tailbound_lab::{Far, LabSpec};
use tailbound_model::{ExitCode, PlaceSpec};

/// The drivers that are files: name and shared object.
pub type DriverFiles = fn() -> Vec<(String, PathBuf)>;

/// An agent on another host that has heard nothing for this long ends itself.
pub(super) const LEASE_NS: i64 = 30_000_000_000;
/// So that none does as long as this process lives, they are told to be still there.
pub(super) const BEAT: std::time::Duration = std::time::Duration::from_secs(5);

/// The hosts of a run.
pub(super) struct Hosts {
    reached: Vec<Arc<Host>>,
    bundle: link::Ship,
    /// So many pods were made.
    pods: u32,
    /// What could not be removed.
    left: Vec<String>,
}

impl Hosts {
    pub fn new(driver_files: DriverFiles) -> Hosts {
        Hosts { reached: Vec::new(), bundle: link::Ship::new(driver_files), pods: 0, left: Vec::new() }
    }

    /// Reaches the hosts of a lab that are not reached yet; those that were newly reached.
    ///
    /// # Errors
    /// A host cannot be reached or used: who says so, and what to do.
    pub fn reach(
        &mut self,
        lab: &LabSpec,
        (run_id, journal): (&str, &Journal),
        here: &str,
    ) -> Result<Vec<Arc<Host>>, RunError> {
        let mut new = Vec::new();
        // One that was lost is left, and reached anew.
        for lost in self.reached.extract_if(.., |host| !host.answers()) {
            lost.leave(journal);
        }
        // Pods hold the CPUs and the memory that those of this lab may need.
        let wanted = |host: &Host| [&lab.ping, &lab.pong].contains(&&host.place);
        for old in self.reached.extract_if(.., |host| matches!(host.place, PlaceSpec::Pod(_)) && !wanted(host)) {
            self.left.extend(old.leave(journal));
        }
        for place in [&lab.ping, &lab.pong] {
            if self.of_place(place).is_some() {
                continue;
            }
            let host = match place {
                PlaceSpec::Ssh(spec) => ssh::reach(spec, &mut self.bundle, (run_id, journal), here)?,
                PlaceSpec::Pod(spec) => {
                    self.pods += 1;
                    let other_node = self.of_place(&lab.ping).and_then(|host| host.node.clone());
                    pod::reach(spec, (run_id, journal), (format!("{run_id}-{}", self.pods), other_node))?
                }
                _ => continue,
            };
            let host = Arc::new(host);
            self.reached.push(host.clone());
            new.push(host);
        }
        Ok(new)
    }

    /// As a lab wants them.
    pub fn of_lab(&self) -> Vec<(PlaceSpec, Arc<dyn Far>)> {
        self.reached.iter().map(|h| (h.place.clone(), h.clone() as Arc<dyn Far>)).collect()
    }

    /// The host of a place.
    pub fn of_place(&self, place: &PlaceSpec) -> Option<&Arc<Host>> {
        self.reached.iter().find(|h| h.place == *place)
    }

    /// All of them still answer.
    pub fn answer(&self) -> bool {
        self.reached.iter().all(|h| h.answers())
    }

    /// Leaves them; what was asked to be removed is. What could not be is told.
    pub fn leave(mut self, journal: &Journal) -> Vec<String> {
        self.left.extend(self.reached.into_iter().filter_map(|host| host.leave(journal)));
        self.left
    }
}

pub(super) fn not_fit(text: impl ToString, mend: impl ToString) -> RunError {
    RunError::new(ExitCode::MachineNotFit, text, mend)
}
