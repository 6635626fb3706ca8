//! Other hosts, which are reached by ssh.

use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Another host on which an end runs, reached by ssh.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SshKeys {
    /// Destination for `ssh`: a host name of the ssh configuration, or `user@host`.
    pub host: At<String>,
    /// Absolute path of the directory on the other host to which Tailbound copies its bundle. Default:
    /// `$XDG_CACHE_HOME/tailbound`, otherwise `~/.cache/tailbound`.
    pub directory: Option<At<String>>,
    /// Absolute path of a Tailbound program of this release that is installed on the other host. If given, no bundle is
    /// copied.
    pub program: Option<At<String>>,
    /// Whether Tailbound's bundle stays on the other host after the run. Default: `keep`.
    pub bundle: Option<BundleChoice>,
}

/// Whether Tailbound's bundle stays on another host after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BundleChoice {
    /// The bundle stays on the other host for the next run.
    Keep,
    /// Tailbound's bundle is removed from the other host after the run.
    Remove,
}
