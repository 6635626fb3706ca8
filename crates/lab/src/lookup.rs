//! Finds an interface by its name or address; if the interface is missing, the problem lists the existing interfaces.

use crate::error::lack;
use std::io;
use std::net::Ipv4Addr;
use tailbound_model::{Interface, Problem};

pub(crate) fn by_name<'a>(end: &str, name: &str, here: &str, all: &'a [Interface]) -> Result<&'a Interface, Problem> {
    all.iter().find(|i| i.name == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
        let remedy = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? existing interfaces: {}", names.join(", ")),
            None => "there are no interfaces".to_owned(),
        };
        lack(format!("there is no interface {name} {here} ({end})"), remedy)
    })
}

pub(crate) fn by_address<'a>(
    end: &str,
    address: Ipv4Addr,
    here: &str,
    all: &'a [Interface],
) -> Result<&'a Interface, Problem> {
    all.iter().find(|i| i.ipv4().any(|a| a == address)).ok_or_else(|| {
        let addresses = all.iter().flat_map(|i| i.ipv4().map(move |a| format!("{a} ({})", i.name)));
        let remedy = format!("existing addresses: {}", list(addresses.collect()));
        lack(format!("no interface {here} has the address {address} ({end})"), remedy)
    })
}

pub(crate) fn list<T: ToString>(items: Vec<T>) -> String {
    if items.is_empty() { "none".to_owned() } else { items.iter().map(T::to_string).collect::<Vec<_>>().join(", ") }
}

/// Returns the name that is most similar to the wanted name.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // This measure prefers a common beginning: eth0 for eth1 rather than lo.
    names.max_by(|a, b| strsim::jaro_winkler(wanted, a).total_cmp(&strsim::jaro_winkler(wanted, b)))
}

pub(crate) fn unreadable(here: &str, error: &io::Error) -> Problem {
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM) => "run as root: entering a network namespace of another user needs CAP_SYS_ADMIN",
        _ => "check whether this process may use netlink (a seccomp filter of a container can forbid it)",
    };
    lack(format!("the interfaces {here} cannot be read: {error}"), remedy)
}
