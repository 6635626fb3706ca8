//! Executes one step of making a lab (the network namespaces and interfaces of a trial).

use crate::error::LabError;
use crate::failure::failed;
use crate::netem;
use crate::netlink::{converse, index};
use crate::netns::run_in;
use crate::rooms::Rooms;
use crate::step::{At, MULTICAST, Room, Step};
use crate::vlan::vlan_link;
use crate::{gates, launch, shaping};
use rtnetlink::packet_route::link::{BridgeStpState, InfoData, InfoVeth, LinkAttribute, LinkMessage};
use rtnetlink::{Error, Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// Executes one step of making a lab. The caller executes [`Step::Namespace`] and [`Step::Given`], because these steps
/// need the journal and the containers.
pub(crate) async fn apply(step: &Step, rooms: &Rooms) -> Result<(), LabError> {
    attempt(step, rooms).await.map_err(|reason| failed(step, reason))
}

async fn attempt(step: &Step, rooms: &Rooms) -> io::Result<()> {
    match step.clone() {
        Step::Namespace(_) | Step::Given(_) => Ok(()),
        Step::NoIpv6(room) => run_in(rooms.get(room)?, without_ipv6)?.wait().await?,
        Step::Pair { near, far, mtu, queues, receives } => {
            // The peer is created directly in its namespace, so that it never appears in another one.
            let far_netns = rooms.get(far.room)?.clone();
            let room = rooms.get(near.room)?;
            let job = move |handle: Handle| async move {
                let fd = far_netns
                    .raw_fd()
                    .ok_or(Error::NamespaceError("the peer of the veth pair is in Tailbound's own namespace".into()))?;
                let peer = LinkMessageBuilder::<LinkUnspec>::new().name(far.name).mtu(mtu).setns_by_fd(fd);
                let peer = with_queues(peer, [queues[1], receives], receives > 1).build();
                let pair = LinkMessageBuilder::<LinkVeth>::new(&near.name, "")
                    .mtu(mtu)
                    .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)));
                handle.link().add(with_queues(pair, queues, receives > 1).build()).execute().await
            };
            converse(room, job)?.wait().await?
        }
        Step::Bridge { at, mtu } => {
            let bridge = LinkMessageBuilder::<LinkBridge>::new(&at.name)
                .mtu(mtu)
                .stp_state(BridgeStpState::Disabled)
                .forward_delay(0)
                .mcast_snooping(false)
                .build();
            let job = move |handle: Handle| async move { handle.link().add(bridge).execute().await };
            converse(rooms.get(at.room)?, job)?.wait().await?
        }
        Step::Join { port, bridge } => {
            change(rooms, port.room, move |handle| async move {
                let bridge = index(&handle, &bridge).await?;
                Ok(LinkUnspec::new_with_name(&port.name).controller(bridge).build())
            })
            .await
        }
        Step::Vlan { at, below, vlan } => {
            let job = move |handle: Handle| async move {
                let below = index(&handle, &below).await?;
                handle.link().add(vlan_link(&at.name, below, &vlan)).execute().await
            };
            converse(rooms.get(at.room)?, job)?.wait().await?
        }
        Step::Up(At { room, name }) => {
            change(rooms, room, move |_| async move { Ok(LinkUnspec::new_with_name(&name).up().build()) }).await
        }
        Step::Address { at, address, prefix } => {
            let job = move |handle: Handle| async move {
                let index = index(&handle, &at.name).await?;
                handle.address().add(index, IpAddr::V4(address), prefix).execute().await
            };
            converse(rooms.get(at.room)?, job)?.wait().await?
        }
        Step::Gates { at, gates, launch } => {
            let start = gates::Start { second_ns: &rooms.second_ns, handle: gates::HANDLE, launch };
            gates::put(rooms.get(at.room)?, at.name, &gates, start).await
        }
        Step::Shaping { at, shaping } => shaping::put(rooms.get(at.room)?, at.name, (shaping, shaping::HANDLE)).await,
        Step::Launch { at, launch } => launch::put(rooms.get(at.room)?, at.name, (launch, launch::HANDLE)).await,
        Step::Delay { at, delay } => netem::put(rooms.get(at.room)?, at.name, delay).await,
        Step::MulticastRoute(at) => {
            let job = move |handle: Handle| async move {
                let route = RouteMessageBuilder::<Ipv4Addr>::new()
                    .destination_prefix(MULTICAST.0, MULTICAST.1)
                    .output_interface(index(&handle, &at.name).await?)
                    .build();
                handle.route().add(route).execute().await
            };
            converse(rooms.get(at.room)?, job)?.wait().await?
        }
    }
}

/// Gives a new interface these numbers of transmit and of receive queues. Without `all`, the number of receive queues is left to the
/// kernel, and so is one transmit queue.
///
/// The kernel uses all queues of both sides of a veth pair whose numbers are given for the first side (`veth_newlink` of
/// drivers/net/veth.c).
fn with_queues<T>(link: LinkMessageBuilder<T>, [sends, receives]: [u16; 2], all: bool) -> LinkMessageBuilder<T> {
    let link = match sends {
        1 if !all => link,
        _ => link.append_extra_attribute(LinkAttribute::NumTxQueues(u32::from(sends))),
    };
    match all {
        true => link.append_extra_attribute(LinkAttribute::NumRxQueues(u32::from(receives))),
        false => link,
    }
}

pub(crate) async fn change<F, Fut>(rooms: &Rooms, room: Room, message: F) -> io::Result<()>
where
    F: FnOnce(Handle) -> Fut + Send + 'static,
    Fut: Future<Output = Result<LinkMessage, Error>>,
{
    let job = move |handle: Handle| async move {
        let message = message(handle.clone()).await?;
        handle.link().change(message).execute().await
    };
    converse(rooms.get(room)?, job)?.wait().await?
}

/// Disables IPv6 in the namespace of the calling thread, which /proc/sys/net shows.
fn without_ipv6() -> io::Result<()> {
    for scope in ["all", "default"] {
        match std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1") {
            // A kernel without IPv6 has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}
