//! VLANs on top of a path: how one is made, whether the kernel here can, and whether an interface is as it was asked for.

use crate::error::{LabError, Lack};
use crate::netlink::converse;
use crate::netns::NetNs;
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkMessage};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, LinkVlan, QosMapping};
use std::io;
use tailbound_model::{Interface, VlanSpec};

/// The request for an interface of a VLAN on top of the one with the index `below`.
pub(crate) fn vlan_link(name: &str, below: u32, vlan: &VlanSpec) -> LinkMessage {
    let egress = vlan.egress.iter().map(|(from, to)| QosMapping { from: *from, to: u32::from(*to) });
    LinkVlan::new(name, below, vlan.id).qos([], egress).build()
}

/// The same as a command.
pub(crate) fn command(below: &str, name: &str, vlan: &VlanSpec) -> String {
    let egress = if vlan.egress.is_empty() { String::new() } else { format!(" egress {}", vlan.egress_text()) };
    format!("ip link add link {below} name {name} type vlan id {}{egress}", vlan.id)
}

/// Compares what the kernel tells of an interface with what was asked.
///
/// # Errors
/// It is of no VLAN or another one, or its frames get other priorities.
pub(crate) fn verify(interface: &Interface, place: &str, asked: &VlanSpec) -> Result<(), LabError> {
    let asked = asked.as_told();
    let found = interface.vlan.as_ref().map(VlanSpec::as_told);
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

/// What the kernel here lacks for VLANs: one is made, in a network namespace that is given up at once. Where none may be
/// made something else is lacking, which others tell. Blocks for a moment.
pub(crate) fn lack() -> Option<Lack> {
    let netns = NetNs::make().ok()?;
    let job = |handle: Handle| async move {
        let peer = LinkMessageBuilder::<LinkUnspec>::new().name("tb-far").build();
        let pair =
            LinkMessageBuilder::<LinkVeth>::new("tb-near", "").set_info_data(InfoData::Veth(InfoVeth::Peer(peer)));
        handle.link().add(pair.build()).execute().await?;
        let below = crate::apply::index(&handle, "tb-near").await?;
        // An error of its own: that there are no veth devices says nothing of VLANs.
        Ok(handle.link().add(vlan_link("tb-vlan", below, &VlanSpec { id: 1, ..VlanSpec::default() })).execute().await)
    };
    let tried = converse(&netns, job).ok()?.join().ok()?.ok()?;
    let error = crate::netlink::into_io(tried.err()?);
    Some(unsupported(&error))
}

fn unsupported(error: &io::Error) -> Lack {
    let release = nix::sys::utsname::uname()
        .map_or_else(|_| "of this host".to_owned(), |name| name.release().to_string_lossy().into_owned());
    let why = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => format!(
            "the kernel {release} was built without VLAN_8021Q (CONFIG_VLAN_8021Q), or the module 8021q is not there"
        ),
        _ => format!("the kernel {release} refuses an interface of a VLAN: {error}"),
    };
    Lack::new(
        format!("no 802.1Q: {why}"),
        "load it (`modprobe 8021q`), put both ends into guests whose kernel has it, or leave `vlan` out",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_as_asked_is_told() {
        let with = |vlan| Interface { vlan, ..crate::verify::tests::as_asked() };
        let asked = VlanSpec { id: 10, egress: [(0, 0), (7, 7)].into() };
        let told = |found| verify(&with(found), "ping", &asked).unwrap_err().to_string();
        assert!(verify(&with(Some(VlanSpec { id: 10, egress: [(7, 7)].into() })), "ping", &asked).is_ok());
        let begin = "tbx-p0 (ping): the VLAN is 10 egress 7:6 where 10 egress 7:7 was asked; ";
        assert!(told(Some(VlanSpec { id: 10, egress: [(7, 6)].into() })).starts_with(begin));
        assert!(told(Some(VlanSpec { id: 11, egress: [(7, 7)].into() })).contains("the VLAN is 11 egress 7:7 where"));
        assert!(told(Some(VlanSpec { id: 10, egress: [].into() })).contains("the VLAN is 10 where 10 egress 7:7 was"));
        assert!(told(None).contains("the VLAN is none where 10 egress 7:7 was asked"));
    }

    #[test]
    fn a_kernel_without_vlans_is_told_with_what_to_do() {
        let text = |errno| unsupported(&io::Error::from_raw_os_error(errno)).to_string();
        let release = nix::sys::utsname::uname().unwrap().release().to_string_lossy().into_owned();
        assert_eq!(
            text(libc::EOPNOTSUPP).replace(&release, "6.1.0"),
            "no 802.1Q: the kernel 6.1.0 was built without VLAN_8021Q (CONFIG_VLAN_8021Q), or the module 8021q is not \
             there; load it (`modprobe 8021q`), put both ends into guests whose kernel has it, or leave `vlan` out"
        );
        assert!(text(libc::ENOMEM).contains("refuses an interface of a VLAN: Cannot allocate memory"));
    }
}
