//! How the ends of a trial find each other.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a study says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discovery {
    /// Each asks the addresses of the others, and by multicast where the path carries it.
    #[default]
    Auto,
    /// By multicast alone.
    Multicast,
    /// Each asks the addresses of the others, and nobody by multicast.
    Peers,
    /// Each asks the addresses that a name gives, and nobody by multicast. Tailbound makes a headless Service for it.
    Dns,
    /// A discovery server tells each of the others. Tailbound makes one, in a cluster.
    Server,
}

impl Discovery {
    /// Nothing is said.
    pub fn is_auto(&self) -> bool {
        *self == Discovery::Auto
    }
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Discovery::Auto => "auto",
            Discovery::Multicast => "multicast",
            Discovery::Peers => "peers",
            Discovery::Dns => "dns",
            Discovery::Server => "server",
        })
    }
}

/// What drivers were given to find each other by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiscoveryFacts {
    /// `multicast`, `peers`, `multicast and peers`, `dns` or `server`.
    pub by: String,
    /// Why so, as a sentence without its end.
    pub why: String,
    /// Address and port of the discovery server, by which the ends were told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The name that the ends were given as their peer: of a headless Service of their pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
