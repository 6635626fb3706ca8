//! Facts about the device of a network interface: negotiated features, queues in use, interrupts and their CPUs. In a
//! guest, the device is provided by the hypervisor.
//!
//! All values are read from /sys and /proc. sysfs shows the network namespace in which it was mounted, so an interface
//! of another namespace is reported without a device.

use crate::interrupts::interrupts;
use std::fs;
use std::path::{Path, PathBuf};
use tailbound_model::{Fact, FactValue};

/// Maximum number of interrupts reported for one network card; a large card has one interrupt for each queue.
const INTERRUPTS: usize = 32;

/// Bit numbers and names of the feature bits of virtio network devices (linux/virtio_net.h) and of all virtio devices
/// (linux/virtio_config.h, linux/virtio_ring.h). Names that these headers lack are from the VIRTIO specification 1.3,
/// sections 5.1.3 and 6.
const FEATURES: [(usize, &str); 48] = [
    (0, "csum"),
    (1, "guest_csum"),
    (2, "ctrl_guest_offloads"),
    (3, "mtu"),
    (5, "mac"),
    (6, "gso"),
    (7, "guest_tso4"),
    (8, "guest_tso6"),
    (9, "guest_ecn"),
    (10, "guest_ufo"),
    (11, "host_tso4"),
    (12, "host_tso6"),
    (13, "host_ecn"),
    (14, "host_ufo"),
    (15, "mrg_rxbuf"),
    (16, "status"),
    (17, "ctrl_vq"),
    (18, "ctrl_rx"),
    (19, "ctrl_vlan"),
    (20, "ctrl_rx_extra"),
    (21, "guest_announce"),
    (22, "mq"),
    (23, "ctrl_mac_addr"),
    (24, "notify_on_empty"),
    (27, "any_layout"),
    (28, "indirect_desc"),
    (29, "event_idx"),
    (32, "version_1"),
    (33, "access_platform"),
    (34, "ring_packed"),
    (35, "in_order"),
    (36, "order_platform"),
    (37, "sr_iov"),
    (38, "notification_data"),
    (40, "ring_reset"),
    (41, "admin_vq"),
    (50, "device_stats"),
    (52, "vq_notf_coal"),
    (53, "notf_coal"),
    (54, "guest_uso4"),
    (55, "guest_uso6"),
    (56, "host_uso"),
    (57, "hash_report"),
    (59, "guest_hdrlen"),
    (60, "rss"),
    (61, "rsc_ext"),
    (62, "standby"),
    (63, "speed_duplex"),
];

/// Facts about the device of an interface in the calling thread's network namespace: `queues.rx`, `queues.tx`,
/// `virtio.features`, `interrupt.NUMBER`. The list is empty for an interface without a device. For a VLAN interface the
/// facts describe the device of the interface below.
pub fn card_facts(interface: &str) -> Vec<Fact> {
    // The address is read from this network namespace. /sys may show another namespace, in which the same index can
    // exist.
    let address = nix::ifaddrs::getifaddrs().into_iter().flatten().find_map(|one| {
        let link = one.address.filter(|_| one.interface_name == interface)?;
        link.as_link_addr()?.addr()
    });
    match (nix::net::if_::if_nametoindex(interface), address) {
        (Ok(index), Some(address)) => card_facts_from(Path::new("/"), interface, (index, address)),
        _ => Vec::new(),
    }
}

fn card_facts_from(root: &Path, interface: &str, (index, address): (u32, [u8; 6])) -> Vec<Fact> {
    let at = format!("sys/class/net/{interface}");
    let read = |path: &str| fs::read_to_string(root.join(path)).map(|text| text.trim().to_owned());
    let text = address.map(|byte| format!("{byte:02x}")).join(":");
    let same = read(&format!("{at}/ifindex")).is_ok_and(|text| text == index.to_string())
        && read(&format!("{at}/address")).is_ok_and(|found| found == text);
    let device = root.join(&at).join("device");
    let is_vlan = || read(&format!("{at}/uevent")).is_ok_and(|text| text.lines().any(|l| l == "DEVTYPE=vlan"));
    if same && !device.exists() && is_vlan() {
        let below = names(&root.join(&at)).into_iter().find_map(|name| Some(name.strip_prefix("lower_")?.to_owned()));
        let index = |name: &str| read(&format!("sys/class/net/{name}/ifindex")).ok()?.parse().ok();
        // A VLAN interface has the address of the interface below.
        let found = below.and_then(|name| Some((index(&name)?, name)));
        return found.map_or_else(Vec::new, |(index, name)| card_facts_from(root, &name, (index, address)));
    }
    if !same || !device.exists() {
        return Vec::new();
    }
    let queues = names(&root.join(&at).join("queues"));
    let count = |kind: &str| FactValue::Number(queues.iter().filter(|name| name.starts_with(kind)).count() as i64);
    let mut all = vec![
        fact("queues.rx", count("rx-"), format!("/{at}/queues")),
        fact("queues.tx", count("tx-"), format!("/{at}/queues")),
    ];
    // Devices other than virtio have no such file.
    if let Ok(bits) = read(&format!("{at}/device/features")) {
        all.push(fact("virtio.features", FactValue::Text(features(&bits)), format!("/{at}/device/features")));
    }
    all.extend(interrupt_facts(root, &device));
    all
}

fn fact(key: &str, value: FactValue, source: String) -> Fact {
    Fact { key: key.to_owned(), value, source }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).map(|all| all.flatten().collect::<Vec<_>>()).unwrap_or_default();
    entries.into_iter().filter_map(|e| e.file_name().into_string().ok()).collect()
}

/// Names of the virtio features that are set in a text such as `1101...`, which begins with bit 0.
fn features(bits: &str) -> String {
    let name = |bit: usize| {
        let known = FEATURES.iter().find(|(number, _)| *number == bit);
        known.map_or_else(|| format!("bit_{bit}"), |(_, name)| (*name).to_owned())
    };
    let set = bits.char_indices().filter(|(_, c)| *c == '1').map(|(bit, _)| name(bit));
    set.collect::<Vec<_>>().join(" ")
}

/// Facts about the interrupts of a device: the CPUs that may receive each interrupt, and the CPUs that receive it.
fn interrupt_facts(root: &Path, device: &Path) -> Vec<Fact> {
    // The interrupts of a virtio card belong to the bus device, one directory above.
    let directories: [PathBuf; 2] = [device.join("msi_irqs"), device.join("../msi_irqs")];
    let mut numbers: Vec<u32> = directories
        .iter()
        .map(|dir| names(dir))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    let table = fs::read_to_string(root.join("proc/interrupts")).map(|text| interrupts(&text)).unwrap_or_default();
    // Interrupts that are not in the table are not in use.
    let used = numbers.into_iter().filter_map(|number| Some((number, &table.get(&number)?.1)));
    let facts = used.take(INTERRUPTS).map(|(number, name)| {
        let read = |file: &str| {
            let text = fs::read_to_string(root.join(format!("proc/irq/{number}/{file}"))).unwrap_or_default();
            if text.trim().is_empty() { "not known".to_owned() } else { text.trim().to_owned() }
        };
        let (may, goes) = (read("smp_affinity_list"), read("effective_affinity_list"));
        let source = format!("/proc/irq/{number}/smp_affinity_list, effective_affinity_list, /proc/interrupts");
        fact(
            &format!("interrupt.{number}"),
            FactValue::Text(format!("{name}: may use CPUs {may}, goes to {goes}")),
            source,
        )
    });
    facts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// Test: facts of a virtio card are read in its guest. The files are from a guest of QEMU 7.2 with Linux 6.1, in
    /// which the virtio card lies below the bus device.
    #[test]
    fn facts_of_a_virtio_card_are_read_in_its_guest() {
        let net = "sys/devices/pci0/0000:00:02.0/virtio1/net/enp0s2";
        let root = tree(&[
            (&format!("{net}/ifindex"), "2\n"),
            (&format!("{net}/queues/rx-0/rps_cpus"), ""),
            (&format!("{net}/queues/tx-0/xps_cpus"), ""),
            (&format!("{net}/queues/tx-1/xps_cpus"), ""),
            (
                "sys/devices/pci0/0000:00:02.0/virtio1/features",
                "1100010000000001110000000000110010000000000000000000010000000000\n",
            ),
            ("sys/devices/pci0/0000:00:02.0/msi_irqs/24", "msix"),
            ("sys/devices/pci0/0000:00:02.0/msi_irqs/25", "msix"),
            (
                "proc/interrupts",
                "      CPU0 CPU1\n 24:  0  0 PCI-MSI 1-edge virtio1-config\n 25: 7 0 PCI-MSI 2-edge virtio1-input.0\n",
            ),
            ("proc/irq/24/smp_affinity_list", "0-1\n"),
            ("proc/irq/24/effective_affinity_list", "0\n"),
            ("proc/irq/25/smp_affinity_list", "1\n"),
            ("proc/irq/25/effective_affinity_list", "\n"),
            (&format!("{net}/address"), "52:54:00:b1:00:01\n"),
            ("sys/class/net/lo/ifindex", "1\n"),
            ("sys/class/net/lo/address", "00:00:00:00:00:00\n"),
            ("sys/class/net/enp0s2.10/ifindex", "3\n"),
            ("sys/class/net/enp0s2.10/address", "52:54:00:b1:00:01\n"),
            ("sys/class/net/enp0s2.10/uevent", "DEVTYPE=vlan\nINTERFACE=enp0s2.10\nIFINDEX=3\n"),
            ("sys/class/net/enp0s2.10/lower_enp0s2", ""),
        ]);
        let at = |path: &str| root.path().join(path);
        std::os::unix::fs::symlink(at("sys/devices/pci0/0000:00:02.0/virtio1"), at(&format!("{net}/device"))).unwrap();
        std::os::unix::fs::symlink(at(net), at("sys/class/net/enp0s2")).unwrap();
        let own = [0x52, 0x54, 0, 0xb1, 0, 1];
        let facts_of = |name, index, address| {
            let line = |f: Fact| match f.value {
                FactValue::Text(text) => format!("{} = {text}", f.key),
                FactValue::Number(number) => format!("{} = {number}", f.key),
                other => panic!("{other:?}"),
            };
            card_facts_from(root.path(), name, (index, address)).into_iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(
            facts_of("enp0s2", 2, own),
            [
                "queues.rx = 1",
                "queues.tx = 2",
                "virtio.features = csum guest_csum mac mrg_rxbuf status ctrl_vq indirect_desc event_idx version_1 notf_coal",
                "interrupt.24 = virtio1-config: may use CPUs 0-1, goes to 0",
                "interrupt.25 = virtio1-input.0: may use CPUs 1, goes to not known",
            ]
        );
        // A VLAN interface has the card of the interface below.
        assert_eq!(facts_of("enp0s2.10", 3, own), facts_of("enp0s2", 2, own));
        // Interfaces of this name in another namespace, and interfaces without a device, have no facts.
        assert!(facts_of("enp0s2", 7, own).is_empty() && facts_of("enp0s2", 2, [2; 6]).is_empty());
        assert!(facts_of("lo", 1, [0; 6]).is_empty());
    }

    #[test]
    fn a_feature_without_a_name_is_reported_by_its_number() {
        assert_eq!(features("00001"), "bit_4");
        assert_eq!(features(""), "");
    }
}
