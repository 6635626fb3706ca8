//! A domain of libvirt that is there already, by the program `virsh`.
//!
//! In: how libvirt is reached, the name of a domain, what its threads are to have. Out: what it is, as facts; its threads
//! with what was asked, read back; the undo of each change in the journal before the change. libvirt keeps what it is told
//! of CPUs, so CPUs are set through it, while it runs (`--live`: its definition stays as it is); policies are set on the
//! threads, for libvirt sets those only when a domain starts.

mod apply;
mod error;
mod facts;
mod state;
mod threads;
mod virsh;

pub use error::DomainError;
pub use state::DomainState;
pub use threads::DomainThreads;

pub(crate) use threads::is_qemu_of;
pub(crate) use virsh::Virsh;

/// A domain.
#[derive(Debug, Clone)]
pub struct Domain {
    virsh: Virsh,
    name: String,
    uuid: String,
}

impl Domain {
    /// The domain with this name. `connect` is an URI such as `qemu:///system`; `None` = as virsh has it.
    ///
    /// # Errors
    /// No virsh, no libvirt, or no such domain.
    pub fn find(connect: Option<&str>, name: &str) -> Result<Domain, DomainError> {
        let virsh = Virsh::new(connect);
        let names = virsh.ask(&["list", "--all", "--name"])?;
        let all: Vec<&str> = names.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        if !all.contains(&name) {
            let like = |other: &&&str| strsim::jaro_winkler(name, other);
            let near = all.iter().filter(|n| like(n) > 0.8).max_by(|a, b| like(a).total_cmp(&like(b)));
            return Err(DomainError::NoSuchDomain {
                connect: virsh.uri(),
                name: name.to_owned(),
                near: near.map(|n| (*n).to_owned()),
                all: all.into_iter().map(str::to_owned).collect(),
            });
        }
        let uuid = virsh.ask(&["domuuid", name])?;
        Ok(Domain { virsh, name: name.to_owned(), uuid })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is known by whatever its name becomes.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    fn unread(&self, what: &str, reason: &str) -> DomainError {
        DomainError::Unread { domain: self.name.clone(), what: what.to_owned(), reason: reason.to_owned() }
    }
}
