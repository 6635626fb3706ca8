//! The options of the function `open` of the `iceoryx2` driver.

use tailbound_abi::side::{Outcome, Pair};
use tailbound_abi::{TB_EINVAL, TB_EUNSUPPORTED};

/// Number of the domain if the options name no domain.
pub const DEFAULT_DOMAIN: u16 = 77;
/// Largest number of a domain, as of DDS domains.
pub const MAX_DOMAIN: u16 = 230;
/// Number of writers, and of readers, for which a topic has room if the options name no number.
pub const DEFAULT_PEERS: usize = 8;
/// Largest number of writers, and of readers, of a topic.
pub const MOST_PEERS: usize = 1024;
/// Largest number of messages in the buffer of a reader.
pub const MOST_BUFFERED: usize = 100_000;

/// The options of the function `open`, parsed.
pub struct Options {
    pub domain: u16,
    /// Number of writers, and of readers, for which a topic has room.
    pub max_peers: usize,
    /// Number of messages in the buffer of a reader with `history=keep-all`; `None` = it follows from the payload.
    pub buffer_size: Option<usize>,
}

impl Options {
    /// Reads the options of `open`; the text of every failure names the key of the option.
    pub fn parse(pairs: &[Pair]) -> Outcome<Self> {
        let mut o = Options { domain: DEFAULT_DOMAIN, max_peers: DEFAULT_PEERS, buffer_size: None };
        for pair in pairs {
            match pair.key {
                "domain" => o.domain = pair.number(TB_EINVAL, 0..=MAX_DOMAIN)?,
                "max_peers" => o.max_peers = pair.number(TB_EINVAL, 1..=MOST_PEERS)?,
                "buffer_size" => o.buffer_size = Some(pair.number(TB_EINVAL, 1..=MOST_BUFFERED)?),
                "transport" if pair.value == "shm" => {}
                "transport" => {
                    let why = "iceoryx2 has shared memory of one host, and no other transport";
                    return Err(pair.bad(TB_EUNSUPPORTED, why));
                }
                "unacked_limit" => {
                    let why =
                        "nothing is acknowledged: the buffer of a reader, buffer_size, limits the messages on the way";
                    return Err(pair.bad(TB_EUNSUPPORTED, why));
                }
                "address" | "interface" | "peers" | "multicast" => {
                    return Err(pair.bad(TB_EINVAL, "iceoryx2 uses no network: all ends are processes of one host"));
                }
                _ => return Err(pair.bad(TB_EINVAL, "the iceoryx2 driver has no such option")),
            }
        }
        Ok(o)
    }

    /// Prefix of the names of all files that the session makes, so that sessions of other domains do not see them.
    pub fn prefix(&self) -> String {
        format!("iox2_tb{}_", self.domain)
    }
}
