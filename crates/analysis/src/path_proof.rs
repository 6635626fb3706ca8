//! Reports the path that messages took: what was counted on the interfaces, compared with the traffic without messages.

use tailbound_document::number::count;
use tailbound_document::{InterfaceProof, PathProofReport};
use tailbound_model::{Counted, PathProof, PortCounted, Space, TrialSpec, Way};
use tailbound_record::{Record, TrialRecord};

/// Reports the path that the messages of a condition took in these trials, with the counters that prove it.
pub(crate) fn of(record: &Record, trials: &[usize], spec: &TrialSpec) -> Option<PathProofReport> {
    let records: Vec<_> = record.manifest.trials.iter().filter(|t| trials.contains(&t.id)).collect();
    let proofs: Vec<&PathProof> = records.iter().filter_map(|t| t.proof.as_ref()).collect();
    let first = *proofs.first()?;
    let (sent, answered) = proofs.iter().fold((0, 0), |(s, a), p| (s + p.sent, a + p.answered));
    let same = proofs.iter().all(|p| p.found == first.found);
    let word = |way: Way| serde_json::to_value(way).ok().and_then(|v| Some(v.as_str()?.to_owned()));
    let mut transports: Vec<String> = records
        .iter()
        .flat_map(|t| t.ends.values())
        .filter_map(|end| Some(end.transport.as_ref()?.get("transport")?.as_str()?.to_owned()))
        .collect();
    transports.sort();
    transports.dedup();
    let mut report = PathProofReport {
        text: String::new(),
        asked: first.asked.and_then(word),
        found: first.found.filter(|_| same).and_then(word),
        contradiction: proofs.iter().find_map(|p| p.contradiction.clone()),
        unclear: proofs.iter().find_map(|p| p.unclear.clone()),
        sent,
        answered,
        interfaces: interfaces(&proofs, sent),
        ports: ports(&records),
        shared_segments: shared_segments(first),
        network_sockets: first.processes.iter().map(|p| p.sockets).sum(),
        transports,
    };
    // In a flow, packets that come back belong to the protocol, not to a message.
    let message = if spec.measure.flow().is_some() { "message" } else { "message with its answer" };
    report.text = text(&report, first, &proofs, (&spec.path.to_string(), message));
    Some(report)
}

fn interfaces(proofs: &[&PathProof], sent: u64) -> Vec<InterfaceProof> {
    let mut all: Vec<InterfaceProof> = Vec::new();
    let Some(first) = proofs.first() else { return all };
    for (i, space) in first.spaces.iter().enumerate() {
        // Trials of a condition have the same lab, and so the same namespaces in the same order.
        let spaces: Vec<&Space> = proofs.iter().filter_map(|p| p.spaces.get(i)).collect();
        let excess = |of: &dyn Fn(&Counted) -> i64| -> f64 {
            let sum: f64 = spaces.iter().map(|s| s.pair(of)).map(|(with, without)| with - without).sum();
            (sum / sent.max(1) as f64).max(0.0)
        };
        let ip = |key: &'static str| move |c: &Counted| c.ip.get(key).copied().unwrap_or(0);
        for (name, carried) in &space.data.interfaces {
            let path = space.path.contains(name);
            let of =
                |pick: fn(&tailbound_model::Traffic) -> i64| move |c: &Counted| c.interfaces.get(name).map_or(0, pick);
            let packets: i64 = spaces.iter().map(|s| of(|t| t.tx_packets)(&s.data)).sum();
            if !path && packets == 0 && carried.rx_packets == 0 {
                continue;
            }
            let quiet: Vec<&Counted> = spaces.iter().filter_map(|s| s.quiet.as_ref()).collect();
            let seconds = quiet.iter().map(|q| q.ns as f64 / 1e9).sum::<f64>();
            let seen = quiet.iter().map(|q| of(|t| t.tx_packets)(q) as f64).sum::<f64>();
            all.push(InterfaceProof {
                ends: space.ends.clone(),
                interface: name.clone(),
                path,
                packets,
                bytes: spaces.iter().map(|s| of(|t| t.tx_bytes)(&s.data)).sum(),
                packets_per_message: excess(&of(|t| t.tx_packets)),
                bytes_per_message: excess(&of(|t| t.tx_bytes)),
                quiet_packets_per_s: (seconds > 0.0).then(|| seen / seconds),
                fragments_per_message: excess(&ip("Ip.FragCreates")),
                multicast_per_message: excess(&ip("IpExt.OutMcastPkts")),
                reassembly_failures: spaces.iter().map(|s| ip("Ip.ReasmFails")(&s.data)).sum(),
            });
        }
    }
    all
}

/// Sums the counters of the path's own interfaces over the trials, for each end. Trials of a condition have the same
/// path, but its interfaces may have different names.
fn ports(records: &[&TrialRecord]) -> Vec<PortCounted> {
    let mut all: Vec<PortCounted> = Vec::new();
    for counted in records.iter().flat_map(|t| &t.ports) {
        match all.iter_mut().find(|p| p.end == counted.end) {
            Some(sum) => counted.counters.iter().for_each(|(k, n)| *sum.counters.entry(k.clone()).or_default() += n),
            None => all.push(counted.clone()),
        }
    }
    all
}

/// Describes as text the counters of the path's own interfaces, XDP programs and switch, per message that was sent;
/// `None` if there are no counters.
fn at_path(report: &PathProofReport) -> Option<String> {
    let of = |key: &str, words: &str| {
        let of: Vec<i64> = report.ports.iter().filter_map(|p| p.counters.get(key).copied()).collect();
        let per_message = of.iter().sum::<i64>() as f64 / report.sent.max(1) as f64;
        (!of.is_empty()).then(|| format!("{words} {per_message:.2}"))
    };
    let told = [
        of("interface.rx_packets", "its interfaces took"),
        of("xdp.redirected", "its programs redirected"),
        of("switch.rx_packets", "its switch took"),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn shared_segments(proof: &PathProof) -> Vec<String> {
    let of = |i: usize| proof.processes.get(i).and_then(|p| p.segments.as_ref());
    let Some(one) = of(0) else { return Vec::new() };
    let common = one
        .iter()
        .filter(|s| proof.processes.len() < 2 || of(1).is_some_and(|two| two.iter().any(|t| t.name == s.name)));
    common.map(|s| s.name.clone()).collect()
}

/// Describes the path that messages took as text, with the counters that prove it.
fn text(report: &PathProofReport, first: &PathProof, proofs: &[&PathProof], (path, message): (&str, &str)) -> String {
    let packets: i64 = report.interfaces.iter().map(|i| i.packets).sum();
    let without = report.interfaces.iter().filter_map(|i| i.quiet_packets_per_s).sum::<f64>();
    let nothing = match packets {
        0 => "no packet on any interface".to_owned(),
        n => {
            let others = count(n.unsigned_abs());
            let why = match report.network_sockets {
                Some(0) => "the measuring processes have no network socket".to_owned(),
                _ => format!("{without:.0} a second while no message was sent"),
            };
            format!("no packet on any interface except {others} packets of other programs ({why})")
        }
    };
    let segments = match report.shared_segments.len() {
        0 => "no segment".to_owned(),
        1 => "1 segment".to_owned(),
        n => format!("{n} segments"),
    };
    let by = if first.processes.len() > 1 { "both ends" } else { "the process in which both ends run" };
    match first.found.filter(|_| report.found.is_some()) {
        Some(Way::Packets) => packets_text(report, path, message),
        Some(Way::InsideProcess) => format!("inside the process: {nothing}"),
        Some(way) => format!("{way}: {nothing}; {segments} of /dev/shm mapped by {by}"),
        None if proofs.iter().any(|p| p.found != first.found) => "different trials used different paths".into(),
        None => {
            let why = report.unclear.as_deref().or(report.contradiction.as_deref());
            format!("the path of messages is not known: {}", why.unwrap_or("no reason known"))
        }
    }
}

fn packets_text(report: &PathProofReport, path: &str, message: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for interface in report.interfaces.iter().filter(|i| i.packets_per_message > 0.005) {
        let name = if interface.path { path } else { &interface.interface };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let per_message = report.interfaces.iter().map(|i| i.packets_per_message).sum::<f64>();
    // IP counts for the whole namespace, so each namespace is counted once.
    let mut spaces: Vec<&InterfaceProof> = Vec::new();
    for interface in &report.interfaces {
        if !spaces.iter().any(|s| s.ends == interface.ends) {
            spaces.push(interface);
        }
    }
    let fragments: f64 = spaces.iter().map(|i| i.fragments_per_message).sum();
    let multicast: f64 = spaces.iter().map(|i| i.multicast_per_message).sum();
    let cast = if multicast > 0.5 { "multicast" } else { "unicast" };
    let mut text = format!("{cast} over {}: {per_message:.2} packets per {message}", names.join(" and "));
    if fragments > 0.005 {
        text.push_str(&format!(", {fragments:.2} of them fragments"));
    }
    let failures: i64 = spaces.iter().map(|i| i.reassembly_failures).sum();
    if failures > 0 {
        text.push_str(&format!("; {} datagrams could not be reassembled", count(failures.unsigned_abs())));
    }
    if let Some(told) = at_path(report) {
        text.push_str(&format!("; the path itself: {told}"));
    }
    text
}
