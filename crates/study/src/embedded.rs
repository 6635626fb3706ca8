//! The built-in studies, which are part of the program Tailbound.

/// Name and text of each study that is built into Tailbound.
pub fn embedded() -> &'static [(&'static str, &'static str)] {
    &[
        ("quick", include_str!("../studies/quick.yaml")),
        ("ping-pong", include_str!("../studies/ping-pong.yaml")),
        ("payload-mtu", include_str!("../studies/payload-mtu.yaml")),
        ("receive-modes", include_str!("../studies/receive-modes.yaml")),
        ("scheduling", include_str!("../studies/scheduling.yaml")),
        ("rmw-compare", include_str!("../studies/rmw-compare.yaml")),
        ("hand-off", include_str!("../studies/hand-off.yaml")),
        ("vendor-pairs", include_str!("../studies/vendor-pairs.yaml")),
        ("middlewares", include_str!("../studies/middlewares.yaml")),
        ("security-cost", include_str!("../studies/security-cost.yaml")),
        ("rate-sweep", include_str!("../studies/rate-sweep.yaml")),
        ("throughput", include_str!("../studies/throughput.yaml")),
        ("fan-out", include_str!("../studies/fan-out.yaml")),
        ("discovery", include_str!("../studies/discovery.yaml")),
        ("rt-priority", include_str!("../studies/rt-priority.yaml")),
        ("tools-side-by-side", include_str!("../studies/tools-side-by-side.yaml")),
        ("two-hosts", include_str!("../studies/two-hosts.yaml")),
        ("kubernetes-networks", include_str!("../studies/kubernetes-networks.yaml")),
        ("kubernetes-latency", include_str!("../studies/kubernetes-latency.yaml")),
        ("kubernetes-subscribers", include_str!("../studies/kubernetes-subscribers.yaml")),
        ("kubernetes-subscribers-latency", include_str!("../studies/kubernetes-subscribers-latency.yaml")),
        ("vm-latency", include_str!("../studies/vm-latency.yaml")),
        ("vm-latency-hosts", include_str!("../studies/vm-latency-hosts.yaml")),
        ("vm-bridges", include_str!("../studies/vm-bridges.yaml")),
        ("tsn-gates", include_str!("../studies/tsn-gates.yaml")),
        ("containers", include_str!("../studies/containers.yaml")),
        ("clock", include_str!("../studies/clock.yaml")),
        ("child-threads", include_str!("../studies/child-threads.yaml")),
        ("child-threads-advice", include_str!("../studies/child-threads-advice.yaml")),
        ("child-threads-ros", include_str!("../studies/child-threads-ros.yaml")),
    ]
}
