//! Tests of labs on paths that the user has set up.

use crate::support::{NamedNetns, Skip, block_on, interfaces_of, journal, probe_once, sleeper, veth};
use tailbound_lab::netns::NetNs;
use tailbound_lab::{Lab, LabSpec};
use tailbound_model::{ExistingEnd, PathSpec, PlaceSpec};

fn end(interface: &str) -> ExistingEnd {
    ExistingEnd { interface: Some(interface.to_owned()), address: None, device: None }
}

fn spec(ping: (&PlaceSpec, ExistingEnd), pong: (&PlaceSpec, ExistingEnd)) -> LabSpec {
    LabSpec {
        path: PathSpec::Existing { ping: ping.1, pong: pong.1 },
        ping: ping.0.clone(),
        pong: pong.0.clone(),
        publishers: 1,
        subscribers: 1,
        apart: false,
        vlan: None,
        gates: [None, None],
        shaping: [None, None],
        police: [None, None],
        launch: None,
    }
}

/// In these tests, the network namespaces of another lab replace namespaces that the user has set up.
pub fn by_path() -> Result<(), Skip> {
    let journal = journal("user");
    block_on(async {
        let users = Lab::up(&veth(Some(4000)), journal.run(), &journal).await.unwrap();
        let sleepers = [sleeper(&users, 0), sleeper(&users, 1)];
        let places = sleepers.each_ref().map(|s| PlaceSpec::ExistingNetns(s.path()));
        let before = sleepers.each_ref().map(|s| interfaces_of(&s.netns()));
        let [p0, p1] = [0, 1].map(|i| users.end(i).interface.clone());
        let by_address = ExistingEnd { interface: None, address: Some("10.177.0.2".into()), device: None };
        let ours = spec((&places[0], end(&p0)), (&places[1], by_address));
        assert_eq!(ours.check(), []);

        let lab = Lab::up(&ours, "ours", &journal).await.unwrap();
        assert_eq!(journal.open_entries().len(), 2, "nothing was made, so nothing new is in the journal");
        assert_eq!((lab.end(1).interface.as_str(), lab.end(0).mtu, lab.end(0).multicast), (p1.as_str(), 4000, true));
        let facts = lab.probe().await.unwrap();
        assert_eq!(facts.remarks, Vec::<String>::new());
        assert_eq!((facts.max_datagram_ping_to_pong, facts.multicast_passes), (65_507, Some(true)));
        lab.down(&journal).await.unwrap();
        assert_eq!(sleepers.each_ref().map(|s| interfaces_of(&s.netns())), before);

        let both = Lab::up(&spec((&places[0], end(&p0)), (&places[0], end(&p0))), "same", &journal).await.unwrap();
        let facts = both.probe().await.unwrap();
        assert!(
            facts.remarks[0].starts_with("both ends are in one network namespace: the kernel sends"),
            "{:?}",
            facts.remarks
        );
        both.down(&journal).await.unwrap();
        drop(sleepers);
        users.down(&journal).await.unwrap();
    });
    journal.finish().unwrap();
    Ok(())
}

pub fn by_name() -> Result<(), Skip> {
    let [ping, pong] = [NamedNetns::add("a")?, NamedNetns::add("b")?];
    ping.ip(&format!("link add here mtu 2000 type veth peer name there mtu 2000 netns {}", pong.0))?;
    for (netns, interface, address) in [(&ping, "here", "192.0.2.1/30"), (&pong, "there", "192.0.2.2/30")] {
        netns.ip(&format!("address add {address} dev {interface}"))?;
        netns.ip(&format!("link set {interface} up"))?;
    }
    let listed = || [&ping, &pong].map(|n| interfaces_of(&NetNs::open(&n.0).unwrap()));
    crate::support::wait_until("the user's path is up", || listed().iter().all(|all| all[1].operational));
    let before = listed();
    let facts = probe_once(&spec((&ping.place(), end("here")), (&pong.place(), end("there"))));
    assert_eq!(facts.remarks, Vec::<String>::new());
    assert_eq!((facts.ends[0].mtu, facts.ends[1].address.as_str(), facts.fragments_pass), (2000, "192.0.2.2", true));
    // IPv6 addresses come and go by themselves; nothing else may differ.
    let without_v6 = |all: [Vec<tailbound_model::Interface>; 2]| {
        all.map(|mut interfaces| {
            interfaces.iter_mut().for_each(|i| i.addresses.retain(|(a, _)| a.is_ipv4()));
            interfaces
        })
    };
    assert_eq!(without_v6(listed()), without_v6(before));

    pong.ip("link set there mtu 1400")?;
    let remarks = probe_once(&spec((&ping.place(), end("here")), (&pong.place(), end("there")))).remarks;
    assert_eq!(
        remarks,
        [
            "the MTUs differ: 2000 at ping (here), 1400 at pong (there); larger frames are lost towards the end with the smaller MTU",
            "datagrams of 1972 B do not arrive from ping at pong (in one frame at MTU 2000): 3 were sent, but none arrived within 70 ms",
            "datagrams of 1973 B, 8192 B, 60000 B, 65507 B do not arrive from ping at pong (in fragments at MTU 2000): 3 were sent, but \
             none arrived within 70 ms",
        ]
    );

    pong.ip("link set there down")?;
    crate::support::wait_until("the other side has lost its carrier", || !listed()[0][1].up());
    let lacks = spec((&ping.place(), end("here")), (&pong.place(), end("there"))).check();
    let lacks: Vec<String> = lacks.iter().map(ToString::to_string).collect();
    let (a, b) = (&ping.0, &pong.0);
    assert_eq!(
        lacks,
        [
            format!(
                "interface here in network namespace {a} is up but has no carrier (ping); plug the cable in, or start the \
                 program at the other side (a tap needs its program)"
            ),
            format!("interface there in network namespace {b} is down (pong); `ip link set there up`"),
        ]
    );

    let typo = PlaceSpec::ExistingNetns(ping.0.replace("tbtest", "tbtset"));
    let lacks = spec((&typo, end("here")), (&pong.place(), end("there"))).check();
    let begin = format!("did you mean `{}`? existing network namespaces: ", ping.0);
    assert!(lacks[0].remedy.starts_with(&begin), "{}", lacks[0]);
    Ok(())
}

pub fn lacks() -> Result<(), Skip> {
    let journal = journal("lacks");
    block_on(async {
        let users = Lab::up(&veth(None), journal.run(), &journal).await.unwrap();
        let sleepers = [sleeper(&users, 0), sleeper(&users, 1)];
        let places = sleepers.each_ref().map(|s| PlaceSpec::ExistingNetns(s.path()));
        let p1 = end(&users.end(1).interface);
        let check = |ping: ExistingEnd| {
            let lacks = spec((&places[0], ping), (&places[1], p1.clone())).check();
            lacks.iter().map(|l| l.to_string().replace(&sleepers[0].path(), "NETNS")).collect::<Vec<_>>().join("\n")
        };
        let p0 = users.end(0).interface.clone();
        let near = format!("{}9", &p0[..p0.len() - 1]);
        assert_eq!(
            check(end(&near)),
            format!(
                "there is no interface {near} in network namespace NETNS (ping); did you mean `{p0}`? \
                 existing interfaces: lo, {p0}"
            )
        );
        let wrong = ExistingEnd { interface: Some(p0.clone()), address: Some("127.0.0.1".into()), device: None };
        assert_eq!(
            check(wrong),
            format!(
                "interface {p0} in network namespace NETNS does not have the address 127.0.0.1 (ping); lo has it; {p0} has \
                 10.177.0.1"
            )
        );
        let error =
            Lab::up(&spec((&places[0], end("eth7")), (&places[1], p1.clone())), "x", &journal).await.unwrap_err();
        assert!(error.to_string().starts_with("the lab cannot be built: there is no interface eth7 in"), "{error}");
        drop(sleepers);
        users.down(&journal).await.unwrap();
    });
    journal.finish().unwrap();
    Ok(())
}

/// Tests a path whose two ends are not connected: the loopback of one namespace and the interface of another.
pub fn passes_nothing() -> Result<(), Skip> {
    let journal = journal("apart");
    block_on(async {
        let labs = [
            Lab::up(&veth(None), journal.run(), &journal).await.unwrap(),
            Lab::up(&veth(None), journal.run(), &journal).await.unwrap(),
        ];
        let sleepers = [sleeper(&labs[0], 0), sleeper(&labs[1], 1)];
        let places = sleepers.each_ref().map(|s| PlaceSpec::ExistingNetns(s.path()));
        let ends = [end(&labs[0].end(0).interface), end(&labs[1].end(1).interface)];
        let [ping, pong] = ends;
        let apart = Lab::up(&spec((&places[0], ping), (&places[1], pong)), "apart", &journal).await.unwrap();
        let probe = tokio::time::timeout(std::time::Duration::from_secs(60), apart.probe());
        let facts = probe.await.expect("every wait of the path check has a limit").unwrap();
        assert_eq!((facts.max_datagram_ping_to_pong, facts.max_datagram_pong_to_ping), (0, 0));
        assert_eq!((facts.fragments_pass, facts.multicast_passes, facts.probe_round_trip_ns), (false, None, None));
        let [ping, pong] = [0, 1].map(|i| apart.end(i).interface.clone());
        assert_eq!(
            facts.remarks[0],
            format!(
                "no datagram arrives from ping (10.177.0.1 on {ping}) at pong (10.177.0.2 on {pong}): 11 were sent, but none arrived within \
                 200 ms; check routes and firewall rules at both ends"
            )
        );
        apart.down(&journal).await.unwrap();
        drop(sleepers);
        for lab in labs {
            lab.down(&journal).await.unwrap();
        }
    });
    journal.finish().unwrap();
    Ok(())
}
