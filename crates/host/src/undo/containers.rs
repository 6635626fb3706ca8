//! Containers removed, by the client that made them.

use super::Undone;
use crate::container;
use std::io;
use tailbound_model::ContainerAccess;

/// Removes what has the token as a label; there may be nothing any more.
pub(super) fn remove(access: &ContainerAccess, token: &str) -> io::Result<Undone> {
    let program = access.client.program();
    let removed = container::remove(access, token).map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    match removed[..] {
        [] => Ok(Undone::AlreadyGone),
        _ => Ok(Undone::Did(format!("removed container {}", removed.join(", ")))),
    }
}
