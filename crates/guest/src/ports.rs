//! The host's end of the streams to a guest: ports of virtio-serial, each a socket of QEMU, or TCP.
//!
//! A port takes one connection at a time, which the lock of a file guards. The guest learns of an end and of a new begin by
//! two messages, and a reader there that is slow sees neither: so the port that has not been used for longest is taken, and
//! none is used before the guest has said [`GREETING`] over it.

use crate::error::GuestError;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What the guest says first on each connection.
pub const GREETING: &[u8; 16] = b"tailbound guest\n";
/// Names of ports that lead to agents, in a domain that somebody else has set up, begin so.
pub const PORT_NAMES: &str = "org.tailbound.agent";
/// Such a domain has at least so many: an agent of each end, the one that answers for it, and one that rests.
const FEWEST_NAMED: usize = 4;
/// One begins while others rest: so a guest has more ports than agents are in it at a time, and these at least.
const FEWEST: u32 = 16;
/// The queue of virtio-serial for news of ports has 32 places.
const MOST: u32 = 30;
const SPARE: u32 = 4;
/// In the directory of a machine: how it is spoken with.
const CHANNEL: &str = "channel.json";

/// How a machine is spoken with, as its directory says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostChannel {
    /// So many ports.
    Ports(u32),
    /// A port of TCP on the loopback interface of this host.
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

/// How many ports a guest has that so many agents are in at a time: an emulated one takes long to find each.
///
/// # Errors
/// There are not so many.
pub(crate) fn count(agents: u32) -> Result<u32, GuestError> {
    match agents.saturating_add(SPARE) {
        ports if ports <= MOST => Ok(ports.max(FEWEST)),
        _ => Err(GuestError::new(
            format!("{agents} agents are to be in it at a time, and virtio-serial carries {}", MOST - SPARE),
            "reach it with `channel: tcp`",
        )),
    }
}

/// Makes a directory a way to ports that somebody else has: `sockets` are theirs, for so many agents at a time.
///
/// # Errors
/// They are too few, or it cannot be written.
pub fn join_ports(directory: &Path, sockets: &[PathBuf], agents: u32) -> Result<(), GuestError> {
    // One begins while another rests.
    let needed = (agents as usize + 1).max(FEWEST_NAMED);
    if sockets.len() < needed {
        let what = match sockets.len() {
            0 => format!("it has no channel of virtio-serial named {PORT_NAMES}.*"),
            some => format!("it has {some} channels of virtio-serial named {PORT_NAMES}.*, and {needed} are needed"),
        };
        let mend = "add them as `tailbound lab export --format libvirt` writes them, or reach its system by `ssh`";
        return Err(GuestError::new(what, mend));
    }
    for (port, at) in (1..).zip(sockets) {
        let link = socket(directory, port);
        std::os::unix::fs::symlink(at, &link).map_err(GuestError::file("make", &link))?;
    }
    let count = HostChannel::Ports(sockets.len() as u32);
    count.write(directory).map_err(GuestError::file("write in", directory))
}

/// Waits until somebody serves the ports of a directory.
///
/// # Errors
/// Nobody does within `limit`, or it was given up.
pub fn await_ports(directory: &Path, limit: Duration, given_up: &dyn Fn() -> bool) -> Result<(), GuestError> {
    let over = || given_up().then(|| GuestError::new("waiting for it was given up", ""));
    await_answer(directory, limit, &over, &|e| {
        let what = format!("nobody answers over its channels {} s long ({e})", limit.as_secs());
        GuestError::new(what, "start `tailbound guest serve` in it, as root")
    })
}

/// Waits until somebody answers; `over` is asked twice a second whether nobody will, or need not any more, and `late` says
/// what it means that nobody did within `limit`.
pub(crate) fn await_answer(
    directory: &Path,
    limit: Duration,
    over: &dyn Fn() -> Option<GuestError>,
    late: &dyn Fn(io::Error) -> GuestError,
) -> Result<(), GuestError> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Shorter turns, so that what is over is told at once.
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

/// The socket of a port.
pub(crate) fn socket(directory: &Path, port: u32) -> PathBuf {
    directory.join(format!("p{port}"))
}

/// A connection over which the guest has said its greeting.
#[derive(Debug)]
pub(crate) enum Connected {
    /// With the lock of the port, as long as it is used.
    Port(UnixStream, File),
    Tcp(TcpStream),
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NotConnected {
    /// Nobody listens: QEMU has ended.
    Gone(io::Error),
    /// The guest does not answer, or not yet.
    Silent(io::Error),
}

/// Connects with the guest whose directory this is, and hears its greeting within `limit`.
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
    let mut heard = [0; GREETING.len()];
    match stream.read_exact(&mut heard) {
        Ok(()) if heard == *GREETING => Ok(()),
        // What was left of an earlier connection.
        Ok(()) => Err(io::Error::new(io::ErrorKind::InvalidData, "the guest did not begin with its greeting")),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "the guest said nothing"))
        }
        Err(e) => Err(e),
    }
}

/// Takes the free port that was not used for longest.
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
    fn there_are_as_many_ports_as_agents_need() {
        assert_eq!([0, 2, 12, 13, 26].map(|agents| count(agents).unwrap()), [16, 16, 16, 17, 30]);
        let told = count(27).unwrap_err().to_string();
        assert_eq!(
            told,
            "27 agents are to be in it at a time, and virtio-serial carries 26\n  what to do: reach it with `channel: tcp`"
        );
    }

    #[test]
    fn ports_of_somebody_else_are_joined_when_they_are_enough() {
        let dir = tempfile::tempdir().unwrap();
        let at = |n: usize| (0..n).map(|n| dir.path().join(format!("there{n}"))).collect::<Vec<_>>();
        let told = |n| join_ports(dir.path(), &at(n), 2).unwrap_err().to_string();
        insta::assert_snapshot!("no_channels", told(0));
        insta::assert_snapshot!("few_channels", told(3));
        let many = join_ports(dir.path(), &at(8), 11).unwrap_err().to_string();
        assert!(many.contains("8 channels") && many.contains("12 are needed"), "{many}");
        join_ports(dir.path(), &at(4), 2).unwrap();
        let given_up = await_ports(dir.path(), Duration::from_secs(60), &|| true).unwrap_err().to_string();
        assert!(given_up.contains("given up"), "{given_up}");
        let silent = await_ports(dir.path(), Duration::ZERO, &|| false).unwrap_err().to_string();
        assert!(silent.contains("`tailbound guest serve`"), "{silent}");
        let listener = UnixListener::bind(dir.path().join("there0")).unwrap();
        let guest = std::thread::spawn(move || listener.accept().unwrap().0.write_all(GREETING).unwrap());
        await_ports(dir.path(), Duration::from_secs(10), &|| false).unwrap();
        guest.join().unwrap();
    }

    #[test]
    fn the_port_that_rested_longest_is_taken_and_none_twice() {
        let dir = tempfile::tempdir().unwrap();
        // Made at the same time, they go by number.
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
            // What another test starts holds the lock, too, until it has become another program.
            match take(dir.path(), 3) {
                Ok((again, _)) => break again,
                Err(_) => std::thread::yield_now(),
            }
        };
        assert_eq!(again, 1);
    }

    #[test]
    fn a_port_is_used_once_the_guest_has_said_its_greeting() {
        let dir = tempfile::tempdir().unwrap();
        HostChannel::Ports(1).write(dir.path()).unwrap();
        let limit = Duration::from_millis(50);
        assert!(matches!(connect(dir.path(), limit), Err(NotConnected::Gone(_))));
        let listener = UnixListener::bind(socket(dir.path(), 1)).unwrap();
        let Err(NotConnected::Silent(e)) = connect(dir.path(), limit) else { panic!("it was silent") };
        assert_eq!(e.to_string(), "the guest said nothing");
        listener.accept().unwrap();
        let guest = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(&[GREETING.as_slice(), b"more"].concat()).unwrap();
        });
        // What another test starts holds the lock, too, until it has become another program.
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
