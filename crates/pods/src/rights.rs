//! The rights that this crate needs at an API server. Each right is granted by one rule of `tailbound k8s manifest`.

/// One right at the Kubernetes API server, granted by one rule of `tailbound k8s manifest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// API group of the resource; empty for the core group.
    pub group: &'static str,
    /// Kind of Kubernetes resource to which the right applies.
    pub resource: &'static str,
    /// Kubernetes verbs that the right permits, for example `get`.
    pub verbs: &'static [&'static str],
    /// Whether the resource belongs to no namespace, or is read in another namespace.
    pub cluster_wide: bool,
}

/// All rights that this crate needs at an API server.
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
