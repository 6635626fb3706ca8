//! Tests of routes from a pod to the interface of its node, over the interfaces that pod networks make: `pod` and
//! `node` are network namespaces.

use crate::support::{NamedNetns, Skip, run};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use tailbound_lab::netns::{NetNs, run_in};
use tailbound_lab::{Answers, HopsStart};
use tailbound_model::{Answer, Ask, Hop, LinksSeen};

/// Addresses of the pod on the other node, and of the other node itself.
const OTHER: [&str; 2] = ["10.9.2.7", "192.0.2.2"];

struct Cluster {
    pod: NamedNetns,
    node: NamedNetns,
}

impl Cluster {
    /// Makes a node whose interface `up0` leads to another node; the pod has no interface yet.
    fn new(name: &str) -> Result<Cluster, Skip> {
        let cluster =
            Cluster { pod: NamedNetns::add(&format!("{name}p"))?, node: NamedNetns::add(&format!("{name}n"))? };
        cluster.node("link add up0 type veth peer name up1")?;
        cluster.node("address add 192.0.2.1/24 dev up0")?;
        cluster.node("link set up0 up")?;
        Ok(cluster)
    }

    fn node(&self, arguments: &str) -> Result<(), Skip> {
        self.node.ip(arguments)
    }

    /// Makes the interface `eth0` of the pod. The other interface of the veth pair is `pod1` on the node.
    fn pair(&self) -> Result<(), Skip> {
        self.node(&format!("link add pod1 mtu 1450 type veth peer name eth0 mtu 1450 netns {}", self.pod.0))?;
        self.node("link set pod1 up")
    }

    fn seen(netns: &NamedNetns, to: &[&str]) -> LinksSeen {
        let to: Vec<IpAddr> = to.iter().map(|a| a.parse().unwrap()).collect();
        let netns = NetNs::open(&netns.0).unwrap();
        match run_in(&netns, move || Answers::default().answer(Ask::Links(to))).unwrap().join().unwrap() {
            Answer::Links(seen) => seen,
            other => panic!("{other:?}"),
        }
    }

    fn hops(&self) -> Vec<Hop> {
        let (pod, node) = (Self::seen(&self.pod, &[]), Self::seen(&self.node, &OTHER));
        let (hops, open) = tailbound_lab::hops(HopsStart::InPod(&pod), "eth0", Some(&node));
        assert_eq!(open, None);
        assert!(hops[0].in_pod && hops[1..].iter().all(|hop| !hop.in_pod), "{hops:?}");
        hops
    }
}

/// The network interfaces on a route, each as a text `NAME KIND`.
fn words(hops: &[Hop]) -> Vec<String> {
    hops.iter().map(|h| format!("{} {}", h.link.name, h.link.kind.as_deref().unwrap_or("device"))).collect()
}

/// Tests a pod network like that of Flannel: a bridge and a VXLAN tunnel.
pub fn by_bridge_and_vxlan() -> Result<(), Skip> {
    let cluster = Cluster::new("v")?;
    cluster.pair()?;
    cluster.node("link add cni0 type bridge")?;
    cluster.node("link set pod1 master cni0")?;
    cluster.node("link set cni0 up")?;
    cluster.node("link add flannel.1 mtu 1450 type vxlan id 1 dstport 8472 local 192.0.2.1 dev up0 nolearning")?;
    cluster.node("link set flannel.1 up")?;
    cluster.node("route add 10.9.2.0/24 via 10.9.2.0 dev flannel.1 onlink")?;
    let hops = cluster.hops();
    assert_eq!(words(&hops), ["eth0 veth", "pod1 veth", "cni0 bridge", "flannel.1 vxlan", "up0 veth"]);
    let tunnel = hops[3].link.tunnel.as_ref().unwrap();
    assert_eq!((tunnel.id, tunnel.port, tunnel.local), (Some(1), Some(8472), Some("192.0.2.1".parse().unwrap())));
    assert_eq!((hops[0].link.mtu, hops[4].link.mtu), (1450, 1500));
    // Without an observer on the node, only the interface in the pod is known.
    let pod = Cluster::seen(&cluster.pod, &[]);
    let (inside, open) = tailbound_lab::hops(HopsStart::InPod(&pod), "eth0", None);
    assert_eq!(
        (words(&inside), open.as_deref()),
        (vec!["eth0 veth".into()], Some("the interfaces of the node were not read"))
    );
    // In a namespace that is not the node's, this index belongs to another interface.
    let elsewhere = Cluster::seen(&cluster.pod, &OTHER);
    let (_, open) = tailbound_lab::hops(HopsStart::InPod(&pod), "eth0", Some(&elsewhere));
    assert_eq!(open.as_deref(), Some("eth0 leads to no interface of the node's network namespace"));
    Ok(())
}

/// Tests that a tunnel that names no interface uses the interface of the route to the other node; tests macvlan too.
pub fn by_route_and_by_macvlan() -> Result<(), Skip> {
    let cluster = Cluster::new("r")?;
    cluster.pair()?;
    cluster.node("link add tun9 type vxlan id 9 dstport 4789 local 192.0.2.1")?;
    cluster.node("link set tun9 up")?;
    cluster.node("route add 10.9.2.0/24 dev tun9")?;
    assert_eq!(words(&cluster.hops()), ["eth0 veth", "pod1 veth", "tun9 vxlan", "up0 veth"]);
    cluster.node("route replace 10.9.2.0/24 via 192.0.2.2")?;
    assert_eq!(words(&cluster.hops()), ["eth0 veth", "pod1 veth", "up0 veth"]);

    let cluster = Cluster::new("m")?;
    // Often both interfaces have the same index, each in its own namespace.
    let up0 = Cluster::seen(&cluster.node, &[]).links.iter().find(|l| l.name == "up0").unwrap().index;
    let macvlan = format!("link add link up0 name eth0 index {up0} netns {} type macvlan mode bridge", cluster.pod.0);
    cluster.node(&macvlan)?;
    let hops = cluster.hops();
    assert_eq!(
        (words(&hops).as_slice(), hops[0].link.index),
        (["eth0 macvlan", "up0 veth"].map(String::from).as_slice(), up0)
    );
    assert_eq!(hops[0].link.mode.as_deref(), Some("bridge"));
    Ok(())
}

/// Tests that tc and XDP programs at interfaces are reported.
pub fn programs_are_told() -> Result<(), Skip> {
    let cluster = Cluster::new("b")?;
    cluster.pair()?;
    cluster.node("route add 10.9.2.0/24 via 192.0.2.2")?;
    assert!(cluster.hops().iter().all(|hop| hop.link.programs.is_empty()));
    run("tc", &["-n", &cluster.node.0, "qdisc", "add", "dev", "pod1", "clsact"])?;
    let attach = ["filter", "add", "dev", "pod1", "ingress", "bpf", "da", "bytecode", "1,6 0 0 4294967295"];
    run("tc", &[&["-n", cluster.node.0.as_str()], attach.as_slice()].concat())?;
    let netns = NetNs::open(&cluster.node.0).unwrap();
    let link = run_in(&netns, || attach_xdp("up0")).unwrap().join().unwrap();
    let _link = link.map_err(|e| Skip(format!("no XDP program can be attached: {e}")))?;
    let hops = cluster.hops();
    assert_eq!(words(&hops), ["eth0 veth", "pod1 veth", "up0 veth"]);
    assert_eq!(hops[1].link.programs.len(), 1, "{hops:?}");
    assert!(hops[1].link.programs[0].starts_with("tc ingress"), "{hops:?}");
    assert!(hops[2].link.programs[0].starts_with("xdp (generic) id "), "{hops:?}");
    Ok(())
}

/// Attaches an XDP program that passes all packets, until the descriptor is closed (bpf(2)).
fn attach_xdp(interface: &str) -> io::Result<OwnedFd> {
    const PROG_LOAD: libc::c_long = 5;
    const LINK_CREATE: libc::c_long = 28;
    const TYPE_XDP: u32 = 6;
    const ATTACH_XDP: u32 = 37;
    const GENERIC: u32 = 2;
    let bpf = |command: libc::c_long, attributes: &[u32; 12]| {
        // SAFETY: the attributes have the given size, and the addresses in them point to values that outlive the call.
        let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of_val(attributes)) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just returned this descriptor and nobody else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    };
    let halves = |address: u64| -> [u32; 2] {
        let b = address.to_ne_bytes();
        [u32::from_ne_bytes([b[0], b[1], b[2], b[3]]), u32::from_ne_bytes([b[4], b[5], b[6], b[7]])]
    };
    // r0 = 2 (XDP_PASS); exit.
    let program: [u8; 16] = [0xb7, 0, 0, 0, 2, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
    let license = c"GPL";
    let ([i0, i1], [l0, l1]) = (halves(program.as_ptr() as u64), halves(license.as_ptr() as u64));
    let loaded = bpf(PROG_LOAD, &[TYPE_XDP, 2, i0, i1, l0, l1, 0, 0, 0, 0, 0, 0])?;
    let index = nix::net::if_::if_nametoindex(interface)?;
    bpf(LINK_CREATE, &[loaded.as_raw_fd() as u32, index, ATTACH_XDP, GENERIC, 0, 0, 0, 0, 0, 0, 0, 0])
}
