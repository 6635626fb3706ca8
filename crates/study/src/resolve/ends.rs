//! Resolves the keys for places, path, CPUs and scheduling of both ends.

use super::container::container;
use super::cpus::allowed;
use super::gates::gates;
use super::pod::pod;
use super::police::police;
use super::scheduling::{deadline_pinned, scheduling};
use super::shaping::shaping;
use super::vm::{domain, vm};
use super::{Context, EndPlaces};
use crate::error::Fault;
use crate::format::{
    BundleChoice, Cpus, Duration, EndKeys, HandOffChoice, PathChoice, PingPongKeys, PlaceChoice, PortsChoice, SideKeys,
    SshKeys, StudyFile, XdpChoice,
};
use crate::read::At;
use crate::source::Pos;
use std::collections::BTreeSet;
use std::net::IpAddr;
use tailbound_model::{
    CpuList, EndSpec, ExistingEnd, Nanos, PathSpec, PlaceSpec, Policy, SshSpec, SwitchPorts, VmSpec, XdpMode,
};

/// Longest delay of a path: a round trip takes twice as long, and delayed packets need memory.
const MOST_DELAY: Nanos = Nanos::from_secs(1);

/// A resolved setting of an end or of the path, with the positions in the study of the keys that define the setting.
pub(super) struct Placed<T, P> {
    pub value: T,
    pub at: P,
}

type End = Placed<EndSpec, EndPlaces>;

pub(super) fn ends(file: &StudyFile, context: &Context<'_>) -> Result<(End, End, Placed<PathSpec, Pos>), Fault> {
    let keys = |end: fn(&crate::format::Ends) -> Option<&EndKeys>| file.ends.as_ref().and_then(end);
    let (ping, pong) = (keys(|e| e.ping.as_ref()), keys(|e| e.pong.as_ref()));
    let together = file.arrangement.as_ref().filter(|a| a.value.processes == 1);
    let one_process = || together.map(|a| At { at: a.at, value: PlaceChoice::SameProcess });
    // With one process for both ends, the keys of the ping end apply; the keys of the pong end are for two processes.
    let pong = if together.is_some() { ping } else { pong };
    let place_of =
        |end: Option<&EndKeys>| end.and_then(|e| e.place.clone()).or_else(|| file.place.clone()).or_else(one_process);
    let (ping_place, pong_place) = (place_of(ping), place_of(pong));
    let path = match &file.path {
        Some(path) => Placed { value: path_spec(&path.value)?, at: path.at },
        None => Placed {
            value: default_path(ping_place.as_ref(), pong_place.as_ref()),
            at: ping_place.as_ref().or(pong_place.as_ref()).map_or(Pos::default(), |p| p.at),
        },
    };
    let place = |given: &Option<At<PlaceChoice>>, name: &str| match given {
        Some(place) => Ok(Placed { value: place_spec(&place.value, name, context)?, at: place.at }),
        None => Ok(Placed { value: default_place(&path.value, name), at: path.at }),
    };
    let (ping_place, pong_place) = (place(&ping_place, "ping")?, place(&pong_place, "pong")?);
    let shared = ping_place.value == PlaceSpec::SameProcess && pong_place.value == PlaceSpec::SameProcess;
    let given = |end: Option<&EndKeys>| end.and_then(|e| e.cpus.clone());
    let (mut ping_cpus, mut pong_cpus) = (given(ping), given(pong));
    if shared {
        // Both ends are in one process, so CPUs given for one end apply to both.
        ping_cpus = ping_cpus.or_else(|| pong_cpus.clone());
        pong_cpus = pong_cpus.or_else(|| ping_cpus.clone());
    }
    let default = |end: usize, place: &PlaceSpec| match place {
        PlaceSpec::Ssh(_) | PlaceSpec::Domain(_) => Some(CpuList::one(end as u32)),
        // The cluster decides the CPUs of a pod.
        PlaceSpec::Pod(_) => None,
        // The guest's kernel uses the first CPU for its own work. In a guest with both ends, each end gets one CPU.
        PlaceSpec::Vm(guest) if guest.name == ["ping", "pong"][end] => Some(CpuList::one(guest.vcpus - 1)),
        PlaceSpec::Vm(guest) => Some(CpuList::one(end as u32 % guest.vcpus)),
        PlaceSpec::Container(container) if container.cpus.is_some() => {
            let own: Vec<u32> = container.cpus.iter().flat_map(|list| list.0.iter().copied()).collect();
            Some(CpuList::one(own[end % own.len()]))
        }
        _ => default_cpus(end, shared, context),
    };
    let (of_ping, of_pong) = (default(0, &ping_place.value), default(1, &pong_place.value));
    let ping = end(file, ping, ping_place, ping_cpus, of_ping, context)?;
    let pong = end(file, pong, pong_place, pong_cpus, of_pong, context)?;
    Ok((ping, pong, path))
}

fn end(
    file: &StudyFile,
    keys: Option<&EndKeys>,
    place: Placed<PlaceSpec, Pos>,
    cpus: Option<At<Cpus>>,
    default: Option<CpuList>,
    context: &Context<'_>,
) -> Result<End, Fault> {
    let given = keys.and_then(|e| e.scheduling.as_ref()).or(file.scheduling.as_ref());
    let mut scheduling = given.map(|s| scheduling(&s.value, s.at)).transpose()?.unwrap_or_default();
    // The CPUs apply to threads whose role has no entry. A pinned role and the policy `deadline` for the other threads
    // are compatible.
    let deadline = scheduling.policies().any(|p| matches!(p, Policy::Deadline { .. }));
    let at = EndPlaces {
        place: place.at,
        cpus: cpus.as_ref().map_or(place.at, |c| c.at),
        scheduling: given.map_or(place.at, |s| s.at),
        gates: keys.and_then(|keys| keys.gates.as_ref()).map_or(place.at, |gates| gates.at),
        shaping: keys.and_then(|keys| keys.shaping.as_ref()).map_or(place.at, |shaping| shaping.at),
        police: keys.and_then(|keys| keys.police.as_ref()).map_or(place.at, |police| police.at),
    };
    let gates = keys.and_then(|keys| keys.gates.as_ref()).map(gates).transpose()?;
    let shaping = keys.and_then(|keys| keys.shaping.as_ref()).map(shaping).transpose()?;
    let police = keys.and_then(|keys| keys.police.as_ref()).map(police).transpose()?;
    let cpus = match &cpus {
        Some(cpus) if deadline && cpus.value.0.is_some() => return Err(deadline_pinned(cpus.at)),
        // The CPUs of another host are known only when the host is reached.
        Some(cpus) if place.value.is_remote() => cpus.value.0.clone(),
        Some(cpus) => allowed(cpus, context)?,
        None if deadline => None,
        None => default,
    };
    scheduling.cpus = cpus;
    let roles = given.iter().flat_map(|s| s.value.roles()).filter_map(|(_, keys)| keys.value.cpus.as_ref());
    for role in roles.filter(|_| !place.value.is_remote()) {
        allowed(role, context)?;
    }
    Ok(Placed { value: EndSpec { place: place.value, scheduling, gates, shaping, police }, at })
}

/// Checks the CPUs of the second thread of `hand_off`, which has the scheduling policy of its end.
pub(super) fn check_hand_off(keys: &PingPongKeys, ping: &End, pong: &End) -> Result<(), Fault> {
    let Some(HandOffChoice::Thread(thread)) = keys.hand_off.as_ref().map(|h| &h.value) else { return Ok(()) };
    let deadline = |end: &End| matches!(end.value.scheduling.policy, Some(Policy::Deadline { .. }));
    match &thread.cpus {
        Some(cpus) if cpus.value.0.is_some() && (deadline(ping) || deadline(pong)) => Err(deadline_pinned(cpus.at)),
        _ => Ok(()),
    }
}

/// Default CPUs of an end: end i gets CPU i of the allowed CPUs; if both ends are in one process, both ends get both
/// CPUs.
fn default_cpus(end: usize, shared: bool, context: &Context<'_>) -> Option<CpuList> {
    let allowed = context.options.allowed_cpus;
    let cpu = |i: usize| (!allowed.is_empty()).then(|| allowed[i % allowed.len()]);
    match shared {
        true => Some(CpuList(BTreeSet::from([cpu(0)?, cpu(1)?]))),
        false => cpu(end).map(CpuList::one),
    }
}

fn default_path(ping: Option<&At<PlaceChoice>>, pong: Option<&At<PlaceChoice>>) -> PathSpec {
    let network = |p: &At<PlaceChoice>| match &p.value {
        PlaceChoice::Container(keys) => Some(keys.network.as_ref().map_or("none", |n| n.value.as_str()).to_owned()),
        _ => None,
    };
    let local = |p: &At<PlaceChoice>| {
        matches!(p.value, PlaceChoice::SameProcess | PlaceChoice::Process) || network(p).as_deref() == Some("host")
    };
    let named = |p: &At<PlaceChoice>| network(p).is_some_and(|n| n != "host" && n != "none");
    let host = |p: &At<PlaceChoice>| match &p.value {
        PlaceChoice::Ssh(keys) => Some(keys.host.value.clone()),
        PlaceChoice::Domain(keys) => match &keys.ssh {
            Some(ssh) => Some(ssh.host.value.clone()),
            None => Some(format!("domain {}", keys.name.value)),
        },
        _ => None,
    };
    let pod = |p: &At<PlaceChoice>| matches!(p.value, PlaceChoice::Pod(_));
    let vm = |p: &At<PlaceChoice>| match &p.value {
        PlaceChoice::Vm(keys) => Some(keys.name.as_ref().map(|n| n.value.clone())),
        _ => None,
    };
    match (ping, pong) {
        // Both ends are in one guest.
        (Some(ping), Some(pong)) if vm(ping).flatten().is_some() && vm(ping) == vm(pong) => PathSpec::Loopback,
        (Some(ping), Some(pong)) if vm(ping).is_some() || vm(pong).is_some() => PathSpec::Bridge { mtu: None },
        (Some(ping), Some(pong)) if local(ping) && local(pong) => PathSpec::Loopback,
        (Some(ping), Some(pong)) if host(ping).is_some() && host(ping) == host(pong) => PathSpec::Loopback,
        // The path joins the addresses that the cluster or podman assigns.
        (Some(ping), Some(pong)) if pod(ping) && pod(pong) || named(ping) && named(pong) => {
            PathSpec::Existing { ping: ExistingEnd::default(), pong: ExistingEnd::default() }
        }
        _ => PathSpec::Veth { mtu: None, delay: None },
    }
}

fn default_place(path: &PathSpec, end: &str) -> PlaceSpec {
    match path {
        PathSpec::Loopback | PathSpec::Existing { .. } => PlaceSpec::Process,
        PathSpec::Veth { .. } | PathSpec::Bridge { .. } => PlaceSpec::Netns,
        PathSpec::Macvtap { .. } | PathSpec::Xdp { .. } | PathSpec::OpenVswitch { .. } | PathSpec::Datagram { .. } => {
            PlaceSpec::Vm(Box::new(VmSpec { name: end.to_owned(), ..VmSpec::default() }))
        }
    }
}

fn place_spec(choice: &PlaceChoice, end: &str, context: &Context<'_>) -> Result<PlaceSpec, Fault> {
    match choice {
        PlaceChoice::SameProcess => Ok(PlaceSpec::SameProcess),
        PlaceChoice::Process => Ok(PlaceSpec::Process),
        PlaceChoice::Netns => Ok(PlaceSpec::Netns),
        PlaceChoice::ExistingNetns(name) if name.value.trim().is_empty() => {
            Err(Fault::new(name.at, "the name of the network namespace is empty").help("see `ip netns list`"))
        }
        PlaceChoice::ExistingNetns(name) => Ok(PlaceSpec::ExistingNetns(name.value.clone())),
        PlaceChoice::Ssh(keys) => ssh(keys).map(PlaceSpec::Ssh),
        PlaceChoice::Pod(keys) => pod(keys, end).map(|spec| PlaceSpec::Pod(Box::new(spec))),
        PlaceChoice::Domain(keys) => {
            let ssh = keys.ssh.as_ref().map(ssh).transpose()?;
            domain(keys, ssh).map(|spec| PlaceSpec::Domain(Box::new(spec)))
        }
        PlaceChoice::Vm(keys) => vm(keys, end).map(|spec| PlaceSpec::Vm(Box::new(spec))),
        PlaceChoice::Container(keys) => container(keys, end, context).map(|spec| PlaceSpec::Container(Box::new(spec))),
    }
}

fn ssh(keys: &SshKeys) -> Result<SshSpec, Fault> {
    let host = &keys.host;
    // ssh would read a word that begins with a dash as an option.
    if host.value.is_empty() || host.value.starts_with('-') || host.value.contains(|c: char| c.is_whitespace()) {
        let reason = format!("`{}` cannot be a host for ssh", host.value);
        return Err(Fault::new(host.at, reason).help("write what you would give to `ssh`, for example `root@guest-1`"));
    }
    let absolute = |path: &Option<At<String>>| match path {
        Some(path) if !path.value.starts_with('/') => {
            let reason = format!("`{}` is not an absolute path on the other host", path.value);
            Err(Fault::new(path.at, reason).help("an absolute path begins with `/`"))
        }
        path => Ok(path.as_ref().map(|p| p.value.clone())),
    };
    Ok(SshSpec {
        host: host.value.clone(),
        directory: absolute(&keys.directory)?,
        program: absolute(&keys.program)?,
        remove: keys.bundle == Some(BundleChoice::Remove),
    })
}

/// Resolves the chosen path and checks the values of its options.
pub(crate) fn path_spec(choice: &PathChoice) -> Result<PathSpec, Fault> {
    Ok(match choice {
        PathChoice::Loopback => PathSpec::Loopback,
        PathChoice::Veth(keys) => PathSpec::Veth { mtu: mtu(&keys.mtu)?, delay: delay(&keys.delay)? },
        PathChoice::Bridge(keys) => PathSpec::Bridge { mtu: mtu(&keys.mtu)? },
        PathChoice::Macvtap(keys) => PathSpec::Macvtap { mtu: mtu(&keys.mtu)? },
        PathChoice::Datagram(keys) => PathSpec::Datagram { mtu: mtu(&keys.mtu)? },
        PathChoice::Xdp(keys) => {
            let mode = match keys.mode {
                None | Some(XdpChoice::Native) => XdpMode::Native,
                Some(XdpChoice::Generic) => XdpMode::Generic,
            };
            PathSpec::Xdp { mode, mtu: mtu(&keys.mtu)? }
        }
        PathChoice::OpenVswitch(keys) => {
            let ports = match keys.ports {
                None | Some(PortsChoice::Tap) => SwitchPorts::Tap,
                Some(PortsChoice::AfXdpNative) => SwitchPorts::AfXdpNative,
                Some(PortsChoice::AfXdpGeneric) => SwitchPorts::AfXdpGeneric,
                Some(PortsChoice::Kernel) => SwitchPorts::Kernel,
            };
            PathSpec::OpenVswitch { ports, mtu: mtu(&keys.mtu)? }
        }
        PathChoice::Existing(keys) => PathSpec::Existing { ping: side(&keys.ping)?, pong: side(&keys.pong)? },
    })
}

fn mtu(given: &Option<At<u32>>) -> Result<Option<u32>, Fault> {
    match given {
        Some(mtu) if !(68..=65535).contains(&mtu.value) => {
            let reason = format!("an MTU of {} is not possible", mtu.value);
            Err(Fault::new(mtu.at, reason).help("write 68 to 65535 bytes, the limits of IPv4"))
        }
        mtu => Ok(mtu.as_ref().map(|m| m.value)),
    }
}

/// Checks the delay of a path. A delay of 0 means no delay, so that `0 s` can be a level of a factor.
fn delay(given: &Option<At<Duration>>) -> Result<Option<Nanos>, Fault> {
    match given {
        Some(delay) if delay.value.0 > MOST_DELAY => {
            Err(Fault::new(delay.at, format!("a delay of {} is too long", delay.value.0)).help("at most 1 s each way"))
        }
        delay => Ok(delay.as_ref().map(|d| d.value.0).filter(|d| d.0 > 0)),
    }
}

fn side(keys: &At<SideKeys>) -> Result<ExistingEnd, Fault> {
    let SideKeys { interface, address, device } = &keys.value;
    if interface.is_none() && address.is_none() && device.is_none() {
        let help = "for example `{ interface: eth0 }` or `{ address: 10.0.0.1 }`";
        return Err(Fault::new(keys.at, "neither interface nor address is given").help(help));
    }
    let end = ExistingEnd {
        interface: interface.as_ref().map(|i| i.value.clone()),
        address: address.as_ref().map(|a| a.value.clone()),
        device: device.as_ref().map(|d| d.value.clone()),
    };
    if let Some(device) = device {
        if interface.is_some() {
            let reason = "`interface` and `device` cannot be given together: the guest controls the whole card";
            return Err(Fault::new(device.at, reason).help("write `interface` or `device`"));
        }
        if !end.has_pci_address() {
            let reason = format!("`{}` cannot be the address of a PCI device", device.value);
            return Err(Fault::new(device.at, reason)
                .help("write the address as `lspci -D` prints it, for example `\"0000:03:00.0\"`"));
        }
    }
    if let Some(name) = interface {
        let bad = |c: char| c == '/' || c == ':' || c.is_whitespace();
        if name.value.is_empty() || name.value.len() > 15 || name.value.contains(bad) {
            let reason = format!("`{}` cannot be the name of an interface", name.value);
            return Err(Fault::new(name.at, reason)
                .help("use 1 to 15 bytes without `/`, `:` and spaces; `ip link` shows the names"));
        }
    }
    let is_address = |a: &At<String>| a.value.parse::<IpAddr>().is_ok() || end.given_address().is_some();
    if let Some(address) = address.as_ref().filter(|a| !is_address(a)) {
        let reason = format!("`{}` is not an IP address", address.value);
        let help = "write for example `10.0.0.1`; for a virtual machine, add the prefix length: `10.0.0.1/24`";
        return Err(Fault::new(address.at, reason).help(help));
    }
    Ok(end)
}
