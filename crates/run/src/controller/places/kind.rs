//! Interface of all kinds of places: how to connect to a place, and how long the connection is kept.

use super::Hosts;
use super::host::Host;
use crate::controller::RunError;
use crate::controller::context::RunContext;
use tailbound_lab::LabSpec;

/// Time for which a place and the connection to it are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// The connection to the place is kept until the run ends.
    Run,
    /// The connection to the place is kept until a lab comes that does not need the place.
    Lab,
    /// The place is kept until the virtual network (wiring) to which the place is connected changes.
    Wiring,
}

/// A kind of place, with its specification from the study.
pub(super) trait PlaceKind {
    /// Creates the place if necessary, and connects to it. Connections to the hosts of other places of the lab may be
    /// made at the same time.
    ///
    /// # Errors
    /// The place cannot be created, or no connection is possible. In this case nothing of the place is left behind.
    fn reach(&self, reach: Reach<'_>) -> Result<Vec<Host>, RunError>;

    /// How long the connection to this kind of place is kept after it was made.
    fn lifetime(&self) -> Lifetime;
}

/// Parameters for connecting to the place at which an end runs.
pub(super) struct Reach<'a> {
    /// The hosts with a connection, and the objects that hosts share.
    pub hosts: &'a mut Hosts,
    pub lab: &'a LabSpec,
    /// Index in the lab of the end to whose place the connection is made.
    pub end: usize,
    pub context: &'a RunContext,
    /// Name in the record of the host on which the controller runs.
    pub here: &'a str,
}
