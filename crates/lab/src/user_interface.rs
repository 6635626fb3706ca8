//! An interface of the user at which a run changes something, and where an undo finds it.

use crate::netns::{NetNs, path_of};
use crate::probe::Side;
use crate::site::Site;
use crate::spec::LabSpec;
use tailbound_model::{NetnsId, PlaceSpec};

/// An interface of the user on this host.
pub(crate) struct UserInterface<'a> {
    /// Name of the end with this interface.
    pub end: &'static str,
    pub netns: &'a NetNs,
    pub name: &'a str,
    /// Where an undo finds the network namespace.
    pub id: NetnsId,
}

impl<'a> UserInterface<'a> {
    /// The interface of the end with this number; `None` if it is on another host.
    pub fn of(spec: &LabSpec, end: usize, side: &'a Side) -> Option<UserInterface<'a>> {
        let Site::Here(netns) = &side.site else { return None };
        let path = match spec.place(end) {
            PlaceSpec::ExistingNetns(name) => path_of(name).display().to_string(),
            _ => String::new(),
        };
        let id = NetnsId { inode: netns.inode(), path };
        Some(UserInterface { end: spec.name(end), netns, name: &side.net.interface, id })
    }
}
