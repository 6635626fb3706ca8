//! Keys of a container of this host as a place.

use super::{Cpus, Size};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// A container of this host that is created for the run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContainerKeys {
    /// Name of the container. Ends whose containers have the same name and equal keys share one container. Default: the
    /// name of the end.
    pub name: Option<At<String>>,
    /// Program that creates the container. Default: the first installed program, in the order `podman`, `ctr`.
    pub client: Option<ClientChoice>,
    /// Container image with Tailbound. Default: `localhost/tailbound:` and this release, which is the name that
    /// `tailbound image` uses.
    pub image: Option<At<String>>,
    /// Network of the container. `host`: the network of this host. `none`: a separate, empty network namespace, in
    /// which Tailbound creates the path. Any other word: the name of a podman network. Default: `none`.
    #[schemars(extend("examples" = ["host", "none", "podman"]))]
    pub network: Option<At<String>>,
    /// CPUs that the container may use, as for `taskset -c`, e.g. `"0-1,3"`. Default: all CPUs.
    pub cpus: Option<At<Cpus>>,
    /// Memory limit of the container; the samples need a part of this memory. Default: no limit.
    pub memory: Option<At<Size>>,
    /// Linux capabilities of the container, such as `SYS_NICE` and `IPC_LOCK`, in addition to the capabilities that the
    /// container program gives by default.
    pub capabilities: Option<Vec<At<String>>>,
}

/// Program that creates a container for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClientChoice {
    /// The container is created by podman.
    Podman,
    /// The container is created by ctr, the client of containerd.
    Ctr,
}
