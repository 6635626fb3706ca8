//! What the kinds of settings of network interfaces have in common.

use super::error::KnobError;
use super::place::Place;
use crate::interface::carries_traffic_of_the_host;
use crate::process::effective_capabilities;
use std::io;

const CAP_NET_ADMIN: u64 = 1 << 12;

/// Name of an interface for the user.
pub(super) fn what(interface: &str) -> String {
    format!("interface {interface}")
}

/// Finds the interface with this name in a place, and reads something there by its index. Returns both. `key` and `wanted`: the key and
/// the value of the host setting, for errors.
///
/// # Errors
/// There is no such interface, it cannot be read, or other programs of the host need it.
pub(super) fn find<T: Send>(
    interface: &str,
    place: &Place,
    (key, wanted): (&str, &str),
    look: impl FnOnce(u32) -> io::Result<T> + Send,
) -> Result<(u32, T), KnobError> {
    let look = || {
        let index = nix::net::if_::if_nametoindex(interface).map_err(|_| io::ErrorKind::NotFound)?;
        Ok((index, look(index)?))
    };
    let found = place.inside(look).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let why = "no interface has this name in the network namespaces of Tailbound and of the ends".to_owned();
            KnobError::Absent { key: key.to_owned(), what: what(interface), why }
        }
        _ => KnobError::of(key, what(interface), "read", wanted, &error),
    })?;
    if place.is_callers()
        && let Some(why) = carries_traffic_of_the_host(interface)
    {
        return Err(KnobError::Needed { key: key.to_owned(), what: what(interface), why });
    }
    Ok(found)
}

/// Checks whether the calling process may change interfaces.
pub(super) fn may_write() -> io::Result<()> {
    if effective_capabilities()? & CAP_NET_ADMIN == 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "CAP_NET_ADMIN is missing"));
    }
    Ok(())
}
