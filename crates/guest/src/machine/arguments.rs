//! Builds the command line of QEMU for a guest.

use super::console;
use super::order::{MachineOrder, Plug};
use crate::line::{Card, Channel, Line, Mac, Mode};
use crate::ports::{HostChannel, socket};
use std::os::fd::AsRawFd;
use tailbound_model::VmSpec;

/// Names of the offload features of a virtio network card that QEMU switches off, so that packets are measured as they
/// were sent.
const OFFLOADS: [&str; 13] = [
    "csum",
    "gso",
    "host_tso4",
    "host_tso6",
    "host_ecn",
    "host_ufo",
    "guest_csum",
    "guest_tso4",
    "guest_tso6",
    "guest_ecn",
    "guest_ufo",
    "mrg_rxbuf",
    "guest_announce",
];
/// Network card of QEMU's user-mode network, which is not measured, and the TCP port on which the guest listens.
const CONTROL: (Mac, u16) = (Mac([0x52, 0x54, 0, 0x7b, 0, 0xff]), 7777);

/// CPU model for emulation: all features except fast string moves (ERMS, FSRM). With fast string moves the kernel would
/// copy byte by byte, and QEMU emulates the move of one byte as slowly as the move of a word of eight bytes.
const EMULATED: &str = "max,-erms,-fsrm";

/// Arguments of QEMU that every machine with this specification has: accelerator, processor, memory, kernel.
pub(crate) fn base(spec: &VmSpec, kvm: bool, kernel: &std::path::Path, initramfs: &std::path::Path) -> Vec<String> {
    let mut words = Words::default();
    words.add("-nodefaults -no-user-config -no-reboot");
    words.pair("-display", "none");
    words.pair("-accel", if kvm { "kvm" } else { "tcg,thread=multi" });
    words.pair("-machine", format!("{},memory-backend=memory", spec.machine.as_deref().unwrap_or("q35")));
    words.pair("-cpu", spec.cpu_model.as_deref().unwrap_or(if kvm { "host" } else { EMULATED }));
    words.pair("-smp", spec.vcpus.to_string());
    words.pair("-m", format!("{}M", spec.memory_mib));
    let mut memory = format!("memory-backend-memfd,id=memory,size={}M", spec.memory_mib);
    if spec.huge_pages {
        memory.push_str(",hugetlb=on");
    }
    if spec.lock_memory {
        memory.push_str(",prealloc=on");
        words.pair("-overcommit", "mem-lock=on");
    }
    words.pair("-object", memory);
    words.pair("-kernel", kernel.display().to_string());
    words.pair("-initrd", initramfs.display().to_string());
    words.pair("-object", "rng-random,id=random,filename=/dev/urandom");
    words.pair("-device", "virtio-rng-pci,rng=random");
    words.0
}

/// The command line of the guest's kernel; `tsc_khz` is the rate of the emulated processor's time stamp counter in kHz.
pub(crate) fn kernel_line(spec: &VmSpec, kvm: bool, tsc_khz: Option<u32>, line: &Line) -> String {
    // ramfs has no size limit: the unpacked files can take more than half of the memory.
    let mut text = String::from("console=ttyS0 quiet panic=-1 rootfstype=ramfs");
    if !kvm {
        // An emulated processor is too slow to calibrate one clock by another.
        text.push_str(" tsc=reliable no_timer_check");
        // The self-tests of the kernel's ciphers take half a second and are not needed.
        text.push_str(" cryptomgr.notests");
        text.extend(tsc_khz.map(|khz| format!(" tsc_early_khz={khz}")));
    }
    text.push_str(&format!(" {line}"));
    if !spec.command_line.is_empty() {
        text.push_str(&format!(" {}", spec.command_line));
    }
    text
}

/// All command-line arguments with which QEMU is started for a guest.
pub(super) fn arguments(order: &MachineOrder<'_>, channel: HostChannel, tsc_khz: Option<u32>) -> Vec<String> {
    let (spec, directory) = (order.spec, order.directory.display());
    let mut words = Words::default();
    words.pair("-name", format!("tailbound-{},debug-threads=on", spec.name));
    words.0.extend(base(spec, order.kvm, &order.kernel.image, order.initramfs));
    words.pair("-qmp", format!("unix:{directory}/qmp.sock,server=on,wait=off"));
    // A QMP socket has one client at a time; this second socket is for users who want to inspect the guest.
    words.pair("-qmp", format!("unix:{directory}/monitor.sock,server=on,wait=off"));
    if order.mode == Mode::Shell {
        words.pair("-chardev", "stdio,id=console,signal=off");
    } else {
        words.add("-S");
        words.pair("-chardev", format!("file,id=console,path={}", console::file(order.directory).display()));
    }
    words.pair("-serial", "chardev:console");
    let channel = match channel {
        HostChannel::Ports(count) => {
            words.pair("-device", "virtio-serial-pci,id=ports,max_ports=31,vectors=2");
            for port in 1..=count {
                let at = socket(order.directory, port);
                words.pair("-chardev", format!("socket,id=p{port},path={},server=on,wait=off", at.display()));
                words.pair("-device", format!("virtserialport,bus=ports.0,nr={port},chardev=p{port}"));
            }
            Channel::Ports(count)
        }
        HostChannel::Tcp(port) => {
            let (mac, inside) = CONTROL;
            words.pair("-netdev", format!("user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:{inside}"));
            words.pair("-device", format!("virtio-net-pci,netdev=control,mac={mac},romfile="));
            Channel::Tcp(mac, inside)
        }
    };
    for (number, nic) in order.nics.iter().enumerate() {
        match (netdev(number, &nic.plug), nic.line.card) {
            (Some(netdev), Card::Made(mac)) => {
                words.pair("-netdev", netdev);
                words.pair("-device", card(number, mac, nic.line.mtu, spec));
            }
            // The ROM of the card is not needed, because the machine does not boot over the card.
            _ => words.0.extend(device(&nic.plug).into_iter().flat_map(|device| ["-device".to_owned(), device])),
        }
    }
    let line = Line {
        name: spec.name.clone(),
        mode: order.mode,
        channel: (order.mode == Mode::Agents).then_some(channel),
        nics: order.nics.iter().map(|n| n.line.clone()).collect(),
        irq_cpus: spec.irq_cpus.clone(),
    };
    words.pair("-append", kernel_line(spec, order.kvm, tsc_khz, &line));
    words.0
}

fn device(plug: &Plug) -> Option<String> {
    match plug {
        Plug::Device(device) => Some(format!("vfio-pci,host={device},rombar=0")),
        Plug::Tap { .. } | Plug::Datagram { .. } => None,
    }
}

/// The argument of QEMU for the network backend of an emulated card; `None` for a card that is passed through.
fn netdev(number: usize, plug: &Plug) -> Option<String> {
    let list =
        |fds: &[std::os::fd::OwnedFd]| fds.iter().map(|fd| fd.as_raw_fd().to_string()).collect::<Vec<_>>().join(":");
    Some(match plug {
        Plug::Device(_) => return None,
        Plug::Tap { fds, vhost_fds: None } => format!("tap,id=n{number},fds={}", list(fds)),
        Plug::Tap { fds, vhost_fds: Some(vhost) } => {
            format!("tap,id=n{number},fds={},vhost=on,vhostfds={}", list(fds), list(vhost))
        }
        Plug::Datagram { local, remote } => format!(
            "dgram,id=n{number},local.type=unix,local.path={},remote.type=unix,remote.path={}",
            local.display(),
            remote.display()
        ),
    })
}

/// Largest MTU in bytes for which the guest's driver has buffers if offloads are off, unless the card reports a larger
/// MTU (`virtnet_set_big_packets` in drivers/net/virtio_net.c).
const USUAL_MTU: u32 = 1500;

fn card(number: usize, mac: Mac, mtu: u32, spec: &VmSpec) -> String {
    let mut text = format!("virtio-net-pci,netdev=n{number},mac={mac},romfile=");
    if spec.queues > 1 {
        // Two vectors for each pair of queues, one for the control queue, one for the configuration.
        text.push_str(&format!(",mq=on,vectors={}", 2 * spec.queues + 2));
    }
    if !spec.offloads {
        OFFLOADS.iter().for_each(|name| text.push_str(&format!(",{name}=off")));
        if mtu > USUAL_MTU {
            text.push_str(&format!(",host_mtu={mtu}"));
        }
    }
    text
}

#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, words: &str) {
        self.0.extend(words.split(' ').map(str::to_owned));
    }

    fn pair(&mut self, key: &str, value: impl Into<String>) {
        self.0.extend([key.to_owned(), value.into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::line::NicLine;
    use crate::machine::Nic;
    use std::net::Ipv4Addr;
    use std::path::Path;
    use tailbound_model::Accelerator;

    fn shown(spec: &VmSpec, channel: HostChannel, plug: Plug) -> String {
        let kernel = Kernel { version: "6.1".into(), image: "/cache/vmlinux".into(), modules: None };
        let card = match plug {
            Plug::Device(_) => Card::Passed,
            _ => Card::Made(Mac([0x52, 0x54, 0, 0, 0, 1])),
        };
        let line = NicLine { card, address: Ipv4Addr::new(10, 177, 0, 1), prefix: 24, mtu: 1500, vlan: None };
        let order = MachineOrder {
            spec,
            kvm: spec.accelerator == Accelerator::Kvm,
            kernel: &kernel,
            initramfs: Path::new("/cache/initramfs"),
            directory: Path::new("/run/g"),
            nics: vec![Nic { line, plug }],
            token: "t",
            mode: Mode::Agents,
            agents: 2,
            snapshots: None,
        };
        let text = arguments(&order, channel, Some(2_600_000)).join(" ");
        text.replace(" -", "\n-")
    }

    #[test]
    fn a_machine_has_the_requested_arguments() {
        let plain = VmSpec { name: "ping".into(), accelerator: Accelerator::Emulated, ..VmSpec::default() };
        let datagram = Plug::Datagram { local: "/run/a".into(), remote: "/run/b".into() };
        insta::assert_snapshot!("plain", shown(&plain, HostChannel::Ports(2), datagram));
        let tuned = VmSpec {
            vcpus: 4,
            memory_mib: 1024,
            huge_pages: true,
            lock_memory: true,
            queues: 2,
            irq_cpus: Some("0-1".parse().unwrap()),
            offloads: true,
            command_line: "isolcpus=1".into(),
            accelerator: Accelerator::Kvm,
            ..plain
        };
        let devices = || ["/dev/null", "/dev/zero"].map(|f| std::fs::File::open(f).unwrap().into()).to_vec_of_fds();
        let plug = Plug::Tap { fds: devices(), vhost_fds: Some(devices()) };
        let Plug::Tap { fds, vhost_fds: Some(vhost) } = &plug else { unreachable!() };
        let numbers: Vec<i32> = fds.iter().chain(vhost).map(AsRawFd::as_raw_fd).collect();
        let text = shown(&tuned, HostChannel::Tcp(40007), plug);
        let given = format!("fds={}:{},vhost=on,vhostfds={}:{}", numbers[0], numbers[1], numbers[2], numbers[3]);
        assert!(text.contains(&given), "{text}");
        insta::assert_snapshot!("tuned", text.replace(&given, "fds=A:B,vhost=on,vhostfds=C:D"));
    }

    #[test]
    fn a_card_without_offloads_reports_an_mtu_that_needs_larger_buffers() {
        let (plain, offloads) = (VmSpec::default(), VmSpec { offloads: true, ..VmSpec::default() });
        let reports = |mtu, spec: &VmSpec| card(0, Mac([0x52, 0x54, 0, 0, 0, 1]), mtu, spec).contains("host_mtu=");
        assert!(card(0, Mac([0x52, 0x54, 0, 0, 0, 1]), 9000, &plain).ends_with(",guest_announce=off,host_mtu=9000"));
        assert!(!reports(1500, &plain) && !reports(9000, &offloads));
    }

    /// Test: a passed-through card has no network backend in QEMU, and the guest looks for a card that is not a virtio
    /// card.
    #[test]
    fn a_card_of_this_host_is_passed_through() {
        let spec = VmSpec { name: "ping".into(), modules: vec!["igb".into()], ..VmSpec::default() };
        let text = shown(&spec, HostChannel::Ports(2), Plug::Device("0000:03:00.0".into()));
        assert!(text.contains("\n-device vfio-pci,host=0000:03:00.0,rombar=0\n"), "{text}");
        assert!(text.contains("tailbound.nic=passed,10.177.0.1/24,1500"), "{text}");
        assert!(!text.contains("-netdev") && !text.contains("virtio-net"), "{text}");
    }

    trait ToVec {
        fn to_vec_of_fds(self) -> Vec<std::os::fd::OwnedFd>;
    }
    impl ToVec for [std::os::fd::OwnedFd; 2] {
        fn to_vec_of_fds(self) -> Vec<std::os::fd::OwnedFd> {
            self.into_iter().collect()
        }
    }
}
