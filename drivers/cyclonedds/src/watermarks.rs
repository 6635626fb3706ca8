//! The limit of unacknowledged messages, converted into the watermarks of Cyclone, which count bytes.

use std::fmt::Write as _;

use tailbound_abi::side::{Fail, Outcome};

use crate::sample::HEAD;

/// Size of fragments in bytes, if Cyclone's configuration does not set this size (General/FragmentSize).
pub const FRAGMENT_BYTES: u64 = 1344;
/// Number of bytes that Cyclone counts for a fragment in the watermarks in addition to the fragment's data
/// (`sample_overhead` in Cyclone's dds_whc.c).
const OVERHEAD_BYTES: u64 = 80;
/// Largest watermark in bytes: watermarks have 32 bits, and half of the possible values is more than any useful limit.
const MOST_BYTES: u64 = i32::MAX as u64;

/// The limit of unacknowledged messages (`unacked_limit`), and the payload for which the limit applies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    /// Largest number of unacknowledged messages of a writer.
    pub messages: Option<u64>,
    /// Payload of a message that the limit counts, in bytes.
    pub payload: Option<u64>,
}

/// Number of bytes that Cyclone counts for a sample in the watermarks: its serialised form and the overhead of its
/// fragments (`whcn_size` in Cyclone's dds_whc.c).
pub fn counted_bytes(payload: u64, fragment: u64) -> u64 {
    let serialised = (HEAD as u64 + payload).next_multiple_of(4);
    serialised + serialised.div_ceil(fragment.max(1)) * OVERHEAD_BYTES
}

impl Limit {
    /// Computes the watermark in bytes above which a writer waits. The writer waits before a sample if more bytes than
    /// the watermark are unacknowledged: with n - 1 unacknowledged messages it continues, with n messages it waits.
    pub fn mark_bytes(self, fragment: Option<i32>) -> Outcome<Option<u64>> {
        let Some(messages) = self.messages else { return Ok(None) };
        let Some(payload) = self.payload else {
            return Err(Fail::invalid(format!(
                "unacked_limit={messages}: Cyclone counts bytes; give the option `payload` too, the size of a message"
            )));
        };
        let one = counted_bytes(payload, fragment.map_or(FRAGMENT_BYTES, |n| n as u64));
        match (messages - 1).checked_mul(one).filter(|mark| *mark <= MOST_BYTES) {
            Some(mark) => Ok(Some(mark)),
            None => Err(Fail::invalid(format!(
                "unacked_limit={messages}: this number of messages of {payload} B exceeds the largest limit of Cyclone ({MOST_BYTES} B)"
            ))),
        }
    }
}

/// Writes the element `Watermarks` of Cyclone's configuration.
pub fn write_watermarks(x: &mut String, mark: Option<u64>) {
    let _ = match mark {
        // The watermarks for stopping and continuing are equal and do not grow, so that the limit is constant.
        Some(mark) => write!(
            x,
            "<Watermarks><WhcLow>{mark} B</WhcLow><WhcHigh>{mark} B</WhcHigh><WhcHighInit>{mark} B</WhcHighInit>\
             <WhcAdaptive>false</WhcAdaptive></Watermarks>"
        ),
        // Cyclone's first watermark, 30 kB, stops a keep-all writer that answers a backlog from the receive thread. The
        // writer then waits for acknowledgements that its own thread must receive, until the call times out. Cyclone's
        // last watermark is 500 kB.
        None => write!(x, "<Watermarks><WhcHighInit>500 kB</WhcHighInit></Watermarks>"),
    };
}

/// Reads a size in Cyclone's notation, where 1 kB is 1,024 B.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "B" => 1,
        "kB" | "KiB" => 1 << 10,
        "MB" | "MiB" => 1 << 20,
        "GB" | "GiB" => 1 << 30,
        _ => return None,
    };
    Some(number.parse::<u64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_counts() {
        assert_eq!(counted_bytes(0, 1344), 16 + 80);
        assert_eq!(counted_bytes(1, 1344), 20 + 80);
        assert_eq!(counted_bytes(1344, 1344), 1360 + 2 * 80);
        assert_eq!([bytes("30 kB"), bytes("1344 B"), bytes("x")], [Some(30_720), Some(1344), None]);
    }

    #[test]
    fn a_limit_that_cannot_be_is_refused_by_name() {
        let mark = |messages, payload| Limit { messages: Some(messages), payload }.mark_bytes(None);
        assert_eq!(mark(1, Some(64)).unwrap(), Some(0));
        assert_eq!(mark(20, Some(64)).unwrap(), Some(19 * 160));
        for (limit, why) in
            [(mark(20, None), "`payload`"), (mark(1 << 40, Some(64)), "exceeds the largest limit of Cyclone")]
        {
            let text = limit.unwrap_err().text;
            assert!(text.starts_with("unacked_limit=") && text.contains(why), "{text}");
        }
    }
}
