//! Shaping of the frames that an interface sends by credits (IEEE 802.1Qav): as the study asks for it, and as the kernel reports it.

use crate::{GateClass, SOCKET_PRIORITIES, class_of_priority};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Speed that the kernel reports for the interfaces that Tailbound makes (veth), kbit/s.
pub const MADE_KBIT_S: i32 = 10_000_000;
/// Number of bytes of a frame that its MTU does not contain: header, tag of a VLAN, checksum, preamble and gap (IEEE 802.3).
const AROUND_BYTES: i64 = 14 + 4 + 24;

/// Traffic classes of the interface of an end, with queues of their own, as the study asks for them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShapingSpec {
    /// The traffic classes, in the order of their numbers, which begin at 0.
    pub classes: Vec<GateClass>,
    /// Credits of each class that is shaped, by its number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credits: BTreeMap<u8, CreditSpec>,
    /// Whether a queue discipline of the interface that is not the kernel's default one is replaced for the trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// Credits of a traffic class, as the study asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CreditSpec {
    /// Rate at which credit grows while frames wait: the share of the link that the class gets, kbit/s.
    pub idle_slope_kbit_s: i32,
    /// Rate at which credit changes while a frame is sent, kbit/s; `None` = idle slope - speed of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_slope_kbit_s: Option<i32>,
    /// Largest credit, bytes; `None` = what grows while the largest other frame is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_credit_bytes: Option<i32>,
    /// Smallest credit, bytes; `None` = what the largest frame of the class needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_credit_bytes: Option<i32>,
}

/// Shaping of an interface as the kernel reports it (queue disciplines `mqprio` and `cbs`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ShapingFact {
    /// For each priority of a socket (SO_PRIORITY) from 0 on: the number of its traffic class.
    pub class_of_priority: Vec<u8>,
    /// For each traffic class: the number of its transmit queues.
    pub queues: Vec<u16>,
    /// Credits of each traffic class that is shaped, by its number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credits: BTreeMap<u8, CreditFact>,
}

/// Credits of a traffic class, as the kernel reports them (tc-cbs(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditFact {
    /// Rate at which credit grows while frames wait, kbit/s.
    pub idle_slope_kbit_s: i32,
    /// Rate at which credit changes while a frame is sent, kbit/s; below 0.
    pub send_slope_kbit_s: i32,
    /// Largest credit, bytes.
    pub high_credit_bytes: i32,
    /// Smallest credit, bytes; below 0.
    pub low_credit_bytes: i32,
    /// Whether the network card shapes the frames.
    pub offload: bool,
}

impl CreditSpec {
    /// The credits that the kernel should report for an interface with this MTU in bytes and this speed in kbit/s.
    ///
    /// IEEE 802.1Q-2018, 8.6.8.2 and Annex L (L.1): send slope = idle slope - speed; high credit = largest other frame x idle slope /
    /// speed; low credit = largest frame of the class x send slope / speed. Both frames have the size of the MTU here.
    pub fn asked(&self, mtu: u32, speed_kbit_s: i32) -> CreditFact {
        let (speed, frame_bytes) = (i64::from(speed_kbit_s), i64::from(mtu) + AROUND_BYTES);
        let send_slope_kbit_s = self.send_slope_kbit_s.unwrap_or(self.idle_slope_kbit_s - speed_kbit_s);
        // The magnitudes are rounded up: with a smaller one, credit would be lost.
        let share = |slope: i32| {
            let bytes = (frame_bytes * i64::from(slope).abs() + speed - 1) / speed;
            i32::try_from(bytes).unwrap_or(i32::MAX)
        };
        CreditFact {
            idle_slope_kbit_s: self.idle_slope_kbit_s,
            send_slope_kbit_s,
            high_credit_bytes: self.high_credit_bytes.unwrap_or_else(|| share(self.idle_slope_kbit_s)),
            low_credit_bytes: self.low_credit_bytes.unwrap_or_else(|| -share(send_slope_kbit_s)),
            offload: false,
        }
    }
}

impl fmt::Display for ShapingFact {
    /// For example `class 0: idle slope 4000 kbit/s, send slope -9996000 kbit/s, credit -1542 to 1 bytes; class 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for number in 0..self.queues.len() {
            write!(f, "{}class {number}", if number > 0 { "; " } else { "" })?;
            if let Some(credit) = self.credits.get(&(number as u8)) {
                let CreditFact { idle_slope_kbit_s, send_slope_kbit_s, high_credit_bytes, low_credit_bytes, .. } =
                    credit;
                write!(
                    f,
                    ": idle slope {idle_slope_kbit_s} kbit/s, send slope {send_slope_kbit_s} kbit/s, credit {low_credit_bytes} to \
                     {high_credit_bytes} bytes"
                )?;
            }
        }
        Ok(())
    }
}

impl CreditSpec {
    /// Whether a value follows from the speed of the link, because the study does not give it.
    pub fn needs_speed(&self) -> bool {
        self.send_slope_kbit_s.is_none() || self.high_credit_bytes.is_none() || self.low_credit_bytes.is_none()
    }
}

impl ShapingSpec {
    /// For each traffic class: the number of its transmit queues.
    pub fn queues(&self) -> Vec<u16> {
        self.classes.iter().map(|class| class.queues).collect()
    }

    /// The shaping that the kernel should report for an interface with this MTU in bytes and this speed in kbit/s.
    pub fn asked(&self, mtu: u32, speed_kbit_s: i32) -> ShapingFact {
        ShapingFact {
            class_of_priority: self.class_of_priority().to_vec(),
            queues: self.queues(),
            credits: self.credits.iter().map(|(class, credit)| (*class, credit.asked(mtu, speed_kbit_s))).collect(),
        }
    }

    /// For each priority of a socket: the number of its class.
    pub fn class_of_priority(&self) -> [u8; SOCKET_PRIORITIES as usize] {
        class_of_priority(&self.classes)
    }
}

impl fmt::Display for ShapingSpec {
    /// For example `stream 10000 kbit/s, rest`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, class) in self.classes.iter().enumerate() {
            write!(f, "{}{}", if number > 0 { ", " } else { "" }, class.name)?;
            if let Some(credit) = self.credits.get(&(number as u8)) {
                write!(f, " {} kbit/s", credit.idle_slope_kbit_s)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_that_are_not_given_follow_from_the_slope_and_the_largest_frame() {
        let given = CreditSpec {
            idle_slope_kbit_s: 10_000,
            send_slope_kbit_s: None,
            high_credit_bytes: None,
            low_credit_bytes: None,
        };
        let asked = given.asked(1_500, MADE_KBIT_S);
        // 1,542 bytes x 0.001 and x 0.999.
        assert_eq!((asked.send_slope_kbit_s, asked.high_credit_bytes, asked.low_credit_bytes), (-9_990_000, 2, -1_541));
        // 1,542 bytes x 0.1 and x 0.9.
        let slow = given.asked(1_500, 100_000);
        assert_eq!((slow.send_slope_kbit_s, slow.high_credit_bytes, slow.low_credit_bytes), (-90_000, 155, -1_388));
        let all =
            CreditSpec { send_slope_kbit_s: Some(-5), high_credit_bytes: Some(6), low_credit_bytes: Some(-7), ..given };
        let asked = all.asked(1_500, MADE_KBIT_S);
        assert_eq!((asked.send_slope_kbit_s, asked.high_credit_bytes, asked.low_credit_bytes), (-5, 6, -7));
    }
}
