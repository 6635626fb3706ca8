//! Options of `open`.

use std::ffi::{CStr, c_char};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

use tailbound_abi::{TB_EINVAL, TB_EIO, TB_EQOS, TB_EUNSUPPORTED, tb_kv};

use crate::error::{Outcome, fail};
use crate::net;

/// Receive buffer asked for when the study says nothing: the kernel's own default holds three datagrams of 60 kB. The
/// kernel gives at most net.core.rmem_max; what it gave is in the answer to `transport`.
pub const DEFAULT_RCVBUF_BYTES: i32 = 4 << 20;

/// What `open` was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    pub domain: u32,
    pub address: IpAddr,
    pub peers: Vec<IpAddr>,
    pub interface: Option<String>,
    pub rcvbuf_bytes: Option<i32>,
    pub sndbuf_bytes: Option<i32>,
    pub timestamps: bool,
    pub ttl: Option<i32>,
}

/// A string of the caller's.
///
/// # Safety
/// `text` is null or a NUL-terminated string that lives as long as `'a`.
pub unsafe fn text<'a>(what: &str, text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return fail(TB_EINVAL, format!("{what} is null"));
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().or_else(|_| fail(TB_EINVAL, format!("{what} is not UTF-8")))
}

/// Keys and values of the caller's.
///
/// # Safety
/// `kv` points to `n` pairs of NUL-terminated strings that live as long as `'a`.
unsafe fn pairs<'a>(kv: *const tb_kv, n: usize) -> Outcome<Vec<(&'a str, &'a str)>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    if kv.is_null() {
        return fail(TB_EINVAL, "the list of options is null");
    }
    // SAFETY: the caller's promise.
    let raw = unsafe { std::slice::from_raw_parts(kv, n) };
    // SAFETY: as above.
    raw.iter().map(|p| unsafe { Ok((text("a key", p.key)?, text("a value", p.value)?)) }).collect()
}

fn number<T: FromStr>(key: &str, value: &str, range: &str) -> Outcome<T> {
    value.parse().or_else(|_| fail(TB_EINVAL, format!("{key}: `{value}` is not a number {range}")))
}

fn ip(key: &str, value: &str) -> Outcome<IpAddr> {
    value.trim().parse().or_else(|_| fail(TB_EINVAL, format!("{key}: `{value}` is not an IP address")))
}

impl Options {
    /// Reads them.
    ///
    /// # Safety
    /// `kv` points to `n` pairs of NUL-terminated strings.
    pub unsafe fn parse(kv: *const tb_kv, n: usize) -> Outcome<Options> {
        // SAFETY: the caller's promise.
        Self::from_pairs(&unsafe { pairs(kv, n)? })
    }

    fn from_pairs(pairs: &[(&str, &str)]) -> Outcome<Options> {
        let mut address = None;
        let mut o = Options {
            domain: 77,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            peers: Vec::new(),
            interface: None,
            rcvbuf_bytes: None,
            sndbuf_bytes: None,
            timestamps: false,
            ttl: None,
        };
        for &(key, value) in pairs {
            match (key, value) {
                ("domain", _) => o.domain = number(key, value, "from 0 to 4294967295")?,
                ("address", _) => address = Some(ip(key, value)?),
                ("peers", _) => {
                    let items = value.split(',').filter(|v| !v.trim().is_empty());
                    o.peers = items.map(|v| ip(key, v)).collect::<Outcome<_>>()?;
                }
                ("interface", "") => o.interface = None,
                ("interface", _) => o.interface = Some(value.to_owned()),
                ("rcvbuf", _) => o.rcvbuf_bytes = Some(number(key, value, "of octets")?),
                ("sndbuf", _) => o.sndbuf_bytes = Some(number(key, value, "of octets")?),
                ("timestamps", "on") => o.timestamps = true,
                ("timestamps", "off") => o.timestamps = false,
                ("timestamps", _) => return fail(TB_EINVAL, format!("timestamps: `{value}` is neither on nor off")),
                ("ttl", _) => match number(key, value, "from 1 to 255")? {
                    ttl @ 1..=255 => o.ttl = Some(ttl),
                    _ => return fail(TB_EINVAL, format!("ttl: `{value}` is not a number from 1 to 255")),
                },
                ("multicast", "off" | "no" | "none") => {}
                ("multicast" | "discovery_server" | "transport" | "naming" | "config", _) => {
                    return fail(TB_EUNSUPPORTED, format!("{key}: the udp driver does not have it"));
                }
                _ => return fail(TB_EINVAL, format!("{key}: the udp driver has no such option")),
            }
        }
        o.settle(address)
    }

    fn settle(mut self, address: Option<IpAddr>) -> Outcome<Options> {
        if let Some(name) = &self.interface
            && net::interface_index(name) == 0
        {
            return fail(TB_EIO, format!("interface: there is no interface `{name}` here"));
        }
        self.address = match (address, &self.interface) {
            (Some(address), _) => address,
            (None, None) => self.address,
            (None, Some(name)) => match net::interface_address(name) {
                Some(address) => address,
                None => {
                    return fail(TB_EIO, format!("interface: `{name}` has no IPv4 address; give `address` as well"));
                }
            },
        };
        if self.peers.is_empty() {
            self.peers.push(self.address);
        }
        match self.peers.iter().find(|p| p.is_ipv4() != self.address.is_ipv4()) {
            Some(peer) => {
                fail(TB_EINVAL, format!("peers: {peer} is not of the same family as address {}", self.address))
            }
            None => Ok(self),
        }
    }

    /// Address and port, with the interface as scope where IPv6 needs one.
    pub fn at(&self, ip: IpAddr, port: u16) -> SocketAddr {
        match ip {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                let scope = self.interface.as_deref().map_or(0, net::interface_index);
                SocketAddr::V6(SocketAddrV6::new(v6, port, 0, scope))
            }
            ip => SocketAddr::new(ip, port),
        }
    }
}

/// Refuses every QoS policy: UDP has none.
///
/// # Safety
/// As [`Options::parse`].
pub unsafe fn refuse_qos(kv: *const tb_kv, n: usize) -> Outcome {
    // SAFETY: the caller's promise.
    match unsafe { pairs(kv, n)? }.first() {
        Some((policy, _)) => fail(TB_EQOS, format!("{policy}: the udp driver has no QoS policies")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_option() {
        for (key, value) in [("domain", "x"), ("peers", "10.0.0.1,y"), ("ttl", "0"), ("timestamps", "1"), ("zz", "1")] {
            let text = Options::from_pairs(&[(key, value)]).map(drop).unwrap_err().text;
            assert!(text.starts_with(&format!("{key}: ")), "{text}");
        }
        let mixed = Options::from_pairs(&[("address", "::1"), ("peers", "127.0.0.1")]).map(drop).unwrap_err();
        assert!(mixed.text.contains("family"), "{}", mixed.text);
    }

    #[test]
    fn an_interface_gives_the_address() {
        assert_eq!(Options::from_pairs(&[("interface", "lo")]).unwrap().address, IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
}
