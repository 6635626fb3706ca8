//! How the ends of a trial find each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Discovery method that a study asks for: how the ends of a trial find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discovery {
    /// Each driver gets the addresses of the other ends, and uses multicast too if the path carries multicast.
    #[default]
    Auto,
    /// The ends find each other only by multicast.
    Multicast,
    /// Discovery method: each driver gets the addresses of the other ends and does not use multicast.
    Peers,
    /// Each driver gets a DNS name with the addresses of the other ends and does not use multicast. Tailbound creates a
    /// headless Service for the name.
    Dns,
    /// A discovery server informs each end about the other ends. Tailbound creates the server in the Kubernetes
    /// cluster.
    Server,
}

impl Discovery {
    /// True if the study does not name a discovery method.
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

/// Discovery information that the drivers got: how the ends find each other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DiscoveryReport")]
pub struct DiscoveryFacts {
    /// Discovery method: `multicast`, `peers`, `multicast and peers`, `dns` or `server`.
    pub by: String,
    /// Reason for the choice of the discovery method, in words.
    pub why: String,
    /// Address and port of the discovery server, if the ends use such a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// DNS name that the ends got as the address of their peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
