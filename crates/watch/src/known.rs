//! What participants announced: names of topics and types, and policies.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tailbound_rtps::{Announced, EndpointFound, Guid, GuidPrefix, Sample, VendorId};

/// Everything that was announced during the capture.
#[derive(Default)]
pub struct Known {
    /// Writers by their identity.
    pub writers: BTreeMap<Guid, EndpointFound>,
    /// Readers by their identity.
    pub readers: BTreeMap<Guid, EndpointFound>,
    /// Names of participants.
    pub names: BTreeMap<GuidPrefix, String>,
    /// Nodes of ROS 2 to which writers belong.
    pub nodes: BTreeMap<Guid, String>,
    /// Participants of which a message was seen, with their vendors.
    pub participants: BTreeMap<GuidPrefix, VendorId>,
    /// Addresses from which messages came.
    pub addresses: BTreeSet<IpAddr>,
    /// Writers whose announcement was not copied to its end: its policies are not known.
    pub partial: BTreeSet<Guid>,
    /// Participants whose messages are encrypted or signed.
    pub protected: BTreeSet<GuidPrefix>,
}

/// Largest number of participants, writers and readers that are remembered, of each kind.
const MOST: usize = 10_000;

impl Known {
    /// Remembers a participant that sent a message.
    pub fn meet(&mut self, participant: GuidPrefix, vendor: VendorId) {
        if self.participants.len() < MOST {
            self.participants.insert(participant, vendor);
        }
    }

    /// Remembers what a sample of discovery announces.
    pub fn learn(&mut self, sample: &Sample<'_>) {
        let Some(announcement) = sample.announcement() else { return };
        if self.writers.len().max(self.readers.len()).max(self.names.len()) >= MOST {
            return;
        }
        match announcement.what {
            Announced::Participant(found) => {
                if let Some(name) = found.name {
                    self.names.insert(found.guid.prefix, name);
                }
            }
            Announced::Writer(found) => {
                if announcement.is_partial {
                    self.partial.insert(found.guid);
                }
                self.writers.insert(found.guid, found);
            }
            Announced::Reader(found) => drop(self.readers.insert(found.guid, found)),
        }
    }
}
