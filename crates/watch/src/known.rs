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
    /// Participants of which a message was seen, with their vendors.
    pub participants: BTreeMap<GuidPrefix, VendorId>,
    /// Addresses from which messages came.
    pub addresses: BTreeSet<IpAddr>,
    /// Participants whose messages are encrypted or signed.
    pub protected: BTreeSet<GuidPrefix>,
}

impl Known {
    /// Remembers what a sample of discovery announces.
    pub fn learn(&mut self, sample: &Sample<'_>) {
        let Some(announcement) = sample.announcement() else { return };
        match announcement.what {
            Announced::Participant(found) => {
                if let Some(name) = found.name {
                    self.names.insert(found.guid.prefix, name);
                }
            }
            Announced::Writer(found) => drop(self.writers.insert(found.guid, found)),
            Announced::Reader(found) => drop(self.readers.insert(found.guid, found)),
        }
    }
}
