//! What happens to the guests of a trial, as QEMU tells it: asked just before messages go and just after.

use super::lab::Standing;
use super::remote::Host;
use std::sync::Arc;
use tailbound_guest::Look;
use tailbound_model::{GuestSeen, PlaceSpec};

/// The guests of a trial, before its messages.
pub(super) struct Guests(Vec<(Arc<Host>, Look)>);

impl Guests {
    /// Asks their QEMU; blocks for a moment.
    pub fn begin(standing: &Standing) -> Guests {
        Guests(standing.others().filter_map(|host| Some((host.clone(), host.look()?))).collect())
    }

    /// Asks again; those that have ended are left out.
    pub fn end(self) -> Vec<GuestSeen> {
        let seen = |(host, before): (Arc<Host>, Look)| Some(host.look()?.since(&before, name(&host)));
        self.0.into_iter().filter_map(seen).collect()
    }
}

fn name(host: &Host) -> &str {
    match &host.place {
        PlaceSpec::Vm(guest) => &guest.name,
        _ => "",
    }
}
