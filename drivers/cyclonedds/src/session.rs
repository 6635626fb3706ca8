//! The state of a session: one or two participants, their end points and their waits.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, OnceLock};

use tailbound_abi::side::{Fail, Host, Outcome};

use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::ffi;
use crate::naming::Naming;
use crate::wait::Sets;

/// Number of end points in one [`Chunk`] of the table of end points.
pub const CHUNK: usize = 64;
/// Largest number of [`Chunk`]s in the table of end points.
pub const CHUNKS: usize = 256;

/// A chunk of the table of end points: places for [`CHUNK`] consecutive end points. A chunk is allocated when its first
/// end point is created.
pub type Chunk = [OnceLock<Box<Endpoint>>; CHUNK];

/// One session of the driver, which has one or two participants.
pub struct Session {
    /// The Cyclone domain instance that the session uses.
    pub domain: Domain,
    /// Number of the DDS domain that the session joins on the network.
    pub network_domain: u32,
    /// Cyclone's handles of the session's participants; the first participant owns the guard conditions of the session.
    pub participants: Vec<ffi::dds_entity_t>,
    /// How the session's topics and the message type are named in DDS.
    pub naming: Naming,
    /// The loading program, whose callbacks the session calls.
    pub host: Host,
    /// Number of this session in the list of sessions that receive Cyclone's log messages.
    pub log: u64,
    /// Handles of the two guard conditions: the first says that `wake` was called, the second says that an end point is
    /// closing.
    pub guards: [ffi::dds_entity_t; 2],
    /// The waitsets for several readers.
    pub sets: Sets,
    /// End points by number. Numbers are never used twice, and finding an end point takes no lock.
    pub endpoints: Box<[OnceLock<Box<Chunk>>; CHUNKS]>,
    /// Number of end points that were created.
    pub created: Mutex<u32>,
}

impl Session {
    /// Returns the end point with the number `id`; the end point may be closed.
    #[inline]
    pub fn endpoint(&self, id: u32) -> Outcome<&Endpoint> {
        let index = (id as usize).wrapping_sub(1);
        self.endpoints
            .get(index / CHUNK)
            .and_then(OnceLock::get)
            .and_then(|chunk| chunk[index % CHUNK].get())
            .map(|e| &**e)
            .ok_or_else(|| Fail::closed(id))
    }

    /// Handle of the owner of the session's waitsets: the participant, or the common parent of several participants,
    /// because a waitset accepts only entities below its owner.
    #[inline]
    pub fn owner(&self) -> ffi::dds_entity_t {
        if let [one] = self.participants[..] { one } else { self.domain.entity }
    }

    /// All end points of the session that are not closed.
    pub fn alive(&self) -> Vec<&Endpoint> {
        let created = *self.created.lock().unwrap_or_else(|e| e.into_inner());
        (1..=created).filter_map(|id| self.endpoint(id).ok()).filter(|e| !e.closed.load(SeqCst)).collect()
    }
}
