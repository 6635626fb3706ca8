//! Frames, and the time that they need on the wire.

use std::str::FromStr;
use tailbound_model::Problem;

/// Bytes that a frame needs on the wire in addition to those that the kernel counts: preamble and start of the frame (8), checksum
/// (4), and the gap before the next frame (12). (IEEE 802.3.)
pub const WIRE_BYTES: u64 = 24;

/// Bytes of an IP header and a UDP header, which an MTU contains.
pub const IP_UDP_BYTES: u64 = 28;
/// Bytes of an Ethernet header without the tag of a VLAN.
pub const ETHERNET_BYTES: u64 = 14;

/// Smallest length of a frame without its checksum, bytes: shorter ones are padded. (IEEE 802.3.)
const LEAST_BYTES: u64 = 60;

/// Picoseconds of a nanosecond.
const PS: u128 = 1_000;

/// Speed of a link, bit/s; above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed(u64);

/// A frame that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Length of the frame as the kernel counts it, with the Ethernet header and without the checksum, bytes.
    pub bytes: u64,
    /// Speed of the link.
    pub speed: Speed,
}

impl Frame {
    /// Time for which the frame, with [`WIRE_BYTES`], needs the wire, ps, rounded up.
    pub(crate) fn wire_ps(self) -> u128 {
        let bits = u128::from(self.bytes.max(LEAST_BYTES) + WIRE_BYTES) * 8;
        (bits * 1_000_000_000 * PS).div_ceil(u128::from(self.speed.0))
    }

    /// Time for which the frame, with [`WIRE_BYTES`], needs the wire, ns, rounded up.
    pub fn wire_ns(self) -> u64 {
        u64::try_from(self.wire_ps().div_ceil(PS)).unwrap_or(u64::MAX)
    }
}

impl Speed {
    /// A speed in bit/s; `None` for 0.
    pub fn of_bits_per_second(bits: u64) -> Option<Speed> {
        (bits > 0).then_some(Speed(bits))
    }
}

impl FromStr for Speed {
    type Err = Problem;

    /// Reads a speed such as `1Gbps`, `2.5 Gbit/s` or `100M`.
    fn from_str(text: &str) -> Result<Speed, Problem> {
        let bad = || {
            let what = format!("`{text}` is not the speed of a link");
            Problem::new("bad_value", what, "write a number above 0 with its unit, for example `1Gbps` or `100Mbps`")
        };
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let (number, unit) = (text[..end].parse::<f64>().map_err(|_| bad())?, text[end..].trim());
        let factor = match unit.strip_suffix("bps").or_else(|| unit.strip_suffix("bit/s")).unwrap_or(unit) {
            "" if unit != text => 1.0,
            "k" | "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            _ => return Err(bad()),
        };
        let bits = (number * factor).round();
        if (1.0..=1e15).contains(&bits) { Speed::of_bits_per_second(bits as u64).ok_or_else(bad) } else { Err(bad()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_needs_its_bytes_and_24_more_on_the_wire() {
        let ns = |bytes, speed: &str| Frame { bytes, speed: speed.parse().expect("a speed") }.wire_ns();
        // 150 bytes at 8 ns each.
        assert_eq!(ns(126, "1Gbps"), 1_200);
        assert_eq!([ns(1_514, "100 Mbit/s"), ns(60, "10G"), ns(60, "2.5Gbps")], [123_040, 68, 269]);
        assert_eq!(ns(42, "1Gbps"), ns(60, "1Gbps"));
    }

    #[test]
    fn speeds_have_units() {
        let bits = |text: &str| text.parse::<Speed>().map(|speed| speed.0).ok();
        assert_eq!(
            ["1Gbps", "2.5 Gbit/s", "100M", "9600bps"].map(bits),
            [1_000_000_000, 2_500_000_000, 100_000_000, 9_600].map(Some)
        );
        assert_eq!(["1", "", "fast", "0Gbps", "-1Gbps", "1GB/s", "1e9bps", "99999Tbps"].map(bits), [None; 8]);
        let problem = "1 GB/s".parse::<Speed>().expect_err("no speed");
        insta::assert_snapshot!(problem.paragraph(), @r"
        `1 GB/s` is not the speed of a link
          help: write a number above 0 with its unit, for example `1Gbps` or `100Mbps`
        ");
    }
}
