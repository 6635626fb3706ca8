//! Reads the interfaces of a network namespace by netlink.

use crate::netlink::converse;
use crate::netns::{NetNs, Task};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{
    BridgeStpState, InfoBridge, InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
    VlanQosMapping,
};
use rtnetlink::{Error, Handle};
use std::io;
use tailbound_model::{BridgeState, Interface, VlanSpec};

fn bridge_state(data: &[InfoBridge]) -> BridgeState {
    let mut state = BridgeState::default();
    for item in data {
        match item {
            InfoBridge::StpState(stp) => state.spanning_tree = *stp != BridgeStpState::Disabled,
            InfoBridge::MulticastSnooping(on) => state.multicast_snooping = *on,
            InfoBridge::ForwardDelay(delay) => state.forward_delay = *delay,
            _ => {}
        }
    }
    state
}

fn vlan_state(data: &[InfoVlan]) -> VlanSpec {
    let mut state = VlanSpec::default();
    for item in data {
        match item {
            InfoVlan::Id(id) => state.id = *id,
            InfoVlan::EgressQos(map) => state.egress.extend(map.iter().filter_map(|entry| match entry {
                VlanQosMapping::Mapping(from, to) => Some((*from, u8::try_from(*to).unwrap_or(u8::MAX))),
                _ => None,
            })),
            _ => {}
        }
    }
    state
}

fn from_message(message: &LinkMessage) -> Interface {
    let flags = message.header.flags;
    let mut interface = Interface {
        index: message.header.index,
        name: String::new(),
        mtu: 0,
        enabled: flags.contains(LinkFlags::Up),
        operational: false,
        unreported: true,
        carrier: flags.contains(LinkFlags::LowerUp),
        multicast: flags.contains(LinkFlags::Multicast),
        tx_queues: None,
        rx_queues: None,
        controller: None,
        bridge: None,
        vlan: None,
        addresses: Vec::new(),
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
            LinkAttribute::OperState(state) => {
                interface.operational = *state == State::Up;
                interface.unreported = *state == State::Unknown;
            }
            LinkAttribute::NumTxQueues(n) => interface.tx_queues = Some(*n),
            LinkAttribute::NumRxQueues(n) => interface.rx_queues = Some(*n),
            LinkAttribute::Controller(index) => interface.controller = Some(*index),
            LinkAttribute::LinkInfo(infos) => {
                interface.bridge = infos.iter().find_map(|info| match info {
                    LinkInfo::Data(InfoData::Bridge(data)) => Some(bridge_state(data)),
                    _ => None,
                });
                interface.vlan = infos.iter().find_map(|info| match info {
                    LinkInfo::Data(InfoData::Vlan(data)) => Some(vlan_state(data)),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    interface
}

/// Starts to read all interfaces of a network namespace, on a thread inside the namespace.
pub(crate) fn read_interfaces(netns: &NetNs) -> io::Result<Task<io::Result<Vec<Interface>>>> {
    converse(netns, list)
}

/// Reads all interfaces of the calling thread's network namespace; blocks.
///
/// # Errors
/// Netlink is not available.
pub fn interfaces_here() -> io::Result<Vec<Interface>> {
    interfaces_of(&NetNs::own()?)
}

/// Reads all interfaces of a network namespace; blocks.
///
/// # Errors
/// The namespace cannot be entered, or netlink is not available.
pub fn interfaces_of(netns: &NetNs) -> io::Result<Vec<Interface>> {
    read_interfaces(netns)?.join()?
}

async fn list(handle: Handle) -> Result<Vec<Interface>, Error> {
    let links: Vec<LinkMessage> = handle.link().get().execute().try_collect().await?;
    let mut interfaces: Vec<Interface> = links.iter().map(from_message).collect();
    let mut addresses = handle.address().get().execute();
    while let Some(message) = addresses.try_next().await? {
        let Some(owner) = interfaces.iter_mut().find(|i| i.index == message.header.index) else { continue };
        // On a point-to-point interface `Address` is the peer's address and `Local` the own address; otherwise both are
        // equal.
        let local = message.attributes.iter().find_map(|a| match a {
            AddressAttribute::Local(address) => Some(*address),
            _ => None,
        });
        let plain = message.attributes.iter().find_map(|a| match a {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        });
        if let Some(address) = local.or(plain) {
            owner.addresses.push((address, message.header.prefix_len));
        }
    }
    Ok(interfaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found_with_its_address() {
        let all = interfaces_here().unwrap();
        let lo = all.iter().find(|i| i.name == "lo").expect("every namespace has a loopback interface");
        assert!(lo.mtu >= 1500);
        if lo.enabled {
            assert!(lo.up());
            assert!(lo.ipv4().any(|a| a.is_loopback()));
        }
    }
}
