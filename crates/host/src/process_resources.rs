//! Reads the shared memory and the number of sockets of a process (proc_pid_maps(5), proc_pid_net(5)).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use tailbound_model::{ProcessSeen, Segment};

/// Names of the socket tables of the internet and packet families, each with the column that contains the inode.
const TABLES: [(&str, usize); 9] = [
    ("udp", 9),
    ("udp6", 9),
    ("udplite", 9),
    ("udplite6", 9),
    ("tcp", 9),
    ("tcp6", 9),
    ("raw", 9),
    ("raw6", 9),
    ("packet", 8),
];

/// Reads shared memory and sockets of a process in the calling process's network namespace; values that cannot be read
/// are `None`.
pub fn process_resources(pid: i32, ends: Vec<String>) -> ProcessSeen {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"));
    ProcessSeen { ends, segments: maps.ok().map(|text| segments(&text)), sockets: sockets(pid).ok() }
}

/// Files below /dev/shm that a process has mapped: each file once, with the total size of its mappings.
fn segments(maps: &str) -> Vec<Segment> {
    let mut all: Vec<Segment> = Vec::new();
    for line in maps.lines() {
        let Some((_, name)) = line.split_once(" /dev/shm/") else { continue };
        let range = line.split(' ').next().and_then(|r| r.split_once('-'));
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
        let bytes = range.map_or(0, |(from, to)| number(to).saturating_sub(number(from)));
        match all.iter_mut().find(|s| s.name == name) {
            Some(known) => known.bytes += bytes,
            None => all.push(Segment { name: name.to_owned(), bytes }),
        }
    }
    all.sort();
    all
}

fn sockets(pid: i32) -> io::Result<usize> {
    let open: BTreeSet<String> = fs::read_dir(format!("/proc/{pid}/fd"))?
        .filter_map(|entry| {
            let target = fs::read_link(entry.ok()?.path()).ok()?;
            Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let listed = |(table, column): &(&str, usize)| -> BTreeSet<String> {
        // The kernel has no table of a family that it does not support.
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        text.lines().skip(1).filter_map(|l| l.split_whitespace().nth(*column).map(str::to_owned)).collect()
    };
    // Without this table the number of sockets is not known.
    fs::metadata(format!("/proc/{pid}/net/udp"))?;
    Ok(TABLES.iter().map(|table| listed(table).intersection(&open).count()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn mappings_of_one_file_are_one_segment() {
        let maps = "7f00-7f10 rw-s 00000000 00:1b 5  /usr/lib/x.so\n\
                    1000-3000 rw-s 00000000 00:1b 5    /dev/shm/fastrtps_a\n\
                    5000-6000 rw-s 00002000 00:1b 5    /dev/shm/fastrtps_a\n\
                    9000-a000 rw-s 00000000 00:1b 6    /dev/shm/other (deleted)\n";
        let found = segments(maps);
        assert_eq!(found[0], Segment { name: "fastrtps_a".into(), bytes: 0x3000 });
        assert_eq!(found[1], Segment { name: "other (deleted)".into(), bytes: 0x1000 });
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn sockets_of_the_network_are_counted_and_others_are_not() {
        let me = std::process::id() as i32;
        let before = sockets(me).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = std::os::unix::net::UnixDatagram::unbound().unwrap();
        assert_eq!(sockets(me).unwrap(), before + 2);
        drop((udp, tcp, local));
        assert_eq!(sockets(me).unwrap(), before);
    }
}
