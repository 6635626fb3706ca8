//! A container of this host as a place.

use super::{Cpus, Size};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// A container that is made for the run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContainerKeys {
    /// Ends whose containers have one name, and are otherwise equal, share one. Default: the name of the end.
    pub name: Option<At<String>>,
    /// The program that makes it. Default: the first that is there, in this order.
    pub client: Option<ClientChoice>,
    /// Image with Tailbound. Default: `localhost/tailbound:` and this release, as `tailbound image` names it.
    pub image: Option<At<String>>,
    /// `host`: that of this host. `none`: one of its own, into which the lab makes the path. Else the name of a network
    /// of podman. Default: `none`.
    #[schemars(extend("examples" = ["host", "none", "podman"]))]
    pub network: Option<At<String>>,
    /// CPUs that it may use, as `taskset -c` writes them. Default: all.
    pub cpus: Option<At<Cpus>>,
    /// Memory that it may use; samples are kept in it. Default: no limit.
    pub memory: Option<At<Size>>,
    /// Linux capabilities beside those that the client gives by default, such as `SYS_NICE` and `IPC_LOCK`.
    pub capabilities: Option<Vec<At<String>>>,
}

/// The program that makes a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClientChoice {
    /// podman.
    Podman,
    /// ctr, the client of containerd.
    Ctr,
}
