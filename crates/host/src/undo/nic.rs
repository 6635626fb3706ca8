//! Undoes the change of a network interface's setting: restores the setting.

use super::outcome::Undone;
use crate::interface::tune;
use std::io;
use tailbound_model::NicSetting;

/// Restores a setting of the interface with this name and index in the calling thread's network namespace.
pub(super) fn restore(interface: &str, ifindex: u32, setting: NicSetting, before: u32, set: u32) -> io::Result<Undone> {
    if nix::net::if_::if_nametoindex(interface) != Ok(ifindex) {
        return Ok(Undone::AlreadyGone);
    }
    let name = format!("{} of {interface}", setting.word());
    let text = |value| setting.text(value);
    let now = tune::read(interface, setting)?;
    if now == before {
        return Ok(Undone::AlreadyGone);
    }
    if now != set {
        return Ok(Undone::LeftAlone(format!(
            "{name} is `{}` now, not `{}` as this run set it: somebody else changed it, so it stays (it was `{}` before)",
            text(now),
            text(set),
            text(before)
        )));
    }
    tune::write(interface, setting, before)?;
    let now = tune::read(interface, setting)?;
    if now != before {
        return Err(io::Error::other(format!("{name} is still `{}`", text(now))));
    }
    Ok(Undone::Did(format!("set {name} back to `{}`", text(before))))
}
