//! What happens to the guests of a trial, as QEMU tells it: asked just before messages go and just after.

use super::lab::Standing;
use super::remote::Host;
use std::sync::Arc;
use tailbound_guest::Look;
use tailbound_model::{GuestSeen, PlaceSpec, Severity, Warning};

/// Events of QEMU after which a guest is not what it was.
const DISTURB: [&str; 5] = ["SHUTDOWN", "RESET", "WATCHDOG", "GUEST_PANICKED", "SUSPEND"];

/// What QEMU told of a guest, or why it did not.
type Told = Result<Look, String>;

/// The guests of a trial, before its messages.
pub(super) struct Guests(Vec<(Arc<Host>, Told)>);

impl Guests {
    /// Asks their QEMU; blocks for a moment.
    pub fn begin(standing: &Standing) -> Guests {
        Guests(standing.others().filter_map(|host| Some((host.clone(), host.look()?))).collect())
    }

    /// Asks again. Those that have ended are left out, which is told elsewhere; of one that lives and was not to be asked
    /// that is told.
    pub fn end(self) -> (Vec<GuestSeen>, Vec<Warning>) {
        let (mut all, mut unknown) = (Vec::new(), Vec::new());
        for (host, before) in self.0 {
            match between(before, host.look()) {
                Some(Ok((before, after))) => all.push(after.since(&before, name(&host))),
                Some(Err(why)) => unknown.push(unasked(&why)),
                None => {}
            }
        }
        (all, unknown)
    }
}

/// Both looks at a guest, or why there are not both; nothing of one that has ended.
fn between(before: Told, after: Option<Told>) -> Option<Result<(Look, Look), String>> {
    let after = after?;
    Some(before.and_then(|before| Ok((before, after?))))
}

/// `why` names the guest.
fn unasked(why: &str) -> Warning {
    let text = format!("{why}: whether it was paused or reset while it measured is not known");
    Warning::new("guest_not_asked", Severity::Invalid, text, "look at its console in the record, and repeat the trial")
}

/// What of a guest makes a trial one that is not to be trusted.
pub(super) fn disturbed(seen: &GuestSeen) -> Vec<Warning> {
    let name = &seen.guest;
    // By the wall clock, which somebody may have set meanwhile.
    let paused = (seen.paused_ns != 0 || seen.still_paused).then(|| {
        let still = if seen.still_paused { ", and still is" } else { "" };
        let ms = seen.paused_ns as f64 / 1e6;
        let text = format!("guest {name} was paused by QMP for {ms:.0} ms{still}: its clock stood still meanwhile");
        Warning::new("guest_paused", Severity::Invalid, text, "keep who manages guests from pausing it while measuring")
    });
    let other = seen.events.iter().filter(|event| DISTURB.contains(&event.as_str())).map(|event| {
        let text = format!("QEMU told {event} of guest {name}");
        Warning::new("guest_disturbed", Severity::Invalid, text, "look at its console in the record")
    });
    paused.into_iter().chain(other).collect()
}

fn name(host: &Host) -> &str {
    match &host.place {
        PlaceSpec::Vm(guest) => &guest.name,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_and_a_watchdog_are_told() {
        let seen = |paused_ns, still_paused, event: &str| GuestSeen {
            guest: "pong".into(),
            paused_ns,
            still_paused,
            events: vec![event.to_owned()],
            ..GuestSeen::default()
        };
        let told = |seen: GuestSeen| disturbed(&seen).into_iter().map(|w| w.text).collect::<Vec<_>>();
        let paused = "guest pong was paused by QMP for 300 ms: its clock stood still meanwhile";
        assert_eq!(told(seen(300_400_000, false, "WATCHDOG")), [paused, "QEMU told WATCHDOG of guest pong"]);
        let still = "guest pong was paused by QMP for 1500 ms, and still is: its clock stood still meanwhile";
        assert_eq!(told(seen(1_500_000_000, true, "BALLOON_CHANGE")), [still]);
        assert!(told(seen(0, false, "RTC_CHANGE")).is_empty());
        let unknown = unasked("guest pong: QEMU does not do it: Resource temporarily unavailable");
        let text = "guest pong: QEMU does not do it: Resource temporarily unavailable: whether it was paused or reset while \
                    it measured is not known";
        assert_eq!((unknown.severity, unknown.text.as_str()), (Severity::Invalid, text));
    }

    #[test]
    fn a_guest_that_lives_and_was_not_asked_is_told_whenever_it_was() {
        let no = || Err("no answer".to_owned());
        let told = |before: Told, after| between(before, after).map(|both| both.err());
        assert_eq!(told(no(), Some(no())), Some(Some("no answer".into())));
        assert_eq!(told(no(), None), None, "it has ended");
    }
}
