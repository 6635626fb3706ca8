//! Matched end points, and reasons why end points do not match, from the status events of the participant.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard};

use ros2_client::dds::rustdds::qos::QosPolicyId;
use ros2_client::dds::rustdds::{DomainParticipantStatusEvent as Event, GUID, QosPolicies};
use tailbound_abi::TB_ETIMEDOUT;
use tailbound_abi::side::{Fail, Host, Outcome, fail};

use crate::deadline::left;
use crate::sample::TYPE;

/// The last match of an end point that RustDDS refused, with the QoS policies that the writer offered and the reader
/// requested.
pub struct Refused {
    pub policy: QosPolicyId,
    pub offered: QosPolicies,
    pub requested: QosPolicies,
}

/// State of one end point of this session: matched peers and refused peers.
#[derive(Default)]
pub struct End {
    pub tag: u64,
    pub peers: BTreeSet<GUID>,
    /// Remote end points that have another message type, with the type's name. RustDDS matched them because it does not
    /// compare types; the remote DDS implementation compares types and does not match.
    pub other_type: BTreeMap<GUID, String>,
    pub refused: Option<Refused>,
}

/// All end points that are not destroyed, by identity, and the participants that were seen.
#[derive(Default)]
pub struct Known {
    pub ends: HashMap<GUID, End>,
    pub participants: BTreeSet<GUID>,
    /// Remote end points whose message type is not [`TYPE`], the type of this driver, with the name of their type.
    pub other_types: HashMap<GUID, String>,
}

/// The current matching of end points and their peers, shared between threads.
#[derive(Default)]
pub struct Graph {
    known: Mutex<Known>,
    changed: Condvar,
}

impl Graph {
    /// Locks the matching state. The lock is also held while an end point is created, so that no event about the end
    /// point arrives too early.
    pub fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Updates the matching of end points by a DDS status event.
    pub fn learn(&self, event: Event, host: &Host) {
        let mut known = self.lock();
        let refuse = |known: &mut Known, local: GUID, offered: QosPolicies, requested: QosPolicies| {
            if let (Some(end), Some(policy)) = (known.ends.get_mut(&local), offered.compliance_failure_wrt(&requested))
            {
                end.refused = Some(Refused { policy, offered, requested });
            }
        };
        match event {
            Event::RemoteReaderMatched { local_writer: local, remote_reader: remote }
            | Event::RemoteWriterMatched { local_reader: local, remote_writer: remote } => {
                let Known { ends, other_types, .. } = &mut *known;
                let Some(end) = ends.get_mut(&local) else { return };
                if let Some(kind) = other_types.get(&remote) {
                    end.other_type.insert(remote, kind.clone());
                } else if end.peers.insert(remote) {
                    tell(host, end);
                }
            }
            Event::ReaderDetected { reader: found } | Event::WriterDetected { writer: found }
                if found.type_name != TYPE =>
            {
                known.other_types.insert(found.guid, found.type_name);
            }
            Event::ReaderLost { guid, .. } | Event::WriterLost { guid, .. } => {
                known.other_types.remove(&guid);
                known.ends.values_mut().for_each(|end| drop(end.other_type.remove(&guid)));
                for end in known.ends.values_mut().filter(|end| end.peers.contains(&guid)) {
                    end.peers.remove(&guid);
                    tell(host, end);
                }
            }
            Event::RemoteReaderQosIncompatible { local_writer, requested_qos, offered_qos, .. } => {
                refuse(&mut known, local_writer, *offered_qos, *requested_qos);
            }
            Event::RemoteWriterQosIncompatible { local_reader, requested_qos, offered_qos, .. } => {
                refuse(&mut known, local_reader, *offered_qos, *requested_qos);
            }
            Event::ParticipantDiscovered { dpd } => {
                known.participants.insert(dpd.guid);
            }
            // RustDDS does not report the loss of the end points that the participant had.
            Event::ParticipantLost { id, .. } => {
                known.participants.retain(|p| p.prefix != id);
                known.other_types.retain(|guid, _| guid.prefix != id);
                for end in known.ends.values_mut() {
                    end.other_type.retain(|guid, _| guid.prefix != id);
                    let before = end.peers.len();
                    end.peers.retain(|guid| guid.prefix != id);
                    if end.peers.len() != before {
                        tell(host, end);
                    }
                }
            }
            _ => {}
        }
        drop(known);
        self.changed.notify_all();
    }

    /// Waits until an end point has at least `peers` peers.
    pub fn wait_matched(&self, id: u32, guid: GUID, topic: &str, peers: u32, deadline_ns: i64) -> Outcome {
        let mut known = self.lock();
        loop {
            let have = known.ends.get(&guid).ok_or_else(|| Fail::closed(id))?.peers.len();
            if have >= peers as usize {
                return Ok(());
            }
            let Some(left) = left(deadline_ns) else {
                return fail(TB_ETIMEDOUT, format!("{have} of {peers} peers matched on {topic}"));
            };
            known = self.changed.wait_timeout(known, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }

    /// Removes an end point; calls that wait for its peers return.
    pub fn forget(&self, guid: &GUID) {
        self.lock().ends.remove(guid);
        self.changed.notify_all();
    }
}

fn tell(host: &Host, end: &End) {
    // SAFETY: the session joins the thread that calls this function before it is closed.
    unsafe { host.on_match(end.tag, end.peers.len() as i32) };
}
