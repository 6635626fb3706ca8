//! Existing paths: finds the interfaces and addresses that a study names, and reports problems.

use crate::error::lack;
use crate::interface::interfaces_here;
use crate::lookup::{by_address, by_name, list, nearest, unreadable};
use crate::netns::{self, NetNs};
use crate::site::{Far, Site};
use crate::spec::LabSpec;
use crate::wiring::Wiring;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tailbound_host::{InterfaceFacts, interface_facts};
use tailbound_model::{ContainerNetwork, ExistingEnd, Interface, PathSpec, PlaceSpec, Problem};

/// Time for which a missing carrier is tolerated, because the kernel can report a carrier up to a second after an
/// interface was set up.
const FRESH: Duration = Duration::from_secs(2);

/// Interface and address that were found for one end of an existing path.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub site: Site,
    pub interface: Interface,
    pub address: Ipv4Addr,
}

/// The connection to the other host of each place of a lab; `None` if a place is on this host.
pub type Hosts<'a> = &'a [Option<Arc<dyn Far>>];

/// Finds the interfaces of all ends of an existing path; blocks for some milliseconds, or two seconds if a carrier is
/// missing.
pub(crate) fn find_all(
    spec: &LabSpec,
    ends: &[ExistingEnd; 2],
    hosts: Hosts<'_>,
    wiring: Option<&Wiring>,
) -> Result<Vec<Found>, Vec<Problem>> {
    let find = |end| {
        let wanted = &ends[usize::from(!spec.sends(end))];
        match wiring.and_then(|wiring| wiring.host_end(end)) {
            Some((netns, interface, address)) => {
                let address = Some(address.to_string());
                let wanted = ExistingEnd { interface: Some(interface), address, device: None };
                find_at((spec, end), &wanted, Site::Here(netns))
            }
            None => find(spec, end, wanted, hosts),
        }
    };
    let all = (0..spec.places()).map(find);
    let (found, lacks): (Vec<_>, Vec<_>) = all.partition(Result::is_ok);
    if !lacks.is_empty() {
        return Err(once(lacks.into_iter().filter_map(Result::err)));
    }
    let found: Vec<Found> = found.into_iter().flatten().collect();
    match wiring.and_then(|wiring| in_one_network(spec, &found, wiring)) {
        Some(lack) => Err(vec![lack]),
        None => Ok(found),
    }
}

/// Finds the problems of the ends of an existing path that are on this host.
pub(crate) fn missing_here(spec: &LabSpec, ends: &[ExistingEnd; 2]) -> Vec<Problem> {
    let here = (0..2).filter(|end| !spec.place(*end).is_reached());
    once(here.filter_map(|end| find(spec, end, &ends[end], &[]).err()))
}

impl LabSpec {
    /// Facts about the interface of each end of an existing path that is on this host, with the name of the end, or the reason why they
    /// are not known. Changes nothing; blocks for some milliseconds, or two seconds if a carrier is missing.
    pub fn user_interfaces(&self) -> Vec<(&'static str, Result<InterfaceFacts, Problem>)> {
        let PathSpec::Existing { ping, pong } = &self.path else { return Vec::new() };
        let here = [ping, pong].into_iter().enumerate().filter(|(end, _)| !self.place(*end).is_reached());
        here.map(|(end, wanted)| (self.name(end), facts_of(self, end, wanted))).collect()
    }
}

fn facts_of(spec: &LabSpec, end: usize, wanted: &ExistingEnd) -> Result<InterfaceFacts, Problem> {
    let Found { site, interface, .. } = find(spec, end, wanted, &[])?;
    let name = interface.name;
    let failed =
        |error: io::Error| lack(format!("the interface {name} ({}) cannot be read: {error}", spec.name(end)), "");
    let of_job = name.clone();
    match site {
        Site::Here(netns) => {
            let read = netns::run_in(&netns, move || interface_facts(&of_job)).and_then(|task| task.join()?);
            read.map_err(failed)
        }
        _ => Err(failed(io::Error::other("it is on another host"))),
    }
}

/// Returns the interface of an end, if the interface is in the network namespace of this process.
pub(crate) fn own_interface(spec: &LabSpec, end: usize, wanted: &ExistingEnd) -> Option<Interface> {
    let own = match spec.place(end) {
        PlaceSpec::Container(container) => container.network == ContainerNetwork::Host,
        PlaceSpec::ExistingNetns(name) => NetNs::open(name).is_ok_and(|netns| netns.is_own()),
        place => !place.is_reached(),
    };
    let all = if own { interfaces_here().ok()? } else { return None };
    Some(choose(spec.name(end), wanted, "", &all).ok()?.0)
}

/// Returns a problem if a guest and another end are in different networks, because a guest has no router.
fn in_one_network(spec: &LabSpec, found: &[Found], wiring: &Wiring) -> Option<Problem> {
    let guests = (0..found.len()).filter(|end| matches!(spec.place(*end), PlaceSpec::Vm(_)));
    guests.into_iter().find_map(|guest| {
        let inside = wiring.inside(guest);
        let network = |address: Ipv4Addr| u32::from(address) >> (32 - u32::from(inside.prefix));
        let other = spec.peers(guest).find(|other| network(found[*other].address) != network(inside.address))?;
        let (name, far, address) = (spec.name(guest), spec.name(other), found[other].address);
        let what = format!(
            "the guest of {name} has the address {}/{}, and {far} has {address}, which is in another network",
            inside.address, inside.prefix
        );
        Some(lack(what, "a guest has no router: give the guest an address of the other end's network"))
    })
}

/// Removes problems that occur twice in the list, because both ends can have the same problem.
fn once(lacks: impl Iterator<Item = Problem>) -> Vec<Problem> {
    let mut all: Vec<Problem> = Vec::new();
    for lack in lacks {
        if !all.contains(&lack) {
            all.push(lack);
        }
    }
    all
}

pub(crate) fn find(spec: &LabSpec, end: usize, wanted: &ExistingEnd, hosts: Hosts<'_>) -> Result<Found, Problem> {
    let place = spec.place(end);
    let site = open(place, hosts.get(end).and_then(Option::as_ref))?;
    let given = match &site {
        Site::Inside(_, far) | Site::There(far) if *wanted == ExistingEnd::default() => {
            far.address().map(|a| a.to_string())
        }
        _ => None,
    };
    find_at((spec, end), &ExistingEnd { address: given.or_else(|| wanted.address.clone()), ..wanted.clone() }, site)
}

fn find_at((spec, end): (&LabSpec, usize), wanted: &ExistingEnd, site: Site) -> Result<Found, Problem> {
    let place = spec.place(end);
    let here = match (place, &site) {
        (PlaceSpec::ExistingNetns(name), _) => format!("in network namespace {name}"),
        (_, Site::There(far)) => format!("on {}", far.name()),
        (_, Site::Inside(_, far)) => format!("in {}", far.name()),
        _ => "in this network namespace".to_owned(),
    };
    let until = Instant::now() + FRESH;
    loop {
        let interfaces = site.interfaces().map_err(|error| unreadable(&here, &error))?;
        let (interface, address) = choose(spec.name(end), wanted, &here, &interfaces)?;
        if interface.has_link() {
            return Ok(Found { site, interface, address });
        }
        if Instant::now() >= until {
            let what = format!("interface {} {here} is up but has no carrier ({})", interface.name, spec.name(end));
            let remedy = "plug the cable in, or start the program at the other side (a tap needs its program)";
            return Err(lack(what, remedy));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn open(place: &PlaceSpec, host: Option<&Arc<dyn Far>>) -> Result<Site, Problem> {
    if place.is_reached() {
        return reached(place, host).map(Site::from);
    }
    let PlaceSpec::ExistingNetns(name) = place else {
        return NetNs::own().map(Site::Here).map_err(|error| unreadable("in this network namespace", &error));
    };
    NetNs::open(name).map(Site::Here).map_err(|error| {
        let path = netns::path_of(name);
        if error.kind() != io::ErrorKind::NotFound {
            return lack(
                format!("network namespace {name} ({}) cannot be used: {error}", path.display()),
                "run as root, or name another namespace",
            );
        }
        let names = netns::names();
        let remedy = match nearest(name, names.iter().map(String::as_str)) {
            None => format!("make the namespace (`ip netns add {name}`); there are no namespaces in /run/netns now"),
            Some(near) => format!("did you mean `{near}`? existing network namespaces: {}", names.join(", ")),
        };
        lack(format!("there is no network namespace {name} ({})", path.display()), remedy)
    })
}

/// Returns the connected host of a place, or a problem if the host is not connected.
pub(crate) fn reached(place: &PlaceSpec, host: Option<&Arc<dyn Far>>) -> Result<Arc<dyn Far>, Problem> {
    let missing = || lack(format!("{place} is not connected"), "please report this");
    host.cloned().ok_or_else(missing)
}

/// Finds the interface and the address that `wanted` names among the interfaces of one namespace.
fn choose(end: &str, wanted: &ExistingEnd, here: &str, all: &[Interface]) -> Result<(Interface, Ipv4Addr), Problem> {
    let address = match &wanted.address {
        Some(text) => Some(parse(end, text)?),
        None => None,
    };
    let interface = match (&wanted.interface, address) {
        (Some(name), _) => by_name(end, name, here, all)?,
        (None, Some(address)) => by_address(end, address, here, all)?,
        (None, None) => {
            let remedy = format!("write `{end}: {{ interface: NAME }}` or `{end}: {{ address: ADDRESS }}`");
            return Err(lack(format!("the existing path names neither interface nor address for {end}"), remedy));
        }
    };
    let name = &interface.name;
    let own: Vec<Ipv4Addr> = interface.ipv4().collect();
    let address = match address {
        Some(address) if own.contains(&address) => address,
        Some(address) => {
            let what = format!("interface {name} {here} does not have the address {address} ({end})");
            let remedy = match by_address(end, address, here, all) {
                Ok(other) => format!("{} has it; {name} has {}", other.name, list(own)),
                Err(_) => format!("it has {}", list(own)),
            };
            return Err(lack(what, remedy));
        }
        None => *own.first().ok_or_else(|| {
            let remedy = format!("give the interface an address, for example `ip address add 192.0.2.1/24 dev {name}`");
            lack(format!("interface {name} {here} has no IPv4 address ({end})"), remedy)
        })?,
    };
    if !interface.enabled {
        return Err(lack(format!("interface {name} {here} is down ({end})"), format!("`ip link set {name} up`")));
    }
    Ok((interface.clone(), address))
}

fn parse(end: &str, text: &str) -> Result<Ipv4Addr, Problem> {
    match text.parse() {
        Ok(IpAddr::V4(v4)) => Ok(v4),
        Ok(IpAddr::V6(_)) => Err(lack(
            format!("`path.existing.{end}.address`: {text} is an IPv6 address"),
            "paths are measured over IPv4: give an IPv4 address",
        )),
        Err(_) => Err(lack(
            format!("`path.existing.{end}.address`: `{text}` is not an IP address"),
            "write the address like 192.0.2.1, without a prefix length",
        )),
    }
}
