//! Rules that find values of a study that cannot be combined. Each rule gives a reason, which the report shows for the
//! condition in place of figures.

mod queues;

use crate::error::Fault;
use crate::resolve::Places;
use crate::source::Pos;
use tailbound_model::{
    Collect, ContainerNetwork, Discovery, ExistingEnd, FlowRows, HandOff, Measure, Nanos, OnOverrun, PathSpec,
    PlaceSpec, Rate, ReceiveMode, TrialSpec,
};

/// Returns the reason why the combination of levels cannot be run, if there is a reason.
pub(crate) fn impossible(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    flow(spec, at)
        .or_else(|| arrangement(spec, at))
        .or_else(|| same_process(spec, at))
        .or_else(|| two_drivers(spec, at))
        .or_else(|| null_driver(spec, at))
        .or_else(|| guests(spec, at))
        .or_else(|| neighbours(spec, at))
        .or_else(|| vcpu_on_an_end(spec, at))
        .or_else(|| path_reaches(spec, &spec.ping.place, "ping", at.path, at.ping.place))
        .or_else(|| path_reaches(spec, &spec.pong.place, "pong", at.path, at.pong.place))
        .or_else(|| delay(spec, at))
        .or_else(|| vlan(spec, at))
        .or_else(|| queues::gates(spec, at))
        .or_else(|| queues::shaping(spec, at))
        .or_else(|| queues::stream(spec, at))
        .or_else(|| queues::police(spec, at))
        .or_else(|| queues::two_at_one_interface(spec, at))
        .or_else(|| overrun(spec, at))
        .or_else(|| remote(spec, at))
        .or_else(|| discovery(spec, at))
}

/// Refuses a delay of the path that is so long that no answer arrives within the timeout.
fn delay(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let PathSpec::Veth { delay: Some(delay), .. } = spec.path else { return None };
    let (round_trip, timeout) = (Nanos(2 * delay.0), spec.measure.timeout());
    (round_trip.0 >= timeout.0).then(|| {
        let reason = format!(
            "a round trip takes {round_trip} with a delay of {delay} in each direction, and the timeout is {timeout}"
        );
        Fault::new(at.path, reason).help("make `delay` shorter, or `measure.timeout` longer")
    })
}

/// Refuses settings that ends on other hosts and in containers do not support.
fn remote(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let ends = [(&spec.ping, &at.ping), (&spec.pong, &at.pong)];
    let (end, places) = ends.into_iter().find(|(end, _)| end.place.is_reached())?;
    if spec.has_tool() {
        let reason =
            format!("a tool needs ends that the controller itself starts, but an end has the place {}", end.place);
        return Some(
            Fault::new(places.place, reason)
                .help("name a driver, or places that are neither another host nor a container"),
        );
    }
    if spec.collect == Collect::Live {
        let reason = format!(
            "`collect: live` needs the memory of both ends on this host, and one end has the place {}",
            end.place
        );
        return Some(Fault::new(places.place, reason).help("leave `collect` out: samples are fetched after the trial"));
    }
    None
}

fn discovery(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let fault = |reason: String, help: &str| Some(Fault::new(at.discovery, reason).help(help));
    if spec.has_tool() && !spec.discovery.is_auto() {
        let reason = format!("`discovery: {}` applies to drivers, and a tool has its own discovery", spec.discovery);
        return fault(reason, "leave `discovery` out, or name a driver");
    }
    let ends = [&spec.ping, &spec.pong];
    let by_pods =
        matches!(&spec.path, PathSpec::Existing { ping, pong } if *ping == ExistingEnd::default() && ping == pong);
    if spec.discovery == Discovery::Dns && !(by_pods && ends.iter().all(|end| matches!(end.place, PlaceSpec::Pod(_)))) {
        let reason = "`discovery: dns` works only between the addresses that a cluster gives to pods";
        return fault(reason.into(), "let both ends be pods, and leave `path` out; or write `discovery: peers`");
    }
    let apart = ends.into_iter().find(|end| !matches!(end.place, PlaceSpec::Pod(_)))?;
    if spec.discovery == Discovery::Server {
        let reason =
            format!("`discovery: server` makes a server in a cluster, and an end has the place {}", apart.place);
        let help = "for other places start a discovery server yourself, and name it: \
                    `driver: { fastdds: { discovery_server: ADDRESS:PORT } }`";
        return fault(reason, help);
    }
    None
}

fn flow(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let flow = spec.measure.flow()?;
    let fault = |at: Pos, reason: String, help: &str| Some(Fault::new(at, reason).help(help));
    if spec.arrangement.is_some() {
        let help = "remove `arrangement`; `subscribers` says how many processes there are";
        return fault(at.arrangement, "`arrangement` applies to ping-pong only".into(), help);
    }
    if flow.subscribers.max(flow.publishers) > 1 && spec.pong.place == PlaceSpec::SameProcess {
        let (many, what) = match flow.subscribers {
            1 => (flow.publishers, "publishers"),
            n => (n, "subscribers"),
        };
        let reason = format!("{many} {what} are processes of their own, but the place is one process");
        return fault(at.pong.place, reason, "write `place: process` or `place: netns`");
    }
    let bridged = matches!(spec.path, PathSpec::Bridge { .. } | PathSpec::OpenVswitch { .. });
    let pods = [&spec.ping, &spec.pong].map(|end| matches!(end.place, PlaceSpec::Pod(_)));
    if flow.apart && !bridged && pods != [true, true] {
        let reason = format!("separate network namespaces need a bridge, and the path is {}", spec.path);
        return fault(at.path, reason, "write `path: bridge`, give both ends the place `pod`, or remove `spread`");
    }
    if let (true, place @ (PlaceSpec::Container(_) | PlaceSpec::Vm(_))) = (flow.apart, &spec.pong.place) {
        let what = if matches!(place, PlaceSpec::Vm(_)) { "virtual machine" } else { "container" };
        let reason = format!("separate network namespaces are made for processes, and the subscribers are in a {what}");
        return fault(at.pong.place, reason, "write `place: netns`, or remove `spread`");
    }
    if flow.rows == FlowRows::OneWay && spec.rate == Rate::Max {
        let reason = "fan-out measures how late each message was, which needs times at which messages are due";
        return fault(at.rate, reason.into(), "give a rate such as `1 kHz`, or measure `throughput`");
    }
    if spec.collect == Collect::Live {
        let reason = "`collect: live` applies to ping-pong only";
        return fault(at.measure, reason.into(), "leave `collect` out: a flow stores counts, and few rows");
    }
    None
}

fn arrangement(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let Measure::PingPong(keys) = &spec.measure else { return None };
    let together = spec.ping.place == PlaceSpec::SameProcess;
    if keys.receive == ReceiveMode::Executor && keys.hand_off != HandOff::None {
        let reason = "an executor handles messages on the thread that waits, so it has nothing to hand off";
        return Some(Fault::new(at.measure, reason).help("remove `hand_off`, or write `receive: block`"));
    }
    let Some(arranged) = spec.arrangement else {
        let help = "write `arrangement: { processes: 1, participants: 1, executors: 1 }`, or `place: process`";
        let reason =
            "both ends are in one process: with `receive: executor` the study must say how the ends share executors";
        let open = together && keys.receive == ReceiveMode::Executor;
        return open.then(|| Fault::new(at.measure, reason).help(help));
    };
    if together != (arranged.processes == 1) {
        let reason = format!("the arrangement has {arranged}, but the place of the ping end is {}", spec.ping.place);
        let help = "remove `place`, or write `same-process` for one process and `process` or `netns` for two";
        return Some(Fault::new(at.arrangement, reason).help(help));
    }
    if together && keys.receive == ReceiveMode::Listener {
        let reason = "both ends share one session, whose send call delivers messages: a callback cannot answer";
        let help = "write `receive: executor`, `block` or `spin` in `measure`, or `place: same-process` without an arrangement";
        return Some(Fault::new(at.arrangement, reason).help(help));
    }
    None
}

fn same_process(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let shared = |place: &PlaceSpec| *place == PlaceSpec::SameProcess;
    match (shared(&spec.ping.place), shared(&spec.pong.place)) {
        (true, true) if spec.ping.scheduling.policy != spec.pong.scheduling.policy => {
            let reason = "both ends are in one process, but have two policies";
            Some(Fault::new(at.pong.scheduling, reason).help("give `scheduling` once, for both ends"))
        }
        (true, true) if spec.ping.scheduling.cpus != spec.pong.scheduling.cpus => {
            let reason = "both ends are in one process, but have two lists of CPUs";
            Some(Fault::new(at.pong.cpus, reason).help("give both ends the same `cpus`"))
        }
        (true, true) if spec.ping.scheduling != spec.pong.scheduling => {
            let reason = "both ends are in one process, but their threads have different scheduling";
            Some(Fault::new(at.pong.scheduling, reason).help("give `scheduling` once, for both ends"))
        }
        (true, true) | (false, false) => None,
        (ping, _) => {
            let place = if ping { at.ping.place } else { at.pong.place };
            let reason = "only one end has the place `same-process`: either both ends are in one process, or no end is";
            Some(Fault::new(place, reason).help("write `place: same-process` or `place: process` for both ends"))
        }
    }
}

fn two_drivers(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let pong = spec.pong_driver.as_ref()?;
    let names = spec.driver_names();
    if spec.ping.place == PlaceSpec::SameProcess {
        let reason = format!("both ends are in one process, but have two drivers, {names}");
        return Some(Fault::new(at.pong_driver, reason).help("write `place: process`, or `place: netns`"));
    }
    if [spec.driver.name.as_str(), &pong.name].contains(&"null") {
        let reason = format!("the driver `null` joins ends of one process only, but the drivers are {names}");
        return Some(Fault::new(at.pong_driver, reason).help("give both ends drivers that speak over a path"));
    }
    None
}

fn null_driver(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    if spec.driver.name != "null" {
        return None;
    }
    if spec.path != PathSpec::Loopback {
        let reason = format!("the driver `null` sends nothing over a path, but the path is {}", spec.path);
        return Some(Fault::new(at.driver, reason).help("write `place: same-process` and no path"));
    }
    if spec.ping.place != PlaceSpec::SameProcess {
        let reason = format!("the driver `null` joins ends of one process only, but the place is {}", spec.ping.place);
        return Some(Fault::new(at.driver, reason).help("write `place: same-process`"));
    }
    None
}

fn path_reaches(spec: &TrialSpec, place: &PlaceSpec, end: &str, path: Pos, at: Pos) -> Option<Fault> {
    let fault = |reason: String, help: &str| Some(Fault::new(path, reason).help(help));
    if let Some((reason, help)) = side_fits(&spec.path, place, end) {
        return fault(reason, help);
    }
    match (&spec.path, place) {
        (path, place) if matches!(spec.ping.place, PlaceSpec::Vm(_)) || matches!(spec.pong.place, PlaceSpec::Vm(_)) => {
            guest_reached(spec, (path, place), end).and_then(|(reason, help)| fault(reason, help))
        }
        (PathSpec::Loopback, PlaceSpec::Netns | PlaceSpec::ExistingNetns(_)) => {
            let reason =
                format!("loopback does not reach the {end} end: its place, {place}, has a loopback of its own");
            fault(reason, "write `place: process`, or `path: veth`")
        }
        (PathSpec::Veth { .. } | PathSpec::Bridge { .. }, PlaceSpec::SameProcess | PlaceSpec::Process) => {
            let reason = format!(
                "{} joins network namespaces, but the place of the {end} end is {place}: the kernel would deliver \
                 over loopback",
                spec.path
            );
            fault(reason, "write `place: netns`, or `path: loopback`")
        }
        (PathSpec::Xdp { .. } | PathSpec::OpenVswitch { .. }, PlaceSpec::Netns) => None,
        (PathSpec::Xdp { .. } | PathSpec::OpenVswitch { .. }, place) => {
            let reason = format!(
                "{} joins virtual machines and network namespaces made for it, and the place of the {end} end is {place}",
                spec.path
            );
            fault(reason, "write `place: netns`, or `place: { vm: { ... } }`")
        }
        (PathSpec::Macvtap { .. } | PathSpec::Datagram { .. }, place) => {
            let reason =
                format!("{} carries packets of virtual machines, and both ends have the place {place}", spec.path);
            fault(reason, "write `place: { vm: { ... } }` for one end or both; or `path: bridge`")
        }
        (path, PlaceSpec::Container(container)) => container_reached(spec, (path, place), &container.network, end)
            .and_then(|(reason, help)| fault(reason, help)),
        (PathSpec::Loopback, PlaceSpec::Pod(_)) if spec.ping.place != spec.pong.place => {
            let reason =
                format!("loopback does not reach the {end} end: its place, {place}, has a loopback of its own");
            fault(reason, "leave `path` out: the path then joins the addresses that the cluster gives the pods")
        }
        (PathSpec::Veth { .. } | PathSpec::Bridge { .. }, PlaceSpec::Pod(_)) => {
            let reason = format!("{} is made on this host, and the place of the {end} end is {place}", spec.path);
            fault(reason, "leave `path` out: the path then joins the addresses that the cluster gives the pods")
        }
        (PathSpec::Loopback, PlaceSpec::Ssh(_) | PlaceSpec::Domain(_)) if spec.ping.place != spec.pong.place => {
            let reason = format!("loopback does not reach the {end} end: its place, {place}, is another host");
            fault(reason, "write `path: { existing: { ping: { interface: ... }, pong: { interface: ... } } }`")
        }
        (PathSpec::Veth { .. } | PathSpec::Bridge { .. }, PlaceSpec::Ssh(_) | PlaceSpec::Domain(_)) => {
            let reason = format!("{} is made on this host, and the place of the {end} end is {place}", spec.path);
            fault(reason, "write `path: { existing: { ping: { interface: ... }, pong: { interface: ... } } }`")
        }
        (PathSpec::Existing { .. }, PlaceSpec::Netns) => {
            let reason = format!("an existing interface is not in the new network namespace of the {end} end");
            Some(Fault::new(at, reason).help("write `place: process` or `place: { existing-netns: NAME }`"))
        }
        _ => None,
    }
}

/// Refuses a VLAN on a path or at a place whose interfaces Tailbound does not create.
fn vlan(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    spec.vlan.as_ref()?;
    let fault = |reason: String, help: &str| Some(Fault::new(at.vlan, reason).help(help));
    match spec.path {
        PathSpec::Loopback => {
            let reason = "a VLAN needs a path that Tailbound creates, and `loopback` is not created";
            return fault(reason.into(), "write `path: veth`, or remove `vlan`");
        }
        PathSpec::Existing { .. } => {
            let reason = "a VLAN needs a path that Tailbound creates, and existing interfaces are not changed";
            return fault(reason.into(), "name an interface of your own VLAN in `path: existing`, and remove `vlan`");
        }
        _ => {}
    }
    let made = |place: &PlaceSpec| matches!(place, PlaceSpec::Netns | PlaceSpec::Vm(_));
    let other = [&spec.ping.place, &spec.pong.place].into_iter().find(|place| !made(place))?;
    let reason = format!("a VLAN is made in network namespaces and virtual machines, and an end has the place {other}");
    fault(reason, "write `place: netns`, or remove `vlan`")
}

/// Refuses two different guests with the same name, and CPUs that a guest does not have.
fn guests(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    if let (PlaceSpec::Vm(ping), PlaceSpec::Vm(pong)) = (&spec.ping.place, &spec.pong.place)
        && ping.name == pong.name
        && ping != pong
    {
        let reason = format!("two guests are called {}, but their other keys differ", ping.name);
        let help = "leave `name` out, so that each end has its own guest; or make the keys equal, so that \
                    the ends share one guest";
        return Some(Fault::new(at.pong.place, reason).help(help));
    }
    let second = match spec.measure.hand_off() {
        HandOff::Thread { cpus: Some(cpus) } => cpus.0.iter().copied().collect(),
        _ => Vec::new(),
    };
    let ends = [(&spec.ping, "ping", at.ping.cpus), (&spec.pong, "pong", at.pong.cpus)];
    ends.into_iter().find_map(|(end, name, place)| {
        let PlaceSpec::Vm(guest) = &end.place else { return None };
        let named = end.scheduling.named_cpus().into_iter().chain(second.iter().copied());
        let cpu = named.into_iter().find(|cpu| *cpu >= guest.vcpus)?;
        let has = if guest.vcpus == 1 { "CPU 0 only".to_owned() } else { format!("CPUs 0 to {}", guest.vcpus - 1) };
        let reason = format!("the {name} end or its second thread is to have CPU {cpu}, but the guest has {has}");
        Some(Fault::new(place, reason).help("the numbers are CPUs of the guest: change `cpus`, `hand_off` or `vcpus`"))
    })
}

/// Refuses guests beside a measured guest on a path that joins two ends or that the user has set up, and loads in guests
/// that do not exist.
fn neighbours(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let ends = [("ping", &spec.ping, at.ping.place), ("pong", &spec.pong, at.pong.place)];
    let loaded = |name: &str| spec.loads.iter().find(|load| load.of_neighbours() == Some(name));
    let without = ends.iter().find_map(|(name, end, place)| {
        let load = loaded(name)?;
        let has = matches!(&end.place, PlaceSpec::Vm(guest) if guest.neighbours > 0);
        let reason = format!(
            "the load `{}` runs in the neighbours of the guest of the {name} end, and this end has the place {}",
            load.run, end.place
        );
        let help = format!("write `ends: {{ {name}: {{ place: {{ vm: {{ neighbours: 1 }} }} }} }}`, or another `at`");
        (!has).then(|| Fault::new(*place, reason).help(help))
    });
    if without.is_some() {
        return without;
    }
    if matches!(spec.path, PathSpec::Bridge { .. } | PathSpec::Macvtap { .. } | PathSpec::OpenVswitch { .. }) {
        return None;
    }
    ends.into_iter().find_map(|(_, end, place)| {
        let PlaceSpec::Vm(guest) = &end.place else { return None };
        let reason = format!(
            "guest {} has `neighbours`, which need a path that Tailbound makes and that joins more than two ends, and the \
             path is {}",
            guest.name, spec.path
        );
        let help = "write `path: bridge`, `macvtap` or `open-vswitch`, or `neighbours: 0`";
        (guest.neighbours > 0).then(|| Fault::new(place, reason).help(help))
    })
}

/// Refuses a virtual CPU that has the same CPU as an end on this host, because virtual CPU and end would wait for each
/// other.
fn vcpu_on_an_end(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let pairs = [(&spec.ping, &spec.pong, "pong", at.pong.cpus), (&spec.pong, &spec.ping, "ping", at.ping.cpus)];
    pairs.into_iter().find_map(|(guest, other, name, place)| {
        let (name_of_guest, threads) = match &guest.place {
            PlaceSpec::Vm(vm) => (&vm.name, &vm.vcpu_threads),
            PlaceSpec::Domain(domain) => (&domain.name, &domain.vcpu_threads),
            _ => return None,
        };
        if other.place.is_remote() {
            return None;
        }
        let named = other.scheduling.named_cpus();
        let (number, cpu) = threads.iter().enumerate().find_map(|(number, threads)| {
            Some((number, threads.cpus.as_ref()?.0.iter().find(|cpu| named.contains(cpu))?))
        })?;
        let reason =
            format!("virtual CPU {number} of guest {} has CPU {cpu}, where the {name} end measures", name_of_guest);
        Some(
            Fault::new(place, reason)
                .help("give the end or the virtual CPU another CPU: `ends.*.cpus`, or `vcpu_threads`"),
        )
    })
}

/// The reason why the interface or address that the study gives an end for an existing network path does not fit the
/// place of the end, and the remedy.
fn side_fits(path: &PathSpec, place: &PlaceSpec, end: &str) -> Option<(String, &'static str)> {
    const AS: &str = "write for example `{ interface: br0, address: 10.0.0.5/24 }`: the interface to which \
                      the guest's card is attached, and the guest's address";
    let PathSpec::Existing { ping, pong } = path else { return None };
    let side = if end == "ping" { ping } else { pong };
    let has_prefix = side.address.as_ref().is_some_and(|a| a.contains('/'));
    match (place, &side.address) {
        (PlaceSpec::Vm(guest), _)
            if side.device.is_some() && (guest.queues > 1 || guest.vhost.is_some() || guest.offloads) =>
        {
            Some((
                format!(
                    "the guest of the {end} end controls a card of this host, but `queues`, `vhost` and `offloads` apply \
                     only to a card that QEMU makes"
                ),
                "leave `queues`, `vhost` and `offloads` out",
            ))
        }
        (PlaceSpec::Vm(_), _) if side.interface.is_none() && side.device.is_none() => Some((
            format!(
                "the {end} end is a virtual machine, and the path names no interface or device of this host for the \
                 guest's card"
            ),
            AS,
        )),
        (PlaceSpec::Vm(_), None) => {
            Some((format!("the {end} end is a virtual machine, and the path gives it no address"), AS))
        }
        (PlaceSpec::Vm(_), Some(address)) if !has_prefix => {
            Some((format!("the {end} end is a virtual machine, and its address {address} has no prefix length"), AS))
        }
        (PlaceSpec::Vm(_), _) => None,
        (_, Some(address)) if has_prefix => Some((
            format!(
                "{address} has a prefix length, and the place of the {end} end, {place}, has its addresses already"
            ),
            "write the address without prefix length",
        )),
        _ if side.device.is_some() => Some((
            format!("`device` is for a virtual machine, and the place of the {end} end is {place}"),
            "write `interface`",
        )),
        _ => None,
    }
}

/// The reason why a path cannot join an end and a guest, or two guests, and the remedy.
fn guest_reached(
    spec: &TrialSpec,
    (path, place): (&PathSpec, &PlaceSpec),
    end: &str,
) -> Option<(String, &'static str)> {
    let one = spec.ping.place == spec.pong.place;
    match (path, place) {
        (PathSpec::Loopback, PlaceSpec::Vm(_)) if one => None,
        (_, PlaceSpec::Vm(_)) if one => Some((
            format!("{path} joins two places, and both ends have the place {place}"),
            "leave `name` out, so that each end has its own guest; or write `path: loopback`",
        )),
        (PathSpec::Loopback | PathSpec::Veth { .. }, _) => Some((
            format!("{path} does not reach a virtual machine, which is the place of an end"),
            "write `path: bridge`, `macvtap`, `xdp`, `open-vswitch`, `datagram` or `existing`",
        )),
        (PathSpec::Existing { .. }, PlaceSpec::Netns) => Some((
            format!("an existing interface is not in the new network namespace of the {end} end"),
            "write `place: process` or `place: { existing-netns: NAME }`",
        )),
        (PathSpec::Existing { .. }, PlaceSpec::Container(container)) if container.network == ContainerNetwork::None => {
            Some((
                format!("an existing interface is not in the new network namespace of the {end} end"),
                "name a network",
            ))
        }
        (PathSpec::Existing { .. }, _) => None,
        (PathSpec::Datagram { .. }, PlaceSpec::Vm(_)) | (_, PlaceSpec::Vm(_) | PlaceSpec::Netns)
            if !matches!((path, place), (PathSpec::Datagram { .. }, PlaceSpec::Netns)) =>
        {
            None
        }
        (PathSpec::Datagram { .. }, _) => Some((
            format!(
                "the path `datagram` joins the QEMU processes of two virtual machines, and the place of the {end} end is \
                 {place}"
            ),
            "write `path: bridge`",
        )),
        _ => Some((
            format!(
                "{path} goes from a virtual machine to another one, or to a network namespace made for it, and the place of the {end} end is {place}"
            ),
            "write `place: netns` for the end outside the guest, or a path `existing` to this end",
        )),
    }
}

/// The reason why a path cannot lead into a container, and the remedy.
fn container_reached(
    spec: &TrialSpec,
    (path, place): (&PathSpec, &PlaceSpec),
    network: &ContainerNetwork,
    end: &str,
) -> Option<(String, &'static str)> {
    let one = spec.ping.place == spec.pong.place;
    match (path, network) {
        (PathSpec::Loopback, ContainerNetwork::None | ContainerNetwork::Named(_)) if !one => Some((
            format!("loopback does not reach the {end} end: its place, {place}, has a loopback of its own"),
            "write `network: host`, or leave `path` out",
        )),
        (PathSpec::Veth { .. } | PathSpec::Bridge { .. }, ContainerNetwork::Host | ContainerNetwork::Named(_)) => {
            Some((
                format!(
                    "{path} is made into a network namespace that is empty, and the place of the {end} end is {place}"
                ),
                "write `network: none`, or leave `path` out",
            ))
        }
        (PathSpec::Veth { .. } | PathSpec::Bridge { .. }, ContainerNetwork::None) if one => Some((
            format!("{path} joins two network namespaces, and both ends have the place {place}"),
            "leave `name` out, so that each end has its own container; or write `path: loopback`",
        )),
        (PathSpec::Existing { .. }, ContainerNetwork::None) => Some((
            format!("an existing interface is not in the new network namespace of the {end} end"),
            "name a network, or leave `path` out",
        )),
        _ => None,
    }
}

fn overrun(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let Measure::PingPong(keys) = &spec.measure else { return None };
    if spec.rate != Rate::Max || keys.on_overrun != OnOverrun::Skip {
        return None;
    }
    let reason = "`on_overrun: skip` needs slots that can be missed: with `rate: max` there are none";
    Some(Fault::new(at.on_overrun, reason).help("remove `on_overrun`, or give a rate such as `1 kHz`"))
}
