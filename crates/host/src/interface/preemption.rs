//! Frame preemption of an interface (IEEE 802.1Qbu, 802.3br), by the generic netlink family `ethtool` (ETHTOOL_MSG_MM_GET).

use crate::netlink::{ask_of, attributes, push};
use std::io;

/// Header of a generic netlink message: command, version, and two reserved bytes (linux/genetlink.h).
const HEADER: usize = 4;
/// The family that describes all families, its request for one of them, and the attributes for name and number.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
// Request and attributes of linux/ethtool_netlink_generated.h.
const MM_GET: u8 = 42;
const INDEX: u16 = 1;
const MM_HEADER: u16 = 1;
const PMAC_ENABLED: u16 = 2;
const TX_ENABLED: u16 = 3;
const TX_ACTIVE: u16 = 4;
const TX_MIN_FRAGMENT: u16 = 5;
const RX_MIN_FRAGMENT: u16 = 6;
const VERIFY_ENABLED: u16 = 7;
/// Bit of an attribute whose value consists of attributes (linux/netlink.h).
const NESTED: u16 = 0x8000;

/// Frame preemption of the interface with this index in the calling thread's network namespace, as a text such as `receiving
/// fragments on, sending fragments on (not active), fragments of at least 60 bytes sent and 60 bytes received, verification off`; or
/// `not supported`.
///
/// # Errors
/// The interface does not exist, or netlink is not available.
pub(super) fn preemption(index: u32) -> io::Result<String> {
    let mut header = Vec::new();
    push(&mut header, INDEX, &index.to_ne_bytes());
    let mut body = Vec::new();
    push(&mut body, MM_HEADER | NESTED, &header);
    match family().and_then(|family| generic(family, MM_GET, &body)) {
        Ok(answer) => Ok(text(&answer)),
        // The driver has no frame preemption, or the kernel (before 6.3) does not know the request.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok("not supported".to_owned()),
        Err(error) => Err(error),
    }
}

/// Number of the family `ethtool`, which is different on each machine.
fn family() -> io::Result<u16> {
    let mut body = Vec::new();
    push(&mut body, FAMILY_NAME, b"ethtool\0");
    let answer = generic(CONTROL, GET_FAMILY, &body)?;
    let found = attributes(&answer).find(|(kind, _)| *kind == FAMILY_ID).and_then(|(_, value)| value.try_into().ok());
    found.map(u16::from_ne_bytes).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Sends a request to a family and returns the attributes of the answer.
fn generic(family: u16, command: u8, body: &[u8]) -> io::Result<Vec<u8>> {
    let request = [&[command, 1, 0, 0], body].concat();
    let answers = ask_of(libc::NETLINK_GENERIC, family, libc::NLM_F_ACK as u16, &request)?;
    Ok(answers.first().and_then(|answer| answer.get(HEADER..)).unwrap_or_default().to_vec())
}

fn text(answer: &[u8]) -> String {
    let of = |kind: u16| attributes(answer).find(|(k, _)| *k == kind).map(|(_, value)| value);
    let is_on = |kind: u16| of(kind).and_then(|value| value.first()).is_some_and(|value| *value != 0);
    let bytes = |kind: u16| {
        let value = of(kind).and_then(|value| value.try_into().ok()).map(u32::from_ne_bytes);
        value.map_or_else(|| "an unknown number of".to_owned(), |value| value.to_string())
    };
    let word = |kind: u16| if is_on(kind) { "on" } else { "off" };
    format!(
        "receiving fragments {}, sending fragments {} ({}), fragments of at least {} bytes sent and {} bytes received, verification {}",
        word(PMAC_ENABLED),
        word(TX_ENABLED),
        if is_on(TX_ACTIVE) { "active" } else { "not active" },
        bytes(TX_MIN_FRAGMENT),
        bytes(RX_MIN_FRAGMENT),
        word(VERIFY_ENABLED)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_preemption_has_this_fact() {
        assert_eq!(preemption(1).unwrap(), "not supported");
        assert!(preemption(0x7fff_fff0).is_err());
    }

    #[test]
    fn an_answer_is_read() {
        let mut answer = Vec::new();
        let flags = [(PMAC_ENABLED, 1u8), (TX_ENABLED, 1), (TX_ACTIVE, 0), (VERIFY_ENABLED, 0)];
        flags.into_iter().for_each(|(kind, value)| push(&mut answer, kind, &[value]));
        push(&mut answer, TX_MIN_FRAGMENT, &60u32.to_ne_bytes());
        let expected = "receiving fragments on, sending fragments on (not active), fragments of at least 60 bytes sent and an unknown \
                        number of bytes received, verification off";
        assert_eq!(text(&answer), expected);
    }
}
