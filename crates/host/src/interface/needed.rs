//! Interfaces that other programs of the host need, so that Tailbound never changes them.
//!
//! Input: the name of an interface in the calling thread's network namespace. Output: the reason why it is left alone.

use super::link;
use crate::process::Stat;
use std::fs;
use std::net::IpAddr;

/// Why other programs need an interface of the calling thread's network namespace, which must be the host's own, or an interface
/// above it, such as its bridge; `None` = no reason is known.
pub fn carries_traffic_of_the_host(name: &str) -> Option<String> {
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    let (ipv4, ipv6, own) = (read("route"), read("ipv6_route"), ssh_address());
    let reason = |of: &str, it: &str| {
        if is_default_route(of, &ipv4, &ipv6) {
            return Some(format!("the default route of this host leads over {it}"));
        }
        own.filter(|own| addresses(of).contains(own)).map(|_| format!("your ssh connection leads over {it}"))
    };
    let of_above =
        || link::above(name).into_iter().find_map(|above| reason(&above, &format!("{above}, which uses it")));
    reason(name, "it").or_else(of_above)
}

/// This host's address of the ssh connection from which this process was started, also if `sudo` or `su` removed the variable of
/// sshd from the environment; `None` without such a connection, or if the environments of the parents cannot be read.
fn ssh_address() -> Option<IpAddr> {
    let own = std::env::var("SSH_CONNECTION").ok();
    own.or_else(|| parents().find_map(variable_of_sshd)).as_deref().and_then(address_of)
}

/// Process ids of the parent, of its parent, and so on.
fn parents() -> impl Iterator<Item = u32> {
    let next = |pid: &u32| {
        let stat = Stat::read(&format!("/proc/{pid}/stat")).ok()?;
        stat.field(4).and_then(|parent| u32::try_from(parent).ok()).filter(|parent| *parent != 0)
    };
    std::iter::successors(Some(std::os::unix::process::parent_id()), next)
}

/// SSH_CONNECTION as a process had it when it began.
fn variable_of_sshd(pid: u32) -> Option<String> {
    let all = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = all.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(b"SSH_CONNECTION="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// This host's address in a value of SSH_CONNECTION: address and port of the client, then of this host (ssh(1)). A link-local IPv6
/// address ends with its interface.
fn address_of(connection: &str) -> Option<IpAddr> {
    connection.split_whitespace().nth(2)?.split('%').next()?.parse().ok()
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

/// Flag of a route that refuses packets (RTF_REJECT of linux/route.h), as the kernel's own last route by `lo`.
const REJECTS: u64 = 0x200;

/// Whether a default route leads over an interface, by the contents of /proc/net/route and /proc/net/ipv6_route.
fn is_default_route(name: &str, ipv4: &str, ipv6: &str) -> bool {
    // Interface, destination, gateway, flags, references, use, metric, mask.
    let of_ipv4 = ipv4
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .any(|words| matches!(words[..], [interface, "00000000", _, _, _, _, _, "00000000", ..] if interface == name));
    // Destination, its prefix length, and eight more words, of which the last two are the flags and the interface.
    let passes = |flags: &str| u64::from_str_radix(flags, 16).is_ok_and(|flags| flags & REJECTS == 0);
    let is_zero = |to: &str| to.bytes().all(|byte| byte == b'0');
    let of_ipv6 = ipv6.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|words| {
        matches!(words[..], [to, "00", .., flags, interface] if interface == name && is_zero(to) && passes(flags))
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
            "{zeros} 00 {zeros} 00 fe80 00000400 00000001 00000000 00000003 eth2\n{zeros} 08 {zeros} 00 fe80 0 0 0 0 eth1\n\
             {zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200 lo\n"
        );
        let known = ["eth0", "eth1", "eth2", "lo"].map(|name| is_default_route(name, ipv4, &ipv6));
        assert_eq!(known, [true, false, true, false]);
    }

    #[test]
    fn the_address_of_this_host_is_the_third_word_of_sshd() {
        let of = |text: &str| address_of(text).map(|address| address.to_string());
        assert_eq!(of("192.0.2.7 50122 192.0.2.1 22").as_deref(), Some("192.0.2.1"));
        assert_eq!(of("fe80::7%eth0 50122 fe80::1%eth0 22").as_deref(), Some("fe80::1"));
        assert_eq!([of(""), of("UNKNOWN 65535 UNKNOWN 65535")], [None, None]);
    }

    #[test]
    fn the_parents_of_a_process_end_with_the_first_one() {
        let all: Vec<u32> = parents().collect();
        assert_eq!(all.first(), Some(&std::os::unix::process::parent_id()));
        // In a container, the first process of the chain need not be the first one of the container.
        assert!(!all.contains(&0) && all.len() < 100, "{all:?}");
    }

    #[test]
    fn the_addresses_of_the_loopback_interface_are_read() {
        assert!(addresses("lo").contains(&"127.0.0.1".parse().unwrap()));
        assert!(addresses("tb-none").is_empty());
    }
}
