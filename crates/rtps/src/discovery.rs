//! What participants announce about themselves, and about their writers and readers (8.5, 9.6.3).

use crate::content::Time;
use crate::numbers::Numbers;
use crate::parameters::Parameters;
use crate::sample::{EntityId, Guid, Sample};

/// Writers of discovery (9.3.1.5): of participants, of writers and of readers.
const PARTICIPANTS: EntityId = EntityId([0x00, 0x01, 0x00, 0xc2]);
const WRITERS: EntityId = EntityId([0x00, 0x00, 0x03, 0xc2]);
const READERS: EntityId = EntityId([0x00, 0x00, 0x04, 0xc2]);

/// Ids of parameters (9.6.4).
const TOPIC_NAME: u16 = 0x0005;
const TYPE_NAME: u16 = 0x0007;
const RELIABILITY: u16 = 0x001a;
const DURABILITY: u16 = 0x001d;
const DEADLINE: u16 = 0x0023;
const PARTICIPANT_GUID: u16 = 0x0050;
const ENDPOINT_GUID: u16 = 0x005a;
const ENTITY_NAME: u16 = 0x0062;

/// What a sample of discovery announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// What is announced.
    pub what: Announced,
    /// Whether parameters are missing, because the sample is cut or divided: what is absent is then not known.
    pub is_partial: bool,
}

/// A participant, a writer or a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announced {
    /// A participant.
    Participant(ParticipantFound),
    /// A writer of an application.
    Writer(EndpointFound),
    /// A reader of an application.
    Reader(EndpointFound),
}

/// A participant that was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParticipantFound {
    /// Identity of the participant.
    pub guid: Guid,
    /// Name that the program gave the participant.
    pub name: Option<String>,
}

/// A writer or a reader that was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointFound {
    /// Identity of the writer or reader.
    pub guid: Guid,
    /// Name of the topic, as it is on the wire: `rt/chatter` for the ROS 2 topic `/chatter`.
    pub topic: String,
    /// Name of the type, as it is on the wire.
    pub type_name: String,
    /// Whether samples are repeated until they are acknowledged.
    pub is_reliable: bool,
    /// What is kept for readers that join later.
    pub durability: Durability,
    /// Longest time between two samples of an instance, in ns; `None` = no limit.
    pub deadline_ns: Option<i64>,
}

/// What a writer keeps for readers that join later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing.
    Volatile,
    /// Its newest samples, as long as it lives.
    TransientLocal,
    /// Its newest samples, beyond its life.
    Transient,
    /// Its newest samples, on disk.
    Persistent,
}

impl Sample<'_> {
    /// What the sample announces, if it is of a writer of discovery, and has the begin of its data.
    pub fn announcement(&self) -> Option<Announcement> {
        if !self.has_data || self.fragment.is_some_and(|first| first != 1) {
            return None;
        }
        let endpoint_is_writer = match self.writer {
            PARTICIPANTS => None,
            WRITERS => Some(true),
            READERS => Some(false),
            _ => return None,
        };
        // Encapsulations PL_CDR_BE and PL_CDR_LE.
        let little_endian = match self.data.get(..2)? {
            [0, 2] => false,
            [0, 3] => true,
            _ => return None,
        };
        let mut all = Parameters::new(self.data, little_endian, 4);
        let what = match endpoint_is_writer {
            None => Announced::Participant(participant(&mut all)?),
            Some(true) => Announced::Writer(endpoint(&mut all, true)?),
            Some(false) => Announced::Reader(endpoint(&mut all, false)?),
        };
        Some(Announcement { what, is_partial: all.end().is_none() })
    }
}

fn participant(all: &mut Parameters<'_>) -> Option<ParticipantFound> {
    let (mut identity, mut name) = (None, None);
    for (id, value) in all {
        match id {
            PARTICIPANT_GUID => identity = guid(value),
            ENTITY_NAME => name = text(value),
            _ => {}
        }
    }
    Some(ParticipantFound { guid: identity?, name: name.filter(|name| !name.is_empty()) })
}

fn endpoint(all: &mut Parameters<'_>, is_writer: bool) -> Option<EndpointFound> {
    let (mut identity, mut topic, mut type_name) = (None, None, None);
    // Policies that are not announced have their defaults.
    let (mut is_reliable, mut durability, mut deadline_ns) = (is_writer, Durability::Volatile, None);
    for (id, value) in all {
        match id {
            ENDPOINT_GUID => identity = guid(value),
            TOPIC_NAME => topic = text(value),
            TYPE_NAME => type_name = text(value),
            // 1 = best effort; 2 = reliable, and 3 in early implementations.
            RELIABILITY => is_reliable = value.word(0).is_some_and(|kind| kind != 1),
            DURABILITY => {
                durability = match value.word(0)? {
                    0 => Durability::Volatile,
                    1 => Durability::TransientLocal,
                    2 => Durability::Transient,
                    _ => Durability::Persistent,
                };
            }
            DEADLINE => deadline_ns = finite_ns(value),
            _ => {}
        }
    }
    let (topic, type_name) = (topic?, type_name?);
    Some(EndpointFound { guid: identity?, topic, type_name, is_reliable, durability, deadline_ns })
}

/// A time span in ns; `None` = without end.
fn finite_ns(value: Numbers<'_>) -> Option<i64> {
    let span = Time::read(value, 0)?;
    (span.seconds < i32::MAX as u32).then(|| span.unix_ns())
}

fn guid(value: Numbers<'_>) -> Option<Guid> {
    Guid::read(value.bytes)
}

/// A string of CDR: its length with the zero at its end, then its bytes.
fn text(value: Numbers<'_>) -> Option<String> {
    let length = value.word(0)? as usize;
    let bytes = value.bytes.get(4..4usize.checked_add(length)?)?;
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    // Control characters could change the terminal of the reader.
    Some(String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect())
}
