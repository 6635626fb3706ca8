//! Which frames a network card stamps, as the kernel reports it (`struct hwtstamp_config` of linux/net_tstamp.h).

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which frames a network card stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CardStamping {
    /// Which sent frames are stamped (HWTSTAMP_TX_*): 0 = none, 1 = those whose sender asks for it; greater numbers = the card also
    /// writes the time into messages of PTP.
    pub sent: i32,
    /// Which received frames are stamped (HWTSTAMP_FILTER_*): 0 = none, 1 = all, greater numbers = messages of PTP or NTP.
    pub received: i32,
}

impl CardStamping {
    /// Number of [`received`](CardStamping::received) for all frames.
    pub const ALL: i32 = 1;

    /// Whether the card stamps a sent frame if its sender asks for it.
    pub fn stamps_sent(&self) -> bool {
        self.sent > 0
    }

    /// These frames, but sent frames if their sender asks for it, and all received frames.
    pub fn with_all_frames(self) -> CardStamping {
        CardStamping { sent: if self.stamps_sent() { self.sent } else { 1 }, received: CardStamping::ALL }
    }
}

/// Names of the numbers that ethtool(8) uses too.
const SENT: [&str; 4] = ["off", "on", "onestep-sync", "onestep-p2p"];
const RECEIVED: [&str; 16] = [
    "none",
    "all",
    "some",
    "ptpv1-l4-event",
    "ptpv1-l4-sync",
    "ptpv1-l4-delay-req",
    "ptpv2-l4-event",
    "ptpv2-l4-sync",
    "ptpv2-l4-delay-req",
    "ptpv2-l2-event",
    "ptpv2-l2-sync",
    "ptpv2-l2-delay-req",
    "ptpv2-event",
    "ptpv2-sync",
    "ptpv2-delay-req",
    "ntp-all",
];

impl fmt::Display for CardStamping {
    /// For example `sent on, received ptpv2-event`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |words: &[&'static str], number: i32| {
            let known = usize::try_from(number).ok().and_then(|number| words.get(number).copied());
            known.map_or_else(|| number.to_string(), str::to_owned)
        };
        write!(f, "sent {}, received {}", word(&SENT, self.sent), word(&RECEIVED, self.received))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_ethtool() {
        let texts = [(0, 0), (1, 12), (9, -1)].map(|(sent, received)| CardStamping { sent, received }.to_string());
        assert_eq!(texts, ["sent off, received none", "sent on, received ptpv2-event", "sent 9, received -1"]);
    }
}
