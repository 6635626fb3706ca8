//! Counters of the path between guests. They prove that packets took the path, which counters of the ends cannot prove.

use crate::controller::active_lab::ActiveLab;
use std::collections::BTreeMap;
use tailbound_lab::wiring::Wiring;
use tailbound_model::{PathSpec, PortCounted, Severity, Warning, grown};

/// Packet counters of the interfaces on the path between guests, read before the messages are sent.
pub(in crate::controller) struct Ports<'a> {
    under: Option<&'a Wiring>,
    names: Vec<String>,
    before: Vec<(String, BTreeMap<String, i64>)>,
}

impl<'a> Ports<'a> {
    /// Reads the counters of the path before the messages are sent. The call blocks for a moment.
    pub fn begin(under: Option<&'a Wiring>, lab: &ActiveLab) -> Ports<'a> {
        let names = (0..lab.lab.places()).map(|end| lab.spec.name(end).to_owned()).collect();
        Ports { under, names, before: under.map(Wiring::counters).unwrap_or_default() }
    }

    /// Changes of the counters of the path since `begin`. Interfaces without counters are left out.
    pub fn end(self) -> Vec<PortCounted> {
        let after = self.under.map(Wiring::counters).unwrap_or_default();
        let all = self.names.into_iter().zip(self.before).zip(after);
        let port = |((end, (_, before)), (interface, after)): ((String, (String, Counters)), (String, Counters))| {
            PortCounted { end, interface, counters: grown(&before, &after) }
        };
        all.map(port).filter(|port| !port.counters.is_empty()).collect()
    }
}

type Counters = BTreeMap<String, i64>;

/// Warns if messages were answered although the path carried no packet.
pub(in crate::controller) fn not_taken(path: &PathSpec, ports: &[PortCounted], answered: u64) -> Option<Warning> {
    let taken: Vec<i64> = ports.iter().filter_map(PortCounted::taken).collect();
    if answered == 0 || taken.is_empty() || taken.iter().sum::<i64>() > 0 {
        return None;
    }
    let what = match path {
        PathSpec::Xdp { .. } => "the XDP programs of the path redirected no packet",
        PathSpec::OpenVswitch { .. } => "the switch of the path received no packet",
        _ => "the interfaces of the path received no packet",
    };
    let text = format!("{answered} messages were answered, and the path {path} did not carry them: {what}");
    let remedy = "check whether the guests have another path to each other, and please report this error";
    Some(Warning::new("path_not_taken", Severity::Invalid, text, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::XdpMode;

    fn counters(all: &[(&str, i64)]) -> Counters {
        all.iter().map(|(key, n)| ((*key).to_owned(), *n)).collect()
    }

    #[test]
    fn a_path_that_redirected_nothing_is_reported() {
        let path = PathSpec::Xdp { mode: XdpMode::Native, mtu: None };
        // The interface received the packets, and something else forwarded them.
        let port = |end: &str, redirected| PortCounted {
            end: end.into(),
            interface: format!("tb-{end}"),
            counters: counters(&[("interface.rx_packets", 200), ("xdp.redirected", redirected)]),
        };
        let ports = |redirected| ["ping", "pong"].map(|end| port(end, redirected));
        let warning = not_taken(&path, &ports(0), 100).unwrap();
        assert_eq!(warning.severity, Severity::Invalid);
        let text = "100 messages were answered, and the path xdp native did not carry them: the XDP programs of the \
                    path redirected no packet";
        assert_eq!(warning.problem.what, text);
        assert!(not_taken(&path, &ports(100), 100).is_none());
        assert!(not_taken(&path, &ports(0), 0).is_none(), "no message was answered: another finding says so");
        assert!(not_taken(&PathSpec::Datagram { mtu: None }, &[], 100).is_none(), "sockets count nothing");
    }

    #[test]
    fn a_counter_that_was_not_read_before_shows_no_change() {
        let now = counters(&[("interface.rx_packets", 30), ("switch.rx_packets", 40)]);
        assert_eq!(grown(&counters(&[("interface.rx_packets", 10)]), &now), counters(&[("interface.rx_packets", 20)]));
    }
}
