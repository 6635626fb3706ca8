//! Knobs of network interfaces: number of queues and interrupt coalescing.

use super::error::KnobError;
use super::interface;
use super::place::Place;
use super::setting::Setting;
use crate::interface::tune;
use std::io;
use tailbound_model::{NetnsId, NicSetting, Undo};

/// A setting (such as the number of queues) of a network interface.
#[derive(Debug)]
struct InterfaceSetting {
    interface: String,
    ifindex: u32,
    netns: Option<NetnsId>,
    setting: NicSetting,
    value: u32,
}

/// Finds a setting of the interface with this name in a place (the host, or the network namespace of an end).
pub(super) fn find(
    interface: &str,
    setting: NicSetting,
    value: u32,
    place: &Place,
    key: &str,
) -> Result<Vec<Box<dyn Setting>>, KnobError> {
    let wanted = setting.text(value);
    let (ifindex, most) = interface::find(interface, place, (key, &wanted), |_| tune::most(interface, setting))?;
    if let Some(most) = most.filter(|most| value > *most) {
        let reason = format!("its maximum is {most}");
        return Err(KnobError::Refused { key: key.to_owned(), what: interface::what(interface), wanted, reason });
    }
    let (interface, netns) = (interface.to_owned(), place.id());
    Ok(vec![Box::new(InterfaceSetting { interface, ifindex, netns, setting, value })])
}

impl Setting for InterfaceSetting {
    fn what(&self) -> String {
        interface::what(&self.interface)
    }

    fn read(&self) -> io::Result<String> {
        tune::read(&self.interface, self.setting).map(|value| self.setting.text(value))
    }

    fn write(&mut self, _value: &str) -> io::Result<()> {
        tune::write(&self.interface, self.setting, self.value)
    }

    fn may_write(&self) -> io::Result<()> {
        interface::may_write()
    }

    fn undo(&self, before: &str, set: &str) -> Undo {
        let number = |text: &str| match text {
            "on" => 1,
            "off" => 0,
            text => text.trim_end_matches(" us").parse().unwrap_or(self.value),
        };
        Undo::RestoreInterface {
            interface: self.interface.clone(),
            ifindex: self.ifindex,
            netns: self.netns.clone(),
            setting: self.setting,
            before: number(before),
            set: number(set),
        }
    }

    fn spelled(&self, value: &str) -> String {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Test: an interface over which the default route of the host leads is refused, and is no longer refused without the route.
    #[test]
    fn the_interface_of_the_default_route_is_refused() {
        let inside = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
            let ip = |words: &str| Command::new("ip").args(words.split(' ')).status().is_ok_and(|s| s.success());
            ip("link add tb-route type veth peer name tb-peer").then_some(())?;
            assert!(ip("link set tb-peer up") && ip("link set tb-route up"));
            assert!(ip("address add 198.51.100.1/24 dev tb-route") && ip("route add default dev tb-route"));
            let key = "host.nic.tb-route.channels_rx";
            let find = || find("tb-route", NicSetting::ChannelsRx, 1, &Place::own(), key).map(|all| all.len());
            let refused = find().unwrap_err().problem();
            assert!(ip("route del default"));
            Some((refused, find().unwrap()))
        });
        match inside.join().unwrap() {
            None => println!("skipped: no network namespace or no veth can be made here"),
            Some((refused, found)) => {
                assert_eq!(
                    refused.what,
                    "host.nic.tb-route.channels_rx: interface tb-route is never changed, because the default route of this host \
                     leads over it"
                );
                assert!(refused.remedy.starts_with("name another interface"), "{}", refused.remedy);
                assert_eq!(found, 1);
            }
        }
    }
}
