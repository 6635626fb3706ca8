//! Tests of labs that are built, used and removed without an error.

use crate::support::{Skip, block_on, interfaces_of, journal, made, probe_once, sleeper, veth};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use tailbound_lab::netns::NetNs;
use tailbound_lab::{Lab, LabSpec, interfaces_here};
use tailbound_model::{PathFacts, PathSpec, PlaceSpec};

fn assert_passes_all(facts: &PathFacts, mtu: u32) {
    assert_eq!(facts.remarks, Vec::<String>::new());
    assert_eq!(facts.max_datagram_ping_to_pong, 65_507);
    assert_eq!(facts.max_datagram_pong_to_ping, 65_507);
    assert!(facts.fragments_pass);
    assert!(facts.probe_round_trip_ns.unwrap() > 0);
    for (end, name) in facts.ends.iter().zip(["ping", "pong"]) {
        assert_eq!((end.end.as_str(), end.mtu, end.up), (name, mtu, true));
        assert!(!end.offloads.is_empty());
    }
}

pub fn veth_carries_every_size_at_mtu_9000() -> Result<(), Skip> {
    let facts = probe_once(&veth(Some(9000)));
    assert_passes_all(&facts, 9000);
    assert_eq!(facts.multicast_passes, Some(true));
    assert_eq!([&facts.ends[0].address, &facts.ends[1].address], ["10.177.0.1", "10.177.0.2"]);
    assert!(facts.ends.iter().all(|e| e.tx_queues >= Some(1) && e.speed_mbit_s.is_some()), "{:?}", facts.ends);
    Ok(())
}

pub fn veth_has_the_kernels_mtu_by_default() -> Result<(), Skip> {
    assert_passes_all(&probe_once(&veth(None)), 1500);
    for mtu in [68, 65_535] {
        let facts = probe_once(&veth(Some(mtu)));
        assert_eq!(facts.ends[0].mtu, mtu);
        assert!(facts.max_datagram_ping_to_pong > 0);
    }
    Ok(())
}

pub fn bridge_carries_every_size_and_multicast() -> Result<(), Skip> {
    for mtu in [1500, 9000] {
        let facts = probe_once(&made(PathSpec::Bridge { mtu: Some(mtu) }));
        assert_passes_all(&facts, mtu);
        assert_eq!(facts.multicast_passes, Some(true));
    }
    Ok(())
}

pub fn loopback_is_used_as_it_is() -> Result<(), Skip> {
    for place in [PlaceSpec::Process, PlaceSpec::SameProcess] {
        let spec = LabSpec {
            path: PathSpec::Loopback,
            ping: place.clone(),
            pong: place,
            publishers: 1,
            subscribers: 1,
            apart: false,
            vlan: None,
            gates: [None, None],
            shaping: [None, None],
            police: [None, None],
            launch: None,
        };
        let facts = probe_once(&spec);
        let mtu = facts.ends[0].mtu;
        assert_passes_all(&facts, mtu);
        assert_eq!(facts.multicast_passes, None, "lo does not carry multicast");
    }
    Ok(())
}

pub fn commands_run_in_their_ends_namespace() -> Result<(), Skip> {
    let journal = journal("command");
    block_on(async {
        let lab = Lab::up(&veth(None), journal.run(), &journal).await.unwrap();
        let own = NetNs::own().unwrap().inode();
        let inodes = [0, 1].map(|end| {
            let output = lab.command(end, Command::new("readlink")).arg("/proc/self/ns/net").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        });
        assert_ne!(inodes[0], inodes[1]);
        assert!(
            inodes.iter().all(|inode| inode.starts_with("net:[") && !inode.contains(&own.to_string())),
            "{inodes:?}"
        );
        let net = lab.end(0);
        let options: Vec<String> = net.driver_options.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let expected = [format!("interface={}", net.interface), "address=10.177.0.1".into()];
        assert_eq!(options[..2], expected);
        assert_eq!(options[2..], ["peers=10.177.0.2", "multicast=on"]);
        lab.down(&journal).await.unwrap();
    });
    journal.finish().unwrap();
    Ok(())
}

pub fn counters_count_what_the_probe_sent() -> Result<(), Skip> {
    let journal = journal("counters");
    block_on(async {
        let lab = Lab::up(&veth(None), journal.run(), &journal).await.unwrap();
        let before = lab.counters(0);
        lab.probe().await.unwrap();
        let after = lab.counters(0);
        let grown = |key: &str| after[key] - before[key];
        assert!(grown("interface.tx_packets") > 100, "{after:?}");
        assert!(grown("Ip.FragCreates") >= 45, "{after:?}");
        assert!(grown("Ip.ReasmOKs") >= 4);
        assert!(grown("Udp.OutDatagrams") > 25);
        assert!(grown("IpExt.OutMcastPkts") >= 1);
        assert_eq!(grown("interface.rx_drop"), 0);
        lab.down(&journal).await.unwrap();
    });
    journal.finish().unwrap();
    Ok(())
}

pub fn two_labs_do_not_disturb_each_other() -> Result<(), Skip> {
    let journals = [journal("first"), journal("second")];
    block_on(async {
        let first = Lab::up(&veth(Some(9000)), journals[0].run(), &journals[0]).await.unwrap();
        let second = Lab::up(&made(PathSpec::Bridge { mtu: None }), journals[1].run(), &journals[1]).await.unwrap();
        assert_eq!(first.end(0).address, second.end(0).address, "the same address, and yet apart");
        let (a, b) = tokio::join!(first.probe(), second.probe());
        assert_passes_all(&a.unwrap(), 9000);
        assert_passes_all(&b.unwrap(), 1500);
        second.down(&journals[1]).await.unwrap();
        assert_passes_all(&first.probe().await.unwrap(), 9000);
        first.down(&journals[0]).await.unwrap();
    });
    journals.iter().for_each(|j| j.finish().unwrap());
    Ok(())
}

pub fn the_hosts_namespace_is_never_touched() -> Result<(), Skip> {
    let before = interfaces_here().unwrap();
    let inode = std::fs::metadata("/proc/self/ns/net").unwrap().ino();
    let journal = journal("host");
    block_on(async {
        let lab = Lab::up(&made(PathSpec::Bridge { mtu: None }), journal.run(), &journal).await.unwrap();
        assert_eq!(journal.open_entries().len(), 3, "one entry per namespace");
        assert_eq!(interfaces_here().unwrap(), before);
        let ping = sleeper(&lab, 0);
        let names: Vec<String> = interfaces_of(&ping.netns()).into_iter().map(|i| i.name).collect();
        assert_eq!(names.len(), 2, "lo and one more: {names:?}");
        drop(ping);
        lab.down(&journal).await.unwrap();
    });
    assert_eq!(interfaces_here().unwrap(), before);
    assert_eq!(std::fs::metadata("/proc/self/ns/net").unwrap().ino(), inode);
    assert_eq!(journal.open_entries(), []);
    journal.finish().unwrap();
    Ok(())
}
