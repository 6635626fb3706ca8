//! Frame preemption of a network interface: the settings of its MAC merge layer (IEEE 802.3br), which the kernel takes and reports.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Settings of the MAC merge layer of an interface (`ethtool --set-mm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MergeLayer {
    /// Whether the interface receives frames in fragments (ETHTOOL_A_MM_PMAC_ENABLED).
    pub receives: bool,
    /// Whether the interface may send preemptible frames in fragments (ETHTOOL_A_MM_TX_ENABLED).
    pub sends: bool,
    /// Whether the interface sends fragments only after its neighbour has shown that it can receive them
    /// (ETHTOOL_A_MM_VERIFY_ENABLED).
    pub verifies: bool,
}

impl MergeLayer {
    /// The settings with which an interface sends and receives fragments as soon as its neighbour has shown that it can receive them.
    pub const ALL: MergeLayer = MergeLayer { receives: true, sends: true, verifies: true };
}

impl fmt::Display for MergeLayer {
    /// For example `pmac-enabled on tx-enabled off verify-enabled off`, the words of ethtool(8).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |is_on: bool| if is_on { "on" } else { "off" };
        let [receives, sends, verifies] = [self.receives, self.sends, self.verifies].map(word);
        write!(f, "pmac-enabled {receives} tx-enabled {sends} verify-enabled {verifies}")
    }
}
