//! Frame preemption of an interface (IEEE 802.1Qbu, 802.3br): reads and sets its MAC merge layer by the generic netlink family
//! `ethtool` (ETHTOOL_MSG_MM_GET, ETHTOOL_MSG_MM_SET).
//!
//! Input: the index of an interface of the calling thread's network namespace. Output: the state of its MAC merge layer. Errors have
//! the words with which the kernel or a driver explains a refusal.

use crate::netlink::{ask_of, attributes, push};
use std::io;
use tailbound_model::MergeLayer;

/// Header of a generic netlink message: command, version, and two reserved bytes (linux/genetlink.h).
const HEADER: usize = 4;
/// The family that describes all families, its request for one of them, and the attributes for name and number.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
// Requests and attributes of linux/ethtool_netlink_generated.h.
const MM_GET: u8 = 42;
const MM_SET: u8 = 43;
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

/// State of the MAC merge layer of an interface, as its driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeState {
    /// The settings of the layer.
    pub layer: MergeLayer,
    /// Whether the interface sends preemptible frames in fragments now; with verification, its neighbour has shown that it can
    /// receive them.
    pub is_active: bool,
    /// Size of the smallest fragment that the interface sends, without its checksum, bytes.
    pub sent_bytes: Option<u32>,
    /// Size of the smallest fragment that the interface receives, without its checksum, bytes.
    pub received_bytes: Option<u32>,
}

/// Reads the MAC merge layer of an interface; `None` if its driver has none, or if the kernel is older than 6.3.
///
/// # Errors
/// The interface does not exist, or netlink is not available.
pub fn read(index: u32) -> io::Result<Option<MergeState>> {
    match family().and_then(|family| generic(family, MM_GET, &request_about(index))) {
        Ok(answer) => Ok(state(&answer)),
        // The driver has no frame preemption, or the kernel does not know the request.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets the MAC merge layer of an interface. Needs CAP_NET_ADMIN.
///
/// # Errors
/// The kernel or the driver refuses.
pub fn set(index: u32, layer: MergeLayer) -> io::Result<()> {
    generic(family()?, MM_SET, &settings(index, layer)).map(drop)
}

/// Frame preemption of an interface as a text such as `receiving fragments on, sending fragments on (not active), fragments of at
/// least 60 bytes sent and 60 bytes received, verification off`; or `not supported`.
pub(super) fn preemption(index: u32) -> io::Result<String> {
    Ok(read(index)?.map_or_else(|| "not supported".to_owned(), |state| text(&state)))
}

/// The attributes of a request about an interface.
fn request_about(index: u32) -> Vec<u8> {
    let mut header = Vec::new();
    push(&mut header, INDEX, &index.to_ne_bytes());
    let mut body = Vec::new();
    push(&mut body, MM_HEADER | NESTED, &header);
    body
}

/// The attributes of a request that sets the layer of an interface.
fn settings(index: u32, layer: MergeLayer) -> Vec<u8> {
    let mut body = request_about(index);
    let MergeLayer { receives, sends, verifies } = layer;
    for (kind, is_on) in [(PMAC_ENABLED, receives), (TX_ENABLED, sends), (VERIFY_ENABLED, verifies)] {
        push(&mut body, kind, &[u8::from(is_on)]);
    }
    body
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

/// The state in the attributes of an answer; `None` if the driver has no MAC merge layer.
fn state(answer: &[u8]) -> Option<MergeState> {
    let of = |kind: u16| attributes(answer).find(|(k, _)| *k == kind).map(|(_, value)| value);
    let is_on = |kind: u16| of(kind).and_then(|value| value.first()).is_some_and(|value| *value != 0);
    let bytes = |kind: u16| of(kind).and_then(|value| value.try_into().ok()).map(u32::from_ne_bytes);
    let layer = MergeLayer { receives: is_on(PMAC_ENABLED), sends: is_on(TX_ENABLED), verifies: is_on(VERIFY_ENABLED) };
    let [sent_bytes, received_bytes] = [TX_MIN_FRAGMENT, RX_MIN_FRAGMENT].map(bytes);
    // Some kernels answer with zeros if a port of a driver with frame preemption has none: `mm_prepare_data` of net/ethtool/mm.c
    // leaves the error of the driver out. The smallest fragment of a port that has the layer has 60 bytes or more (IEEE 802.3br).
    if sent_bytes == Some(0) {
        return None;
    }
    Some(MergeState { layer, is_active: is_on(TX_ACTIVE), sent_bytes, received_bytes })
}

fn text(state: &MergeState) -> String {
    let bytes = |value: Option<u32>| value.map_or_else(|| "an unknown number of".to_owned(), |value| value.to_string());
    let word = |is_on: bool| if is_on { "on" } else { "off" };
    format!(
        "receiving fragments {}, sending fragments {} ({}), fragments of at least {} bytes sent and {} bytes received, verification {}",
        word(state.layer.receives),
        word(state.layer.sends),
        if state.is_active { "active" } else { "not active" },
        bytes(state.sent_bytes),
        bytes(state.received_bytes),
        word(state.layer.verifies)
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
        assert_eq!(text(&state(&answer).unwrap()), expected);
        // A port without frame preemption of a driver that has it.
        let mut zeros = Vec::new();
        push(&mut zeros, TX_MIN_FRAGMENT, &0u32.to_ne_bytes());
        assert_eq!(state(&zeros), None);
    }

    #[test]
    fn a_refusal_to_set_it_is_an_error() {
        // The loopback interface has no frame preemption, and other users may not set it.
        let error = set(1, MergeLayer::ALL).unwrap_err();
        let kinds = [io::ErrorKind::Unsupported, io::ErrorKind::PermissionDenied];
        assert!(kinds.contains(&error.kind()), "{error}");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn requests_have_the_layout_of_the_headers_of_the_kernel() {
        // struct nlattr (linux/netlink.h): length with its header, kind; values are padded to four bytes. ETHTOOL_A_MM_HEADER = 1,
        // nested, with ETHTOOL_A_HEADER_DEV_INDEX = 1.
        let about = [12, 0, 1, 0x80, 8, 0, 1, 0, 7, 1, 0, 0];
        assert_eq!(request_about(0x107), about);
        // ETHTOOL_A_MM_PMAC_ENABLED = 2, ETHTOOL_A_MM_TX_ENABLED = 3, ETHTOOL_A_MM_VERIFY_ENABLED = 7, one byte each.
        let values = [5, 0, 2, 0, 1, 0, 0, 0, 5, 0, 3, 0, 0, 0, 0, 0, 5, 0, 7, 0, 1, 0, 0, 0];
        let layer = MergeLayer { receives: true, sends: false, verifies: true };
        assert_eq!(settings(0x107, layer), [&about[..], &values].concat());
    }
}
