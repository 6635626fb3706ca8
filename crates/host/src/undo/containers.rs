//! Undoes the creation of containers: removes the containers with the client program that made them.

use super::outcome::Undone;
use crate::container;
use std::io;
use tailbound_model::ContainerAccess;

/// Removes the containers that have a label with the value `token`. It is not an error if no such container exists.
pub(super) fn remove(access: &ContainerAccess, token: &str) -> io::Result<Undone> {
    let program = access.client.program();
    let removed = container::remove(access, token).map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    match removed[..] {
        [] => Ok(Undone::AlreadyGone),
        _ => Ok(Undone::Did(format!("removed container {}", removed.join(", ")))),
    }
}
