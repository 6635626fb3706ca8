//! The path check: plain UDP datagrams over the path before a driver starts.
//!
//! One socket per end, opened inside its namespace, then all of it from one thread: a socket keeps the namespace in
//! which it was made. So a round trip of the probe holds the path's own time and no wake-up of a second process: it is
//! a floor for what a driver can reach, not a forecast. Every wait has a limit.

mod exchange;
mod socket;

use crate::end::EndNet;
use crate::error::LabError;
use crate::interface::read_interfaces;
use crate::netns::{NetNs, run_in};
use crate::spec::ENDS;
use exchange::Exchange;
use socket::open;
use std::io;
use tailbound_host::interface::Ethtool;
use tailbound_model::{PathEnd, PathFacts};

/// One end with its namespace.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub netns: NetNs,
    pub net: EndNet,
}

pub(crate) async fn probe(sides: &[Side; 2]) -> Result<PathFacts, LabError> {
    let mut facts = PathFacts::default();
    let mut sockets = Vec::new();
    for (side, end) in sides.iter().zip(ENDS) {
        facts.ends.push(facts_of(side, end).await?);
        let net = side.net.clone();
        let opened = async { run_in(&side.netns, move || open(&net))?.wait().await? };
        sockets.push(
            opened.await.map_err(|e| LabError::read(format!("opening a socket on {}", side.net.address), end, e))?,
        );
    }
    let multicast = if sides.iter().all(|s| s.net.multicast) {
        let net = sides[1].net.clone();
        let opened = async { run_in(&sides[1].netns, move || socket::join_group(&net))?.wait().await? };
        Some(
            opened
                .await
                .map_err(|e| LabError::read(format!("joining a group on {}", sides[1].net.interface), ENDS[1], e))?,
        )
    } else {
        None
    };
    let same = sides[0].netns.inode() == sides[1].netns.inode();
    let [ping, pong] = [0, 1].map(|i| &sides[i].net);
    if same && ping.interface != "lo" {
        facts.remarks.push(format!(
            "both ends lie in one network namespace: the kernel hands datagrams between its own addresses over lo, so {} and \
             {} carry none of them; move one of the interfaces into another network namespace to measure what joins them",
            ping.interface, pong.interface
        ));
    }
    if let [a, b] = &facts.ends[..]
        && a.mtu != b.mtu
    {
        facts.remarks.push(format!(
            "the MTUs differ: {} at ping ({}), {} at pong ({}); larger frames are lost on the way to the smaller",
            a.mtu, a.interface, b.mtu, b.interface
        ));
    }
    let exchange = Exchange::new(sockets, sides, multicast);
    let job = async { run_in(&NetNs::own()?, move || exchange.run(facts))?.wait().await };
    job.await.map_err(|e| LabError::read("sending datagrams", "path", e))
}

/// Interface facts, read anew.
async fn facts_of(side: &Side, end: &str) -> Result<PathEnd, LabError> {
    let name = side.net.interface.clone();
    let failed = |error| LabError::read(format!("reading interface {}", side.net.interface), end, error);
    let read = async { read_interfaces(&side.netns)?.wait().await? };
    let all = read.await.map_err(failed)?;
    let interface = all.into_iter().find(|i| i.name == name);
    let interface = interface.ok_or_else(|| failed(io::Error::other("it is gone since the lab was built")))?;
    let device = async { run_in(&side.netns, move || device_facts(&name))?.wait().await };
    let (speed_mbit_s, offloads) = device.await.map_err(failed)?;
    Ok(PathEnd {
        end: end.to_owned(),
        address: side.net.address.to_string(),
        mtu: interface.mtu,
        up: interface.up(),
        speed_mbit_s,
        tx_queues: interface.tx_queues,
        rx_queues: interface.rx_queues,
        offloads,
        interface: interface.name,
    })
}

/// Speed and offloads of a device of the calling thread's network namespace; one that does not tell is one without.
fn device_facts(name: &str) -> (Option<i64>, Vec<String>) {
    match Ethtool::open(name) {
        Ok(device) => (device.speed_mbit_s().ok(), device.offloads().unwrap_or_default()),
        Err(_) => (None, Vec::new()),
    }
}
