//! What becomes of the priority of the messages behind an interface of the user: a tunnel or a veth pair gives packets to another
//! interface, whose gates see the priority that the packets have there.

use tailbound_model::{Severity, Warning};

/// Tunnels whose packets have the same priority at the interface below. Shown with Linux 6.12 (vxlan: 6.18 too).
const KEEP: [&str; 9] = ["vxlan", "geneve", "gre", "gretap", "ip6gre", "ip6gretap", "ipip", "sit", "ip6tnl"];
/// Kinds of interfaces behind which the priority was not looked at.
const UNKNOWN: [&str; 9] = ["tun", "vti", "vti6", "xfrm", "bareudp", "gtp", "ipvlan", "netkit", "team"];

/// An interface by which an end of a study sends.
#[derive(Debug, Clone, Copy)]
pub struct SendingInterface<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Kind of the interface as the kernel names it: `veth`, `vxlan` ...
    pub kind: &'a str,
    /// Whether the study gives this interface gates, or reads the gates of this interface.
    pub has_gates: bool,
}

/// What a user should know about the priority (SO_PRIORITY) of messages behind the interface that sends them.
pub fn priority_behind(interface: SendingInterface<'_>, priority: u8) -> Option<Warning> {
    let SendingInterface { name, kind, has_gates } = interface;
    if priority == 0 {
        return None;
    }
    let note = |code, what: String, help: String| Some(Warning::new(code, Severity::Note, what, help));
    let lost = |what: String, help: String| {
        // Gates at the interface itself see the priority.
        let severity = if has_gates { Severity::Note } else { Severity::Warning };
        Some(Warning::new("priority_lost", severity, what, help))
    };
    match kind {
        "veth" => lost(
            format!(
                "the messages have the priority {priority} at {name} itself, which is one end of a veth pair; behind the other end they \
                 have the priority 0: gates of an interface of the bridge or router there see the priority 0"
            ),
            format!(
                "set the gates at {name}, or set the priority again at the other end of the pair: `tc qdisc add dev OTHER clsact; tc \
                 filter add dev OTHER ingress matchall action skbedit priority {priority}`"
            ),
        ),
        "wireguard" => lost(
            format!(
                "the messages have the priority {priority} at {name} itself; the packets of this tunnel (wireguard) have the priority 0 \
                 at the interface by which they leave, and its gates see the priority 0"
            ),
            format!(
                "set the priority again at the interface by which they leave: `tc qdisc add dev OUTER clsact; tc filter add dev OUTER \
                 egress protocol ip matchall action skbedit priority {priority}`, with a filter for the packets of the tunnel in place \
                 of `matchall` if others leave there too"
            ),
        ),
        kind if KEEP.contains(&kind) => note(
            "priority_of_tunnel",
            format!(
                "the packets of the tunnel {name} ({kind}) have the priority {priority} of the messages at the interface by which they \
                 leave: gates of that interface see it. On the wire, the packets carry it only in the tag of a VLAN"
            ),
            format!(
                "if gates of other machines need the priority, send the packets of the tunnel by a VLAN of that interface, with an \
                 egress map (`{priority}:{}`)",
                priority.min(7)
            ),
        ),
        kind if UNKNOWN.contains(&kind) => note(
            "priority_unknown",
            format!(
                "{name} has the kind {kind}: it is not known whether its packets keep the priority {priority} of the messages at the \
                 interface by which they leave"
            ),
            "count the packets of each class there (`tc -s class show dev OUTER`) while the study runs".to_owned(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_interface_has_what_is_known_of_it() {
        let of =
            |kind, has_gates, priority| priority_behind(SendingInterface { name: "t0", kind, has_gates }, priority);
        let none = [of("macvlan", false, 7), of("vlan", true, 7), of("device", false, 7), of("veth", false, 0)];
        assert!(none.iter().all(Option::is_none), "{none:?}");
        let kinds = [("veth", false), ("veth", true), ("wireguard", false), ("gre", false), ("tun", true)];
        let said = kinds.map(|(kind, has_gates)| {
            let warning = of(kind, has_gates, 5).unwrap();
            format!("{:?} {}: {}", warning.severity, warning.problem.code, warning.problem.paragraph())
        });
        insta::assert_snapshot!(said.join("\n"));
    }
}
