//! The path check: plain UDP datagrams over the path before a driver starts.
//!
//! Each end has one socket, opened inside its network namespace. A socket stays in its namespace, so one thread uses
//! all sockets. A round trip of the path check therefore contains the time of the path but no wake-up of a second
//! process: the round trip is a lower bound for a driver, not a prediction. Every wait has a time limit.

mod exchange;
mod probe_socket;
mod side;

use crate::datagram_socket;
use crate::error::LabError;
use crate::netns::{NetNs, run_in};
use crate::site::{Site, unexpected};
use crate::spec::LabSpec;
use crate::{gates, launch, shaping};
use exchange::Exchange;
use probe_socket::ProbeSocket;
pub(crate) use side::Side;
use std::io;
use std::net::SocketAddr;
use tailbound_model::{
    Answer, Ask, DeviceAnswer, GatesFact, LaunchBy, LaunchQueueFact, LaunchSpec, PathEnd, PathFacts, ShapingFact,
};

pub(crate) async fn probe(sides: &[Side], spec: &LabSpec) -> Result<PathFacts, LabError> {
    let mut facts = PathFacts::default();
    let mut sockets = Vec::new();
    for (i, side) in sides.iter().enumerate() {
        let end = spec.name(i);
        let (gates, launch) = (gates_of(side, end).await?, launch_of(side, end, spec.launch_of(i)).await?);
        let shaping = shaping_of(side, end).await?;
        facts.ends.push(PathEnd { gates, shaping, launch, ..facts_of(side, end)? });
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
            "both ends are in one network namespace: the kernel sends datagrams between its own addresses over lo, so no datagram \
             passes {} and {}; move one of the interfaces into another network namespace to measure the path between them",
            ping.interface, pong.interface
        ));
    }
    if let [a, b, ..] = &facts.ends[..]
        && a.mtu != b.mtu
    {
        facts.remarks.push(format!(
            "the MTUs differ: {} at ping ({}), {} at pong ({}); larger frames are lost towards the end with the smaller MTU",
            a.mtu, a.interface, b.mtu, b.interface
        ));
    }
    let exchange = Exchange::new(sockets, (sides, spec), multicast);
    let job = async { run_in(&NetNs::own()?, move || exchange.run(facts))?.wait().await };
    job.await.map_err(|e| LabError::read("sending datagrams", "path", e))
}

/// Opens a socket of the path check on the address of an end; returns the socket and its address.
async fn open(side: &Side) -> io::Result<(ProbeSocket, SocketAddr)> {
    let (address, interface, multicast) = (side.net.address, side.net.interface.clone(), side.net.multicast);
    match &side.site {
        Site::Here(netns) | Site::Inside(netns, _) => {
            let socket = run_in(netns, move || datagram_socket::open(address, &interface, multicast))?.wait().await??;
            let address = socket.local_addr()?;
            Ok((ProbeSocket::Here(socket), address))
        }
        Site::There(far) => match side.site.ask(Ask::OpenProbe { address, interface, multicast })? {
            Answer::Listens(address) => Ok((ProbeSocket::There { far: far.clone(), group: false }, address)),
            other => Err(unexpected(&other)),
        },
    }
}

/// Opens a socket that has joined a multicast group on the end's interface; returns the socket and the address of the
/// group.
async fn join_group(side: &Side) -> io::Result<(ProbeSocket, SocketAddr)> {
    let (address, interface) = (side.net.address, side.net.interface.clone());
    match &side.site {
        Site::Here(netns) | Site::Inside(netns, _) => {
            let socket = run_in(netns, move || datagram_socket::join_group(address, &interface))?.wait().await??;
            let group = socket.local_addr()?;
            Ok((ProbeSocket::Here(socket), group))
        }
        Site::There(far) => match side.site.ask(Ask::JoinGroup)? {
            Answer::Listens(group) => Ok((ProbeSocket::There { far: far.clone(), group: true }, group)),
            other => Err(unexpected(&other)),
        },
    }
}

/// Reads the gates of an end during the path check.
async fn gates_of(side: &Side, end: &str) -> Result<Option<GatesFact>, LabError> {
    match (&side.gated, &side.site) {
        (Some(name), Site::Here(netns)) => {
            let read = gates::read(netns, name.clone()).await;
            let read = read.map_err(|error| LabError::read(format!("reading the gates of {name}"), end, error))?;
            let none = || io::Error::other("it has no queue discipline `taprio` (tc qdisc show)");
            let found = read.ok_or_else(|| LabError::read(format!("reading the gates of {name}"), end, none()))?;
            Ok(Some(found.0))
        }
        _ => Ok(None),
    }
}

/// Reads the queue with launch times of an end during the path check. One that is only read may have been changed since the check before
/// the run.
async fn launch_of(side: &Side, end: &str, asked: Option<LaunchSpec>) -> Result<Option<LaunchQueueFact>, LabError> {
    let (Some((name, priority)), Site::Here(netns)) = (&side.launching, &side.site) else { return Ok(None) };
    let read = launch::read(netns, name, *priority).await;
    let found = read.map_err(|error| LabError::read(format!("reading the launch times of {name}"), end, error))?;
    let only_read = asked.filter(|asked| asked.by == LaunchBy::Existing);
    match only_read.and_then(|asked| launch::other_queue(found, (name, end), asked)) {
        Some(problem) => Err(LabError::Lacks(vec![problem])),
        None => Ok(Some(found)),
    }
}

/// Reads the traffic classes of an end's interface during the path check.
async fn shaping_of(side: &Side, end: &str) -> Result<Option<ShapingFact>, LabError> {
    let (Some(name), Site::Here(netns)) = (&side.shaped, &side.site) else { return Ok(None) };
    let read = shaping::read(netns, name.clone()).await;
    read.map_err(|error| LabError::read(format!("reading the traffic classes of {name}"), end, error))
}

/// Reads the facts of an end's interface again during the path check.
fn facts_of(side: &Side, end: &str) -> Result<PathEnd, LabError> {
    let name = &side.net.interface;
    let failed = |error| LabError::read(format!("reading interface {name}"), end, error);
    let all = side.site.interfaces().map_err(failed)?;
    let interface = all.into_iter().find(|i| i.name == *name);
    let interface =
        interface.ok_or_else(|| failed(io::Error::other("the interface was removed after the lab was built")))?;
    let DeviceAnswer { speed_mbit_s, offloads, card } =
        match side.site.ask(Ask::Device(name.clone())).map_err(failed)? {
            Answer::Device(facts) => facts,
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
        gates: None,
        shaping: None,
        launch: None,
        interface: interface.name,
    })
}
