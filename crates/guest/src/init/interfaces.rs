//! Sets up the network interfaces of a guest as described on its kernel command line.

use crate::line::{Card, Channel, Line, NicLine};
use rtnetlink::{Error, Handle, LinkUnspec, LinkVlan, QosMapping, RouteMessageBuilder, new_connection};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tailbound_model::{CpuList, VlanSpec};

/// Address of the guest in QEMU's user-mode network, which is not measured.
pub(super) const CONTROL: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// Longest time until a network card appears after its driver was loaded.
const APPEARS: Duration = Duration::from_secs(5);

/// Longest time until a physical network card has a carrier after it was set up.
const AGREES: Duration = Duration::from_secs(10);

/// Sets up each network interface of the guest with its address. If there is a VLAN on top of the interface, the VLAN
/// interface gets the address.
pub(super) fn set_up(line: &Line) -> io::Result<()> {
    let measured: Vec<(NicLine, String)> =
        line.nics.iter().map(|nic| Ok((nic.clone(), named(nic.card)?))).collect::<io::Result<_>>()?;
    let control = match line.channel {
        Some(Channel::Tcp(mac, _)) => Some(named(Card::Made(mac))?),
        _ => None,
    };
    for name in measured.iter().map(|(_, name)| name).chain(&control) {
        without_ipv6(name)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime
        .block_on(async {
            let (connection, handle, _messages) = new_connection().map_err(|e| Error::NamespaceError(e.to_string()))?;
            tokio::spawn(connection);
            bring_up(&handle, "lo", None, None).await?;
            for (nic, name) in &measured {
                let address = Some((nic.address, nic.prefix));
                let Some(vlan) = &nic.vlan else {
                    bring_up(&handle, name, Some(nic.mtu), address).await?;
                    multicast(&handle, name).await?;
                    continue;
                };
                bring_up(&handle, name, Some(nic.mtu), None).await?;
                let on_top = add_vlan(&handle, name, vlan).await?;
                bring_up(&handle, &on_top, None, address).await?;
                multicast(&handle, &on_top).await?;
            }
            match &control {
                Some(name) => bring_up(&handle, name, None, Some((CONTROL, 24))).await,
                None => Ok(()),
            }
        })
        .map_err(|e: Error| io::Error::other(format!("the interfaces of the guest cannot be set up: {e}")))?;
    measured.iter().filter(|(nic, _)| nic.card == Card::Passed).for_each(|(_, name)| wait_for_carrier(name));
    match &line.irq_cpus {
        Some(cpus) => measured.iter().try_for_each(|(_, name)| place_interrupts(name, cpus)),
        None => Ok(()),
    }
}

/// Name of the network interface of the given card in the guest; waits until the card appears.
fn named(card: Card) -> io::Result<String> {
    let begin = Instant::now();
    loop {
        if let Some(name) = found(card, Path::new("/sys/class/net"))? {
            return Ok(name);
        }
        if begin.elapsed() > APPEARS {
            let text = match card {
                Card::Made(mac) => format!("no network interface has the hardware address {mac}"),
                Card::Passed => "the passed-through card has no interface: add the card's driver to `modules`".into(),
            };
            return Err(io::Error::other(text));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Finds the network interface of the given card in a directory like /sys/class/net.
fn found(card: Card, interfaces: &Path) -> io::Result<Option<String>> {
    let is_it = |at: &Path| match card {
        Card::Made(mac) => std::fs::read_to_string(at.join("address")).unwrap_or_default().trim() == mac.to_string(),
        // Virtual devices of the kernel have no driver on a bus.
        Card::Passed => std::fs::read_link(at.join("device/driver"))
            .is_ok_and(|driver| driver.file_name().is_some_and(|name| name != "virtio_net")),
    };
    let mut all = std::fs::read_dir(interfaces)?.flatten();
    Ok(all.find(|entry| is_it(&entry.path())).map(|entry| entry.file_name().to_string_lossy().into_owned()))
}

/// Waits until the link of a physical network card is up, which takes seconds.
fn wait_for_carrier(name: &str) {
    let begin = Instant::now();
    // If the link stays down, the path check reports it.
    while begin.elapsed() < AGREES {
        let carrier = std::fs::read_to_string(format!("/sys/class/net/{name}/carrier")).unwrap_or_default();
        if carrier.trim() == "1" {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn without_ipv6(name: &str) -> io::Result<()> {
    match std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1") {
        // A kernel without IPv6 has nothing to switch off.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

async fn index(handle: &Handle, name: &str) -> Result<u32, Error> {
    use futures_util::TryStreamExt;
    let mut links = std::pin::pin!(handle.link().get().match_name(name.to_owned()).execute());
    Ok(links.try_next().await?.ok_or(Error::RequestFailed)?.header.index)
}

async fn bring_up(handle: &Handle, name: &str, mtu: Option<u32>, address: Option<(Ipv4Addr, u8)>) -> Result<(), Error> {
    if let Some(mtu) = mtu {
        handle.link().change(LinkUnspec::new_with_name(name).mtu(mtu).build()).execute().await?;
    }
    if let Some((address, prefix)) = address {
        let index = index(handle, name).await?;
        handle.address().add(index, IpAddr::V4(address), prefix).execute().await?;
    }
    handle.link().change(LinkUnspec::new_with_name(name).up().build()).execute().await
}

/// Makes a VLAN interface on top of another interface and returns its name.
async fn add_vlan(handle: &Handle, below: &str, vlan: &VlanSpec) -> Result<String, Error> {
    let name = format!("{below}.{}", vlan.id);
    let egress = vlan.egress.iter().map(|(from, to)| QosMapping { from: *from, to: u32::from(*to) });
    let link = LinkVlan::new(&name, index(handle, below).await?, vlan.id).qos([], egress).build();
    handle.link().add(link).execute().await?;
    without_ipv6(&name).map_err(|e| Error::NamespaceError(format!("IPv6 of {name}: {e}")))?;
    Ok(name)
}

async fn multicast(handle: &Handle, name: &str) -> Result<(), Error> {
    let route = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(Ipv4Addr::new(224, 0, 0, 0), 4)
        .output_interface(index(handle, name).await?)
        .build();
    handle.route().add(route).execute().await
}

/// Restricts the interrupts of a network card to the given CPUs.
fn place_interrupts(name: &str, cpus: &CpuList) -> io::Result<()> {
    let device = PathBuf::from(format!("/sys/class/net/{name}/device")).canonicalize()?;
    // The virtio device lies below the bus device, which has the interrupts.
    let above = device.parent().ok_or(io::ErrorKind::NotFound)?;
    let bus = if device.join("msi_irqs").exists() { &device } else { above };
    let failed =
        |what: String| io::Error::other(format!("the interrupts of {name} cannot be assigned to CPU {cpus}: {what}"));
    let irqs =
        std::fs::read_dir(bus.join("msi_irqs")).map_err(|e| failed(format!("the card has no interrupts ({e})")))?;
    let irqs: Vec<OsString> = irqs.flatten().map(|e| e.file_name()).collect();
    place(&irqs, Path::new("/proc/irq"), cpus).map_err(failed)
}

/// Sets the CPUs that may receive the interrupts, and reads them back; if they differ, the error contains the reason.
fn place(irqs: &[OsString], at: &Path, cpus: &CpuList) -> Result<(), String> {
    if irqs.is_empty() {
        return Err("the card has no interrupts".into());
    }
    for irq in irqs {
        let (number, file) = (irq.display(), at.join(irq).join("smp_affinity_list"));
        let failed = |e: io::Error| format!("interrupt {number}: {e}");
        std::fs::write(&file, cpus.to_string()).map_err(failed)?;
        let has = std::fs::read_to_string(&file).map_err(failed)?;
        if has.trim().parse().as_ref() != Ok(cpus) {
            return Err(format!("interrupt {number} goes to CPU {}", has.trim()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_found_by_its_address_or_by_not_being_of_virtio() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let mac = "52:54:00:00:00:07";
        for (name, address, driver) in
            [("lo", "00:00:00:00:00:00", None), ("eth0", mac, Some("virtio_net")), ("eth1", "a0:36:9f:00:00:01", None)]
        {
            std::fs::create_dir_all(dir.path().join(name).join("device")).unwrap();
            std::fs::write(dir.path().join(name).join("address"), format!("{address}\n")).unwrap();
            if let Some(driver) = driver {
                symlink(format!("../drivers/{driver}"), dir.path().join(name).join("device/driver")).unwrap();
            }
        }
        let name = |card| found(card, dir.path()).unwrap();
        assert_eq!(name(Card::Made(mac.parse().unwrap())).as_deref(), Some("eth0"));
        assert_eq!(name(Card::Made("52:54:00:00:00:08".parse().unwrap())), None);
        assert_eq!(name(Card::Passed), None, "the card has no driver yet");
        symlink("../drivers/igb", dir.path().join("eth1/device/driver")).unwrap();
        assert_eq!(name(Card::Passed).as_deref(), Some("eth1"));
    }

    #[test]
    fn an_interrupt_on_another_cpu_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let cpus: CpuList = "0-1".parse().unwrap();
        let placed = |irqs: &[&str]| place(&irqs.iter().map(OsString::from).collect::<Vec<_>>(), dir.path(), &cpus);
        for irq in ["24", "25"] {
            std::fs::create_dir(dir.path().join(irq)).unwrap();
        }
        std::fs::write(dir.path().join("24/smp_affinity_list"), "3\n").unwrap();
        assert_eq!(placed(&["24"]), Ok(()));
        // /dev/null accepts what is written and reads as empty.
        std::os::unix::fs::symlink("/dev/null", dir.path().join("25/smp_affinity_list")).unwrap();
        assert_eq!(placed(&["24", "25"]).unwrap_err(), "interrupt 25 goes to CPU ");
        assert!(placed(&["24", "26"]).unwrap_err().starts_with("interrupt 26: No such file"));
        assert_eq!(placed(&[]).unwrap_err(), "the card has no interrupts");
    }
}
