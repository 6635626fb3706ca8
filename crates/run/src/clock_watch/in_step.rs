//! Whether the clock has been within its bound for long enough, and what is said if it has not.

use super::log::ClockLog;
use tailbound_model::{ClockHistory, ClockOffsetFromMaster, ClockSpec, Nanos, Problem};

/// An offset that is older than this does not say where the clock is now, ns.
const RECENT_NS: i64 = 3_000_000_000;

/// True if the offset has been within the bound for the time that the study asks for, until now.
pub(super) fn is_held(log: &ClockLog, spec: &ClockSpec, now_ns: i64) -> bool {
    log.held().is_some_and(|(held_ns, last_ns)| held_ns >= spec.held.0 && now_ns - last_ns <= RECENT_NS)
}

/// The problem that the clock was not in step in time, with what was seen since `begin_ns`.
pub(super) fn not_held(log: &ClockLog, spec: &ClockSpec, begin_ns: i64) -> Problem {
    let ClockSpec { within, held, timeout, .. } = spec;
    let seen = log.so_far();
    let what = format!(
        "the clock was not within {within} of its master for {held}, in the {timeout} for which the run waited ({}): {}",
        seen.service,
        in_words(seen, log.longest_held_ns(), begin_ns)
    );
    let remedy = match seen.offsets.is_empty() {
        true => {
            "the clock needs a master: its port must be SLAVE (see the log of ptp4l), or chrony must have a source (`chronyc sources`)"
        }
        false => "let the time service settle, or write a larger `within` or `timeout` under `clock`",
    };
    Problem::new("clock_not_in_step", what, remedy)
}

/// First, nearest and last offset, states of the ports, and silences.
fn in_words(seen: &ClockHistory, longest_held_ns: i64, begin_ns: i64) -> String {
    let mut parts = Vec::new();
    match (seen.offsets.first(), seen.offsets.iter().min_by_key(|o| o.offset_ns.unsigned_abs()), seen.offsets.last()) {
        (Some(first), Some(nearest), Some(last)) => {
            let shown = |name: &str, offset: &ClockOffsetFromMaster| {
                let at = Nanos((offset.at_ns - begin_ns).max(0));
                format!("{name} {} after {}", Nanos(offset.offset_ns), Nanos(at.0 / 1_000_000 * 1_000_000))
            };
            let longest = Nanos(longest_held_ns / 1_000_000 * 1_000_000);
            let all = [shown("first", first), shown("nearest", nearest), shown("last", last)].join(", ");
            parts.push(format!("{} offsets, {all}; longest time within the bound {longest}", seen.offsets.len()));
        }
        _ => parts.push("no offset was reported".to_owned()),
    }
    let mut ports: Vec<u16> = seen.ports.iter().map(|change| change.port).collect();
    ports.sort_unstable();
    ports.dedup();
    for port in ports {
        let states = seen.ports.iter().filter(|change| change.port == port).map(|change| change.state.to_string());
        parts.push(format!("port {port} {}", states.collect::<Vec<_>>().join(", then ")));
    }
    parts.extend(seen.silences.last().map(|silence| silence.why.clone()));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::service::Seen;
    use super::*;
    use tailbound_host::time_service::TimeServiceError;
    use tailbound_model::{PortState, TimeService};

    const S: i64 = 1_000_000_000;

    fn spec() -> ClockSpec {
        let by = TimeService::Ptp4l { socket: "/var/run/ptp4l".into(), domain: 0 };
        ClockSpec { by, within: Nanos(1_000), held: Nanos(2 * S), timeout: Nanos(30 * S) }
    }

    fn log(offsets: &[(i64, i64)]) -> ClockLog {
        let mut log = ClockLog::new(&spec().by, spec().within);
        for (at_ns, offset_ns) in offsets.iter().copied() {
            log.add(Seen::Offset(ClockOffsetFromMaster { at_ns, offset_ns, path_delay_ns: None }));
        }
        log
    }

    #[test]
    fn an_offset_must_be_within_its_bound_for_long_enough_and_until_now() {
        let held = log(&[(S, 1_000), (2 * S, -1_000), (3 * S, 999)]);
        assert!(is_held(&held, &spec(), 4 * S));
        assert!(!is_held(&held, &spec(), 7 * S), "the last value is 4 s old");
        assert!(!is_held(&held, &ClockSpec { held: Nanos(2 * S + 1), ..spec() }, 4 * S));
        assert!(!is_held(&log(&[]), &spec(), 4 * S));
    }

    #[test]
    fn a_clock_that_is_not_in_step_is_said_with_its_history() {
        let mut seen = log(&[(S, 12_000_000), (2 * S, -800), (3 * S, 900), (4 * S, 1_200)]);
        seen.add(Seen::Port(S, 1, PortState::Uncalibrated));
        seen.add(Seen::Port(2 * S, 1, PortState::Slave));
        insta::assert_snapshot!(not_held(&seen, &spec(), 0).paragraph());
    }

    #[test]
    fn a_clock_without_a_master_is_said() {
        let mut seen = log(&[]);
        seen.add(Seen::Port(S, 1, PortState::Listening));
        seen.add(Seen::Port(9 * S, 1, PortState::Master));
        seen.add(Seen::Silent(20 * S, "ptp4l does not answer".into()));
        insta::assert_snapshot!(not_held(&seen, &spec(), 0).paragraph());
    }

    #[test]
    fn a_service_that_cannot_be_asked_is_said() {
        let refused = |code| std::io::Error::from_raw_os_error(code);
        let errors = [
            TimeServiceError::NoPtp4l("/var/run/ptp4l".into(), refused(libc::ENOENT)),
            TimeServiceError::NoPtp4l("/var/run/ptp4l".into(), refused(libc::EACCES)),
            TimeServiceError::SilentPtp4l("/var/run/ptp4l".into(), 24),
            TimeServiceError::OwnSocket("/tmp/tailbound-1-clock/ptp-7".into(), refused(libc::ENAMETOOLONG)),
            TimeServiceError::NoChronyc(refused(libc::ENOENT)),
            TimeServiceError::NoChrony("506 Cannot talk to daemon".into()),
        ];
        let texts: Vec<String> = errors.iter().map(|e| e.problem().paragraph()).collect();
        insta::assert_snapshot!(texts.join("\n"));
    }
}
