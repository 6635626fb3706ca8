//! Reads by netlink how interfaces are connected, the eBPF programs (XDP and tc) on interfaces, and the routes to
//! addresses. No privilege is needed. Programs attached by tcx are not read, because the kernel shows these programs
//! only with CAP_NET_ADMIN.

use crate::netlink::converse;
use crate::netns::NetNs;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::link::{
    InfoData, InfoGeneve, InfoIpTunnel, InfoIpVlan, InfoMacVlan, InfoVxlan, LinkAttribute, LinkInfo, LinkMessage,
    LinkXdp, XdpAttached,
};
use rtnetlink::packet_route::route::RouteAttribute;
use rtnetlink::packet_route::tc::{TcAttribute, TcFilterBpfOption, TcMessage, TcOption};
use rtnetlink::{Error, Handle, RouteMessageBuilder};
use std::io;
use std::net::IpAddr;
use tailbound_model::{Link, LinksSeen, Tunnel};

/// Kinds of queueing disciplines to which eBPF programs can be attached as tc filters.
const HOOKS: [&str; 2] = ["clsact", "ingress"];

/// Reads all interfaces of the calling thread's network namespace, and for each address in `to` the index of the
/// interface to which its route leads; blocks.
pub(crate) fn links_here(to: Vec<IpAddr>) -> io::Result<LinksSeen> {
    converse(&NetNs::own()?, |handle| async move {
        let messages: Vec<LinkMessage> = handle.link().get().execute().try_collect().await?;
        let mut links: Vec<Link> = messages.iter().map(link).collect();
        attached(&handle, &mut links).await;
        let mut routes = Vec::new();
        for address in to {
            // An error means that there is no route.
            routes.push(route(&handle, address).await.unwrap_or(None));
        }
        Ok(LinksSeen { links, routes, cpus: tailbound_host::node::cpuset() })
    })?
    .join()?
}

fn link(message: &LinkMessage) -> Link {
    let mut link = Link { index: message.header.index, ..Link::default() };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            // A tunnel without a lower interface has 0.
            LinkAttribute::Link(index) => link.below = Some(*index).filter(|i| *i != 0),
            LinkAttribute::LinkNetNsId(_) => link.elsewhere = true,
            LinkAttribute::Controller(index) => link.master = Some(*index),
            LinkAttribute::Xdp(all) => link.programs.extend(xdp(all)),
            LinkAttribute::LinkInfo(infos) => infos.iter().for_each(|info| match info {
                LinkInfo::Kind(kind) => link.kind = Some(kind.to_string()),
                LinkInfo::Data(data) => of_kind(data, &mut link),
                _ => {}
            }),
            _ => {}
        }
    }
    link
}

fn of_kind(data: &InfoData, link: &mut Link) {
    // A tunnel does not always have a lower interface.
    let below = |index: u32, link: &mut Link| link.below = Some(index).filter(|i| *i != 0).or(link.below);
    let mode = |mode: &dyn std::fmt::Debug| Some(format!("{mode:?}").to_lowercase());
    match data {
        InfoData::Vxlan(all) => {
            let tunnel = link.tunnel.get_or_insert_default();
            for info in all {
                match info {
                    InfoVxlan::Id(id) => tunnel.id = Some(*id),
                    InfoVxlan::Port(port) => tunnel.port = Some(*port),
                    InfoVxlan::Local(address) => tunnel.local = Some((*address).into()),
                    InfoVxlan::Local6(address) => tunnel.local = Some((*address).into()),
                    _ => {}
                }
            }
            all.iter().for_each(|info| {
                if let InfoVxlan::Link(index) = info {
                    below(*index, link)
                }
            });
        }
        InfoData::Geneve(all) => {
            let of = |pick: &dyn Fn(&InfoGeneve) -> Option<u32>| all.iter().find_map(pick);
            let id = of(&|info| if let InfoGeneve::Id(id) = info { Some(*id) } else { None });
            let port = of(&|info| if let InfoGeneve::Port(port) = info { Some((*port).into()) } else { None });
            link.tunnel = Some(Tunnel { id, port: port.and_then(|p| p.try_into().ok()), local: None });
        }
        InfoData::IpTunnel(all) => all.iter().for_each(|info| match info {
            InfoIpTunnel::Link(index) => below(*index, link),
            InfoIpTunnel::Local(address) if !address.is_unspecified() => {
                link.tunnel.get_or_insert_default().local = Some(*address);
            }
            _ => {}
        }),
        InfoData::MacVlan(all) => {
            link.mode = all.iter().find_map(|i| if let InfoMacVlan::Mode(m) = i { mode(m) } else { None });
        }
        InfoData::IpVlan(all) => {
            link.mode = all.iter().find_map(|i| if let InfoIpVlan::Mode(m) = i { mode(m) } else { None });
        }
        _ => {}
    }
}

/// Describes an XDP program with its attach mode, such as `xdp (generic) id 7`.
fn xdp(all: &[LinkXdp]) -> Option<String> {
    let attached = all.iter().find_map(|x| if let LinkXdp::Attached(a) = x { Some(a) } else { None })?;
    let how = match attached {
        XdpAttached::None => return None,
        XdpAttached::Driver => "driver",
        XdpAttached::SocketBuffer => "generic",
        XdpAttached::Hardware => "card",
        _ => "several",
    };
    let id = all.iter().find_map(|x| if let LinkXdp::ProgId(id) = x { Some(format!(" id {id}")) } else { None });
    Some(format!("xdp ({how}){}", id.unwrap_or_default()))
}

/// Adds descriptions of the eBPF programs that are attached as tc filters to the interfaces. Programs that cannot be
/// read are left out.
async fn attached(handle: &Handle, links: &mut [Link]) {
    let found: Result<Vec<TcMessage>, Error> = handle.qdisc().get().execute().try_collect().await;
    let has_place = |message: &&TcMessage| {
        message.attributes.iter().any(|a| matches!(a, TcAttribute::Kind(kind) if HOOKS.contains(&kind.as_str())))
    };
    for qdisc in found.iter().flatten().filter(has_place) {
        let index = qdisc.header.index;
        let Some(link) = links.iter_mut().find(|l| i32::try_from(l.index) == Ok(index)) else { continue };
        let clsact = qdisc.attributes.contains(&TcAttribute::Kind("clsact".into()));
        let get = || handle.traffic_filter(index).get();
        let directions = [("ingress", Some(get().ingress())), ("egress", clsact.then(|| get().egress()))];
        for (direction, request) in
            directions.into_iter().filter_map(|(direction, request)| Some((direction, request?)))
        {
            let filters: Vec<TcMessage> = request.execute().try_collect().await.unwrap_or_default();
            link.programs.extend(filters.iter().filter_map(|filter| program(direction, filter)));
        }
    }
}

/// Describes the eBPF program of a tc filter, such as `tc ingress cil_from_container id 8`; `None` if the filter has no
/// eBPF program.
fn program(direction: &str, filter: &TcMessage) -> Option<String> {
    let options =
        filter.attributes.iter().find_map(|a| if let TcAttribute::Options(all) = a { Some(all) } else { None })?;
    let of_bpf: Vec<_> = options.iter().filter_map(|o| if let TcOption::Bpf(b) = o { Some(b) } else { None }).collect();
    if of_bpf.is_empty() {
        return None;
    }
    let mut text = format!("tc {direction}");
    for option in of_bpf {
        match option {
            TcFilterBpfOption::ProgName(name) => text.push_str(&format!(" {name}")),
            TcFilterBpfOption::ProgId(id) => text.push_str(&format!(" id {id}")),
            _ => {}
        }
    }
    Some(text)
}

async fn route(handle: &Handle, to: IpAddr) -> Result<Option<u32>, Error> {
    let message = RouteMessageBuilder::<IpAddr>::new().destination_prefix(to, if to.is_ipv4() { 32 } else { 128 });
    let Ok(message) = message.map(RouteMessageBuilder::build) else { return Ok(None) };
    let found = handle.route().get(message).execute().try_next().await?;
    let index = |a: &RouteAttribute| if let RouteAttribute::Oif(index) = a { Some(*index) } else { None };
    Ok(found.and_then(|route| route.attributes.iter().find_map(index)))
}
