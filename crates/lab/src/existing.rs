//! What the user has set up: finding the interface and address that a study means, and saying what is missing.

use crate::error::Lack;
use crate::interface::interfaces_here;
use crate::netns::{self, NetNs};
use crate::site::{Far, Site};
use crate::spec::LabSpec;
use crate::under::Under;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tailbound_model::{ContainerNetwork, ExistingEnd, Interface, PlaceSpec};

/// The kernel may tell of a carrier up to a second after an interface was set up.
const FRESH: Duration = Duration::from_secs(2);

/// One side of a path that exists.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub site: Site,
    pub interface: Interface,
    pub address: Ipv4Addr,
}

/// The other hosts of a lab, by place: `None` = it is on this one.
pub type Hosts<'a> = &'a [Option<Arc<dyn Far>>];

/// Looks all ends up; blocks for some milliseconds, for two seconds where a carrier is missing.
pub(crate) fn find_all(
    spec: &LabSpec,
    ends: &[ExistingEnd; 2],
    hosts: Hosts<'_>,
    under: Option<&Under>,
) -> Result<Vec<Found>, Vec<Lack>> {
    let find = |end| {
        let wanted = &ends[usize::from(!spec.sends(end))];
        match under.and_then(|under| under.host_end(end)) {
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
    match under.and_then(|under| in_one_network(spec, &found, under)) {
        Some(lack) => Err(vec![lack]),
        None => Ok(found),
    }
}

/// What is missing of those ends that are on this host.
pub(crate) fn missing_here(spec: &LabSpec, ends: &[ExistingEnd; 2]) -> Vec<Lack> {
    let here = (0..2).filter(|end| !spec.place(*end).is_reached());
    once(here.filter_map(|end| find(spec, end, &ends[end], &[]).err()))
}

/// The interface of an end that lies among those of this process.
pub(crate) fn own_interface(spec: &LabSpec, end: usize, wanted: &ExistingEnd) -> Option<Interface> {
    let own = match spec.place(end) {
        PlaceSpec::Container(container) => container.network == ContainerNetwork::Host,
        PlaceSpec::ExistingNetns(name) => NetNs::open(name).is_ok_and(|netns| netns.is_own()),
        place => !place.is_reached(),
    };
    let all = if own { interfaces_here().ok()? } else { return None };
    Some(choose(spec.name(end), wanted, "", &all).ok()?.0)
}

/// A guest has no router: what it speaks with is in its network.
fn in_one_network(spec: &LabSpec, found: &[Found], under: &Under) -> Option<Lack> {
    let guests = (0..found.len()).filter(|end| matches!(spec.place(*end), PlaceSpec::Vm(_)));
    guests.into_iter().find_map(|guest| {
        let inside = under.inside(guest);
        let network = |address: Ipv4Addr| u32::from(address) >> (32 - u32::from(inside.prefix));
        let other = spec.peers(guest).find(|other| network(found[*other].address) != network(inside.address))?;
        let (name, far, address) = (spec.name(guest), spec.name(other), found[other].address);
        let what = format!(
            "the guest of {name} has the address {}/{}, and {far} has {address}, which is not in that network",
            inside.address, inside.prefix
        );
        Some(Lack::new(what, "a guest has no router: give it an address of the other end's network"))
    })
}

/// One and the same namespace or loopback interface is missing once.
fn once(lacks: impl Iterator<Item = Lack>) -> Vec<Lack> {
    let mut all: Vec<Lack> = Vec::new();
    for lack in lacks {
        if !all.contains(&lack) {
            all.push(lack);
        }
    }
    all
}

fn find(spec: &LabSpec, end: usize, wanted: &ExistingEnd, hosts: Hosts<'_>) -> Result<Found, Lack> {
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

fn find_at((spec, end): (&LabSpec, usize), wanted: &ExistingEnd, site: Site) -> Result<Found, Lack> {
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
            let mend = "plug the cable in, or start what holds the other side (a tap needs its program)";
            return Err(Lack::new(what, mend));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn open(place: &PlaceSpec, host: Option<&Arc<dyn Far>>) -> Result<Site, Lack> {
    if place.is_reached() {
        return reached(place, host).map(Site::from);
    }
    let PlaceSpec::ExistingNetns(name) = place else {
        return NetNs::own().map(Site::Here).map_err(|error| unreadable("in this network namespace", &error));
    };
    NetNs::open(name).map(Site::Here).map_err(|error| {
        let path = netns::path_of(name);
        if error.kind() != io::ErrorKind::NotFound {
            return Lack::new(
                format!("network namespace {name} ({}) cannot be used: {error}", path.display()),
                "run as root, or name another",
            );
        }
        let names = netns::names();
        let mend = match nearest(name, names.iter().map(String::as_str)) {
            None => format!("make it (`ip netns add {name}`); none exists in /run/netns now"),
            Some(near) => format!("did you mean `{near}`? these exist: {}", names.join(", ")),
        };
        Lack::new(format!("there is no network namespace {name} ({})", path.display()), mend)
    })
}

/// The one that was reached for a place.
pub(crate) fn reached(place: &PlaceSpec, host: Option<&Arc<dyn Far>>) -> Result<Arc<dyn Far>, Lack> {
    let missing = || Lack::new(format!("nobody has reached {place}"), "please report this");
    host.cloned().ok_or_else(missing)
}

pub(crate) fn unreadable(here: &str, error: &io::Error) -> Lack {
    let mend = match error.raw_os_error() {
        Some(libc::EPERM) => "run as root: entering a network namespace that somebody else made takes CAP_SYS_ADMIN",
        _ => "look whether netlink is allowed here (a container's seccomp filter?)",
    };
    Lack::new(format!("the interfaces {here} cannot be read: {error}"), mend)
}

/// The interface and the address that `wanted` means, among those of one namespace.
fn choose(end: &str, wanted: &ExistingEnd, here: &str, all: &[Interface]) -> Result<(Interface, Ipv4Addr), Lack> {
    let address = match &wanted.address {
        Some(text) => Some(parse(end, text)?),
        None => None,
    };
    let interface = match (&wanted.interface, address) {
        (Some(name), _) => by_name(end, name, here, all)?,
        (None, Some(address)) => by_address(end, address, here, all)?,
        (None, None) => {
            let mend = format!("write `{end}: {{ interface: NAME }}` or `{end}: {{ address: ADDRESS }}`");
            return Err(Lack::new(format!("the existing path names neither interface nor address for {end}"), mend));
        }
    };
    let name = &interface.name;
    let own: Vec<Ipv4Addr> = interface.ipv4().collect();
    let address = match address {
        Some(address) if own.contains(&address) => address,
        Some(address) => {
            let what = format!("interface {name} {here} does not have the address {address} ({end})");
            let mend = match by_address(end, address, here, all) {
                Ok(other) => format!("{} has it; {name} has {}", other.name, list(own)),
                Err(_) => format!("it has {}", list(own)),
            };
            return Err(Lack::new(what, mend));
        }
        None => *own.first().ok_or_else(|| {
            let mend = format!("give it one, e.g. `ip address add 192.0.2.1/24 dev {name}`");
            Lack::new(format!("interface {name} {here} has no IPv4 address ({end})"), mend)
        })?,
    };
    if !interface.enabled {
        return Err(Lack::new(format!("interface {name} {here} is down ({end})"), format!("`ip link set {name} up`")));
    }
    Ok((interface.clone(), address))
}

fn parse(end: &str, text: &str) -> Result<Ipv4Addr, Lack> {
    match text.parse() {
        Ok(IpAddr::V4(v4)) => Ok(v4),
        Ok(IpAddr::V6(_)) => Err(Lack::new(
            format!("{text} is an IPv6 address ({end})"),
            "paths are measured over IPv4: give an IPv4 address",
        )),
        Err(_) => Err(Lack::new(
            format!("`{text}` is not an IP address ({end})"),
            "write it like 192.0.2.1, without a prefix length",
        )),
    }
}

pub(crate) fn by_name<'a>(end: &str, name: &str, here: &str, all: &'a [Interface]) -> Result<&'a Interface, Lack> {
    all.iter().find(|i| i.name == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
        let mend = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? these exist: {}", names.join(", ")),
            None => "none exists there".to_owned(),
        };
        Lack::new(format!("there is no interface {name} {here} ({end})"), mend)
    })
}

fn by_address<'a>(end: &str, address: Ipv4Addr, here: &str, all: &'a [Interface]) -> Result<&'a Interface, Lack> {
    all.iter().find(|i| i.ipv4().any(|a| a == address)).ok_or_else(|| {
        let addresses = all.iter().flat_map(|i| i.ipv4().map(move |a| format!("{a} ({})", i.name)));
        let mend = format!("these exist: {}", list(addresses.collect()));
        Lack::new(format!("no interface {here} has the address {address} ({end})"), mend)
    })
}

fn list<T: ToString>(items: Vec<T>) -> String {
    if items.is_empty() { "none".to_owned() } else { items.iter().map(T::to_string).collect::<Vec<_>>().join(", ") }
}

/// The name most like the wanted one.
fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A common beginning counts most: eth0 for eth1 rather than lo.
    names.max_by(|a, b| strsim::jaro_winkler(wanted, a).total_cmp(&strsim::jaro_winkler(wanted, b)))
}
