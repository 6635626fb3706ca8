//! Compares interfaces read back by netlink with the steps that made them.

use crate::error::LabError;
use crate::interface::read_interfaces;
use crate::rooms::Rooms;
use crate::step::{At, Room, Step};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tailbound_model::{BridgeState, Interface};

/// Longest wait until an interface is operational. The kernel sets this state in a work queue (net/core/link_watch.c),
/// within milliseconds or, if not urgent, within a second.
const OPERATIONAL_WITHIN: Duration = Duration::from_secs(5);

/// Reads the interfaces of a network namespace; waits first until all interfaces that were set up are operational, or
/// until a time limit is reached.
pub(crate) async fn settled(room: Room, rooms: &Rooms, steps: &[Step]) -> Result<Vec<Interface>, LabError> {
    let names: Vec<&str> = steps.iter().filter_map(|s| up_in(s, room)).collect();
    let end = Instant::now() + OPERATIONAL_WITHIN;
    loop {
        let read = async { read_interfaces(rooms.get(room)?)?.wait().await? };
        let found = read.await.map_err(|e| LabError::read("reading the interfaces back", room.name(), e))?;
        let ready = names.iter().all(|name| found.iter().any(|i| i.name == *name && carries(i)));
        if ready || Instant::now() > end {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether an interface carries packets. A veth drops packets until it reports the state `up`. The loopback interface
/// reports no state. A bridge forwards as soon as its ports forward; the state of the bridge changes a second later and
/// concerns only its own traffic.
fn carries(interface: &Interface) -> bool {
    let reports_late = interface.bridge.is_some() || interface.name == "lo";
    interface.enabled && (interface.operational || (reports_late && interface.carrier))
}

fn up_in(step: &Step, room: Room) -> Option<&str> {
    match step {
        Step::Up(at) if at.room == room => Some(&at.name),
        _ => None,
    }
}

/// Compares the interfaces found in one network namespace with the steps that made them.
pub(crate) fn verify(room: Room, found: &[Interface], steps: &[Step]) -> Result<(), LabError> {
    let differs = |at: &At, what: &str, asked: String, found: String| LabError::NotAsAsked {
        place: room.name().to_owned(),
        interface: at.name.clone(),
        what: what.to_owned(),
        asked,
        found,
    };
    let look_up = |at: &At| {
        let interface = found.iter().find(|i| i.name == at.name);
        interface.ok_or_else(|| differs(at, "the interface", "present".into(), "absent".into()))
    };
    let state = |up: bool| if up { "up" } else { "down" }.to_owned();
    let here = |at: &&At| at.room == room;
    for step in steps {
        let (ends, mtu): (Vec<&At>, u32) = match step {
            Step::Pair { near, far, mtu, .. } => (vec![near, far], *mtu),
            Step::Bridge { at, mtu } => (vec![at], *mtu),
            _ => (Vec::new(), 0),
        };
        for at in ends.into_iter().filter(here) {
            let interface = look_up(at)?;
            if interface.mtu != mtu {
                return Err(differs(at, "the MTU", mtu.to_string(), interface.mtu.to_string()));
            }
        }
        match step {
            Step::Up(at) if at.room == room => {
                let interface = look_up(at)?;
                if !carries(interface) {
                    return Err(differs(at, "the state", state(true), state(false)));
                }
            }
            Step::Address { at, address, prefix } if at.room == room => {
                let interface = look_up(at)?;
                if !interface.addresses.contains(&(IpAddr::V4(*address), *prefix)) {
                    let all = interface.addresses.iter().map(|(a, p)| format!("{a}/{p}")).collect::<Vec<_>>();
                    let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
                    return Err(differs(at, "the address", format!("{address}/{prefix}"), all));
                }
            }
            Step::Bridge { at, .. } if at.room == room => {
                let state = look_up(at)?.bridge;
                if state != Some(BridgeState::default()) {
                    let asked = "no spanning tree, snooping or delay".to_owned();
                    return Err(differs(at, "the forwarding of the bridge", asked, format!("{state:?}")));
                }
            }
            Step::NoIpv6(room_of_step) if *room_of_step == room => {
                let has_v6 = |i: &&Interface| i.addresses.iter().any(|(address, _)| address.is_ipv6());
                if let Some(interface) = found.iter().find(has_v6) {
                    let at = At { room, name: interface.name.clone() };
                    return Err(differs(&at, "IPv6", "off".into(), "on".into()));
                }
            }
            Step::Vlan { at, vlan, .. } if at.room == room => {
                crate::vlan::verify(look_up(at)?, room.name(), vlan)?;
            }
            Step::Join { port, bridge } if port.room == room => {
                let interface = look_up(port)?;
                let owner = found.iter().find(|i| i.name == *bridge).map(|i| i.index);
                if interface.controller.is_none() || interface.controller != owner {
                    return Err(differs(port, "the bridge", bridge.clone(), "another or none".into()));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::step::Shape;
    use std::collections::BTreeMap;

    pub(crate) fn as_requested() -> Interface {
        Interface {
            index: 2,
            name: "tbx-p0".into(),
            mtu: 9000,
            enabled: true,
            operational: true,
            unreported: false,
            carrier: true,
            multicast: true,
            tx_queues: None,
            rx_queues: None,
            controller: None,
            bridge: None,
            vlan: None,
            addresses: vec![("10.177.0.1".parse().unwrap(), 24)],
        }
    }

    fn check(change: impl Fn(&mut Interface)) -> String {
        let lo = Interface { index: 1, name: "lo".into(), ..as_requested() };
        let mut interface = as_requested();
        change(&mut interface);
        let (rooms, given) = (vec![Room::End("ping"), Room::End("pong")], Vec::new());
        let steps = Shape {
            bridged: false,
            mtu: Some(9000),
            delay: None,
            rooms,
            given,
            vlan: None,
            gates: BTreeMap::new(),
            shaping: BTreeMap::new(),
            launch: None,
        }
        .steps("tbx");
        verify(Room::End("ping"), &[lo, interface], &steps).map_or_else(|e| e.to_string(), |()| "as requested".into())
    }

    #[test]
    fn each_difference_is_named() {
        assert_eq!(check(|_| {}), "as requested");
        assert!(check(|i| i.mtu = 1500).starts_with("tbx-p0 (ping): the MTU is 1500, but 9000 was requested;"));
        let down = "tbx-p0 (ping): the state is down, but up was requested;";
        assert!(check(|i| i.operational = false).starts_with(down));
        let unreported = |i: &mut Interface| (i.operational, i.unreported) = (false, true);
        assert!(check(unreported).starts_with(down), "an interface without a reported state must not pass");
        assert!(
            check(|i| i.addresses.clear()).starts_with("tbx-p0 (ping): the address is none, but 10.177.0.1/24 was")
        );
        let v6 = check(|i| i.addresses.push(("fe80::1".parse().unwrap(), 64)));
        assert!(v6.starts_with("tbx-p0 (ping): IPv6 is on, but off was requested;"), "{v6}");
        assert!(check(|i| i.name = "x".into()).starts_with("tbx-p0 (ping): the interface is absent, but present was"));
    }
}
