//! Resolves the keys of the clocks of the hosts of a run.

use super::duration::positive;
use crate::error::Fault;
use crate::format::{ClockKeys, Ptp4lKeys, TimeServiceChoice};
use crate::read::At;
use tailbound_model::{ClockSpec, Nanos, PTP4L_SOCKET, TimeService};

/// Time for which the offset must have been within the bound, if the study names none.
const USUAL_HELD: Nanos = Nanos::from_secs(10);
/// Time for which a run waits in addition to `for`, if the study names none.
const USUAL_WAIT: Nanos = Nanos::from_secs(60);
/// Largest bound. With a larger one, the clock would not be in step.
const LARGEST_BOUND: Nanos = Nanos::from_secs(1);
/// Longest path of a socket (`sun_path` of unix(7), without the zero at its end).
const LONGEST_SOCKET: usize = 107;

/// Resolves the keys of the clock.
pub(crate) fn clock(keys: &ClockKeys) -> Result<ClockSpec, Fault> {
    let by = match keys.by.as_ref().map(|by| &by.value) {
        None | Some(TimeServiceChoice::Auto) => TimeService::Auto,
        Some(TimeServiceChoice::Chrony) => TimeService::Chrony,
        Some(TimeServiceChoice::Ptp4l(keys)) => ptp4l(keys)?,
    };
    let within = positive(Some(&keys.within), "the bound of the offset")?.unwrap_or_default();
    if within > LARGEST_BOUND {
        let reason = format!("a clock that is up to {within} from its master is not in step with it");
        return Err(
            Fault::new(keys.within.at, reason).help(format!("write at most {LARGEST_BOUND}, for example `1 us`"))
        );
    }
    let held = positive(keys.held.as_ref(), "the time within the bound")?.unwrap_or(USUAL_HELD);
    let timeout = positive(keys.timeout.as_ref(), "the timeout")?.unwrap_or(Nanos(USUAL_WAIT.0 + held.0));
    if timeout < held {
        let at = keys.timeout.as_ref().map_or(keys.within.at, |key| key.at);
        let reason = format!("the clock cannot be within its bound for {held} before the timeout of {timeout} ends");
        return Err(Fault::new(at, reason).help("write a timeout that is longer than `for`"));
    }
    Ok(ClockSpec { by, within, held, timeout })
}

fn ptp4l(keys: &Ptp4lKeys) -> Result<TimeService, Fault> {
    let socket = match &keys.socket {
        None => PTP4L_SOCKET.to_owned(),
        Some(At { at, value }) if !value.starts_with('/') || value.len() > LONGEST_SOCKET || value.contains('\0') => {
            let reason = format!("`{value}` is not the path of a socket");
            let help =
                format!("write an absolute path of at most {LONGEST_SOCKET} bytes, for example `{PTP4L_SOCKET}`");
            return Err(Fault::new(*at, reason).help(help));
        }
        Some(socket) => socket.value.clone(),
    };
    let domain = keys.domain.as_ref().map(|domain| {
        let refused = |_| {
            let reason = format!("the PTP domain {} does not exist", domain.value);
            Fault::new(domain.at, reason).help("write 0 to 255, as `domainNumber` of ptp4l.conf")
        };
        u8::try_from(domain.value).map_err(refused)
    });
    Ok(TimeService::Ptp4l { socket, domain: domain.transpose()?.unwrap_or(0) })
}
