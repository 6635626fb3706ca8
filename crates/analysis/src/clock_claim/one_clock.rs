//! What the time service of one host claims of the error of CLOCK_REALTIME of this host.
//!
//! Input: the history of the clock during a trial. Output: the smallest and the largest possible error by the word of the service,
//! and the clock from which the error is counted. Claims of two hosts can be compared if they are counted from one clock.

use super::hardware::{self, Reported};
use crate::clock_windows;
use std::borrow::Cow;
use std::net::IpAddr;
use tailbound_model::{ClockHistory, RootError};

/// Largest error of the rate of any clock that chrony assumes beside the errors that it has measured, ppb (`maxclockerror` of
/// chrony.conf, if it is not set).
const MAX_CLOCK_ERROR_PPB: i64 = 1_000;
/// Longest time between the moment at which chrony computed its values and the moment at which they were received, ns.
const ANSWER_NS: i64 = 1_000_000_000;

/// A service's claim of the error of one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClockError {
    /// The clock from which the error is counted.
    pub from: Reference,
    /// CLOCK_REALTIME minus the reference, ns: smallest and largest possible value during the trial.
    pub range_ns: [i64; 2],
}

/// A clock from which services count errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// The grandmaster of ptp4l, with its identity.
    Grandmaster(String),
    /// The grandmaster of ptp4l for hardware clocks, with its identity. Its time may differ from CLOCK_REALTIME by the difference between
    /// TAI and UTC.
    GrandmasterOfCards(String),
    /// The clock at the head of the chain of the server of chrony with this address.
    Server(IpAddr),
}

impl Reference {
    /// What two services with this reference report, in words.
    pub fn in_words(&self) -> Cow<'static, str> {
        match self {
            Reference::Grandmaster(_) => "offsets from one grandmaster".into(),
            Reference::GrandmasterOfCards(_) => {
                "offsets of hardware clocks from one grandmaster, and readings of these clocks,".into()
            }
            // In two private networks, one address can mean two servers.
            Reference::Server(address) => format!(
                "offsets, root delays and root dispersions of the server {address} (if both hosts mean one server by this address)"
            )
            .into(),
        }
    }
}

/// The claim of a service about the clock of its host. `None` if the clock was not in step all the time, had several masters, or if
/// the service does not state an error of CLOCK_REALTIME.
pub(super) fn of(history: &ClockHistory) -> Option<ClockError> {
    let [master] = &history.masters[..] else { return None };
    let name = &master.master.grandmaster;
    if name.is_empty() || history.offsets.is_empty() || !clock_windows::of(history).is_empty() {
        return None;
    }
    match history.service.as_str() {
        "chrony" => Some(ClockError { from: Reference::Server(server(name)?), range_ns: by_root_errors(history)? }),
        service if service.starts_with("ptp4l") => {
            let (within_ns, name) = (history.within.0, name.clone());
            match Reported::of(history)? {
                Reported::System => {
                    Some(ClockError { from: Reference::Grandmaster(name), range_ns: [-within_ns, within_ns] })
                }
                Reported::Hardware(clock) => {
                    let range_ns = hardware::range_ns(clock, within_ns, [history.from_ns, history.to_ns])?;
                    Some(ClockError { from: Reference::GrandmasterOfCards(name), range_ns })
                }
            }
        }
        _ => None,
    }
}

/// The server that a reference of chrony names, if each host means the same server by it: a reference clock has a name that other
/// hosts use for their own one, and some addresses mean another server on each host. (A private
/// address can mean another server on each network; but hosts of one site often have such a server.)
fn server(name: &str) -> Option<IpAddr> {
    let address: IpAddr = name.parse().ok()?;
    let is_own = match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified(),
    };
    (!is_own).then_some(address)
}

/// Range of the error by chrony: each offset plus or minus the error that chrony states for it, and what its clock may have gained or
/// lost until the next one. `None` if an offset has no stated error, as in older records.
fn by_root_errors(history: &ClockHistory) -> Option<[i64; 2]> {
    let times = || history.offsets.iter().map(|offset| offset.at_ns);
    if !times().eq(history.root_errors.iter().map(|root| root.at_ns)) {
        return None;
    }
    let ends = || [history.from_ns, history.to_ns];
    let mut all: Vec<i64> = times().chain(ends()).collect();
    all.sort_unstable();
    let longest_ns = all.windows(2).map(|pair| pair[1] - pair[0]).max()?.saturating_add(ANSWER_NS);
    let range = |(offset_ns, root): (i64, &RootError)| {
        let rate_ppb = root.rate_error_ppb.saturating_add(MAX_CLOCK_ERROR_PPB);
        let moved_ns = i128::from(longest_ns) * i128::from(rate_ppb) / 1_000_000_000 + 1;
        let error_ns = root.most_ns().saturating_add(i64::try_from(moved_ns).unwrap_or(i64::MAX));
        [offset_ns.saturating_sub(error_ns), offset_ns.saturating_add(error_ns)]
    };
    let offsets = history.offsets.iter().map(|offset| offset.offset_ns);
    let ranges = offsets.zip(&history.root_errors).map(range);
    ranges.reduce(|[low, high], [other_low, other_high]| [low.min(other_low), high.max(other_high)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_an_address_that_other_hosts_can_mean_too() {
        for name in ["10.0.0.1", "192.0.2.7", "2001:db8::1"] {
            assert_eq!(server(name).map(|address| address.to_string()).as_deref(), Some(name));
        }
        let own =
            ["local", "GPS", "PHC0", "", "127.0.0.1", "127.127.1.1", "169.254.169.123", "::1", "fe80::1", "0.0.0.0"];
        for name in own {
            assert_eq!(server(name), None, "{name}");
        }
    }
}
