//! VLANs on top of a path: makes the VLAN interface, checks whether the kernel supports VLANs, and compares an
//! interface with the requested VLAN.

use crate::error::{LabError, lack};
use crate::netlink::{converse, index};
use crate::netns::NetNs;
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkMessage};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, LinkVlan, QosMapping};
use std::io;
use tailbound_model::{Interface, Problem, VlanSpec};

/// Makes the netlink message for a VLAN interface on top of the interface with index `below`.
pub(crate) fn vlan_link(name: &str, below: u32, vlan: &VlanSpec) -> LinkMessage {
    let egress = vlan.egress.iter().map(|(from, to)| QosMapping { from: *from, to: u32::from(*to) });
    LinkVlan::new(name, below, vlan.id).qos([], egress).build()
}

/// Makes the text of the command that makes a VLAN interface.
pub(crate) fn command(below: &str, name: &str, vlan: &VlanSpec) -> String {
    let egress = if vlan.egress.is_empty() { String::new() } else { format!(" egress {}", vlan.egress_text()) };
    format!("ip link add link {below} name {name} type vlan id {}{egress}", vlan.id)
}

/// Compares an interface with the requested VLAN.
///
/// # Errors
/// The interface has no VLAN, another VLAN, or another map of priorities.
pub(crate) fn verify(interface: &Interface, place: &str, asked: &VlanSpec) -> Result<(), LabError> {
    let asked = asked.as_reported();
    let found = interface.vlan.as_ref().map(VlanSpec::as_reported);
    if found.as_ref() == Some(&asked) {
        return Ok(());
    }
    Err(LabError::NotAsAsked {
        place: place.to_owned(),
        interface: interface.name.clone(),
        what: "the VLAN".to_owned(),
        asked: asked.to_string(),
        found: found.map_or("none".to_owned(), |found| found.to_string()),
    })
}

/// Returns a problem if this kernel does not support VLANs, found by making a VLAN interface in a temporary network
/// namespace. If no namespace can be made, another check of the lab reports that. Blocks for a moment.
pub(crate) fn problem() -> Option<Problem> {
    let netns = NetNs::make().ok()?;
    let job = |handle: Handle| async move {
        let peer = LinkMessageBuilder::<LinkUnspec>::new().name("tb-far").build();
        let pair =
            LinkMessageBuilder::<LinkVeth>::new("tb-near", "").set_info_data(InfoData::Veth(InfoVeth::Peer(peer)));
        handle.link().add(pair.build()).execute().await?;
        let below = index(&handle, "tb-near").await?;
        // The error of the VLAN is returned separately, because missing veth devices say nothing about VLANs.
        Ok(handle.link().add(vlan_link("tb-vlan", below, &VlanSpec { id: 1, ..VlanSpec::default() })).execute().await)
    };
    let tried = converse(&netns, job).ok()?.join().ok()?.ok()?;
    let error = crate::netlink::into_io(tried.err()?);
    Some(unsupported(&error))
}

fn unsupported(error: &io::Error) -> Problem {
    let release = nix::sys::utsname::uname()
        .map_or_else(|_| "of this host".to_owned(), |name| name.release().to_string_lossy().into_owned());
    let why = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => {
            format!("the kernel {release} was built without CONFIG_VLAN_8021Q, or the module 8021q is missing")
        }
        _ => format!("the kernel {release} refuses a VLAN interface: {error}"),
    };
    lack(
        format!("VLANs (802.1Q) are not possible: {why}"),
        "load the module (`modprobe 8021q`), put both ends into guests whose kernel supports VLANs, or remove `vlan`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_from_the_requested_vlan_is_reported() {
        let with = |vlan| Interface { vlan, ..crate::verify::tests::as_requested() };
        let asked = VlanSpec { id: 10, egress: [(0, 0), (7, 7)].into() };
        let refused = |found| verify(&with(found), "ping", &asked).unwrap_err().to_string();
        assert!(verify(&with(Some(VlanSpec { id: 10, egress: [(7, 7)].into() })), "ping", &asked).is_ok());
        let begin = "tbx-p0 (ping): the VLAN is 10 egress 7:6, but 10 egress 7:7 was requested; ";
        assert!(refused(Some(VlanSpec { id: 10, egress: [(7, 6)].into() })).starts_with(begin));
        assert!(refused(Some(VlanSpec { id: 11, egress: [(7, 7)].into() })).contains("the VLAN is 11 egress 7:7, but"));
        assert!(
            refused(Some(VlanSpec { id: 10, egress: [].into() })).contains("the VLAN is 10, but 10 egress 7:7 was")
        );
        assert!(refused(None).contains("the VLAN is none, but 10 egress 7:7 was requested"));
    }

    #[test]
    fn a_kernel_without_vlans_is_reported_with_a_remedy() {
        let text = |errno| unsupported(&io::Error::from_raw_os_error(errno)).to_string();
        let release = nix::sys::utsname::uname().unwrap().release().to_string_lossy().into_owned();
        assert_eq!(
            text(libc::EOPNOTSUPP).replace(&release, "6.1.0"),
            "VLANs (802.1Q) are not possible: the kernel 6.1.0 was built without CONFIG_VLAN_8021Q, or the module 8021q is \
             missing; load the module (`modprobe 8021q`), put both ends into guests whose kernel supports VLANs, or \
             remove `vlan`"
        );
        assert!(text(libc::ENOMEM).contains("refuses a VLAN interface: Cannot allocate memory"));
    }
}
