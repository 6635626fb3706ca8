//! Tests of paths between guests, with Ethernet frames that the tests send in place of guests.

use crate::frames::{self, Wire, exchange};
use crate::held::{Held, with};
use crate::support::{Skip, block_on, journal, this_program, wait_until};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use tailbound_host::{Journal, is_alive, journal as journals};
use tailbound_lab::netns::{NetNs, run_in};
use tailbound_lab::wiring::{Port, Wiring, vhost_lack};
use tailbound_model::{PathSpec, SwitchPorts, XdpMode};

const GUEST: Port = Port::Guest { queues: 1 };
const HOST: Port = Port::Host { queues: 1 };
const MANY: Port = Port::Guest { queues: 2 };

fn needs_root() -> Result<(), Skip> {
    let root = nix::unistd::geteuid().is_root();
    root.then_some(()).ok_or_else(|| Skip("devices and programs of the kernel need root".into()))
}

/// Skips a test if /dev/net/tun cannot be opened. On many machines every user can open it.
fn needs_tun() -> Result<(), Skip> {
    let opened = fs::File::options().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(|error| Skip(format!("/dev/net/tun: {error}")))
}

/// Packet counters of the path by name: first for the first guest, then for the second guest.
type Counted = [BTreeMap<String, i64>; 2];

/// Sends frames of many sizes in both directions between two guests, and then checks the counters.
fn between_guests(path: &PathSpec, mtu: usize, guest: Port, counted: impl FnOnce(&Counted, i64)) -> Held {
    with(path, &[guest, guest], |under| {
        // Sockets on the file system find each other only when both exist, so both are bound before they are connected.
        let plugs = [under.plug(0).unwrap(), under.plug(1).unwrap()];
        assert!(under.plug(0).is_none() && under.host_end(0).is_none());
        let wires = frames::wires(plugs);
        let queues = guest == MANY && !matches!(path, PathSpec::Datagram { .. });
        assert!(wires.iter().all(|wire| wire.queues() == if queues { 2 } else { 1 }));
        let mut sent = 0;
        for size in [46, 128, 1024, mtu - 1, mtu] {
            for (from, to) in [(0, 1), (1, 0)] {
                let frame = frames::datagram(from, to, Wiring::mac(to), size);
                exchange(&wires[from], &frame, &wires[to], |found| found == frame);
                sent += i64::from(from == 0);
            }
        }
        let [one, other] = &under.counters()[..] else { panic!("one row for each end") };
        assert!(one.0.len() <= 15 && one.0 != other.0);
        counted(&[one.1.clone(), other.1.clone()], sent);
    })
}

/// Tests a guest and an end on this host, whose interface has one transmit queue or several.
fn with_the_host(path: &PathSpec, mtu: usize) {
    let many = Port::Host { queues: 3 };
    [HOST, many].into_iter().for_each(|host| with_the_host_of(path, mtu, host));
}

/// Tests a guest and an end on this host: an ARP request and its answer, then datagrams of many sizes and their echo.
fn with_the_host_of(path: &PathSpec, mtu: usize, host: Port) {
    with(path, &[GUEST, host], |under| {
        let wire = Wire::of(under.plug(0).unwrap());
        let (netns, interface, address) = under.host_end(1).unwrap();
        assert!(under.plug(1).is_none() && interface.ends_with("-p1") && address == Wiring::address(1));
        let (name, queues) = (interface.clone(), if host == HOST { 1 } else { 3 });
        let facts = run_in(&netns, move || tailbound_host::interface_facts(&name)).unwrap().join().unwrap().unwrap();
        assert_eq!(facts.tx_queues, Ok(queues));
        let is_answer = |frame: &[u8]| frames::answer(frame, 1).is_some();
        let found = exchange(&wire, &frames::question(0, 1), &wire, is_answer);
        let mac = frames::answer(&found, 1).unwrap();
        let socket = run_in(&netns, move || UdpSocket::bind((address, frames::PORT))).unwrap().join().unwrap().unwrap();
        let echo = std::thread::spawn(move || {
            let mut buffer = [0; 70_000];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).unwrap();
                if length == 0 {
                    return from;
                }
                let _ = socket.send_to(&buffer[..length], from);
            }
        });
        for size in [46, 1024, mtu] {
            let frame = frames::datagram(0, 1, mac, size);
            // A datagram that was sent more than once is also echoed more than once.
            let sent = frames::data(&frame, 0, address);
            exchange(&wire, &frame, &wire, |found| frames::data(found, 1, Wiring::address(0)) == sent);
        }
        // A datagram without data ends the echo.
        wire.send(&frames::datagram(0, 1, mac, 28));
        assert_eq!(echo.join().unwrap(), SocketAddr::from((Wiring::address(0), frames::PORT)));
    });
}

fn interfaces_counted([one, other]: &Counted, sent: i64) {
    assert!(one["interface.rx_packets"] >= sent && other["interface.tx_packets"] >= sent, "{one:?} {other:?}");
}

pub fn bridge() -> Result<(), Skip> {
    needs_tun()?;
    for (mtu, guest) in [(None, GUEST), (Some(9000), MANY)] {
        between_guests(&PathSpec::Bridge { mtu }, mtu.unwrap_or(1500) as usize, guest, interfaces_counted);
    }
    with_the_host(&PathSpec::Bridge { mtu: None }, 1500);
    Ok(())
}

pub fn macvtap() -> Result<(), Skip> {
    needs_root()?;
    for (mtu, guest) in [(None, GUEST), (Some(9000), MANY)] {
        between_guests(&PathSpec::Macvtap { mtu }, mtu.unwrap_or(1500) as usize, guest, interfaces_counted);
    }
    with_the_host(&PathSpec::Macvtap { mtu: None }, 1500);
    Ok(())
}

pub fn xdp() -> Result<(), Skip> {
    needs_root()?;
    for mode in [XdpMode::Native, XdpMode::Generic] {
        for (mtu, guest) in [(None, GUEST), (Some(9000), MANY)] {
            let path = PathSpec::Xdp { mode, mtu };
            let held = between_guests(&path, mtu.unwrap_or(1500) as usize, guest, |counted, sent| {
                assert!(counted.iter().all(|end| end["xdp.redirected"] >= sent), "{counted:?}");
            });
            assert_eq!(held.programs.len(), 2, "one program for each end");
        }
        with_the_host(&PathSpec::Xdp { mode, mtu: None }, 1500);
        with_the_host(&PathSpec::Xdp { mode, mtu: Some(3506) }, 3506);
    }
    Ok(())
}

pub fn open_vswitch() -> Result<(), Skip> {
    needs_root()?;
    for ports in [SwitchPorts::Tap, SwitchPorts::AfXdpNative, SwitchPorts::AfXdpGeneric] {
        let path = PathSpec::OpenVswitch { ports, mtu: None };
        let held = between_guests(&path, 1500, MANY, |[one, other], sent| {
            assert!(one["switch.rx_packets"] >= sent && other["switch.tx_packets"] >= sent, "{one:?} {other:?}");
        });
        assert_eq!(held.processes.len(), 2, "the database and the switch");
        assert_eq!(held.programs.is_empty(), ports == SwitchPorts::Tap, "AF_XDP needs programs: {held:?}");
        with_the_host(&path, 1500);
    }
    let (ports, mtu) = (SwitchPorts::AfXdpNative, Some(3498));
    between_guests(&PathSpec::OpenVswitch { ports, mtu }, 3498, GUEST, |_, _| ());
    Ok(())
}

/// Tests the path over Unix datagram sockets, which works without root too.
pub fn datagram() -> Result<(), Skip> {
    let path = PathSpec::Datagram { mtu: None };
    between_guests(&path, 1500, GUEST, |[one, other], _| assert!(one.is_empty() && other.is_empty()));
    Ok(())
}

/// Tests the error messages for a machine that lacks something that a path of guests needs: the rights of root, a
/// kernel module, or /dev/vhost-net.
pub fn lacks() -> Result<(), Skip> {
    let check = |path: PathSpec| {
        let lacks = Wiring::check((&path, None), &[GUEST, GUEST]);
        lacks.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let kernel = check(PathSpec::OpenVswitch { ports: SwitchPorts::Kernel, mtu: None });
    if needs_root().is_err() {
        assert_eq!(
            check(PathSpec::Xdp { mode: XdpMode::Native, mtu: None }),
            "the path `xdp native` needs root, because Tailbound loads XDP programs into the kernel; run as root, or \
             use `path: bridge`"
        );
        assert!(kernel.contains("needs root, because Tailbound starts a switch that needs rights"), "{kernel}");
        return Ok(());
    }
    if kernel.is_empty() {
        between_guests(
            &PathSpec::OpenVswitch { ports: SwitchPorts::Kernel, mtu: None },
            1500,
            GUEST,
            interfaces_counted,
        );
    } else {
        let lack = "this kernel has no openvswitch: the kernel was built without CONFIG_OPENVSWITCH, or the module is \
                    missing; load the module (`modprobe openvswitch`), or use `ports: tap`";
        assert_eq!(kernel, lack);
    }
    let lack = "there is no /dev/vhost-net: the kernel was built without CONFIG_VHOST_NET, or the module vhost_net is not \
                loaded; load the module (`modprobe vhost_net`), or remove `vhost`";
    match vhost_lack() {
        Some(found) => assert_eq!(found.to_string(), lack),
        None => assert!(Path::new("/dev/vhost-net").exists()),
    }
    Ok(())
}

/// Tests that the error names the step that failed, and that nothing of the earlier steps is left.
pub fn failing() -> Result<(), Skip> {
    let (journal, scratch) = (journal("failing"), tempfile::tempdir().unwrap());
    let up = |path: PathSpec, scratch: &Path| {
        let error =
            block_on(Wiring::up((&path, None), &[GUEST, GUEST], "failing", &journal, scratch)).map(drop).unwrap_err();
        assert_eq!(journal.open_entries(), [], "after: {error}");
        error.to_string().replace(scratch.to_str().unwrap(), "SCRATCH")
    };
    let datagram = || PathSpec::Datagram { mtu: None };
    let missing = "the step `mkdir -m 700 SCRATCH/wiring` failed: No such file or directory (os error 2); use a directory that \
                   this user may write to (TMPDIR)";
    assert_eq!(up(datagram(), &scratch.path().join("nowhere")), missing);
    let long = scratch.path().join("long".repeat(30));
    fs::create_dir(&long).unwrap();
    let too_long = "the step `end 0: datagrams from SCRATCH/wiring/0 to SCRATCH/wiring/1` failed: invalid filename; the path of a \
                    socket has at most 107 characters: use a shorter directory (TMPDIR)";
    assert_eq!(up(datagram(), &long), too_long);
    assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
    if needs_root().is_ok() {
        // The directory of the switch's database exists already, so making the path fails after the first steps.
        fs::create_dir(scratch.path().join("wiring")).unwrap();
        let switch = PathSpec::OpenVswitch { ports: SwitchPorts::Tap, mtu: None };
        assert!(up(switch, scratch.path()).contains("mkdir -m 700 SCRATCH/wiring` failed: File exists"));
        assert!(scratch.path().join("wiring").exists(), "what was there is not removed");
        assert!(!links_name_a_namespace(), "no namespace is held");
    }
    journal.finish().unwrap();
    Ok(())
}

fn links_name_a_namespace() -> bool {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.into_iter().any(|target| target.to_string_lossy().starts_with("net:["))
}

/// Runs as the second process of the test [`kill_9`], and keeps a path of guests until the process is killed.
pub fn hold_path(run: &str, scratch: &str) {
    let journal = Journal::create(run).unwrap();
    let path = PathSpec::OpenVswitch { ports: SwitchPorts::AfXdpNative, mtu: None };
    let under = block_on(Wiring::up((&path, None), &[GUEST, HOST], run, &journal, Path::new(scratch))).unwrap();
    println!("up");
    std::thread::sleep(std::time::Duration::from_secs(60));
    drop(under);
}

pub fn kill_9() -> Result<(), Skip> {
    needs_root()?;
    let (run, scratch) = (format!("path-killed-{}", std::process::id()), tempfile::tempdir().unwrap());
    let mut holder = Command::new(this_program())
        .args(["--hold-path", &run, scratch.path().to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let state = journals::list().unwrap().into_iter().find(|j| j.run == run).unwrap();
    let held = Held::by(holder.id(), &state.entries);
    assert_eq!((held.processes.len(), held.namespaces.len()), (2, 2), "{held:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(held.processes.iter().all(|process| is_alive(*process)), "the switch outlives its owner");
    let report = journals::cleanup(&mut |_| ()).unwrap();
    assert_eq!(report.failed, Vec::<String>::new());
    held.assert_gone(scratch.path());
    assert!(!state.path.exists(), "the journal is removed");
    Ok(())
}

/// Tests that a multicast group reaches members at every end, whichever end sends, and that the namespace of this
/// process is not changed.
pub fn multicast() -> Result<(), Skip> {
    needs_root()?;
    let before = tailbound_lab::interfaces_here().unwrap();
    let inode = NetNs::own().unwrap().inode();
    let switch = PathSpec::OpenVswitch { ports: SwitchPorts::Tap, mtu: None };
    for path in [PathSpec::Bridge { mtu: None }, PathSpec::Macvtap { mtu: None }, switch] {
        with(&path, &[GUEST, GUEST, HOST], |under| {
            assert_eq!(tailbound_lab::interfaces_here().unwrap(), before);
            let wires = [0, 1].map(|end| Wire::of(under.plug(end).unwrap()));
            let (netns, _, address) = under.host_end(2).unwrap();
            let open = move || {
                let socket = UdpSocket::bind((frames::GROUP, frames::PORT))?;
                socket.join_multicast_v4(&frames::GROUP, &address)?;
                socket.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
                std::io::Result::Ok(socket)
            };
            let member = run_in(&netns, open).unwrap().join().unwrap().unwrap();
            let frame = frames::udp(0, frames::GROUP, frames::GROUP_MAC, 128);
            exchange(&wires[0], &frame, &wires[1], |found| found == frame);
            let mut buffer = [0; 200];
            let (length, from) = member.recv_from(&mut buffer).unwrap();
            assert_eq!((length, from.ip()), (100, Wiring::address(0).into()));
            // The datagram goes to the interface of the multicast route; both guests receive it.
            let sender = run_in(&netns, || UdpSocket::bind("0.0.0.0:0")).unwrap().join().unwrap().unwrap();
            sender.send_to(b"to all", (frames::GROUP, frames::PORT)).unwrap();
            for wire in &wires {
                let mut heard = None;
                wait_until(&format!("{path}: a guest receives the multicast datagram"), || {
                    heard = wire.receive(|found| frames::data(found, 2, frames::GROUP).is_some());
                    heard.is_some()
                });
                assert_eq!(frames::data(&heard.unwrap(), 2, frames::GROUP).unwrap(), b"to all");
            }
        });
    }
    assert_eq!((tailbound_lab::interfaces_here().unwrap(), NetNs::own().unwrap().inode()), (before, inode));
    Ok(())
}
