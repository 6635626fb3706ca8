//! What the path of guests itself counts: proof that packets took it which no end can give.

use crate::controller::lab::Standing;
use std::collections::BTreeMap;
use tailbound_lab::under::Under;
use tailbound_model::{PathSpec, PortCounted, Severity, Warning, grown};

/// The counters of a path before the window.
pub(in crate::controller) struct Ports<'a> {
    under: Option<&'a Under>,
    names: Vec<String>,
    before: Vec<(String, BTreeMap<String, i64>)>,
}

impl<'a> Ports<'a> {
    /// Reads them; blocks for a moment.
    pub fn begin(under: Option<&'a Under>, standing: &Standing) -> Ports<'a> {
        let names = (0..standing.lab.places()).map(|end| standing.spec.name(end).to_owned()).collect();
        Ports { under, names, before: under.map(Under::counters).unwrap_or_default() }
    }

    /// What was added. Interfaces that count nothing are left out.
    pub fn end(self) -> Vec<PortCounted> {
        let after = self.under.map(Under::counters).unwrap_or_default();
        let all = self.names.into_iter().zip(self.before).zip(after);
        let port = |((end, (_, before)), (interface, after)): ((String, (String, Counters)), (String, Counters))| {
            PortCounted { end, interface, counters: grown(&before, &after) }
        };
        all.map(port).filter(|port| !port.counters.is_empty()).collect()
    }
}

type Counters = BTreeMap<String, i64>;

/// A path that carried nothing of messages that were answered: they took another one.
pub(in crate::controller) fn not_taken(path: &PathSpec, ports: &[PortCounted], answered: u64) -> Option<Warning> {
    let taken: Vec<i64> = ports.iter().filter_map(PortCounted::taken).collect();
    if answered == 0 || taken.is_empty() || taken.iter().sum::<i64>() > 0 {
        return None;
    }
    let what = match path {
        PathSpec::Xdp { .. } => "its programs redirected no packet",
        PathSpec::OpenVswitch { .. } => "its switch took no packet",
        _ => "its interfaces took no packet",
    };
    let text = format!("{answered} messages were answered, and the path {path} did not carry them: {what}");
    let mend =
        "look whether the guests have another way to each other, and please report it: the path was made for them";
    Some(Warning::new("path_not_taken", Severity::Invalid, text, mend))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::XdpMode;

    fn counters(all: &[(&str, i64)]) -> Counters {
        all.iter().map(|(key, n)| ((*key).to_owned(), *n)).collect()
    }

    #[test]
    fn a_path_that_redirected_nothing_is_told() {
        let path = PathSpec::Xdp { mode: XdpMode::Native, mtu: None };
        // The interface took them, and somebody else handed them on.
        let port = |end: &str, redirected| PortCounted {
            end: end.into(),
            interface: format!("tb-{end}"),
            counters: counters(&[("interface.rx_packets", 200), ("xdp.redirected", redirected)]),
        };
        let ports = |redirected| ["ping", "pong"].map(|end| port(end, redirected));
        let told = not_taken(&path, &ports(0), 100).unwrap();
        assert_eq!(told.severity, Severity::Invalid);
        let text =
            "100 messages were answered, and the path xdp native did not carry them: its programs redirected no packet";
        assert_eq!(told.text, text);
        assert!(not_taken(&path, &ports(100), 100).is_none());
        assert!(not_taken(&path, &ports(0), 0).is_none(), "nothing was answered: that is told elsewhere");
        assert!(not_taken(&PathSpec::Datagram { mtu: None }, &[], 100).is_none(), "sockets count nothing");
    }

    #[test]
    fn what_was_not_read_before_is_no_change() {
        let now = counters(&[("interface.rx_packets", 30), ("switch.rx_packets", 40)]);
        assert_eq!(grown(&counters(&[("interface.rx_packets", 10)]), &now), counters(&[("interface.rx_packets", 20)]));
    }
}
