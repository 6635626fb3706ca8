//! A VLAN on top of a path.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A VLAN (IEEE 802.1Q) that carries all messages of a path, with the priorities that its frames have. As asked, or as the
/// kernel tells of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct VlanSpec {
    /// VLAN id, 1 to 4094.
    pub id: u16,
    /// Priority of a socket (SO_PRIORITY) -> PCP of its frames, 0 to 7; of all others it is 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub egress: BTreeMap<u32, u8>,
}

impl VlanSpec {
    /// As a kernel tells of it that does what is asked: it keeps no entry for a PCP of 0, which every priority has that is
    /// not in its map (`vlan_fill_info` in net/8021q/vlan_netlink.c).
    pub fn as_told(&self) -> VlanSpec {
        let told = |(_, pcp): &(&u32, &u8)| **pcp != 0;
        VlanSpec { id: self.id, egress: self.egress.iter().filter(told).map(|(from, to)| (*from, *to)).collect() }
    }

    /// The map as ip-link(8) writes it, empty without one: `6:3 7:7`.
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
        assert_eq!(asked.as_told().to_string(), "10 egress 6:3 7:7");
        assert_eq!(VlanSpec { id: 4094, egress: [(0, 0)].into() }.as_told().to_string(), "4094");
    }

    #[test]
    fn it_is_stored_and_read_again() {
        let vlan = VlanSpec { id: 10, egress: [(7, 7)].into() };
        let text = serde_json::to_string(&vlan).unwrap();
        assert_eq!(text, r#"{"id":10,"egress":{"7":7}}"#);
        assert_eq!(serde_json::from_str::<VlanSpec>(&text).unwrap(), vlan);
    }
}
