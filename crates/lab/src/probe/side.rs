//! One end of a lab, as used by the path check.

use crate::end::EndNet;
use crate::site::Site;

/// One end of a lab: its place and its network settings.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub site: Site,
    pub net: EndNet,
    /// Name of the interface that has the gates of the end; `None` = it has none.
    pub gated: Option<String>,
    /// Name of the interface that has the traffic classes of the end; `None` = it has none.
    pub shaped: Option<String>,
    /// Name of the interface that has the queue with launch times of the end, and the priority of its messages; `None` = it has none.
    pub launching: Option<(String, u8)>,
}
