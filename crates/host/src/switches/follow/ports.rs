//! The UDP sockets of a process: their ports, and the network namespace that they are in.

use crate::namespace::namespace_of;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// UDP sockets of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sockets {
    /// Ports to which the sockets are bound.
    pub ports: BTreeSet<u16>,
    /// Number of the network namespace of the process.
    pub namespace: u32,
}

impl Sockets {
    /// The sockets of the process `pid` as they are now; none if the process is gone. If `pid` is a thread, its network
    /// namespace counts.
    pub fn of(pid: i32) -> Sockets {
        let process = Path::new("/proc").join(pid.to_string());
        let namespace = namespace_of(&process).map_or(0, |namespace| namespace as u32);
        let own = inodes(&process.join("fd"));
        let table = |name: &str| fs::read_to_string(process.join("net").join(name)).unwrap_or_default();
        let ports = ["udp", "udp6"].iter().flat_map(|name| bound(&table(name), &own)).collect();
        Sockets { ports, namespace }
    }
}

/// Numbers of the sockets among the open files of a process.
fn inodes(fds: &Path) -> BTreeSet<u64> {
    let link = |entry: fs::DirEntry| fs::read_link(entry.path()).ok();
    let links = fs::read_dir(fds).into_iter().flatten().filter_map(|entry| link(entry.ok()?));
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

/// Ports of those sockets of a table of the kernel (`/proc/net/udp`) that are among `own`.
fn bound(table: &str, own: &BTreeSet<u64>) -> Vec<u16> {
    let port = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let inode: u64 = fields.get(9)?.parse().ok()?;
        let port = u16::from_str_radix(fields.get(1)?.rsplit(':').next()?, 16).ok()?;
        own.contains(&inode).then_some(port)
    };
    table.lines().skip(1).filter_map(port).filter(|port| *port != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_ports_of_own_sockets_are_found_and_others_are_not() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = socket.local_addr().expect("an address").port();
        let sockets = Sockets::of(std::process::id() as i32);
        assert!(sockets.ports.contains(&port), "{sockets:?}");
        assert_ne!(sockets.namespace, 0);
        drop(socket);
        assert!(!Sockets::of(std::process::id() as i32).ports.contains(&port));
    }

    #[test]
    fn a_line_of_another_process_is_left_out() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            40: 0100007F:8231 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 6170 2 00 0\n\
            41: 0100007F:8232 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 6171 2 00 0\n";
        assert_eq!(bound(table, &BTreeSet::from([6171])), [0x8232]);
        assert!(bound("head\nbroken line\n", &BTreeSet::from([6171])).is_empty());
    }
}
