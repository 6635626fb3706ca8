//! Finds problems of a lab (the places and the path of a trial) before anything is made for it.

use crate::error::lack;
use crate::existing;
use crate::netem;
use crate::spec::LabSpec;
use crate::step::{Layout, MTU_RANGE};
use crate::wiring::{Wiring, carries_offloads, vfio, vhost_lack};
use crate::{launch, police, replaced};
use crate::{userns, vlan};
use std::path::Path;
use tailbound_model::{ContainerNetwork, CpuList, ExistingEnd, LaunchBy, PathSpec, PlaceSpec, Problem};

impl LabSpec {
    /// Finds problems of the machine or the study that prevent this lab; an empty list means that the lab can be built.
    /// Changes nothing; blocks for some milliseconds.
    pub fn check(&self) -> Vec<Problem> {
        self.lacks(false)
    }

    /// Finds problems of the machine or the study like [`check`](LabSpec::check); `wired` means that the wiring of the
    /// guests exists already.
    pub(crate) fn lacks(&self, wired: bool) -> Vec<Problem> {
        let mut lacks: Vec<Problem> = (0..2).filter_map(|end| self.place_fits(end)).collect();
        lacks.extend(containers_lack([&self.ping, &self.pong], nix::unistd::geteuid().is_root()));
        lacks.dedup_by(|a, b| a.remedy == b.remedy);
        if matches!(self.path, PathSpec::Loopback) && self.ping_and_pong_apart() {
            lacks.push(lack(
                format!(
                    "a loopback path cannot join {} and {}: each has its own loopback interface",
                    self.ping, self.pong
                ),
                "give both ends the same place, or use `path: veth`",
            ));
        }
        if !lacks.is_empty() {
            return lacks;
        }
        lacks.extend(self.guests_lack(&online_cpus()));
        if self.is_wired() && !wired {
            lacks.extend(self.devices_lack());
            lacks.extend(Wiring::check((&self.path, self.vlan.as_ref()), &self.ports()));
        }
        if self.is_private() {
            if self.makes_namespaces() {
                lacks.extend(userns::problem());
            }
            if lacks.is_empty() {
                lacks.extend(self.queues_lack());
            }
            return lacks;
        }
        match self.layout() {
            Layout::Made(shape) => {
                if let Some(mtu) = shape.mtu.filter(|mtu| !MTU_RANGE.contains(mtu)) {
                    let (least, most) = (MTU_RANGE.start(), MTU_RANGE.end());
                    lacks.push(lack(
                        format!(
                            "an MTU of {mtu} is not possible on a {} path",
                            if shape.bridged { "bridge" } else { "veth" }
                        ),
                        format!("use {least} to {most}"),
                    ));
                }
                lacks.extend(userns::problem());
                if lacks.is_empty() && shape.delay.is_some() {
                    lacks.extend(netem::problem());
                }
                if lacks.is_empty() {
                    lacks.extend(self.queues_lack());
                }
                if lacks.is_empty() && shape.vlan.is_some() {
                    lacks.extend(vlan::problem());
                }
                lacks
            }
            Layout::Found(ends) => {
                lacks.extend(existing::missing_here(self, &ends));
                if lacks.is_empty() {
                    lacks.extend((0..2).filter_map(|end| self.unseen(end, &ends[1 - end])));
                    lacks.extend((0..2).filter_map(|end| self.replaced_lack(end, &ends[end])));
                    lacks.dedup();
                }
                lacks
            }
        }
    }

    /// Returns a problem if this kernel has not what the ends ask for at the interfaces that Tailbound makes for them.
    fn queues_lack(&self) -> Option<Problem> {
        let wanted = (0..2).find_map(|end| self.wanted(end)?.lack());
        wanted.or_else(|| self.police.iter().flatten().find_map(police::problem))
    }

    /// Returns a problem if an existing interface cannot have the queue disciplines that its end asks for, or has not the queue with launch
    /// times that the study describes.
    fn replaced_lack(&self, end: usize, given: &ExistingEnd) -> Option<Problem> {
        if let Some(launch) = self.launch_of(end).filter(|launch| launch.by == LaunchBy::Existing) {
            let found = existing::find(self, end, given, &[]).ok()?;
            return launch::existing_problem(found.site.netns()?, (&found.interface.name, self.name(end)), launch);
        }
        let wanted = self.wanted(end)?;
        wanted.lack().or_else(|| {
            let found = existing::find(self, end, given, &[]).ok()?;
            replaced::problem(&found, self.name(end), wanted)
        })
    }

    /// Finds problems of the network cards that are passed through to guests.
    fn devices_lack(&self) -> Vec<Problem> {
        let PathSpec::Existing { ping, pong } = &self.path else { return Vec::new() };
        let mut lacks = Vec::new();
        for (place, side) in [(&self.ping, ping), (&self.pong, pong)] {
            if let (PlaceSpec::Vm(guest), Some(device)) = (place, &side.device) {
                lacks.extend(vfio::lacks(Path::new("/"), device));
                lacks.extend(vfio::memory_lack(guest.memory_mib));
            }
        }
        lacks
    }

    /// Returns a problem if a guest is attached by macvtap to the interface of the other end, because a host and its
    /// own macvtap devices cannot communicate.
    fn unseen(&self, guest: usize, other: &ExistingEnd) -> Option<Problem> {
        let PathSpec::Existing { ping, pong } = &self.path else { return None };
        let PlaceSpec::Vm(_) = self.place(guest) else { return None };
        let over = [ping, pong][guest].interface.as_ref()?;
        let own = existing::own_interface(self, 1 - guest, other).filter(|own| own.name == *over)?;
        own.bridge.is_none().then(|| {
            lack(
                format!(
                    "the guest of {} is attached over {over}, which is the interface of {} on this host: they cannot reach \
                     each other (macvtap)",
                    self.name(guest),
                    self.name(1 - guest)
                ),
                "make a bridge, put the interface into it, and name the bridge at both ends",
            )
        })
    }

    /// Finds problems of guests, except missing QEMU and missing kernels, which are checked when the guests are made.
    fn guests_lack(&self, online: &CpuList) -> Vec<Problem> {
        let guests = [&self.ping, &self.pong].into_iter().filter_map(|place| match place {
            PlaceSpec::Vm(guest) => Some(guest),
            _ => None,
        });
        let mut lacks = Vec::new();
        for guest in guests {
            let threads = guest.vcpu_threads.iter().chain([&guest.emulator]).chain(&guest.vhost);
            let mut named = threads.filter_map(|t| t.cpus.as_ref()).flat_map(|c| c.0.iter());
            if let Some(cpu) = named.find(|cpu| !online.is_empty() && !online.0.contains(cpu)) {
                lacks.push(lack(
                    format!("guest {}: CPU {cpu} of this host does not exist or is offline", guest.name),
                    format!("the online CPUs are {online}: change `vcpu_threads`, `emulator` or `vhost`"),
                ));
            }
            lacks.extend(guest.vhost.as_ref().and_then(|_| vhost_lack()));
            if guest.offloads && self.is_wired() && !carries_offloads(&self.path) {
                lacks.push(lack(
                    format!(
                        "guest {}: offloads are not possible on the path {}, because no part of the path computes the \
                         missing checksums or splits large segments",
                        guest.name, self.path
                    ),
                    "write `offloads: off`, which is the default",
                ));
            }
        }
        lacks.dedup();
        lacks
    }

    /// Returns a problem if the place of an end cannot be used with the path.
    fn place_fits(&self, end: usize) -> Option<Problem> {
        let (place, path, name) = (self.place(end), &self.path, self.name(end));
        let made = self.makes_namespaces();
        match place {
            PlaceSpec::Netns if made => None,
            PlaceSpec::Vm(_) if self.is_wired() || *path == PathSpec::Loopback => None,
            PlaceSpec::Vm(_) => Some(lack(
                format!("place `{place}` ({name}) with the path `{path}`: this path does not reach virtual machines"),
                "use `path: bridge`, `macvtap`, `xdp`, `open-vswitch`, `datagram` or `existing`",
            )),
            PlaceSpec::Netns => Some(lack(
                format!("place `netns` ({name}): a new network namespace has no interface of the path `{path}`"),
                "use `path: veth` or `path: bridge`, or another place",
            )),
            PlaceSpec::Container(container) if container.network == ContainerNetwork::None => {
                matches!(path, PathSpec::Existing { .. }).then(|| {
                    lack(
                        format!(
                            "place `{place}` ({name}): a container without a network has no interface for the path \
                             `{path}`"
                        ),
                        "use `path: veth` or `path: bridge`, or give the container a network",
                    )
                })
            }
            PlaceSpec::Container(_) if made => Some(lack(
                format!("place `{place}` ({name}) with the path `{path}`: the container already has a network"),
                "use `network: none`, or remove `path`",
            )),
            PlaceSpec::ExistingNetns(_) if made => Some(lack(
                format!(
                    "place `{place}` ({name}) with the path `{path}`: a network namespace of the user is never changed"
                ),
                "use `place: netns`, or set the path up yourself and use `path: existing`",
            )),
            PlaceSpec::Ssh(_) | PlaceSpec::Pod(_) | PlaceSpec::Domain(_) if made => Some(lack(
                format!("place `{place}` ({name}) with the path `{path}`: paths are not made on other hosts"),
                "use `path: existing` and name the interface on each side",
            )),
            _ if made => Some(lack(
                format!(
                    "place `{place}` ({name}) with the path `{path}`: the network namespace of this machine is never changed"
                ),
                "use `place: netns` for both ends",
            )),
            _ => None,
        }
    }

    fn ping_and_pong_apart(&self) -> bool {
        let netns = |place: &PlaceSpec| match place {
            PlaceSpec::ExistingNetns(_)
            | PlaceSpec::Ssh(_)
            | PlaceSpec::Pod(_)
            | PlaceSpec::Vm(_)
            | PlaceSpec::Domain(_) => Some(place.clone()),
            PlaceSpec::Container(container) if container.network != ContainerNetwork::Host => Some(place.clone()),
            _ => None,
        };
        netns(&self.ping) != netns(&self.pong)
    }
}

/// Returns the online CPUs of this host; the list is empty if they cannot be read.
fn online_cpus() -> CpuList {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

/// Returns a problem if a place is a container and this process does not run as root.
fn containers_lack(places: [&PlaceSpec; 2], root: bool) -> Option<Problem> {
    let place = places.into_iter().find(|place| matches!(place, PlaceSpec::Container(_)))?;
    let what = format!("the place {place} needs root, because Tailbound makes a container and enters its namespaces");
    (!root).then(|| lack(what, "run as root, or use `place: netns`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(path: PathSpec, ping: PlaceSpec, pong: PlaceSpec) -> String {
        let lacks = LabSpec {
            path,
            ping,
            pong,
            publishers: 1,
            subscribers: 1,
            apart: false,
            vlan: None,
            gates: [None, None],
            shaping: [None, None],
            police: [None, None],
            launch: None,
        }
        .check();
        lacks.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
    }

    fn existing(interface: Option<&str>, address: Option<&str>) -> PathSpec {
        let end =
            ExistingEnd { interface: interface.map(str::to_owned), address: address.map(str::to_owned), device: None };
        PathSpec::Existing { ping: end, pong: ExistingEnd { interface: Some("lo".into()), ..ExistingEnd::default() } }
    }

    #[test]
    fn places_that_do_not_fit_the_path_are_reported_with_a_remedy() {
        use PlaceSpec::*;
        let veth = || PathSpec::Veth { mtu: None, delay: None };
        assert_eq!(
            lacks(veth(), Process, Process),
            "place `process` (ping) with the path `veth`: the network namespace of this machine is never changed; use \
             `place: netns` for both ends"
        );
        assert!(lacks(veth(), Netns, ExistingNetns("blue".into())).contains("`existing netns blue` (pong)"));
        assert!(lacks(PathSpec::Loopback, Netns, Netns).contains("has no interface of the path `loopback`"));
        assert_eq!(
            lacks(PathSpec::Loopback, Process, ExistingNetns("blue".into())),
            "a loopback path cannot join process and existing netns blue: each has its own loopback interface; give both ends \
             the same place, or use `path: veth`"
        );
        assert_eq!(
            lacks(PathSpec::Bridge { mtu: Some(67) }, Netns, Netns).lines().next().unwrap(),
            "an MTU of 67 is not possible on a bridge path; use 68 to 65535"
        );
    }

    #[test]
    fn missing_parts_of_an_existing_path_are_reported_with_the_most_similar_name() {
        use PlaceSpec::Process;
        let missing = lacks(existing(Some("lp"), None), Process, Process);
        assert!(
            missing.starts_with(
                "there is no interface lp in this network namespace (ping); did you mean `lo`? existing interfaces: "
            ),
            "{missing}"
        );
        let address = lacks(existing(Some("lo"), Some("192.0.2.77")), Process, Process);
        let begin =
            "interface lo in this network namespace does not have the address 192.0.2.77 (ping); it has 127.0.0.1";
        assert!(address.starts_with(begin), "{address}");
        let nowhere = lacks(existing(None, Some("192.0.2.77")), Process, Process);
        let begin = "no interface in this network namespace has the address 192.0.2.77 (ping); existing addresses: \
                     127.0.0.1 (lo)";
        assert!(nowhere.starts_with(begin), "{nowhere}");
        assert!(
            lacks(existing(None, None), Process, Process).starts_with("the existing path names neither interface nor")
        );
        assert!(lacks(existing(None, Some("10.0.0.1/24")), Process, Process).contains("without a prefix length"));
        assert!(
            lacks(existing(None, Some("fe80::1")), Process, Process)
                .starts_with("`path.existing.ping.address`: fe80::1 is an IPv6 address")
        );
        let netns = PlaceSpec::ExistingNetns("tb-no-such-netns".into());
        let missing = lacks(existing(Some("lo"), None), netns.clone(), netns);
        let begin = "there is no network namespace tb-no-such-netns (/run/netns/tb-no-such-netns); ";
        assert!(missing.starts_with(begin) && missing.lines().count() == 1, "{missing}");
    }

    #[test]
    fn the_loopback_of_this_machine_needs_nothing() {
        assert_eq!(lacks(PathSpec::Loopback, PlaceSpec::Process, PlaceSpec::Process), "");
        assert_eq!(lacks(PathSpec::Loopback, PlaceSpec::SameProcess, PlaceSpec::SameProcess), "");
    }
}
