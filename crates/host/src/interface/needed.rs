//! Interfaces that other programs of the host need, so that Tailbound never changes them.
//!
//! Input: the name of an interface in the calling thread's network namespace. Output: the reason why it is left alone.

use std::fs;
use std::net::IpAddr;

/// Why other programs need an interface of the calling thread's network namespace, which must be the host's own; `None` = no
/// reason is known.
pub fn carries_traffic_of_the_host(name: &str) -> Option<&'static str> {
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    if is_default_route(name, &read("route"), &read("ipv6_route")) {
        return Some("the default route of this host leads over it");
    }
    // Address and port of the client, then of this host (ssh(1)).
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let own = connection.split_whitespace().nth(2).and_then(|text| text.parse::<IpAddr>().ok());
    own.filter(|own| addresses(name).contains(own)).map(|_| "your ssh connection leads over it")
}

/// Addresses of an interface.
fn addresses(name: &str) -> Vec<IpAddr> {
    let of_interface = |entry: nix::ifaddrs::InterfaceAddress| {
        let address = entry.address.filter(|_| entry.interface_name == name)?;
        let ipv4 = address.as_sockaddr_in().map(|of| IpAddr::V4(of.ip()));
        ipv4.or_else(|| address.as_sockaddr_in6().map(|of| IpAddr::V6(of.ip())))
    };
    nix::ifaddrs::getifaddrs().map(|all| all.filter_map(of_interface).collect()).unwrap_or_default()
}

/// Whether a default route leads over an interface, by the contents of /proc/net/route and /proc/net/ipv6_route.
fn is_default_route(name: &str, ipv4: &str, ipv6: &str) -> bool {
    // Interface, destination, gateway, flags, references, use, metric, mask.
    let of_ipv4 = ipv4
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .any(|words| matches!(words[..], [interface, "00000000", _, _, _, _, _, "00000000", ..] if interface == name));
    // Destination, its prefix length, and eight more words, of which the last is the interface.
    let of_ipv6 = ipv6.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|words| {
        matches!(words[..], [to, "00", .., interface] if interface == name && to.bytes().all(|byte| byte == b'0'))
    });
    of_ipv4 || of_ipv6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_with_a_default_route_is_known() {
        let ipv4 = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                    eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0\neth1 0000000A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
        let zeros = "0".repeat(32);
        let ipv6 = format!(
            "{zeros} 00 {zeros} 00 fe80 00000400 00000001 00000000 00000003 eth2\n{zeros} 08 {zeros} 00 fe80 0 0 0 0 eth1\n"
        );
        let known = ["eth0", "eth1", "eth2"].map(|name| is_default_route(name, ipv4, &ipv6));
        assert_eq!(known, [true, false, true]);
    }

    #[test]
    fn the_addresses_of_the_loopback_interface_are_read() {
        assert!(addresses("lo").contains(&"127.0.0.1".parse().unwrap()));
        assert!(addresses("tb-none").is_empty());
    }
}
