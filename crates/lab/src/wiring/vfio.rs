//! Checks from sysfs whether a card of this host can be passed through to a guest (VFIO;
//! Documentation/driver-api/vfio.rst of the kernel).

use crate::error::lack;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tailbound_model::Problem;

const DRIVER: &str = "vfio-pci";
/// Drivers that the other devices of an IOMMU group may have, because these drivers do not access memory through their
/// device.
const HARMLESS: [&str; 3] = [DRIVER, "pci-stub", "pcieport"];
/// First byte of the PCI class of PCI bridges, as sysfs shows it.
const BRIDGE: &str = "0x06";
const IPC_LOCK: u32 = 14;

/// Finds problems that prevent passing a device through to a guest; a VFIO group that is in use is such a problem too.
/// All files are read below `root`, which is `/` except in tests.
pub(crate) fn lacks(root: &Path, device: &str) -> Vec<Problem> {
    let devices = root.join("sys/bus/pci/devices");
    let at = devices.join(device);
    if !at.exists() {
        return vec![lack(format!("this host has no PCI device {device}"), cards(&devices))];
    }
    let Some(group) = link(&at.join("iommu_group")) else {
        let remedy = "switch the IOMMU on in the firmware (VT-d, AMD-Vi) and boot the kernel with `intel_iommu=on iommu=pt` (AMD: \
                    `iommu=pt`)";
        return vec![lack(format!("PCI device {device} has no IOMMU group: no IOMMU is in use"), remedy)];
    };
    let mut lacks: Vec<Problem> = bound(&at, device, &group).into_iter().collect();
    let others = names(&at.join("iommu_group/devices"));
    lacks
        .extend(others.iter().filter(|other| *other != device).filter_map(|other| in_the_way(&devices, other, &group)));
    if lacks.is_empty() {
        lacks.extend(opened(root, &group));
    }
    lacks
}

/// Returns a problem if the memory of a guest may not be locked. The kernel must pin all memory of the guest, because a
/// passed-through device can write to any of it.
pub(crate) fn memory_lack(memory_mib: u32) -> Option<Problem> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let (soft, _) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_MEMLOCK).ok()?;
    too_little(memory_mib, soft, &status)
}

fn too_little(memory_mib: u32, limit_bytes: u64, status: &str) -> Option<Problem> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    let wanted = u64::from(memory_mib) << 20;
    (effective >> IPC_LOCK & 1 == 0 && limit_bytes < wanted).then(|| {
        lack(
            format!(
                "a guest with a card of this host needs all of its {memory_mib} MiB locked, but this user may lock only {} MiB",
                limit_bytes >> 20
            ),
            "run as root, or raise the limit (`ulimit -l`, memlock in /etc/security/limits.conf)",
        )
    })
}

fn link(path: &Path) -> Option<String> {
    fs::read_link(path).ok()?.file_name()?.to_str().map(str::to_owned)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|e| e.file_name()).filter_map(|n: OsString| n.into_string().ok()).collect();
    names.sort();
    names
}

fn class(device: &Path) -> String {
    fs::read_to_string(device.join("class")).unwrap_or_default()
}

/// Makes a sentence that lists the network cards (PCI class 0x02) of this host.
fn cards(devices: &Path) -> String {
    let all = names(devices);
    let cards: Vec<String> = all.into_iter().filter(|name| class(&devices.join(name)).starts_with("0x02")).collect();
    match cards.is_empty() {
        true => "there is no network card on PCI".into(),
        false => format!("the network cards are {}", cards.join(", ")),
    }
}

/// Returns a problem if the device itself is not bound to the driver vfio-pci.
fn bound(at: &Path, device: &str, group: &str) -> Option<Problem> {
    let driver = link(&at.join("driver"));
    if driver.as_deref() == Some(DRIVER) {
        return None;
    }
    let whose = driver.as_ref().map_or_else(|| "no driver".to_owned(), |driver| format!("the driver {driver}"));
    let interfaces = names(&at.join("net"));
    let gone = match interfaces.is_empty() {
        true => String::new(),
        false => format!("; this removes interface {} from this host", interfaces.join(", ")),
    };
    let what = format!("PCI device {device} (IOMMU group {group}) has {whose}, but needs the driver {DRIVER}");
    Some(lack(what, format!("{}{gone}", commands(device, driver.is_some()))))
}

/// Returns a problem if another device of the IOMMU group has a driver that prevents passing the group through.
fn in_the_way(devices: &Path, other: &str, group: &str) -> Option<Problem> {
    let at: PathBuf = devices.join(other);
    let driver = link(&at.join("driver"))?;
    if HARMLESS.contains(&driver.as_str()) || class(&at).starts_with(BRIDGE) {
        return None;
    }
    let what =
        format!("PCI device {other} is in the same IOMMU group {group} as the card, and has the driver {driver}");
    Some(lack(
        what,
        format!(
            "all devices of an IOMMU group must be free: {}; or move the card to another PCI slot",
            commands(other, true)
        ),
    ))
}

fn commands(device: &str, has_driver: bool) -> String {
    let at = format!("/sys/bus/pci/devices/{device}");
    let unbind = if has_driver { format!("; echo {device} > {at}/driver/unbind") } else { String::new() };
    format!(
        "`modprobe {DRIVER}; echo {DRIVER} > {at}/driver_override{unbind}; echo {device} > /sys/bus/pci/drivers_probe`"
    )
}

/// Returns a problem if the file of the VFIO group cannot be opened. The file is closed again, so that QEMU can open
/// it.
fn opened(root: &Path, group: &str) -> Option<Problem> {
    let file = format!("dev/vfio/{group}");
    let error = File::options().read(true).write(true).open(root.join(&file)).err()?;
    let remedy = match error.raw_os_error() {
        Some(libc::ENOENT) => {
            "load the module (`modprobe vfio-pci`); in a container, add the files of /dev/vfio to the container"
        }
        Some(libc::EBUSY) => "another program uses a device of this IOMMU group: end that program",
        _ => "run as root, or change the owner of the file in /dev/vfio",
    };
    Some(lack(format!("/{file} cannot be opened: {error}"), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const CARD: &str = "0000:03:00.0";

    /// A sysfs tree for tests, with a card and the other devices of its IOMMU group.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Machine {
            let machine = Machine(tempfile::tempdir().unwrap());
            machine.device(CARD, "0x020000", Some("igb"));
            fs::create_dir_all(machine.at(CARD).join("net/enp3s0")).unwrap();
            machine
        }

        fn at(&self, device: &str) -> PathBuf {
            self.0.path().join("sys/bus/pci/devices").join(device)
        }

        fn device(&self, device: &str, class: &str, driver: Option<&str>) {
            fs::create_dir_all(self.at(device)).unwrap();
            fs::write(self.at(device).join("class"), format!("{class}\n")).unwrap();
            let _ = fs::remove_file(self.at(device).join("driver"));
            if let Some(driver) = driver {
                symlink(format!("../../../bus/pci/drivers/{driver}"), self.at(device).join("driver")).unwrap();
            }
        }

        fn group(&self, devices: &[&str]) {
            let group = self.0.path().join("sys/kernel/iommu_groups/17");
            fs::create_dir_all(group.join("devices")).unwrap();
            for device in devices {
                symlink(&group, self.at(device).join("iommu_group")).unwrap();
                fs::write(group.join("devices").join(device), "").unwrap();
            }
        }

        fn problems(&self, device: &str) -> String {
            lacks(self.0.path(), device).iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
        }
    }

    #[test]
    fn problems_of_passing_a_card_through_have_remedies() {
        let machine = Machine::new();
        let mut texts = vec![machine.problems("0000:04:00.0"), machine.problems(CARD)];
        for (device, class) in
            [("0000:03:00.1", "0x020000"), ("0000:02:01.0", "0x060400"), ("0000:03:00.2", "0x0c0330")]
        {
            machine.device(device, class, (class != "0x020000").then_some("other"));
        }
        machine.group(&[CARD, "0000:03:00.1", "0000:02:01.0", "0000:03:00.2"]);
        texts.push(machine.problems(CARD));
        machine.device(CARD, "0x020000", Some("vfio-pci"));
        machine.device("0000:03:00.2", "0x0c0330", Some("vfio-pci"));
        texts.push(machine.problems(CARD));
        let vfio = machine.0.path().join("dev/vfio");
        fs::create_dir_all(&vfio).unwrap();
        // A directory cannot be opened for writing.
        fs::create_dir(vfio.join("17")).unwrap();
        texts.push(machine.problems(CARD));
        insta::assert_snapshot!(texts.join("\n\n"));
        fs::remove_dir(vfio.join("17")).unwrap();
        fs::write(vfio.join("17"), "").unwrap();
        assert_eq!(machine.problems(CARD), "");
    }

    #[test]
    fn memory_that_may_not_be_locked_is_reported() {
        let none = "CapInh:\t0\nCapEff:\t0000000000000000\n";
        assert_eq!(
            too_little(512, 8 << 20, none).unwrap().to_string(),
            "a guest with a card of this host needs all of its 512 MiB locked, but this user may lock only 8 MiB; run as \
             root, or raise the limit (`ulimit -l`, memlock in /etc/security/limits.conf)"
        );
        assert_eq!(too_little(512, 512 << 20, none), None);
        assert_eq!(too_little(512, 0, "CapEff:\t0000000000004000\n"), None);
    }
}
