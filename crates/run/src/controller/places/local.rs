//! Places that are plain processes of this host, also in network namespaces. Such a place needs no connection.

use super::host::Host;
use super::kind::{Lifetime, PlaceKind, Reach};
use crate::controller::RunError;

/// The local places: `same-process`, `process`, `netns` and existing network namespaces.
pub(super) struct Local;

impl PlaceKind for Local {
    fn reach(&self, _: Reach<'_>) -> Result<Vec<Host>, RunError> {
        Ok(Vec::new())
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::Lab
    }
}
