//! A VLAN on top of the path between the ends.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A VLAN (IEEE 802.1Q) that carries all messages of a path, and the priorities of its frames: as the study asks for
/// it, or as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct VlanSpec {
    /// Id of the VLAN (virtual network on an Ethernet link), 1 to 4094.
    pub id: u16,
    /// Priority code point (PCP, 0 to 7) of the frames for each socket priority (SO_PRIORITY); frames of sockets with
    /// any other priority have PCP 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub egress: BTreeMap<u32, u8>,
}

impl VlanSpec {
    /// The VLAN as the kernel reports it after all its settings were applied. The kernel keeps no entry for PCP 0,
    /// which is the default of every socket priority (`vlan_fill_info` in net/8021q/vlan_netlink.c).
    pub fn as_reported(&self) -> VlanSpec {
        let is_set = |(_, pcp): &(&u32, &u8)| **pcp != 0;
        VlanSpec { id: self.id, egress: self.egress.iter().filter(is_set).map(|(from, to)| (*from, *to)).collect() }
    }

    /// The mapping from socket priorities to PCPs as ip-link(8) writes it, e.g. `6:3 7:7`; empty if there are no
    /// entries.
    pub fn egress_text(&self) -> String {
        self.egress.iter().map(|(from, to)| format!("{from}:{to}")).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for VlanSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        if self.egress.is_empty() { Ok(()) } else { write!(f, " egress {}", self.egress_text()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_that_is_mapped_to_0_is_as_one_that_is_not_mapped() {
        let asked = VlanSpec { id: 10, egress: [(0, 0), (6, 3), (7, 7)].into() };
        assert_eq!(asked.to_string(), "10 egress 0:0 6:3 7:7");
        assert_eq!(asked.as_reported().to_string(), "10 egress 6:3 7:7");
        assert_eq!(VlanSpec { id: 4094, egress: [(0, 0)].into() }.as_reported().to_string(), "4094");
    }

    #[test]
    fn it_is_stored_and_read_again() {
        let vlan = VlanSpec { id: 10, egress: [(7, 7)].into() };
        let text = serde_json::to_string(&vlan).unwrap();
        assert_eq!(text, r#"{"id":10,"egress":{"7":7}}"#);
        assert_eq!(serde_json::from_str::<VlanSpec>(&text).unwrap(), vlan);
    }
}
