//! Snapshots of emulated guests that have booted: a further guest with the same devices, kernel and initramfs starts
//! from the snapshot and need not boot. Only the tests use them ([`SNAPSHOTS`]).
//!
//! A snapshot is QEMU's migration stream, which contains the memory and the devices of the guest, but no packets and no
//! bytes in sockets. The clocks of the restored guest go on from the time of the snapshot: `CLOCK_REALTIME` in the
//! guest is late by the age of the snapshot.

use super::order::{MachineOrder, Nic, Plug};
use super::qmp::Monitor;
use crate::cache::{Cache, SNAPSHOT as NAME, name_of};
use crate::error::guest_error;
use crate::line::Mode;
use std::path::{Path, PathBuf};
use tailbound_model::{Problem, VmChannel};

/// Environment variable that lets emulated guests start from snapshots, which are made after the first boot. The value
/// does not matter.
pub(crate) const SNAPSHOTS: &str = "TAILBOUND_GUEST_SNAPSHOTS";

/// The arguments of QEMU whose value depends on the run, and of which the state of the guest is independent: they say
/// how a device is connected to this host.
const OF_THE_RUN: [&str; 3] = ["-netdev", "-chardev", "-qmp"];

/// Where the snapshot of a guest is kept.
#[derive(Debug)]
pub(super) struct Snapshot {
    cache: Cache,
    name: String,
}

impl Snapshot {
    /// The snapshot of a guest that is started with `arguments`, if the guest can be restored from one: KVM, vhost, a
    /// card of this host, and a TCP connection through QEMU have state outside of QEMU's migration stream. Guests with a
    /// VLAN are left out, because no frame with a tag reached a guest that QEMU 7.2 had restored.
    pub fn of(order: &MachineOrder<'_>, arguments: &[String]) -> Option<Snapshot> {
        let inside = |nic: &Nic| matches!(nic.plug, Plug::Datagram { .. } | Plug::Tap { vhost_fds: None, .. });
        let possible = !order.kvm
            && order.mode == Mode::Agents
            && order.spec.channel == VmChannel::VirtioSerial
            && order.nics.iter().all(|nic| inside(nic) && nic.line.vlan.is_none());
        let cache = order.snapshots.filter(|_| possible)?.clone();
        // Another release of QEMU may not read the state.
        let qemu = crate::qemu::qemu().ok()?;
        Some(Snapshot { cache, name: format!("{NAME}{}", name_of(format!("{qemu}\n{}", key(arguments)))) })
    }

    /// The file of the snapshot, if there is one.
    pub fn file(&self) -> Option<PathBuf> {
        self.cache.there(&self.name)
    }

    /// Saves the state of the machine. The guest is paused meanwhile, and runs afterwards.
    ///
    /// # Errors
    /// QEMU cannot save the machine, or the cache cannot be written.
    pub fn save(&self, monitor: &mut Monitor) -> Result<(), Problem> {
        let save = |file: &Path| {
            monitor.save(file).map_err(|e| guest_error(format!("QEMU cannot write {}: {e}", file.display()), ""))
        };
        self.cache.keep(&self.name, save).map(drop)
    }
}

/// The arguments that decide which snapshot fits, as one text. Of a connection to this host its kind is enough; a card
/// that is connected to a tap has other headers than one that is connected to a socket.
fn key(arguments: &[String]) -> String {
    let mut key = Vec::new();
    let mut of_the_run = false;
    for word in arguments {
        let kind = word.split([',', ':']).next().unwrap_or_default();
        key.push(if of_the_run { kind } else { word });
        of_the_run = OF_THE_RUN.contains(&word.as_str());
    }
    key.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_fits_the_devices_of_a_guest_and_not_the_run() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let one = key(&words("-m 256M -netdev tap,id=n0,fds=7 -device card,mac=1"));
        assert_eq!(one, key(&words("-m 256M -netdev tap,id=n0,fds=9 -device card,mac=1")));
        assert_ne!(one, key(&words("-m 256M -netdev tap,id=n0,fds=7 -device card,mac=2")));
        assert_ne!(one, key(&words("-m 256M -netdev dgram,id=n0 -device card,mac=1")));
    }
}
