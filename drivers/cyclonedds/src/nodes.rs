//! Nodes of ROS 2 in the domain: the middlewares of ROS 2 announce them in samples of the topic `ros_discovery_info`, from which
//! `ros2 node list` is made (rmw_dds_common, `ParticipantEntitiesInfo`).

use std::ffi::CString;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tailbound_abi::side::Outcome;

use crate::error::check;
use crate::ffi;

const TOPIC: &str = "ros_discovery_info";
const TYPE: &str = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
/// Participants send their sample again to a reader that joins, within a heartbeat.
const LONGEST: Duration = Duration::from_millis(1500);
/// Longest sequence of a message that is read.
const MOST: usize = 10_000;

/// The bytes of a message in CDR with the least significant byte first, from the position of the next member on. Identities have 16
/// bytes since Iron, and 24 in Humble, of which the first 16 count.
struct Cdr<'a> {
    bytes: &'a [u8],
    at: usize,
    of_identity: usize,
}

impl<'a> Cdr<'a> {
    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let from = self.at;
        self.at = from.checked_add(n)?;
        self.bytes.get(from..self.at)
    }

    fn length(&mut self) -> Option<usize> {
        self.at = self.at.next_multiple_of(4);
        let n = u32::from_le_bytes(*self.bytes(4)?.first_chunk()?) as usize;
        (n <= MOST).then_some(n)
    }

    fn string(&mut self) -> Option<String> {
        let n = self.length()?;
        Some(String::from_utf8_lossy(self.bytes(n)?).trim_end_matches('\0').to_owned())
    }

    fn gids(&mut self) -> Option<Vec<String>> {
        (0..self.length()?).map(|_| self.gid()).collect()
    }

    /// The identity of an end point, in hexadecimal digits.
    fn gid(&mut self) -> Option<String> {
        let bytes = self.bytes(self.of_identity)?;
        Some(bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The nodes of a message: the name of each, with its readers and writers. `None` if the message has another layout.
fn read(message: &[u8], of_identity: usize) -> Option<Vec<Value>> {
    let mut cdr = Cdr { bytes: message, at: 0, of_identity };
    let mut nodes = Vec::new();
    cdr.gid()?;
    for _ in 0..cdr.length()? {
        let (space, name) = (cdr.string()?, cdr.string()?);
        let (readers, writers) = (cdr.gids()?, cdr.gids()?);
        let name = format!("{}/{name}", space.trim_end_matches('/'));
        nodes.push(json!({"name": name, "readers": readers, "writers": writers}));
    }
    // Up to three bytes fill the message to a multiple of four.
    (message.len() - cdr.at < 4).then_some(nodes)
}

/// Adds the nodes of a message of either layout.
fn add(message: &[u8], nodes: &mut Vec<Value>) {
    nodes.extend(read(message, 16).or_else(|| read(message, 24)).into_iter().flatten());
}

/// The nodes of ROS 2 that participants announce: their names, which several nodes may have in common, with the identities of their
/// readers and writers. Takes 1.5 s.
pub fn announced(participant: ffi::dds_entity_t) -> Outcome<Value> {
    // Names without a NUL byte.
    let [topic, kind] = [TOPIC, TYPE].map(|text| CString::new(text).unwrap_or_default());
    // SAFETY: Cyclone copies the names and the policies, which are freed afterwards.
    let (topic, reader) = unsafe {
        let (topic, kind) = (topic.into_raw(), kind.into_raw());
        let made = ffi::cdds_create_blob_topic(participant, topic, kind, true);
        drop((CString::from_raw(topic), CString::from_raw(kind)));
        let topic = check("dds_create_topic of ros_discovery_info", made)?;
        let qos = ffi::dds_create_qos();
        ffi::dds_qset_reliability(qos, ffi::dds_reliability_kind_DDS_RELIABILITY_RELIABLE, 0);
        ffi::dds_qset_durability(qos, ffi::dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL);
        // Each participant sends one message, and the messages have no key.
        ffi::dds_qset_history(qos, ffi::dds_history_kind_DDS_HISTORY_KEEP_ALL, 0);
        let reader = ffi::dds_create_reader(participant, topic, qos, core::ptr::null());
        ffi::dds_delete_qos(qos);
        (topic, check("dds_create_reader of ros_discovery_info", reader))
    };
    let mut nodes = Vec::new();
    let begin = Instant::now();
    while let (Ok(reader), true) = (&reader, begin.elapsed() < LONGEST) {
        while take(*reader, &mut nodes) {}
        std::thread::sleep(Duration::from_millis(50));
    }
    // SAFETY: both belong to this function.
    unsafe {
        if let Ok(reader) = &reader {
            ffi::dds_delete(*reader);
        }
        ffi::dds_delete(topic);
    }
    reader.map(|_| Value::Array(nodes))
}

/// Takes one message; false if there was none.
fn take(reader: ffi::dds_entity_t, nodes: &mut Vec<Value>) -> bool {
    let mut sample: *mut ffi::ddsi_serdata = core::ptr::null_mut();
    let mut info = core::mem::MaybeUninit::<ffi::dds_sample_info>::uninit();
    // SAFETY: there is room for one sample and its info, which one call fills. The sample is released below, when its bytes, which begin
    // with four bytes of their encoding, are no longer used.
    unsafe {
        if ffi::dds_takecdr(reader, &mut sample, 1, info.as_mut_ptr().cast(), ffi::DDS_ANY_STATE) <= 0 {
            return false;
        }
        let size = ffi::ddsi_serdata_size(sample) as usize;
        let mut whole = ffi::ddsrt_iovec_t { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let same = ffi::ddsi_serdata_to_ser_ref(sample, 0, size, &mut whole);
        if info.assume_init_ref().valid_data {
            let bytes = core::slice::from_raw_parts(whole.iov_base.cast::<u8>(), size);
            add(bytes.get(4..).unwrap_or_default(), nodes);
        }
        ffi::ddsi_serdata_to_ser_unref(same, &whole);
        ffi::ddsi_serdata_unref(sample);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(of_identity: usize) -> Vec<u8> {
        let identity = |byte: u8| [vec![byte; 16], vec![0; of_identity - 16]].concat();
        let mut bytes = identity(7);
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend((text.len() as u32 + 1).to_le_bytes());
            bytes.extend(text.bytes().chain([0]));
        };
        bytes.extend(1_u32.to_le_bytes());
        text(&mut bytes, "/robot");
        text(&mut bytes, "talker");
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(identity(0xab));
        bytes
    }

    #[test]
    fn nodes_have_their_writers_in_both_layouts() {
        for of_identity in [16, 24] {
            let mut nodes = Vec::new();
            add(&message(of_identity), &mut nodes);
            assert_eq!(nodes, [json!({"name": "/robot/talker", "readers": [], "writers": ["ab".repeat(16)]})]);
        }
    }

    #[test]
    fn a_message_that_is_cut_adds_nothing() {
        for length in 0..message(24).len() {
            let mut nodes = Vec::new();
            add(&message(24)[..length], &mut nodes);
            assert!(nodes.is_empty(), "{length}");
        }
    }
}
