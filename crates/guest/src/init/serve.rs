//! Services that run in a guest until it ends: the holder of agents (a process that starts agents and keeps them while
//! connections are broken), and the ports that lead to the holder.

use super::console::{ready, say};
use super::{interfaces, relay};
use crate::line::{Channel, Line};
use crate::ports::PORT_NAMES;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

const HOLDER: &str = "/run/tailbound/agent.sock";
/// Lease of the holder of agents: if no client connects to the holder for this time, the holder ends, and a new holder
/// is started. Agents have shorter leases of their own.
const LEASE: &str = "10 min";
/// Longest time until the holder of agents listens and all ports exist.
const APPEAR: Duration = Duration::from_secs(60);
/// Longest wait for the guest's kernel to finish calibrating its clock.
const SETTLES: Duration = Duration::from_secs(20);
/// Time without a new port after which all ports of the guest are taken to exist; ports appear one after the other.
const LAST: Duration = Duration::from_millis(500);
/// If no port of the guest has appeared within this time, the guest is taken to have no ports.
const NONE: Duration = Duration::from_secs(5);
/// Stack size in bytes of the threads that copy bytes between a port and the holder of agents.
const STACK: usize = 256 << 10;

/// Starts the holder of agents, and connects the holder to each connection that the host opens, until the guest ends.
///
/// # Errors
/// The guest has no channel to the host.
pub fn serve() -> io::Result<()> {
    let line = Line::read(&std::fs::read_to_string("/proc/cmdline")?).map_err(io::Error::other)?;
    serve_by(line.channel.ok_or_else(|| io::Error::other("the guest's kernel command line names no channel"))?)
}

/// Starts the holder of agents in a virtual machine that the user has set up, and connects the holder to the ports of
/// the machine that have names of Tailbound.
///
/// # Errors
/// The machine has no ports with Tailbound's names.
pub fn serve_named() -> io::Result<()> {
    if let Some(directory) = Path::new(HOLDER).parent() {
        std::fs::create_dir_all(directory)?;
    }
    serve_by(Channel::Named)
}

fn serve_by(channel: Channel) -> io::Result<()> {
    // Without ports nothing is started.
    let named = if channel == Channel::Named { named_ports()? } else { Vec::new() };
    let mut holder = hold()?;
    let listening = Instant::now();
    while UnixStream::connect(HOLDER).is_err() {
        if holder.try_wait()?.is_some() || listening.elapsed() > APPEAR {
            return Err(io::Error::other("the holder of agents does not start"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    clock_settled();
    match channel {
        Channel::Ports(count) => serve_all(ports(count as usize)?)?,
        Channel::Named => serve_all(named)?,
        Channel::Tcp(_, port) => {
            let listener = TcpListener::bind((interfaces::CONTROL, port))
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))?;
            detached(move || {
                for stream in listener.incoming().flatten() {
                    // After an error the host connects again.
                    let _ = detached(move || drop(greet_and_join(stream)));
                }
            })?;
        }
    }
    ready();
    loop {
        let ended = holder.wait()?;
        say(&format!("tailbound guest: the holder of agents ended ({ended}), a new one is started"));
        holder = hold()?;
    }
}

fn serve_all(ports: Vec<PathBuf>) -> io::Result<()> {
    for port in ports {
        detached(move || {
            loop {
                if let Err(e) = serve_port(&port) {
                    say(&format!("tailbound guest: {}: {e}", port.display()));
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
        })?;
    }
    Ok(())
}

fn hold() -> io::Result<Child> {
    tailbound_host::own_program()?.args(["agent", "hold", "--socket", HOLDER, "--lease", LEASE]).spawn()
}

fn detached(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().stack_size(STACK).spawn(job).map(drop)
}

/// Waits until the guest's kernel has calibrated its clock: about a second after the boot the kernel measures the clock
/// again and changes its rate, which would falsify a measurement.
fn clock_settled() {
    let current = || std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let begin = Instant::now();
    while current().is_ok_and(|name| name.trim() == "tsc-early") && begin.elapsed() < SETTLES {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Device files of all virtio-serial ports of the guest. The ports are not found by name, because the guest has no
/// udev, and because QEMU sends names and open events over a short queue and drops the events that do not fit into it.
fn ports(count: usize) -> io::Result<Vec<PathBuf>> {
    let begin = Instant::now();
    loop {
        let entries = std::fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten();
        let there: Vec<PathBuf> = entries.map(|e| Path::new("/dev").join(e.file_name())).collect();
        let late = begin.elapsed() > APPEAR;
        match there.len() {
            all if all >= count => return Ok(there),
            0 if late => return Err(io::Error::other("there is no virtio-serial port")),
            some if late => {
                say(&format!("tailbound guest: only {some} of {count} virtio-serial ports exist"));
                return Ok(there);
            }
            _ => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Device files of the virtio-serial ports that have Tailbound's names. A machine with few ports receives all names
/// from QEMU.
fn named_ports() -> io::Result<Vec<PathBuf>> {
    let begin = Instant::now();
    let mut last = (0, begin);
    loop {
        let entries = std::fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten();
        let named = entries.filter(|entry| {
            std::fs::read_to_string(entry.path().join("name")).is_ok_and(|name| name.starts_with(PORT_NAMES))
        });
        let there: Vec<PathBuf> = named.map(|e| Path::new("/dev").join(e.file_name())).collect();
        if there.len() != last.0 {
            last = (there.len(), Instant::now());
        }
        match last {
            (1.., since) if since.elapsed() > LAST => return Ok(there),
            (0, begin) if begin.elapsed() > NONE => {
                let text = format!(
                    "this machine has no virtio-serial port named {PORT_NAMES}.*: add virtio-serial channels with such \
                     names to the machine"
                );
                return Err(io::Error::other(text));
            }
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn serve_port(port: &Path) -> io::Result<()> {
    greet_and_join(File::options().read(true).write(true).open(port)?)
}

/// Sends the greeting to the host and then copies bytes between the host and the process that runs the agents, until either of
/// them ends. On a virtio-serial port, sending the greeting waits until the host has opened the port.
fn greet_and_join(mut host: impl io::Read + io::Write + AsFd) -> io::Result<()> {
    host.write_all(crate::ports::GREETING)?;
    fcntl(&host, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // While the holder is being replaced, nothing listens on its socket.
    let Ok(mut holder) = UnixStream::connect(HOLDER) else {
        std::thread::sleep(Duration::from_millis(100));
        return Ok(());
    };
    holder.set_nonblocking(true)?;
    match relay::join(&mut host, &mut holder) {
        Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
        joined => joined,
    }
}
