//! Counters of network interfaces and protocols in the calling thread's network namespace.

use std::collections::BTreeMap;
use std::fs;
use std::io;

/// Counters of a network interface, counted since the interface was made.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct InterfaceCounters {
    /// Name of the network interface.
    pub name: String,
    /// Number of bytes that the interface received.
    pub rx_bytes: u64,
    /// Number of frames that the interface received.
    pub rx_packets: u64,
    /// Number of frames that the interface received with an error.
    pub rx_errors: u64,
    /// Number of frames that the interface received and then dropped.
    pub rx_dropped: u64,
    /// Number of bytes that the interface sent.
    pub tx_bytes: u64,
    /// Number of frames that the interface sent.
    pub tx_packets: u64,
    /// Number of frames that the interface did not send because of an error.
    pub tx_errors: u64,
    /// Number of frames that the interface dropped before sending them.
    pub tx_dropped: u64,
}

/// Counters of all interfaces in the calling thread's network namespace (/proc/thread-self/net/dev).
///
/// # Errors
/// The file cannot be read.
pub fn interface_counters() -> io::Result<Vec<InterfaceCounters>> {
    Ok(parse_dev(&fs::read_to_string("/proc/thread-self/net/dev")?))
}

/// Parses the counters of all interfaces from the text of /proc/net/dev.
pub(crate) fn parse_dev(text: &str) -> Vec<InterfaceCounters> {
    // The first two lines are headings. There may be no space between the name's colon and the first number.
    let rows = text.lines().skip(2).filter_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        let n: Vec<u64> = numbers.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        (n.len() >= 12).then(|| InterfaceCounters {
            name: name.trim().to_owned(),
            rx_bytes: n[0],
            rx_packets: n[1],
            rx_errors: n[2],
            rx_dropped: n[3],
            tx_bytes: n[8],
            tx_packets: n[9],
            tx_errors: n[10],
            tx_dropped: n[11],
        })
    });
    rows.collect()
}

/// Counters of IP, ICMP, UDP and TCP in the calling thread's network namespace, with the kernel's names such as
/// `Udp.RcvbufErrors` (/proc/thread-self/net/snmp and netstat). Negative values (`Tcp.MaxConn` is -1) are limits, not
/// counters.
///
/// # Errors
/// A file cannot be read.
pub fn ip_counters() -> io::Result<BTreeMap<String, i64>> {
    let mut all = BTreeMap::new();
    for file in ["snmp", "netstat"] {
        parse_pairs(&fs::read_to_string(format!("/proc/thread-self/net/{file}"))?, &mut all);
    }
    Ok(all)
}

/// Parses pairs of lines, `Udp: names` and `Udp: numbers`, into counters by name.
pub(crate) fn parse_pairs(text: &str, all: &mut BTreeMap<String, i64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((same, numbers))) = (pair[0].split_once(':'), pair[1].split_once(':')) else {
            continue;
        };
        if group != same {
            continue;
        }
        for (name, number) in names.split_whitespace().zip(numbers.split_whitespace()) {
            if let Ok(number) = number.parse() {
                all.insert(format!("{group}.{name}"), number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_lines_are_read_by_column() {
        let text =
            "Inter-|   Receive  |  Transmit\n face |bytes ...|bytes ...\n  eth0:1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n";
        let all = parse_dev(text);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].name.as_str(), all[0].rx_bytes, all[0].rx_dropped), ("eth0", 1, 4));
        assert_eq!((all[0].tx_bytes, all[0].tx_dropped), (5, 8));
    }

    #[test]
    fn the_namespaces_own_counters_are_there() {
        assert!(interface_counters().unwrap().iter().any(|c| c.name == "lo"));
        let all = ip_counters().unwrap();
        for key in ["Udp.InErrors", "Udp.RcvbufErrors", "Ip.ReasmFails", "IpExt.InOctets"] {
            assert!(all.contains_key(key), "{key}");
        }
    }
}
