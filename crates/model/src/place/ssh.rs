//! Another host, reached by ssh, as a place, that is, as a location where an end runs.

use serde::{Deserialize, Serialize};

/// Another host on which an end runs, and how ssh reaches the host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SshSpec {
    /// Destination for `ssh`: a host name of the ssh configuration, or `user@host`.
    pub host: String,
    /// Directory on the other host to which Tailbound copies its bundle; if absent, `$XDG_CACHE_HOME/tailbound`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Path of a Tailbound program that is installed on the other host. If given, no bundle is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// True if Tailbound removes its bundle from the other host after the run.
    #[serde(default)]
    pub remove: bool,
}
