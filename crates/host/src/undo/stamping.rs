//! Undoes a change of which frames a network card stamps.

use super::outcome::Undone;
use crate::interface::Ethtool;
use std::io;
use tailbound_model::CardStamping;

/// Restores what the card of the interface with this name and index in the calling thread's network namespace stamped.
pub(super) fn restore(
    (interface, ifindex): (&str, u32),
    before: CardStamping,
    set: CardStamping,
) -> io::Result<Undone> {
    if nix::net::if_::if_nametoindex(interface) != Ok(ifindex) {
        return Ok(Undone::AlreadyGone);
    }
    let tool = Ethtool::open(interface).map_err(io::Error::other)?;
    let now = tool.stamping()?;
    if now == before {
        return Ok(Undone::AlreadyGone);
    }
    // A driver may let the card stamp more received frames than it was asked for. What the run left as it was, it does not watch.
    if now.sent != set.sent || (now.received != set.received && set.received != before.received) {
        return Ok(Undone::LeftAlone(format!(
            "the card of {interface} stamps other frames now (`{now}`) than this run set (`{set}`): somebody else changed it, so \
             it stays (it was `{before}` before)"
        )));
    }
    tool.set_stamping(before)?;
    match tool.stamping()? {
        now if now == before => {
            Ok(Undone::Did(format!("set which frames the card of {interface} stamps back to `{before}`")))
        }
        now => Err(io::Error::other(format!("the card of {interface} still stamps `{now}`"))),
    }
}
