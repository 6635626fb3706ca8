//! What runs in a guest as long as it is there: the holder of agents, and the ports that lead to it.

use super::{ready, say};
use crate::init::{interfaces, relay};
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
/// A holder that nobody speaks with ends, and another one takes its place. Agents have shorter leases of their own.
const LEASE: &str = "10 min";
/// The holder listens, and all ports are there, within this time.
const APPEAR: Duration = Duration::from_secs(60);
/// A clock that is measured for longer is left to those who measure with it.
const SETTLES: Duration = Duration::from_secs(20);
/// Ports come one after the other: with none for this long all are there, and where there is none at all none comes.
const LAST: Duration = Duration::from_millis(500);
const NONE: Duration = Duration::from_secs(5);
/// Stack of a thread that carries octets.
const STACK: usize = 256 << 10;

/// Holds agents and joins each connection of the host with them, until the guest ends.
///
/// # Errors
/// There is no way to speak with the host.
pub fn serve() -> io::Result<()> {
    let line = Line::read(&std::fs::read_to_string("/proc/cmdline")?).map_err(io::Error::other)?;
    serve_by(line.channel.ok_or_else(|| io::Error::other("its command line names no channel"))?)
}

/// The same in a machine that somebody else has set up: over its ports with the names for it.
///
/// # Errors
/// There are none.
pub fn serve_named() -> io::Result<()> {
    if let Some(directory) = Path::new(HOLDER).parent() {
        std::fs::create_dir_all(directory)?;
    }
    serve_by(Channel::Named)
}

fn serve_by(channel: Channel) -> io::Result<()> {
    // Where there are none, nothing is started.
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
                    // The host takes it up again.
                    let _ = detached(move || drop(greet_and_join(stream)));
                }
            })?;
        }
    }
    ready();
    loop {
        let ended = holder.wait()?;
        say(&format!("tailbound guest: the holder of agents ended ({ended}), another one begins"));
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

/// The kernel measures its clock once more in the second after the boot, and changes its speed then: a message on its way
/// would see a step.
fn clock_settled() {
    let current = || std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let begin = Instant::now();
    while current().is_ok_and(|name| name.trim() == "tsc-early") && begin.elapsed() < SETTLES {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The devices of all ports. They have no names: QEMU tells of ports, names and openings by a short queue, and drops what
/// does not fit. There is no udev either that would make links.
fn ports(count: usize) -> io::Result<Vec<PathBuf>> {
    let begin = Instant::now();
    loop {
        let entries = std::fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten();
        let there: Vec<PathBuf> = entries.map(|e| Path::new("/dev").join(e.file_name())).collect();
        let late = begin.elapsed() > APPEAR;
        match there.len() {
            all if all >= count => return Ok(there),
            0 if late => return Err(io::Error::other("there is no port of virtio-serial")),
            some if late => {
                say(&format!("tailbound guest: {some} of {count} ports are there"));
                return Ok(there);
            }
            _ => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// The devices of the ports that have names for it; of few ports QEMU tells the names.
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
                let text =
                    format!("this machine has no port of virtio-serial named {PORT_NAMES}.*: add channels to it");
                return Err(io::Error::other(text));
            }
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn serve_port(port: &Path) -> io::Result<()> {
    greet_and_join(File::options().read(true).write(true).open(port)?)
}

/// Says the greeting, which on a port takes until the host has opened it, and carries octets to the holder and back until
/// either side ends.
fn greet_and_join(mut host: impl io::Read + io::Write + AsFd) -> io::Result<()> {
    host.write_all(crate::ports::GREETING)?;
    fcntl(&host, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // While another holder takes the place of one that has ended there is none.
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
