//! Taking one step of the making of a lab.

use crate::error::LabError;
use crate::netem;
use crate::netlink::converse;
use crate::netns::{NetNs, run_in};
use crate::step::{At, MULTICAST, Room, Step};
use crate::vlan::vlan_link;
use rtnetlink::packet_route::link::{BridgeStpState, InfoData, InfoVeth, LinkMessage};
use rtnetlink::{Error, Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// The namespaces of a lab while it is made.
#[derive(Debug, Default)]
pub(crate) struct Rooms(Vec<(Room, NetNs)>);

impl Rooms {
    pub fn add(&mut self, room: Room, netns: NetNs) {
        self.0.push((room, netns));
    }

    pub fn get(&self, room: Room) -> io::Result<&NetNs> {
        let found = self.0.iter().find(|(r, _)| *r == room);
        found.map(|(_, netns)| netns).ok_or_else(|| io::Error::other("its namespace was not made"))
    }

    /// The last one first.
    pub fn take_all(self) -> impl Iterator<Item = (Room, NetNs)> {
        self.0.into_iter().rev()
    }
}

/// Takes a step other than [`Step::Namespace`] and [`Step::Given`], which are the caller's: the journal comes first, and
/// what is given it has.
pub(crate) async fn apply(step: &Step, rooms: &Rooms) -> Result<(), LabError> {
    attempt(step, rooms).await.map_err(|reason| failed(step, reason))
}

async fn attempt(step: &Step, rooms: &Rooms) -> io::Result<()> {
    match step.clone() {
        Step::Namespace(_) | Step::Given(_) => Ok(()),
        Step::NoIpv6(room) => run_in(rooms.get(room)?, without_ipv6)?.wait().await?,
        Step::Pair { near, far, mtu } => {
            // The peer is created where it belongs: no interface ever passes through another namespace.
            let far_netns = rooms.get(far.room)?.clone();
            let room = rooms.get(near.room)?;
            let job = move |handle: Handle| async move {
                let fd =
                    far_netns.raw_fd().ok_or(Error::NamespaceError("the peer's namespace is not a new one".into()))?;
                let peer = LinkMessageBuilder::<LinkUnspec>::new().name(far.name).mtu(mtu).setns_by_fd(fd).build();
                let pair = LinkMessageBuilder::<LinkVeth>::new(&near.name, "")
                    .mtu(mtu)
                    .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
                    .build();
                handle.link().add(pair).execute().await
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

pub(crate) async fn index(handle: &Handle, name: &str) -> Result<u32, Error> {
    use futures_util::TryStreamExt;
    let mut links = std::pin::pin!(handle.link().get().match_name(name).execute());
    let link = links.try_next().await?.ok_or(Error::RequestFailed)?;
    Ok(link.header.index)
}

/// /proc/sys/net shows the namespace of the thread that opens it.
fn without_ipv6() -> io::Result<()> {
    for scope in ["all", "default"] {
        match std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1") {
            // A kernel without IPv6 has nothing to switch off.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// A failed step with what to do about it.
pub(crate) fn failed(step: &Step, reason: io::Error) -> LabError {
    let mend = match (step, reason.raw_os_error()) {
        (_, Some(libc::EPERM | libc::EACCES)) => {
            "run as root (or with CAP_SYS_ADMIN and CAP_NET_ADMIN), or use `path: loopback`"
        }
        (Step::Namespace(_), Some(libc::ENOSPC | libc::EUSERS)) => {
            "raise the sysctl user.max_net_namespaces, or end programs that hold network namespaces"
        }
        (Step::Namespace(_), Some(libc::EINVAL)) => {
            "this kernel has no network namespaces (CONFIG_NET_NS): use `path: loopback`"
        }
        (Step::Pair { .. }, Some(libc::EOPNOTSUPP)) => {
            "this kernel has no veth devices: load the module (`modprobe veth`) or use `path: loopback`"
        }
        (Step::Bridge { .. }, Some(libc::EOPNOTSUPP)) => {
            "this kernel has no bridge: load the module (`modprobe bridge`) or use `path: veth`"
        }
        (Step::Vlan { .. }, Some(libc::EOPNOTSUPP)) => {
            "this kernel has no 802.1Q: load the module (`modprobe 8021q`) or leave `vlan` out"
        }
        (Step::NoIpv6(_), Some(libc::EROFS)) => {
            "/proc/sys is mounted read-only (a container?): give the container the right to write there, or use `path: loopback`"
        }
        _ => "nothing is left behind; please report this with the kernel's version",
    };
    LabError::Step { step: step.to_string(), reason, mend: mend.to_owned() }
}
