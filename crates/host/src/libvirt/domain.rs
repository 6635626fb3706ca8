//! A domain (virtual machine) of libvirt, found by its name.

use super::error::DomainError;
use crate::virsh::Virsh;

/// A libvirt domain (virtual machine).
#[derive(Debug, Clone)]
pub struct Domain {
    pub(super) virsh: Virsh,
    pub(super) name: String,
    pub(super) uuid: String,
}

impl Domain {
    /// Finds the libvirt domain with this name. `connect` is a URI such as `qemu:///system`; if it is `None`, virsh
    /// uses its default.
    ///
    /// # Errors
    /// virsh is not installed, libvirt does not answer, or libvirt has no domain with this name.
    pub fn find(connect: Option<&str>, name: &str) -> Result<Domain, DomainError> {
        let virsh = Virsh::new(connect);
        let names = virsh.ask(&["list", "--all", "--name"])?;
        let all: Vec<&str> = names.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        if !all.contains(&name) {
            let near = tailbound_model::nearest(name, all.iter().copied());
            return Err(DomainError::NoSuchDomain {
                connect: virsh.uri(),
                name: name.to_owned(),
                near: near.map(str::to_owned),
                all: all.into_iter().map(str::to_owned).collect(),
            });
        }
        let uuid = virsh.ask(&["domuuid", name])?;
        Ok(Domain { virsh, name: name.to_owned(), uuid })
    }

    /// Name of the libvirt domain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// UUID of the libvirt domain, which stays the same when the libvirt domain is renamed.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    pub(super) fn unread(&self, what: &str, reason: &str) -> DomainError {
        DomainError::Unread { domain: self.name.clone(), what: what.to_owned(), reason: reason.to_owned() }
    }
}
