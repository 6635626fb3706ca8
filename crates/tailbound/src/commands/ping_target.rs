//! Finds the addresses between which `tailbound ping --to HOST` measures: the address of the host, and the own address of the
//! route to it.

use crate::failure::Failure;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::process::Command;

/// A port for which the kernel chooses a route. Nothing is sent.
const ANY_PORT: u16 = 9;

/// The own address and the address of the host.
///
/// # Errors
/// ssh is not there, the host has no IPv4 address, or no route leads to it.
pub fn target(host: &str) -> Result<(Ipv4Addr, Ipv4Addr), Failure> {
    let named = |c: char| c.is_ascii_alphanumeric() || "@._-:".contains(c);
    if host.is_empty() || host.starts_with('-') || !host.chars().all(named) {
        let shown = tailbound_model::plain(host);
        return Err(
            Failure::bad_input(format!("--to {shown}: this is not a host name")).help("write HOST or USER@HOST")
        );
    }
    let name = host_name(host)?;
    let resolved = (name.as_str(), ANY_PORT).to_socket_addrs().map_err(|e| {
        Failure::not_fit(format!("--to {host}: the address of {name} cannot be found: {e}"))
            .help("write a host that ssh knows, or its address")
    })?;
    let theirs = resolved.filter_map(|at| match at {
        SocketAddr::V4(at) => Some(*at.ip()),
        SocketAddr::V6(_) => None,
    });
    let theirs = theirs.into_iter().next().ok_or_else(|| without_ipv4(host, &name))?;
    let own =
        own_address(theirs).map_err(|e| Failure::not_fit(format!("--to {host}: no route leads to {theirs}: {e}")))?;
    Ok((own, theirs))
}

/// The failure for a host that has IPv6 addresses only.
fn without_ipv4(host: &str, name: &str) -> Failure {
    let what = match name.parse::<Ipv6Addr>() {
        Ok(_) if name == host => "this is an IPv6 address".to_owned(),
        Ok(_) => format!("{name} is an IPv6 address"),
        Err(_) => format!("{name} has no IPv4 address"),
    };
    Failure::not_fit(format!("--to {host}: {what}"))
        .help("paths are IPv4: write an IPv4 address of the host, or a name that has one")
}

/// The name or address that the configuration of ssh has for the host.
fn host_name(host: &str) -> Result<String, Failure> {
    let lacks = |e: std::io::Error| {
        Failure::not_fit(format!("--to {host}: ssh cannot be started: {e}")).help("install the package openssh-client")
    };
    let output = Command::new("ssh").args(["-G", host]).output().map_err(lacks)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = text.lines().find_map(|line| line.strip_prefix("hostname "));
    // An ssh without `-G` has no aliases that could be asked for.
    Ok(name.unwrap_or_else(|| host.rsplit('@').next().unwrap_or(host)).to_owned())
}

/// The address from which the kernel sends to the host.
fn own_address(theirs: Ipv4Addr) -> std::io::Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((theirs, ANY_PORT))?;
    match socket.local_addr()? {
        SocketAddr::V4(own) => Ok(*own.ip()),
        SocketAddr::V6(_) => Err(std::io::Error::other("the route has no IPv4 address")),
    }
}

#[cfg(test)]
mod tests {
    use super::own_address;
    use std::net::Ipv4Addr;

    #[test]
    fn the_route_to_this_host_has_its_own_address() {
        assert_eq!(own_address(Ipv4Addr::LOCALHOST).unwrap(), Ipv4Addr::LOCALHOST);
    }
}
