//! Asks QEMU about the guests of a trial, just before and just after the messages are sent, and warns if a guest was
//! disturbed.

use super::active_lab::ActiveLab;
use super::places::{Host, all_at_once};
use std::sync::Arc;
use tailbound_guest::Look;
use tailbound_model::{GuestSeen, PlaceSpec, Problem, Severity, Warning};

/// Events of QEMU that make a trial with a guest invalid.
const DISTURBING: [&str; 5] = ["SHUTDOWN", "RESET", "WATCHDOG", "GUEST_PANICKED", "SUSPEND"];

/// Report of QEMU about a guest, or the reason why QEMU did not answer.
type Report = Result<Look, Problem>;

/// The guests of a trial, with the reports of QEMU from before the messages were sent.
pub(super) struct Guests(Vec<Asked>);

struct Asked {
    host: Arc<Host>,
    before: Report,
    /// True if no end runs in the guest.
    is_neighbour: bool,
}

impl Guests {
    /// Asks QEMU about each guest before the messages are sent. The call blocks for a moment.
    pub fn begin(lab: &ActiveLab) -> Guests {
        let of_ends = lab
            .others()
            .filter_map(|host| Some(Asked { host: host.clone(), before: host.look()?, is_neighbour: false }));
        let ended = || Err(Problem::new("guest_not_asked", "the guest has ended", ""));
        let neighbours = lab.neighbours().iter().map(|(_, host)| Asked {
            host: host.clone(),
            before: host.look().unwrap_or_else(ended),
            is_neighbour: true,
        });
        Guests(of_ends.chain(neighbours).collect())
    }

    /// Asks QEMU about each guest after the messages were sent. Guests of ends that have ended are left out, because they
    /// are reported with their agents. If a guest still runs but QEMU did not answer, or if a neighbour no longer runs,
    /// there is a warning. All guests are asked at the same time; the call blocks until the last one has answered.
    pub fn end(self) -> (Vec<GuestSeen>, Vec<Warning>) {
        let (mut all, mut warnings) = (Vec::new(), Vec::new());
        let looks = all_at_once(self.0, |asked| {
            let why = if asked.is_neighbour { no_longer_runs(&asked.host) } else { None };
            let after = if why.is_none() { asked.host.look() } else { None };
            (asked, why, after)
        });
        for (Asked { host, before, is_neighbour }, why, after) in looks {
            if let Some(why) = why {
                warnings.push(neighbour_ended(&why));
                continue;
            }
            match between(before, after) {
                Some(Ok((before, after))) => {
                    let seen = after.since(&before, name(&host));
                    all.push(GuestSeen { threads: host.threads_outside(), neighbour: is_neighbour, ..seen });
                }
                Some(Err(problem)) => warnings.push(not_asked(&problem.what)),
                None => {}
            }
        }
        (all, warnings)
    }
}

/// Sentence that says why a neighbour does not run any more: QEMU has ended, or the kernel of the guest does not answer.
fn no_longer_runs(host: &Host) -> Option<String> {
    // The question is asked in any case: a host that did not answer is started anew for the next trial.
    let is_silent = host.monotonic_ns().is_none();
    host.ended().or_else(|| is_silent.then(|| format!("guest {} no longer answers", name(host))))
}

/// Makes the warning that a neighbour did not run for the whole measurement.
fn neighbour_ended(why: &str) -> Warning {
    let text = format!("a guest beside the measured one did not run until the last message: {why}");
    let remedy = "read the console of the guest in the record (logs/console-NAME.log), and repeat the trial";
    Warning::new("neighbour_ended", Severity::Invalid, text, remedy)
}

/// The guests of a lab with which QEMU was not asked, because libvirt controls them, with their threads on this host.
pub(super) fn of_libvirt(lab: &ActiveLab) -> Vec<GuestSeen> {
    let not_counted = "libvirt controls the domain: neither counters of KVM nor pauses were read";
    let domains = lab.others().filter(|host| matches!(host.place, PlaceSpec::Domain(_)));
    let seen = domains.map(|host| GuestSeen {
        guest: name(host).to_owned(),
        not_counted: Some(not_counted.to_owned()),
        threads: host.threads_outside(),
        ..GuestSeen::default()
    });
    seen.filter(|seen| !seen.threads.is_empty()).collect()
}

/// Combines both reports about a guest, or returns the reason why a report is missing. `None` = the guest has ended.
fn between(before: Report, after: Option<Report>) -> Option<Result<(Look, Look), Problem>> {
    let after = after?;
    Some(before.and_then(|before| Ok((before, after?))))
}

/// Makes the warning that QEMU could not be asked about a guest. `why` names the guest.
fn not_asked(why: &str) -> Warning {
    let text = format!("{why}: it is not known whether the guest was paused or reset during the measurement");
    Warning::new(
        "guest_not_asked",
        Severity::Invalid,
        text,
        "read the console of the guest in the record (logs/console-NAME.log), and repeat the trial",
    )
}

/// Warns of pauses and events of a guest that make the trial invalid.
pub(super) fn disturbed(seen: &GuestSeen) -> Vec<Warning> {
    let name = &seen.guest;
    // The time is negative if the wall clock was set meanwhile.
    let paused = (seen.paused_ns != 0 || seen.still_paused).then(|| {
        let still = if seen.still_paused { ", and still is" } else { "" };
        let ms = seen.paused_ns as f64 / 1e6;
        let text = format!("guest {name} was paused by QMP for {ms:.0} ms{still}: its clock was stopped meanwhile");
        Warning::new(
            "guest_paused",
            Severity::Invalid,
            text,
            "prevent the tool that manages guests from pausing the guest during a measurement",
        )
    });
    let other = seen.events.iter().filter(|event| DISTURBING.contains(&event.as_str())).map(|event| {
        let text = format!("QEMU reported {event} for guest {name}");
        let remedy = "read the console of the guest in the record (logs/console-NAME.log)";
        Warning::new("guest_disturbed", Severity::Invalid, text, remedy)
    });
    paused.into_iter().chain(other).collect()
}

fn name(host: &Host) -> &str {
    match &host.place {
        PlaceSpec::Vm(guest) => &guest.name,
        PlaceSpec::Domain(domain) => &domain.name,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_and_a_watchdog_are_reported() {
        let seen = |paused_ns, still_paused, event: &str| GuestSeen {
            guest: "pong".into(),
            paused_ns,
            still_paused,
            events: vec![event.to_owned()],
            ..GuestSeen::default()
        };
        let texts = |seen: GuestSeen| disturbed(&seen).into_iter().map(|w| w.problem.what).collect::<Vec<_>>();
        let paused = "guest pong was paused by QMP for 300 ms: its clock was stopped meanwhile";
        assert_eq!(texts(seen(300_400_000, false, "WATCHDOG")), [paused, "QEMU reported WATCHDOG for guest pong"]);
        let still = "guest pong was paused by QMP for 1500 ms, and still is: its clock was stopped meanwhile";
        assert_eq!(texts(seen(1_500_000_000, true, "BALLOON_CHANGE")), [still]);
        assert!(texts(seen(0, false, "RTC_CHANGE")).is_empty());
        let unknown = not_asked("guest pong: QEMU does not do it: Resource temporarily unavailable");
        let text = "guest pong: QEMU does not do it: Resource temporarily unavailable: it is not known whether \
                    the guest was paused or reset during the measurement";
        assert_eq!((unknown.severity, unknown.problem.what.as_str()), (Severity::Invalid, text));
    }

    #[test]
    fn a_neighbour_that_has_ended_makes_the_trial_invalid() {
        let why = "guest pong.neighbour-2: QEMU has ended (signal: 9 (SIGKILL)); the console is empty";
        let warning = neighbour_ended(why);
        assert_eq!(warning.severity, Severity::Invalid);
        insta::assert_snapshot!(warning.problem, @"a guest beside the measured one did not run until the last message: guest pong.neighbour-2: QEMU has ended (signal: 9 (SIGKILL)); the console is empty; read the console of the guest in the record (logs/console-NAME.log), and repeat the trial");
    }

    #[test]
    fn a_guest_that_runs_but_was_not_asked_is_reported() {
        let problem = || Problem::new("guest_not_asked", "no answer", "");
        let no = || Err(problem());
        let missing = |before: Report, after| between(before, after).map(|both| both.err());
        assert_eq!(missing(no(), Some(no())), Some(Some(problem())));
        assert_eq!(missing(no(), None), None, "it has ended");
    }
}
