//! Undoes a change of the frame preemption of a network interface.

use super::outcome::Undone;
use crate::interface::preemption;
use std::io;
use tailbound_model::MergeLayer;

/// Restores the MAC merge layer of the interface with this name and index in the calling thread's network namespace.
pub(super) fn restore((interface, ifindex): (&str, u32), before: MergeLayer, set: MergeLayer) -> io::Result<Undone> {
    if nix::net::if_::if_nametoindex(interface) != Ok(ifindex) {
        return Ok(Undone::AlreadyGone);
    }
    let none = || io::Error::new(io::ErrorKind::Unsupported, format!("{interface} has no frame preemption any more"));
    let now = preemption::read(ifindex)?.ok_or_else(none)?.layer;
    if now == before {
        return Ok(Undone::AlreadyGone);
    }
    if !is_of_this_run(now, before, set) {
        return Ok(Undone::LeftAlone(format!(
            "{interface} has other settings of frame preemption now (`{now}`) than this run made (`{set}`): somebody else changed \
             them, so they stay (they were `{before}` before)"
        )));
    }
    preemption::set(ifindex, before)?;
    match preemption::read(ifindex)?.ok_or_else(none)?.layer {
        now if now == before => Ok(Undone::Did(format!("set the frame preemption of {interface} back to `{before}`"))),
        now => Err(io::Error::other(format!("the frame preemption of {interface} is still `{now}`"))),
    }
}

/// Whether this run can have made these settings: it makes them in two steps, and may have ended between them.
fn is_of_this_run(now: MergeLayer, before: MergeLayer, set: MergeLayer) -> bool {
    let members = |layer: MergeLayer| [layer.receives, layer.sends, layer.verifies];
    let [now, before, set] = [now, before, set].map(members);
    now.iter().zip(before.iter().zip(set)).all(|(now, (before, set))| now == before || *now == set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_this_run_and_of_others_are_distinguished() {
        let of = |receives, sends, verifies| MergeLayer { receives, sends, verifies };
        let (before, set) = (of(false, false, true), MergeLayer::ALL);
        assert!([of(true, false, true), of(true, true, true)].into_iter().all(|now| is_of_this_run(now, before, set)));
        assert!(!is_of_this_run(of(true, true, false), before, set));
    }

    #[test]
    fn an_interface_that_is_gone_needs_nothing_and_one_without_preemption_is_an_error() {
        let undo = |interface, index| restore((interface, index), MergeLayer::default(), MergeLayer::ALL);
        assert_eq!(undo("tb-not-there", 7).unwrap(), Undone::AlreadyGone);
        assert_eq!(undo("lo", 1).unwrap_err().to_string(), "lo has no frame preemption any more");
    }
}
