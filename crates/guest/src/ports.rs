//! The host side of streams to a guest: ports of virtio-serial, each of which is a socket of QEMU, or TCP connections.
//!
//! A port carries one connection at a time, which a file lock ensures. Two messages tell the guest that a connection
//! has ended and that the next connection has begun; a slow reader in the guest can miss both. Therefore the port that
//! was unused for the longest time is taken, and a connection is used only after the guest has sent [`GREETING`] over
//! it.

use crate::error::{file_error, guest_error};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tailbound_model::Problem;

/// The first bytes (greeting) that a guest sends on each connection.
pub const GREETING: &[u8; 16] = b"tailbound guest\n";
/// Beginning of the names of virtio-serial ports that lead to agents, in libvirt domains that the user has set up.
pub const PORT_NAMES: &str = "org.tailbound.agent";
/// Minimum number of ports in a libvirt domain of the user: for two agents of ends, for the host agent of the domain,
/// and one port that is not in use.
const FEWEST_NAMED: usize = 4;
/// Minimum number of virtio-serial ports of a guest. A guest has more ports than agents, because a new agent can start
/// before an old port is free.
const FEWEST: u32 = 16;
/// Maximum number of virtio-serial ports of a guest: the control queue of virtio-serial has 32 entries.
const MOST: u32 = 30;
/// Number of virtio-serial ports that a guest has in addition to the number of its agents.
const SPARE: u32 = 4;
/// Name of the file, in the directory of a virtual machine, that says how the virtual machine is reached.
const CHANNEL: &str = "channel.json";

/// The channel by which a virtual machine is reached, as stored in its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostChannel {
    /// The virtual machine is reached over virtio-serial ports and has this number of ports.
    Ports(u32),
    /// The virtual machine is reached over a TCP port on the loopback interface of this host.
    Tcp(u16),
}

impl HostChannel {
    pub fn write(self, directory: &Path) -> io::Result<()> {
        std::fs::write(directory.join(CHANNEL), serde_json::to_vec(&self)?)
    }

    pub fn read(directory: &Path) -> io::Result<HostChannel> {
        Ok(serde_json::from_slice(&std::fs::read(directory.join(CHANNEL))?)?)
    }
}

/// Number of virtio-serial ports for a guest with at most `agents` agents at a time. The number is small, because an
/// emulated guest needs much time to find each port.
///
/// # Errors
/// The guest needs more agents than virtio-serial supports.
pub(crate) fn count(agents: u32) -> Result<u32, Problem> {
    match agents.saturating_add(SPARE) {
        ports if ports <= MOST => Ok(ports.max(FEWEST)),
        _ => Err(guest_error(
            format!("{agents} agents at a time are needed in the guest, but virtio-serial supports {}", MOST - SPARE),
            "reach the guest with `channel: tcp`",
        )),
    }
}

/// Makes the ports of a libvirt domain of the user available in a directory: `sockets` are the sockets of the ports,
/// and `agents` is the number of agents at a time.
///
/// # Errors
/// There are too few ports, or the directory cannot be written.
pub fn join_ports(directory: &Path, sockets: &[PathBuf], agents: u32) -> Result<(), Problem> {
    // A new agent can start before an old port is free.
    let needed = (agents as usize + 1).max(FEWEST_NAMED);
    if sockets.len() < needed {
        let what = match sockets.len() {
            0 => format!("the domain has no virtio-serial channel named {PORT_NAMES}.*"),
            some => {
                format!("the domain has {some} virtio-serial channels named {PORT_NAMES}.*, but {needed} are needed")
            }
        };
        let remedy =
            "add channels as in the output of `tailbound lab export --format libvirt`, or reach the domain by `ssh`";
        return Err(guest_error(what, remedy));
    }
    for (port, at) in (1..).zip(sockets) {
        let link = socket(directory, port);
        std::os::unix::fs::symlink(at, &link).map_err(file_error("make", &link))?;
    }
    let count = HostChannel::Ports(sockets.len() as u32);
    count.write(directory).map_err(file_error("write in", directory))
}

/// Waits until `tailbound guest serve` answers on the ports of a directory.
///
/// # Errors
/// There was no answer within `limit`, or `given_up` ended the waiting.
pub fn await_ports(directory: &Path, limit: Duration, given_up: &dyn Fn() -> bool) -> Result<(), Problem> {
    let over = || given_up().then(|| guest_error("waiting for the guest was given up", ""));
    await_answer(directory, limit, &over, &|e| {
        let what = format!("there was no answer over the channels of the domain for {} s ({e})", limit.as_secs());
        guest_error(what, "start `tailbound guest serve` in the domain, as root")
    })
}

/// Waits until the guest answers. `over` is called twice a second, and returns an error if the waiting must end early.
/// If there is no answer within `limit`, `late` makes the error.
pub(crate) fn await_answer(
    directory: &Path,
    limit: Duration,
    over: &dyn Fn() -> Option<Problem>,
    late: &dyn Fn(io::Error) -> Problem,
) -> Result<(), Problem> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Each attempt is short, so that an early end is noticed at once.
        match connect(directory, left.clamp(Duration::from_millis(1), Duration::from_millis(500))) {
            Ok(_) => return Ok(()),
            Err(not_connected) => {
                if let Some(e) = over() {
                    return Err(e);
                }
                match not_connected {
                    NotConnected::Silent(e) | NotConnected::Gone(e) if left.is_zero() => return Err(late(e)),
                    NotConnected::Gone(_) => std::thread::sleep(Duration::from_millis(20)),
                    NotConnected::Silent(_) => {}
                }
            }
        }
    }
}

/// Path of the socket on the host for a virtio-serial port of a guest.
pub(crate) fn socket(directory: &Path, port: u32) -> PathBuf {
    directory.join(format!("p{port}"))
}

/// A connection to a guest on which the guest has sent its greeting.
#[derive(Debug)]
pub(crate) enum Connected {
    /// A connection over a virtio-serial port, with the lock of the port.
    Port(UnixStream, File),
    Tcp(TcpStream),
}

/// Reason why a connection to a guest could not be opened.
#[derive(Debug)]
pub(crate) enum NotConnected {
    /// No process listens on the socket of the guest, because QEMU has ended.
    Gone(io::Error),
    /// The guest has not answered within the time limit.
    Silent(io::Error),
}

/// Connects to the guest whose virtual machine uses `directory`, and waits at most `limit` for the greeting of the
/// guest.
pub(crate) fn connect(directory: &Path, limit: Duration) -> Result<Connected, NotConnected> {
    match HostChannel::read(directory).map_err(NotConnected::Gone)? {
        HostChannel::Ports(count) => {
            let lock = take(directory, count).map_err(NotConnected::Silent)?;
            let stream = UnixStream::connect(socket(directory, lock.0)).map_err(NotConnected::Gone)?;
            let timed = stream.set_read_timeout(Some(limit)).and_then(|()| greeted(&stream));
            timed.and_then(|()| stream.set_read_timeout(None)).map_err(NotConnected::Silent)?;
            Ok(Connected::Port(stream, lock.1))
        }
        HostChannel::Tcp(port) => {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(NotConnected::Gone)?;
            let timed = stream.set_read_timeout(Some(limit)).and_then(|()| greeted(&stream));
            let ready = timed.and_then(|()| stream.set_read_timeout(None)).and_then(|()| stream.set_nodelay(true));
            ready.map_err(NotConnected::Silent)?;
            Ok(Connected::Tcp(stream))
        }
    }
}

fn greeted(mut stream: impl Read) -> io::Result<()> {
    let mut received = [0; GREETING.len()];
    match stream.read_exact(&mut received) {
        Ok(()) if received == *GREETING => Ok(()),
        // These bytes are left from an earlier connection.
        Ok(()) => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the first bytes from the guest are not its greeting"))
        }
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "the guest sent nothing"))
        }
        Err(e) => Err(e),
    }
}

/// Locks a virtio-serial port of the guest: of the ports that are free, the one that was unused for the longest time.
fn take(directory: &Path, count: u32) -> io::Result<(u32, File)> {
    let mut ports = Vec::new();
    for port in 1..=count {
        let path = directory.join(format!("p{port}.lock"));
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        ports.push((file.metadata()?.modified()?, port, file));
    }
    ports.sort_by_key(|(used, port, _)| (*used, *port));
    for (_, port, file) in ports {
        if file.try_lock().is_ok() {
            file.set_modified(SystemTime::now())?;
            return Ok((port, file));
        }
    }
    let text = format!("all {count} ports of the guest are in use");
    Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_number_of_ports_follows_the_number_of_agents() {
        assert_eq!([0, 2, 12, 13, 26].map(|agents| count(agents).unwrap()), [16, 16, 16, 17, 30]);
        let refused = count(27).unwrap_err().paragraph();
        assert_eq!(
            refused,
            "27 agents at a time are needed in the guest, but virtio-serial supports 26\n  help: reach the guest with `channel: tcp`"
        );
    }

    #[test]
    fn ports_of_a_users_domain_are_used_if_there_are_enough() {
        let dir = tempfile::tempdir().unwrap();
        let at = |n: usize| (0..n).map(|n| dir.path().join(format!("there{n}"))).collect::<Vec<_>>();
        let refused = |n| join_ports(dir.path(), &at(n), 2).unwrap_err().paragraph();
        insta::assert_snapshot!("no_channels", refused(0));
        insta::assert_snapshot!("few_channels", refused(3));
        let many = join_ports(dir.path(), &at(8), 11).unwrap_err().paragraph();
        assert!(many.contains("8 virtio-serial channels") && many.contains("12 are needed"), "{many}");
        join_ports(dir.path(), &at(4), 2).unwrap();
        let given_up = await_ports(dir.path(), Duration::from_secs(60), &|| true).unwrap_err().paragraph();
        assert!(given_up.contains("given up"), "{given_up}");
        let silent = await_ports(dir.path(), Duration::ZERO, &|| false).unwrap_err().paragraph();
        assert!(silent.contains("`tailbound guest serve`"), "{silent}");
        let listener = UnixListener::bind(dir.path().join("there0")).unwrap();
        let guest = std::thread::spawn(move || listener.accept().unwrap().0.write_all(GREETING).unwrap());
        await_ports(dir.path(), Duration::from_secs(10), &|| false).unwrap();
        guest.join().unwrap();
    }

    #[test]
    fn the_port_unused_for_longest_is_taken_and_no_port_twice() {
        let dir = tempfile::tempdir().unwrap();
        // Ports with equal times are taken by number.
        let now = SystemTime::now();
        for port in 1..=3 {
            File::create(dir.path().join(format!("p{port}.lock"))).unwrap().set_modified(now).unwrap();
        }
        let (first, lock) = take(dir.path(), 3).unwrap();
        let (second, _held) = take(dir.path(), 3).unwrap();
        let (third, _held_too) = take(dir.path(), 3).unwrap();
        assert_eq!((first, second, third), (1, 2, 3));
        let all = take(dir.path(), 3).unwrap_err();
        assert_eq!(all.to_string(), "all 3 ports of the guest are in use");
        drop(lock);
        let again = loop {
            // A child process of another test also holds the lock, from fork until exec.
            match take(dir.path(), 3) {
                Ok((again, _)) => break again,
                Err(_) => std::thread::yield_now(),
            }
        };
        assert_eq!(again, 1);
    }

    #[test]
    fn a_port_is_used_after_the_guest_has_sent_its_greeting() {
        let dir = tempfile::tempdir().unwrap();
        HostChannel::Ports(1).write(dir.path()).unwrap();
        let limit = Duration::from_millis(50);
        assert!(matches!(connect(dir.path(), limit), Err(NotConnected::Gone(_))));
        let listener = UnixListener::bind(socket(dir.path(), 1)).unwrap();
        let Err(NotConnected::Silent(e)) = connect(dir.path(), limit) else { panic!("the guest sent nothing") };
        assert_eq!(e.to_string(), "the guest sent nothing");
        listener.accept().unwrap();
        let guest = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(&[GREETING.as_slice(), b"more"].concat()).unwrap();
        });
        // A child process of another test also holds the lock, from fork until exec.
        let mut stream = loop {
            match connect(dir.path(), Duration::from_secs(10)) {
                Ok(Connected::Port(stream, _)) => break stream,
                Err(NotConnected::Silent(e)) if e.kind() == io::ErrorKind::ResourceBusy => std::thread::yield_now(),
                other => panic!("{other:?}"),
            }
        };
        guest.join().unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "more");
    }
}
