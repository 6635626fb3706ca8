//! One end of a lab, as used by the path check.

use crate::end::EndNet;
use crate::site::Site;

/// One end of a lab: its place and its network settings.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub site: Site,
    pub net: EndNet,
}
