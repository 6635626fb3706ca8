//! What this crate asks an API server for. `tailbound k8s manifest` grants it, by one rule each.

/// A rule of the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// API group; empty is the core.
    pub group: &'static str,
    /// Resource.
    pub resource: &'static str,
    /// What is done with it.
    pub verbs: &'static [&'static str],
    /// Whether it belongs to no namespace, or is read in another one.
    pub cluster_wide: bool,
}

/// All that is asked for.
pub const RIGHTS: &[Right] = &[
    right("", "pods", &["create", "get", "list", "watch", "delete"], false),
    right("", "pods/exec", &["create", "get"], false),
    right("", "pods/log", &["get"], false),
    right("", "events", &["list"], false),
    right("apps", "deployments", &["create", "get", "list", "delete"], false),
    right("", "services", &["create", "get", "list", "delete"], false),
    right("discovery.k8s.io", "endpointslices", &["list"], false),
    right("networking.k8s.io", "networkpolicies", &["list"], false),
    right("", "nodes", &["get"], true),
    right("apps", "daemonsets", &["list"], true),
];

const fn right(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    cluster_wide: bool,
) -> Right {
    Right { group, resource, verbs, cluster_wide }
}
