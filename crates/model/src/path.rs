//! What joins the places.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A path as a study names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathSpec {
    /// The loopback interface of the controller's network namespace.
    Loopback,
    /// A veth pair between two network namespaces.
    Veth {
        /// MTU in octets; `None` = the kernel's default, 1500.
        mtu: Option<u32>,
    },
    /// A bridge in a namespace of its own, joined to each place by a veth pair.
    Bridge {
        /// MTU in octets of every interface; `None` = 1500.
        mtu: Option<u32>,
    },
    /// Interfaces that the user has set up; checked, and changed by nothing but settings of the host.
    Existing {
        /// The ping side.
        ping: ExistingEnd,
        /// The pong side.
        pong: ExistingEnd,
    },
}

/// One side of an existing path: an interface, an address, or both.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ExistingEnd {
    /// Interface name; looked up by the address when absent.
    pub interface: Option<String>,
    /// IP address; the interface's first when absent.
    pub address: Option<String>,
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |f: &mut fmt::Formatter<'_>, name: &str, mtu: &Option<u32>| match mtu {
            Some(mtu) => write!(f, "{name} mtu {mtu}"),
            None => f.write_str(name),
        };
        match self {
            PathSpec::Loopback => f.write_str("loopback"),
            PathSpec::Veth { mtu } => with(f, "veth", mtu),
            PathSpec::Bridge { mtu } => with(f, "bridge", mtu),
            PathSpec::Existing { ping, pong } => {
                let side = |e: &ExistingEnd| e.interface.clone().or(e.address.clone());
                match (side(ping), side(pong)) {
                    // Between the addresses that the places were given.
                    (None, None) => f.write_str("existing"),
                    (ping, pong) => {
                        write!(f, "existing {} to {}", ping.unwrap_or_default(), pong.unwrap_or_default())
                    }
                }
            }
        }
    }
}
