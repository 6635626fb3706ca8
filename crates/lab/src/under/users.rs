//! Guests on what the user has set up: a tap device as a port of a bridge, a macvtap device over any other interface, or
//! a card of the machine, whole.
//!
//! The tap device lies in the network namespace of this process and goes with its last descriptor; the macvtap device
//! lies in a namespace of its own and goes with that, which is journaled. Nothing else of the user's is changed.

use super::deed::Deed;
use super::{Port, plan};
use crate::error::Lack;
use crate::existing;
use crate::interface::interfaces_here;
use crate::links::links_here;
use crate::step::{At, Room, Step};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use tailbound_host::interface::Ethtool;
use tailbound_model::{Attached, AttachedInterface, ExistingEnd, Interface, Link, PathSpec};

const ENDS: [&str; 2] = ["ping", "pong"];
const HERE: &str = "in this network namespace";
/// What IPv4 needs (RFC 791), and what a tap device takes.
const MTU: std::ops::RangeInclusive<u32> = 68..=65_521;
/// A card that is no interface of this host any more tells none.
const DEVICE_MTU: u32 = 1500;

/// What the card of a guest is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum To {
    /// A bridge, by name, and how long a new port of it may wait until it forwards, in hundredths of a second.
    Bridge(String, u32),
    /// An interface that a macvtap device lies over.
    Over(String),
    /// A card of the machine, by its PCI address.
    Device(String),
}

/// A guest and what it is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attachment {
    pub end: usize,
    pub queues: u32,
    pub to: To,
    pub address: Ipv4Addr,
    pub prefix: u8,
    pub mtu: u32,
    pub mac: [u8; 6],
}

impl Attachment {
    pub fn is_bridged(&self) -> bool {
        matches!(self.to, To::Bridge(..))
    }

    /// QEMU makes its card.
    pub fn has_made_card(&self) -> bool {
        !matches!(self.to, To::Device(_))
    }

    pub fn is_over(&self) -> bool {
        matches!(self.to, To::Over(_))
    }
}

/// The guests of an existing path, as what is here now says.
pub(super) fn attachments(path: &PathSpec, ports: &[Port], run_id: &str) -> Result<Vec<Attachment>, Vec<Lack>> {
    let PathSpec::Existing { ping, pong } = path else { return Ok(Vec::new()) };
    if ports.len() != 2 {
        let what = format!("the path `{path}` joins two ends, and here are {}", ports.len());
        return Err(vec![Lack::new(what, "use `path: bridge`")]);
    }
    let all = interfaces_here().map_err(|error| vec![existing::unreadable(HERE, &error)])?;
    let guests = [ping, pong].into_iter().zip(ports).enumerate();
    let guests = guests.filter_map(|(end, (side, port))| Some((end, side, port.queues()?)));
    let (found, lacks): (Vec<_>, Vec<_>) =
        guests.map(|(end, side, queues)| attachment((end, queues), side, &all, run_id)).partition(Result::is_ok);
    let mut lacks: Vec<Lack> = lacks.into_iter().filter_map(Result::err).collect();
    let found: Vec<Attachment> = found.into_iter().flatten().collect();
    if let [one, other] = &found[..]
        && one.address == other.address
    {
        let what = format!("both guests are given the address {}", one.address);
        lacks.push(Lack::new(what, "give each an address of its own"));
    }
    lacks.dedup();
    if lacks.is_empty() { Ok(found) } else { Err(lacks) }
}

/// One guest, among the interfaces of this network namespace.
fn attachment(
    (end, queues): (usize, u32),
    side: &ExistingEnd,
    all: &[Interface],
    run_id: &str,
) -> Result<Attachment, Lack> {
    let name = ENDS[end];
    let (address, prefix) = side.given_address().ok_or_else(|| no_address(name, side))?;
    if let Some(owner) = all.iter().find(|i| i.ipv4().any(|a| a == address)) {
        let what = format!("interface {} {HERE} has the address {address} already ({name})", owner.name);
        return Err(Lack::new(what, "give the guest another one of that network"));
    }
    let attachment = |to, mtu| Attachment { end, queues, to, address, prefix, mtu, mac: mac(run_id, end) };
    let wanted = match (&side.interface, &side.device) {
        (Some(wanted), _) => wanted,
        (None, Some(device)) => return Ok(attachment(To::Device(device.clone()), DEVICE_MTU)),
        (None, None) => {
            let what = format!("the path names nothing of this host for the card of the guest ({name})");
            return Err(Lack::new(what, format!("write `{name}: {{ interface: br0, address: 10.0.0.5/24 }}`")));
        }
    };
    let interface = existing::by_name(name, wanted, HERE, all)?;
    if !interface.enabled {
        let what = format!("interface {wanted} {HERE} is down ({name})");
        return Err(Lack::new(what, format!("`ip link set {wanted} up`")));
    }
    if interface.ipv4().any(|a| a.is_loopback()) {
        let what =
            format!("interface {wanted} {HERE} is the loopback interface, which no card is attached to ({name})");
        return Err(Lack::new(what, "name a bridge, or a network card of this host"));
    }
    if !MTU.contains(&interface.mtu) {
        let what =
            format!("interface {wanted} {HERE} has an MTU of {}, which no guest can have ({name})", interface.mtu);
        return Err(Lack::new(what, format!("{} to {} are possible", MTU.start(), MTU.end())));
    }
    if let Some(bridge) = interface.bridge {
        if !all.iter().any(|port| port.controller == Some(interface.index)) && !has_address_of_its_own(interface) {
            let what = format!(
                "bridge {wanted} {HERE} has no port, and would take the hardware address of the guest's tap as its own ({name})"
            );
            let mend = format!("give it one that stays: `ip link set {wanted} address 02:00:00:00:00:01`");
            return Err(Lack::new(what, mend));
        }
        return Ok(attachment(To::Bridge(wanted.clone(), bridge.forward_delay), interface.mtu));
    }
    if let Some(owner) = interface.controller {
        let owner = all.iter().find(|i| i.index == owner).map_or("another interface", |i| i.name.as_str());
        let what = format!("interface {wanted} {HERE} belongs to {owner}, which takes all that it receives ({name})");
        return Err(Lack::new(what, format!("write `interface: {owner}`")));
    }
    if !interface.has_link() {
        let what = format!("interface {wanted} {HERE} is up but has no carrier ({name})");
        return Err(Lack::new(what, "plug the cable in, or start what holds the other side"));
    }
    Ok(attachment(To::Over(wanted.clone()), interface.mtu))
}

fn no_address(name: &str, side: &ExistingEnd) -> Lack {
    let mend = format!("write it with prefix length, `{name}: {{ address: 10.0.0.5/24 }}`");
    match &side.address {
        None => Lack::new(format!("the path gives the guest no address ({name})"), mend),
        Some(text) => Lack::new(format!("`{text}` is not an IPv4 address with prefix length ({name})"), mend),
    }
}

/// Locally administered as QEMU has them, and another one for another run (FNV-1a): controllers on one network do not know
/// of each other.
pub(super) fn mac(run_id: &str, end: usize) -> [u8; 6] {
    let hash = run_id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3));
    // Guests of one run differ whatever the hash is.
    let own = ((hash >> 40) ^ hash).wrapping_add(end as u64).to_be_bytes();
    [0x52, 0x54, 0, own[5], own[6], own[7]]
}

/// The address of the tap device itself, which no packet has. A bridge takes the lowest of its ports as its own unless it was
/// given one: this is higher than those of cards, and than those that libvirt gives its taps.
fn port_mac([_, _, _, own @ ..]: [u8; 6]) -> [u8; 6] {
    let [d, e, f] = own;
    [0xfe, 0xff, 0xff, d, e, f]
}

/// A bridge that was given its hardware address keeps it (NET_ADDR_SET, linux/netdevice.h). `false` where /sys is not that of
/// this network namespace.
fn has_address_of_its_own(bridge: &Interface) -> bool {
    let read =
        |file: &str| std::fs::read_to_string(format!("/sys/class/net/{}/{file}", bridge.name)).unwrap_or_default();
    read("ifindex").trim() == bridge.index.to_string() && read("addr_assign_type").trim() == "3"
}

/// The interface made for a guest, where one is.
pub(super) fn made(attachment: &Attachment, prefix: &str) -> Option<At> {
    let At { name, .. } = plan::port(prefix, attachment.end);
    match attachment.to {
        To::Bridge(..) => Some(At { room: Room::Here, name }),
        To::Over(_) => Some(At { room: Room::Under, name }),
        To::Device(_) => None,
    }
}

/// All steps in order.
pub(super) fn deeds(all: &[Attachment], prefix: &str, dir: &Path) -> Vec<Deed> {
    let mut deeds = Vec::new();
    if all.iter().any(Attachment::is_over) {
        let (room, lo) = (Room::Under, At { room: Room::Under, name: "lo".into() });
        deeds.extend([Step::Namespace(room), Step::NoIpv6(room), Step::Up(lo)].map(Deed::Lab));
        deeds.push(Deed::Directory(dir.to_owned()));
    }
    for one in all {
        let (end, queues, mtu, mac) = (one.end, one.queues, one.mtu, one.mac);
        let at = made(one, prefix);
        match (&one.to, at) {
            (To::Bridge(bridge, delay_cs), Some(at)) => {
                let card = Some(port_mac(mac));
                deeds.push(Deed::Tap { at: at.clone(), mtu, end, queues, card });
                deeds.push(Deed::Lab(Step::Join { port: at.clone(), bridge: bridge.clone() }));
                deeds.push(Deed::Lab(Step::Up(at.clone())));
                deeds.push(Deed::Forwards { port: at, delay_cs: *delay_cs });
            }
            (To::Over(lower), Some(at)) => {
                let lower = At { room: Room::Here, name: lower.clone() };
                deeds.push(Deed::Macvtap { at: at.clone(), lower, mtu, end, queues, mac });
                deeds.push(Deed::Lab(Step::Up(at)));
            }
            (To::Device(device), _) => deeds.push(Deed::Device { end, device: device.clone() }),
            _ => {}
        }
    }
    deeds
}

/// A name that somebody else has in this network namespace.
pub(super) fn taken(all: &[Attachment], prefix: &str) -> Option<Lack> {
    let found = interfaces_here().unwrap_or_default();
    let names = all.iter().filter_map(|one| made(one, prefix)).filter(|at| at.room == Room::Here).map(|at| at.name);
    let name = names.into_iter().find(|name| found.iter().any(|i| i.name == *name))?;
    let what = format!("there is an interface {name} {HERE} already, and a tap device is to have that name");
    Some(Lack::new(what, "end the run that made it, or run `tailbound lab cleanup`; or run again, under another id"))
}

/// The lines of a dry run. A hardware address is of a run.
pub(super) fn describe(path: &PathSpec, ports: &[Port]) -> Vec<String> {
    let text = |mac: [u8; 6]| super::deed::Mac(mac).to_string();
    match attachments(path, ports, "RUN") {
        Ok(all) => {
            let lines = deeds(&all, "tbRUN", Path::new("SCRATCH/under"));
            let plain = |line: String| {
                all.iter().fold(line, |line, one| {
                    line.replace(&text(one.mac), "52:54:00:OF:RUN").replace(&text(port_mac(one.mac)), "fe:ff:ff:OF:RUN")
                })
            };
            lines.iter().map(|deed| plain(deed.with_privilege())).collect()
        }
        Err(_) => {
            let PathSpec::Existing { ping, pong } = path else { return Vec::new() };
            let guests = [ping, pong].into_iter().zip(ENDS).zip(ports).filter(|(_, port)| port.queues().is_some());
            let line = |((side, end), _): ((&ExistingEnd, &str), _)| {
                let to = side.interface.as_ref().or(side.device.as_ref()).map_or("nothing", String::as_str);
                format!("here: attach the card of the guest of {end} to {to}  [root: CAP_NET_ADMIN]")
            };
            guests.map(line).collect()
        }
    }
}

/// What a guest is attached to, read anew; blocks for a moment.
pub(super) fn attached(one: &Attachment, prefix: &str) -> io::Result<Attached> {
    let by = made(one, prefix).map(|at| at.name);
    let (kind, to) = match &one.to {
        To::Bridge(name, _) => ("bridge", name),
        To::Over(name) => ("macvtap", name),
        To::Device(device) => {
            return Ok(Attached { kind: "device".into(), to: device.clone(), by, interfaces: Vec::new() });
        }
    };
    let links = links_here(Vec::new())?.links;
    let index = links.iter().find(|link| link.name == *to).map(|link| link.index);
    let of_path = |link: &&Link| match one.to {
        To::Bridge(..) => index.is_some() && link.master == index && !link.name.starts_with(prefix),
        _ => Some(link.index) == index,
    };
    let mut interfaces: Vec<AttachedInterface> = links.iter().filter(of_path).map(told).collect();
    interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Attached { kind: kind.into(), to: to.clone(), by, interfaces })
}

fn told(link: &Link) -> AttachedInterface {
    let device = Ethtool::open(&link.name).ok();
    AttachedInterface {
        name: link.name.clone(),
        kind: link.kind.clone(),
        driver: device.as_ref().and_then(|d| d.driver().ok()),
        speed_mbit_s: device.as_ref().and_then(|d| d.speed_mbit_s().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::BridgeState;

    fn interfaces() -> Vec<Interface> {
        let one = |index, name: &str, address: &str| Interface {
            index,
            name: name.into(),
            mtu: 9000,
            enabled: true,
            operational: true,
            carrier: true,
            addresses: vec![(address.parse().unwrap(), 24)],
            ..Interface::default()
        };
        let bridge = Some(BridgeState { forward_delay: 1500, ..BridgeState::default() });
        vec![
            one(1, "lo", "127.0.0.1"),
            Interface { bridge, ..one(2, "br0", "10.9.0.1") },
            Interface { controller: Some(2), ..one(3, "enp1s0", "fe80::1") },
            one(4, "enp2s0", "10.8.0.1"),
            Interface { enabled: false, ..one(5, "off0", "fe80::2") },
            Interface { operational: false, ..one(6, "dark0", "fe80::3") },
            Interface { mtu: 65_535, ..one(7, "large0", "fe80::4") },
        ]
    }

    fn look(interface: &str, address: &str) -> Result<Attachment, Lack> {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let side = ExistingEnd { interface: given(interface), address: given(address), device: None };
        attachment((1, 1), &side, &interfaces(), "run")
    }

    #[test]
    fn a_bridge_gets_a_port_and_another_interface_a_device_over_it() {
        let bridged = look("br0", "10.9.0.5/24").unwrap();
        assert_eq!((bridged.to.clone(), bridged.mtu, bridged.prefix), (To::Bridge("br0".into(), 1500), 9000, 24));
        let over = look("enp2s0", "10.8.0.5/16").unwrap();
        assert_eq!((over.to.clone(), over.prefix), (To::Over("enp2s0".into()), 16));
        let lines = |one: Attachment| {
            let deeds = deeds(&[one], "tbx", Path::new("DIR"));
            deeds.iter().map(Deed::with_privilege).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(format!("{}\n\n{}", lines(bridged), lines(over)));
    }

    #[test]
    fn what_a_guest_cannot_be_attached_to_is_told() {
        let told = |interface, address| look(interface, address).unwrap_err().to_string();
        let texts = [
            told("br0", ""),
            told("br0", "10.9.0.5"),
            told("br0", "fe80::5/64"),
            told("br0", "10.8.0.1/24"),
            told("", "10.9.0.5/24"),
            told("br1", "10.9.0.5/24"),
            told("lo", "127.0.0.2/8"),
            told("enp1s0", "10.9.0.5/24"),
            told("off0", "10.9.0.5/24"),
            told("dark0", "10.9.0.5/24"),
            told("large0", "10.9.0.5/24"),
        ];
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn cards_differ_between_runs_and_ends_and_are_locally_administered() {
        let all = [mac("20260101-a", 0), mac("20260101-a", 1), mac("20260101-b", 0), mac("20260101-b", 1)];
        for (n, one) in all.iter().enumerate() {
            assert!(one[..3] == [0x52, 0x54, 0] && !all[..n].contains(one), "{all:x?}");
        }
        assert_eq!(all[0], mac("20260101-a", 0));
    }
}
