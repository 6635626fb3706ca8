//! Tests of the priority of packets (SO_PRIORITY) behind tunnels and veth pairs, as gates of the next interface see it.

use crate::support::host::is_root;
use crate::support::{Bench, output_of, succeeded};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;
use tailbound_lab::netns::{NetNs, run_in};
use tailbound_record::Record;

/// Namespaces of this test: the sender, the receiver, and another one behind the sender.
const SPACES: [&str; 3] = ["tbprio-a", "tbprio-b", "tbprio-c"];
const MESSAGES: u32 = 50;
/// As the handle of a class, 1:10, by which the queue discipline `htb` chooses the class of a packet.
const PRIORITY: libc::c_int = 0x1_0010;

/// Three network namespaces, which are removed at the end.
struct Spaces;

impl Spaces {
    /// The namespaces, of which the one with this number is joined to the receiver: its interface `o0` leads to `o1`.
    fn joined(from: usize) -> Spaces {
        remove();
        for name in SPACES {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        let from = SPACES[from];
        ip(&format!("link add o0 netns {from} type veth peer name o1 netns {}", SPACES[1]));
        ip(&format!("-n {from} link set o0 up"));
        ip(&format!("-n {} link set o1 up", SPACES[1]));
        Spaces
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        remove();
    }
}

fn remove() {
    for name in SPACES {
        // Usually, there is none.
        let _ = Command::new("ip").args(["netns", "del", name]).output();
    }
}

fn ip(words: &str) -> String {
    output_of("ip", &words.split(' ').collect::<Vec<_>>())
}

fn tc(words: &str) -> String {
    output_of("tc", &words.split(' ').collect::<Vec<_>>())
}

/// Gives the interfaces `t0` and `t1` of sender and receiver addresses, and counts at this interface how many of the messages have the
/// priority of their socket.
fn kept(space: usize, interface: &str) -> u32 {
    for (end, name) in SPACES[..2].iter().enumerate() {
        ip(&format!("-n {name} address add 10.9.0.{}/24 dev t{end}", end + 1));
        ip(&format!("-n {name} link set t{end} up"));
    }
    let name = SPACES[space];
    tc(&format!("-n {name} qdisc add dev {interface} root handle 1: htb default 20"));
    for class in [10, 20] {
        tc(&format!("-n {name} class add dev {interface} parent 1: classid 1:{class} htb rate 1gbit"));
    }
    run_in(&NetNs::open(SPACES[0]).unwrap(), send).unwrap().join().unwrap().unwrap();
    let shown = tc(&format!("-n {name} -s class show dev {interface}"));
    let (_, class) = shown.split_once("class htb 1:10 ").unwrap();
    class.split_once(" bytes ").unwrap().1.split(' ').next().unwrap().parse().unwrap()
}

fn send() -> io::Result<()> {
    let socket = UdpSocket::bind("10.9.0.1:0")?;
    let priority = PRIORITY;
    // SAFETY: the pointer and the length are of a live integer.
    let set = unsafe {
        let length = size_of_val(&priority) as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, (&raw const priority).cast(), length)
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    // The first one waits for the address of the receiver.
    (0..MESSAGES).try_for_each(|_| socket.send_to(&[0; 64], "10.9.0.2:9").map(drop))
}

/// Joins `t0` in the namespace of the sender to a bridge in this one, of which `o0` is a port.
fn bridged(space: usize) -> Spaces {
    let spaces = Spaces::joined(space);
    let name = SPACES[space];
    ip(&format!("-n {name} link add name sw0 type bridge"));
    ip(&format!("-n {name} link set sw0 up"));
    ip(&format!("link add t0 netns {} type veth peer name p0 netns {name}", SPACES[0]));
    for port in ["p0", "o0"] {
        ip(&format!("-n {name} link set {port} master sw0"));
    }
    ip(&format!("-n {name} link set p0 up"));
    ip(&format!("-n {} link add link o1 name t1 type macvlan mode bridge", SPACES[1]));
    spaces
}

/// The tunnel `t0` of the sender over `o0` of this namespace.
fn tunnelled(space: usize) -> Spaces {
    let spaces = Spaces::joined(space);
    for (end, (name, other)) in [(space, 2), (1, 1)].into_iter().enumerate() {
        let (name, own) = (SPACES[name], end + 1);
        ip(&format!("-n {name} address add 10.1.0.{own}/24 dev o{end}"));
        let tunnel = format!("vxlan id 7 local 10.1.0.{own} remote 10.1.0.{other} dstport 4789");
        ip(&format!("-n {name} link add t{end} type {tunnel}"));
    }
    if space != 0 {
        ip(&format!("-n {} link set t0 netns {}", SPACES[space], SPACES[0]));
    }
    spaces
}

/// A study whose messages leave by `t0`.
fn study() -> String {
    let [a, b, _] = SPACES;
    format!(
        "study: s\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 10 }} }}\nrate: 10 Hz\ndriver: {{ udp: {{ priority: 7 }} }}\n\
         path: {{ existing: {{ ping: {{ interface: t0 }}, pong: {{ interface: t1 }} }} }}\n\
         ends: {{ ping: {{ place: {{ existing-netns: {a} }} }}, pong: {{ place: {{ existing-netns: {b} }} }} }}\n"
    )
}

/// What `gates check` prints about messages that leave by `t0`, without the notes about clocks.
fn checked() -> String {
    let bench = Bench::new();
    let study = bench.study(&study());
    let output = bench.tailbound().args(["gates", "check"]).arg(&study).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let of_ends = text.lines().skip_while(|line| line.contains("CLOCK_TAI") || line.contains("adjtimex"));
    of_ends.collect::<Vec<_>>().join("\n")
}

/// Test: a tunnel keeps the priority of messages, also in another network namespace, and a veth pair loses it behind its other end,
/// in another namespace and in the same one. `gates check` says the same.
#[test]
fn the_priority_is_kept_by_a_tunnel_and_lost_behind_a_veth_pair() {
    if !is_root() {
        return println!("skipped: network namespaces with names can be made by root only");
    }
    for space in [0, 2] {
        let _spaces = tunnelled(space);
        assert_eq!(kept(space, "o0"), MESSAGES, "vxlan over namespace {space}");
        if space == 0 {
            insta::assert_snapshot!("tunnel", checked());
        }
    }
    {
        let _spaces = Spaces::joined(2);
        ip(&format!("-n {} link add link o0 name t0 type macvlan mode bridge", SPACES[2]));
        ip(&format!("-n {} link set t0 netns {}", SPACES[2], SPACES[0]));
        ip(&format!("-n {} link add link o1 name t1 type macvlan mode bridge", SPACES[1]));
        assert_eq!(kept(2, "o0"), MESSAGES, "macvlan");
        // The interface below `t0` is in another namespace, and the one below `t1` is one end of the veth pair.
        insta::assert_snapshot!("macvlan", checked());
    }
    for space in [0, 2] {
        let _spaces = bridged(space);
        assert_eq!(kept(space, "o0"), 0, "veth to namespace {space}");
        if space == 2 {
            insta::assert_snapshot!("veth", checked());
        }
    }
    // The veth itself.
    let _spaces = bridged(2);
    assert_eq!(kept(0, "t0"), MESSAGES);
}

/// Test: below a macvlan, the veth pair that carries it counts, for `gates check` and in the record of a run.
#[test]
fn a_veth_pair_below_a_macvlan_is_found() {
    if !is_root() {
        return println!("skipped: network namespaces with names can be made by root only");
    }
    let _spaces = Spaces::joined(0);
    for (end, name) in SPACES[..2].iter().enumerate() {
        ip(&format!("-n {name} link add link o{end} name t{end} type macvlan mode bridge"));
        ip(&format!("-n {name} address add 10.9.0.{}/24 dev t{end}", end + 1));
        ip(&format!("-n {name} link set t{end} up"));
    }
    insta::assert_snapshot!("macvlans", checked());
    let bench = Bench::new();
    succeeded(&bench.run(&study(), &[]));
    let record = Record::open(&bench.path("record")).unwrap();
    let lost = record.manifest.warnings.iter().filter(|warning| warning.problem.code == "priority_lost");
    let ends: Vec<Option<&str>> = lost.map(|warning| warning.end.as_deref()).collect();
    assert_eq!(ends, [Some("ping"), Some("pong")]);
}
