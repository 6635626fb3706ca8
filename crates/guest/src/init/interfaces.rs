//! The interfaces of a guest, by what its command line says of them.

use crate::line::{Channel, Line, Mac, NicLine};
use rtnetlink::{Error, Handle, LinkUnspec, RouteMessageBuilder, new_connection};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tailbound_model::CpuList;

/// The address that QEMU's user-mode network has for the guest.
pub(super) const CONTROL: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// A card is there within this time after its driver.
const APPEARS: Duration = Duration::from_secs(5);

/// Gives each interface its address, and sets it up.
pub(super) fn set_up(line: &Line) -> io::Result<()> {
    let measured: Vec<(NicLine, String)> =
        line.nics.iter().map(|nic| Ok((*nic, named(nic.mac)?))).collect::<io::Result<_>>()?;
    let control = match line.channel {
        Some(Channel::Tcp(mac, _)) => Some(named(mac)?),
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
                bring_up(&handle, name, Some(nic.mtu), Some((nic.address, nic.prefix))).await?;
                multicast(&handle, name).await?;
            }
            match &control {
                Some(name) => bring_up(&handle, name, None, Some((CONTROL, 24))).await,
                None => Ok(()),
            }
        })
        .map_err(|e: Error| io::Error::other(format!("its interfaces cannot be set up: {e}")))?;
    match &line.irq_cpus {
        Some(cpus) => measured.iter().try_for_each(|(_, name)| place_interrupts(name, cpus)),
        None => Ok(()),
    }
}

/// The name of the interface with this card.
fn named(mac: Mac) -> io::Result<String> {
    let begin = Instant::now();
    loop {
        for entry in std::fs::read_dir("/sys/class/net")?.flatten() {
            let address = std::fs::read_to_string(entry.path().join("address")).unwrap_or_default();
            if address.trim() == mac.to_string() {
                return Ok(entry.file_name().to_string_lossy().into_owned());
            }
        }
        if begin.elapsed() > APPEARS {
            return Err(io::Error::other(format!("no interface has the card {mac}")));
        }
        std::thread::sleep(Duration::from_millis(2));
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

async fn multicast(handle: &Handle, name: &str) -> Result<(), Error> {
    let route = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(Ipv4Addr::new(224, 0, 0, 0), 4)
        .output_interface(index(handle, name).await?)
        .build();
    handle.route().add(route).execute().await
}

/// Confines the interrupts of a card to CPUs. One that the kernel does not let go anywhere else is not of a queue.
fn place_interrupts(name: &str, cpus: &CpuList) -> io::Result<()> {
    // The device of virtio lies below that of the bus, which has the interrupts.
    let bus = PathBuf::from(format!("/sys/class/net/{name}/device")).canonicalize()?;
    let bus = bus.parent().ok_or(io::ErrorKind::NotFound)?;
    let mut placed = 0;
    for entry in std::fs::read_dir(bus.join("msi_irqs"))?.flatten() {
        let irq = entry.file_name();
        let file = PathBuf::from("/proc/irq").join(&irq).join("smp_affinity_list");
        placed += i32::from(std::fs::write(file, cpus.to_string()).is_ok());
    }
    match placed {
        0 => Err(io::Error::other(format!("no interrupt of {name} can be given to CPU {cpus}"))),
        _ => Ok(()),
    }
}
