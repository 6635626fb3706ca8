//! Names of topics, and identities as text.

use tailbound_rtps::{EntityId, Guid, GuidPrefix};

/// The 16 bytes of an identity in hexadecimal digits, with points between its four parts, as the document has it.
pub fn guid_words(guid: Guid) -> String {
    let bytes: Vec<u8> = guid.prefix.0.into_iter().chain(guid.entity.0).collect();
    let words = bytes.chunks(4).map(|four| four.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    words.collect::<Vec<_>>().join(".")
}

/// The identity in 32 hexadecimal digits; `None` = another text.
pub fn guid_of_digits(digits: &str) -> Option<Guid> {
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    let (prefix, entity) = bytes.split_first_chunk()?;
    let entity = EntityId(*entity.first_chunk()?);
    Some(Guid { prefix: GuidPrefix(*prefix), entity })
}

/// Name of a topic of ROS 2; `None` = another topic.
pub fn ros_topic(topic: &str) -> Option<String> {
    topic.strip_prefix("rt/").map(|name| format!("/{name}"))
}
