//! Guests attached to interfaces and devices of the user: by a tap device as a port of a bridge, by a macvtap device
//! over any other interface, or with a passed-through card.
//!
//! The tap device lies in the network namespace of this process and ends with its last descriptor. The macvtap device
//! lies in a new namespace, which is in the journal, and ends with this namespace. Nothing else of the user is changed.

use super::action::Action;
use super::plan;
use super::port::Port;
use crate::error::lack;
use crate::interface::interfaces_here;
use crate::links::links_here;
use crate::lookup;
use crate::step::{At, Room, Step};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use tailbound_host::interface::Ethtool;
use tailbound_model::{Attached, AttachedInterface, ExistingEnd, Interface, Link, PathSpec, Problem};

const ENDS: [&str; 2] = ["ping", "pong"];
const HERE: &str = "in this network namespace";
/// Possible MTUs of a guest in bytes: from the minimum of IPv4 (RFC 791) to the maximum of a tap device.
const MTU: std::ops::RangeInclusive<u32> = 68..=65_521;
/// MTU of a passed-through card in bytes. The card is not an interface of this host any more, so it reports no MTU.
const DEVICE_MTU: u32 = 1500;

/// The interface or device to which the card of a guest is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum To {
    /// A guest is attached to a bridge, given by name and by its forwarding delay for new ports in hundredths of a
    /// second.
    Bridge(String, u32),
    /// A guest is attached to a macvtap device above this interface.
    Over(String),
    /// A card of this host is passed through to a guest, given by its PCI address.
    Device(String),
}

/// A guest and the interface or device to which it is attached.
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

    /// Whether QEMU emulates the guest's network card.
    pub fn has_made_card(&self) -> bool {
        !matches!(self.to, To::Device(_))
    }

    pub fn is_over(&self) -> bool {
        matches!(self.to, To::Over(_))
    }
}

/// Finds the interfaces of this host to which the guests of an existing path are attached.
pub(super) fn attachments(path: &PathSpec, ports: &[Port], run_id: &str) -> Result<Vec<Attachment>, Vec<Problem>> {
    let PathSpec::Existing { ping, pong } = path else { return Ok(Vec::new()) };
    if ports.len() != 2 {
        let what = format!("the path `{path}` joins two ends, but there are {}", ports.len());
        return Err(vec![lack(what, "use `path: bridge`")]);
    }
    let all = interfaces_here().map_err(|error| vec![lookup::unreadable(HERE, &error)])?;
    let guests = [ping, pong].into_iter().zip(ports).enumerate();
    let guests = guests.filter_map(|(end, (side, port))| Some((end, side, port.queues()?)));
    let (found, lacks): (Vec<_>, Vec<_>) =
        guests.map(|(end, side, queues)| attachment((end, queues), side, &all, run_id)).partition(Result::is_ok);
    let mut lacks: Vec<Problem> = lacks.into_iter().filter_map(Result::err).collect();
    let found: Vec<Attachment> = found.into_iter().flatten().collect();
    if let [one, other] = &found[..]
        && one.address == other.address
    {
        let what = format!("both guests have the address {}", one.address);
        lacks.push(lack(what, "give each guest its own address"));
    }
    lacks.dedup();
    if lacks.is_empty() { Ok(found) } else { Err(lacks) }
}

/// Finds the interface of this network namespace to which one guest is attached.
fn attachment(
    (end, queues): (usize, u32),
    side: &ExistingEnd,
    all: &[Interface],
    run_id: &str,
) -> Result<Attachment, Problem> {
    let name = ENDS[end];
    let (address, prefix) = side.given_address().ok_or_else(|| no_address(name, side))?;
    if let Some(owner) = all.iter().find(|i| i.ipv4().any(|a| a == address)) {
        let what = format!("interface {} {HERE} has the address {address} already ({name})", owner.name);
        return Err(lack(what, "give the guest another address of the interface's network"));
    }
    let attachment = |to, mtu| Attachment { end, queues, to, address, prefix, mtu, mac: mac(run_id, end) };
    let wanted = match (&side.interface, &side.device) {
        (Some(wanted), _) => wanted,
        (None, Some(device)) => return Ok(attachment(To::Device(device.clone()), DEVICE_MTU)),
        (None, None) => {
            let what = format!("the path names no interface or device of this host for the guest ({name})");
            return Err(lack(what, format!("write `{name}: {{ interface: br0, address: 10.0.0.5/24 }}`")));
        }
    };
    let interface = lookup::by_name(name, wanted, HERE, all)?;
    if !interface.enabled {
        let what = format!("interface {wanted} {HERE} is down ({name})");
        return Err(lack(what, format!("`ip link set {wanted} up`")));
    }
    if interface.ipv4().any(|a| a.is_loopback()) {
        let what =
            format!("interface {wanted} {HERE} is the loopback interface, to which no guest can be attached ({name})");
        return Err(lack(what, "name a bridge, or a network card of this host"));
    }
    if !MTU.contains(&interface.mtu) {
        let what = format!(
            "interface {wanted} {HERE} has an MTU of {}, which is not possible for a guest ({name})",
            interface.mtu
        );
        return Err(lack(what, format!("{} to {} are possible", MTU.start(), MTU.end())));
    }
    if let Some(bridge) = interface.bridge {
        if !all.iter().any(|port| port.controller == Some(interface.index)) && !has_fixed_address(interface) {
            let what = format!(
                "bridge {wanted} {HERE} has no port, so the bridge would take the hardware address of the guest's tap \
                 ({name})"
            );
            let remedy = format!("give the bridge a fixed address: `ip link set {wanted} address 02:00:00:00:00:01`");
            return Err(lack(what, remedy));
        }
        return Ok(attachment(To::Bridge(wanted.clone(), bridge.forward_delay), interface.mtu));
    }
    if let Some(owner) = interface.controller {
        let owner = all.iter().find(|i| i.index == owner).map(|i| i.name.as_str());
        let (belongs, remedy) = owner.map_or_else(
            || {
                (
                    "an interface of another network namespace".to_owned(),
                    "name an interface without an owner".to_owned(),
                )
            },
            |owner| (owner.to_owned(), format!("write `interface: {owner}`")),
        );
        let what = format!("interface {wanted} {HERE} belongs to {belongs}, which receives all its packets ({name})");
        return Err(lack(what, remedy));
    }
    if !interface.has_link() {
        let what = format!("interface {wanted} {HERE} is up but has no carrier ({name})");
        return Err(lack(what, "plug the cable in, or start the program at the other side"));
    }
    Ok(attachment(To::Over(wanted.clone()), interface.mtu))
}

fn no_address(name: &str, side: &ExistingEnd) -> Problem {
    let remedy = format!("write the address with a prefix length, `{name}: {{ address: 10.0.0.5/24 }}`");
    match &side.address {
        None => lack(format!("the path gives the guest no address ({name})"), remedy),
        Some(text) => lack(format!("`{text}` is not an IPv4 address with a prefix length ({name})"), remedy),
    }
}

/// Makes the hardware address for the card of a guest: locally administered, with QEMU's prefix, and different for each
/// run (FNV-1a hash of the run id), because several controllers can use the same network.
pub(super) fn mac(run_id: &str, end: usize) -> [u8; 6] {
    let hash = run_id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    // The number of the end makes addresses of one run different for every hash.
    let own = ((hash >> 40) ^ hash).wrapping_add(end as u64).to_be_bytes();
    [0x52, 0x54, 0, own[5], own[6], own[7]]
}

/// Hardware address of the tap device itself, which no packet contains. A bridge without a fixed address takes the
/// lowest address of its ports, so this address is higher than the addresses of cards and of libvirt's tap devices.
fn port_mac([_, _, _, own @ ..]: [u8; 6]) -> [u8; 6] {
    let [d, e, f] = own;
    [0xfe, 0xff, 0xff, d, e, f]
}

/// Whether a bridge has a fixed hardware address (NET_ADDR_SET, linux/netdevice.h). `false` if /sys shows another
/// network namespace.
fn has_fixed_address(bridge: &Interface) -> bool {
    let read =
        |file: &str| std::fs::read_to_string(format!("/sys/class/net/{}/{file}", bridge.name)).unwrap_or_default();
    read("ifindex").trim() == bridge.index.to_string() && read("addr_assign_type").trim() == "3"
}

/// The interface of this host that is made for a guest; `None` for a passed-through card.
pub(super) fn made(attachment: &Attachment, prefix: &str) -> Option<At> {
    let At { name, .. } = plan::port(prefix, attachment.end);
    match attachment.to {
        To::Bridge(..) => Some(At { room: Room::Here, name }),
        To::Over(_) => Some(At { room: Room::Wiring, name }),
        To::Device(_) => None,
    }
}

/// Returns all actions that attach the guests of an existing path, in order.
pub(super) fn actions(all: &[Attachment], prefix: &str, dir: &Path) -> Vec<Action> {
    let mut actions = Vec::new();
    if all.iter().any(Attachment::is_over) {
        let (room, lo) = (Room::Wiring, At { room: Room::Wiring, name: "lo".into() });
        actions.extend([Step::Namespace(room), Step::NoIpv6(room), Step::Up(lo)].map(Action::Step));
        actions.push(Action::Directory(dir.to_owned()));
    }
    for one in all {
        let (end, queues, mtu, mac) = (one.end, one.queues, one.mtu, one.mac);
        let at = made(one, prefix);
        match (&one.to, at) {
            (To::Bridge(bridge, delay_cs), Some(at)) => {
                let card = Some(port_mac(mac));
                actions.push(Action::Tap { at: at.clone(), mtu, end, queues, card });
                actions.push(Action::Step(Step::Join { port: at.clone(), bridge: bridge.clone() }));
                actions.push(Action::Step(Step::Up(at.clone())));
                actions.push(Action::Forwards { port: at, delay_cs: *delay_cs });
            }
            (To::Over(lower), Some(at)) => {
                let lower = At { room: Room::Here, name: lower.clone() };
                actions.push(Action::Macvtap { at: at.clone(), lower, mtu, end, queues, mac });
                actions.push(Action::Step(Step::Up(at)));
            }
            (To::Device(device), _) => actions.push(Action::Device { end, device: device.clone() }),
            _ => {}
        }
    }
    actions
}

/// Returns a problem if an interface name that is needed in this network namespace is in use.
pub(super) fn taken(all: &[Attachment], prefix: &str) -> Option<Problem> {
    let found = interfaces_here().unwrap_or_default();
    let names = all.iter().filter_map(|one| made(one, prefix)).filter(|at| at.room == Room::Here).map(|at| at.name);
    let name = names.into_iter().find(|name| found.iter().any(|i| i.name == *name))?;
    let what = format!("there is already an interface {name} {HERE}, but a tap device needs this name");
    Some(lack(what, "end the run that made the interface, run `tailbound lab cleanup`, or run again with another id"))
}

/// Lines for `--dry-run` about attached guests. Hardware addresses are replaced by a placeholder, because they depend
/// on the run.
pub(super) fn describe(path: &PathSpec, ports: &[Port]) -> Vec<String> {
    let text = |mac: [u8; 6]| super::action::Mac(mac).to_string();
    match attachments(path, ports, "RUN") {
        Ok(all) => {
            let lines = actions(&all, "tbRUN", Path::new("SCRATCH/wiring"));
            let plain = |line: String| {
                all.iter().fold(line, |line, one| {
                    line.replace(&text(one.mac), "52:54:00:OF:RUN").replace(&text(port_mac(one.mac)), "fe:ff:ff:OF:RUN")
                })
            };
            lines.iter().map(|action| plain(action.with_privilege())).collect()
        }
        Err(_) => {
            let PathSpec::Existing { ping, pong } = path else { return Vec::new() };
            let guests = [ping, pong].into_iter().zip(ENDS).zip(ports).filter(|(_, port)| port.queues().is_some());
            let line = |((side, end), _): ((&ExistingEnd, &str), _)| {
                let to = side
                    .interface
                    .as_ref()
                    .or(side.device.as_ref())
                    .map_or("the interface that the study must name", String::as_str);
                format!("here: attach the card of the guest of {end} to {to}  [root: CAP_NET_ADMIN]")
            };
            guests.map(line).collect()
        }
    }
}

/// Reads again the interface or device to which a guest is attached; blocks for a moment.
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
    let mut interfaces: Vec<AttachedInterface> = links.iter().filter(of_path).map(attached_interface).collect();
    interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Attached { kind: kind.into(), to: to.clone(), by, interfaces })
}

fn attached_interface(link: &Link) -> AttachedInterface {
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

    fn look(interface: &str, address: &str) -> Result<Attachment, Problem> {
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
            let actions = actions(&[one], "tbx", Path::new("DIR"));
            actions.iter().map(Action::with_privilege).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(format!("{}\n\n{}", lines(bridged), lines(over)));
    }

    #[test]
    fn problems_of_attaching_a_guest_are_reported() {
        let refused = |interface, address| look(interface, address).unwrap_err().to_string();
        let texts = [
            refused("br0", ""),
            refused("br0", "10.9.0.5"),
            refused("br0", "fe80::5/64"),
            refused("br0", "10.8.0.1/24"),
            refused("", "10.9.0.5/24"),
            refused("br1", "10.9.0.5/24"),
            refused("lo", "127.0.0.2/8"),
            refused("enp1s0", "10.9.0.5/24"),
            refused("off0", "10.9.0.5/24"),
            refused("dark0", "10.9.0.5/24"),
            refused("large0", "10.9.0.5/24"),
        ];
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn hardware_addresses_differ_between_runs_and_ends() {
        let all = [mac("20260101-a", 0), mac("20260101-a", 1), mac("20260101-b", 0), mac("20260101-b", 1)];
        for (n, one) in all.iter().enumerate() {
            assert!(one[..3] == [0x52, 0x54, 0] && !all[..n].contains(one), "{all:x?}");
        }
        assert_eq!(all[0], mac("20260101-a", 0));
    }
}
