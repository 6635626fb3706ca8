//! Resolves the keys of the VLAN on top of a network path.

use crate::error::Fault;
use crate::format::VlanChoice;
use std::collections::BTreeMap;
use tailbound_model::VlanSpec;

/// Largest priority that a socket can have (SO_PRIORITY is an `int`).
const MOST: u32 = i32::MAX as u32;

/// Resolves the keys of a VLAN in a study; returns `None` for `off`.
pub(crate) fn vlan(choice: &VlanChoice) -> Result<Option<VlanSpec>, Fault> {
    let VlanChoice::On(keys) = choice else { return Ok(None) };
    let id = match u16::try_from(keys.id.value) {
        Ok(id @ 1..=4094) => id,
        _ => {
            let reason = format!("there is no VLAN {}", keys.id.value);
            return Err(Fault::new(keys.id.at, reason).help("write 1 to 4094, because IEEE 802.1Q reserves 0 and 4095"));
        }
    };
    let mut egress = BTreeMap::new();
    for (from, to) in keys.egress.iter().flat_map(|map| &map.0) {
        let Some(priority) = from.value.trim().parse().ok().filter(|priority| *priority <= MOST) else {
            let reason = format!("`{}` is not the priority of a socket", from.value);
            let help = "write a whole number of at least 0, as in `egress: { 7: 7 }`";
            return Err(Fault::new(from.at, reason).help(help));
        };
        let Some(pcp) = u8::try_from(to.value).ok().filter(|pcp| *pcp <= 7) else {
            let reason = format!("a frame cannot have the priority {}", to.value);
            return Err(Fault::new(to.at, reason).help("write 0 to 7, because the PCP of a frame has three bits"));
        };
        if egress.insert(priority, pcp).is_some() {
            return Err(
                Fault::new(from.at, format!("the priority {priority} is given twice")).help("remove one of them")
            );
        }
    }
    Ok(Some(VlanSpec { id, egress }))
}
