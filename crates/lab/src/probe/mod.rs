//! The path check: plain UDP datagrams over the path before a driver starts.
//!
//! One socket per end, opened inside its namespace, then all of it from one thread: a socket keeps the namespace in
//! which it was made. So a round trip of the probe holds the path's own time and no wake-up of a second process: it is
//! a floor for what a driver can reach, not a forecast. Every wait has a limit.

pub(crate) mod datagram;
mod exchange;
pub(crate) mod socket;

use crate::end::EndNet;
use crate::error::LabError;
use crate::netns::{NetNs, run_in};
use crate::site::{Site, unexpected};
use crate::spec::LabSpec;
use datagram::Station;
use exchange::Exchange;
use std::io;
use std::net::SocketAddr;
use tailbound_model::{Ask, DeviceTold, PathEnd, PathFacts, Told};

/// One end with where it is.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub site: Site,
    pub net: EndNet,
}

pub(crate) async fn probe(sides: &[Side], spec: &LabSpec) -> Result<PathFacts, LabError> {
    let mut facts = PathFacts::default();
    let mut sockets = Vec::new();
    for (i, side) in sides.iter().enumerate() {
        let end = spec.name(i);
        facts.ends.push(facts_of(side, end)?);
        let opened = open(side).await;
        sockets.push(opened.map_err(|e| LabError::read(format!("opening a socket on {}", side.net.address), end, e))?);
    }
    let multicast = if sides[..2].iter().all(|s| s.net.multicast) {
        let failed = |e| LabError::read(format!("joining a group on {}", sides[1].net.interface), spec.name(1), e);
        Some(join_group(&sides[1]).await.map_err(failed)?)
    } else {
        None
    };
    let same = sides[0].site.identity() == sides[1].site.identity();
    let [ping, pong] = [0, 1].map(|i| &sides[i].net);
    if same && ping.interface != "lo" {
        facts.remarks.push(format!(
            "both ends lie in one network namespace: the kernel hands datagrams between its own addresses over lo, so {} and \
             {} carry none of them; move one of the interfaces into another network namespace to measure what joins them",
            ping.interface, pong.interface
        ));
    }
    if let [a, b, ..] = &facts.ends[..]
        && a.mtu != b.mtu
    {
        facts.remarks.push(format!(
            "the MTUs differ: {} at ping ({}), {} at pong ({}); larger frames are lost on the way to the smaller",
            a.mtu, a.interface, b.mtu, b.interface
        ));
    }
    let exchange = Exchange::new(sockets, (sides, spec), multicast);
    let job = async { run_in(&NetNs::own()?, move || exchange.run(facts))?.wait().await };
    job.await.map_err(|e| LabError::read("sending datagrams", "path", e))
}

/// A socket on the end's address, and where it listens.
async fn open(side: &Side) -> io::Result<(Station, SocketAddr)> {
    let (address, interface, multicast) = (side.net.address, side.net.interface.clone(), side.net.multicast);
    match &side.site {
        Site::Here(netns) | Site::Inside(netns, _) => {
            let socket = run_in(netns, move || socket::open(address, &interface, multicast))?.wait().await??;
            let address = socket.local_addr()?;
            Ok((Station::Here(socket), address))
        }
        Site::There(far) => match side.site.ask(Ask::OpenProbe { address, interface, multicast })? {
            Told::Listens(address) => Ok((Station::There { far: far.clone(), group: false }, address)),
            other => Err(unexpected(&other)),
        },
    }
}

/// A socket that has joined a group on the end's interface, and the group.
async fn join_group(side: &Side) -> io::Result<(Station, SocketAddr)> {
    let (address, interface) = (side.net.address, side.net.interface.clone());
    match &side.site {
        Site::Here(netns) | Site::Inside(netns, _) => {
            let socket = run_in(netns, move || socket::join_group(address, &interface))?.wait().await??;
            let group = socket.local_addr()?;
            Ok((Station::Here(socket), group))
        }
        Site::There(far) => match side.site.ask(Ask::JoinGroup)? {
            Told::Listens(group) => Ok((Station::There { far: far.clone(), group: true }, group)),
            other => Err(unexpected(&other)),
        },
    }
}

/// Interface facts, read anew.
fn facts_of(side: &Side, end: &str) -> Result<PathEnd, LabError> {
    let name = &side.net.interface;
    let failed = |error| LabError::read(format!("reading interface {name}"), end, error);
    let all = side.site.interfaces().map_err(failed)?;
    let interface = all.into_iter().find(|i| i.name == *name);
    let interface = interface.ok_or_else(|| failed(io::Error::other("it is gone since the lab was built")))?;
    let DeviceTold { speed_mbit_s, offloads, card } = match side.site.ask(Ask::Device(name.clone())).map_err(failed)? {
        Told::Device(told) => told,
        other => return Err(failed(unexpected(&other))),
    };
    Ok(PathEnd {
        end: end.to_owned(),
        address: side.net.address.to_string(),
        mtu: interface.mtu,
        up: interface.up(),
        speed_mbit_s,
        tx_queues: interface.tx_queues,
        rx_queues: interface.rx_queues,
        offloads,
        card,
        attached: None,
        vlan: interface.vlan,
        interface: interface.name,
    })
}
