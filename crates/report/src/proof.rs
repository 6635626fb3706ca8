//! By which way messages went: what was counted on the interfaces, beside what is there without messages.

use crate::circumstances::PortReport;
use crate::condition::ConditionReport;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::gather::port;
use crate::number::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailbound_model::{Counted, PathProof, Space, TrialSpec, Way};
use tailbound_record::{Record, TrialRecord};

/// The proof of a condition's path, over the trials that its figures are made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathProofReport {
    /// The way in words, with its figures.
    pub text: String,
    /// The way that the study asks for: `packets`, `shared-memory`, `data-sharing`, `inside-process`; absent = it does not
    /// say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The way that was found, in the same words; absent = it cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What contradicts the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// What cannot be told, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unclear: Option<String>,
    /// Messages that were sent, warm-up included.
    pub sent: u64,
    /// Those that were answered.
    pub answered: u64,
    /// What each interface carried, of those that carried something and those of the path.
    pub interfaces: Vec<InterfaceProof>,
    /// What the path of guests counted at its own interfaces, summed over the trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortReport>,
    /// Files of shared memory that both ends had mapped, or the one process of both; of the first trial.
    pub shared_segments: Vec<String>,
    /// Network sockets of the measuring processes of the first trial; absent = they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_sockets: Option<usize>,
    /// Transport as the drivers name it.
    pub transports: Vec<String>,
}

/// One interface in one network namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceProof {
    /// The ends in its namespace.
    pub ends: Vec<String>,
    /// Name.
    pub interface: String,
    /// It is the path's.
    pub path: bool,
    /// Packets that it sent while messages went.
    pub packets: i64,
    /// Octets of them, frames included.
    pub octets: i64,
    /// Packets per message sent, less those without messages.
    pub packets_per_message: f64,
    /// Octets per message sent, less those without messages.
    pub octets_per_message: f64,
    /// Packets in a second without messages; absent = not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_packets_per_s: Option<f64>,
    /// Fragments that IP made in this namespace, per message sent.
    pub fragments_per_message: f64,
    /// Packets to a group that left this namespace, per message sent.
    pub multicast_per_message: f64,
    /// Datagrams that IP could not put together again in this namespace.
    pub reassembly_failures: i64,
}

/// The proof of these trials of a condition.
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
    // What comes back in a flow belongs to its protocol, not to a message.
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
                octets: spaces.iter().map(|s| of(|t| t.tx_bytes)(&s.data)).sum(),
                packets_per_message: excess(&of(|t| t.tx_packets)),
                octets_per_message: excess(&of(|t| t.tx_bytes)),
                quiet_packets_per_s: (seconds > 0.0).then(|| seen / seconds),
                fragments_per_message: excess(&ip("Ip.FragCreates")),
                multicast_per_message: excess(&ip("IpExt.OutMcastPkts")),
                reassembly_failures: spaces.iter().map(|s| ip("Ip.ReasmFails")(&s.data)).sum(),
            });
        }
    }
    all
}

/// Trials of a condition have the same path, if not the same names of its interfaces.
fn ports(records: &[&TrialRecord]) -> Vec<PortReport> {
    let mut all: Vec<PortReport> = Vec::new();
    for counted in records.iter().flat_map(|t| &t.ports) {
        match all.iter_mut().find(|p| p.end == counted.end) {
            Some(sum) => counted.counters.iter().for_each(|(k, n)| *sum.counters.entry(k.clone()).or_default() += n),
            None => all.push(port(counted)),
        }
    }
    all
}

/// What the path counted by itself, per message sent.
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

/// The way in words, with its figures.
fn text(report: &PathProofReport, first: &PathProof, proofs: &[&PathProof], (path, message): (&str, &str)) -> String {
    let packets: i64 = report.interfaces.iter().map(|i| i.packets).sum();
    let without = report.interfaces.iter().filter_map(|i| i.quiet_packets_per_s).sum::<f64>();
    let nothing = match packets {
        0 => "no packet on any interface".to_owned(),
        n => {
            let others = count(n.unsigned_abs());
            let why = match report.network_sockets {
                Some(0) => "the ends have no network socket".to_owned(),
                _ => format!("{without:.0} a second without messages"),
            };
            format!("no packet on any interface but {others} of others ({why})")
        }
    };
    let segments = match report.shared_segments.len() {
        0 => "no segment".to_owned(),
        1 => "1 segment".to_owned(),
        n => format!("{n} segments"),
    };
    let by = if first.processes.len() > 1 { "both ends" } else { "the process of both ends" };
    match first.found.filter(|_| report.found.is_some()) {
        Some(Way::Packets) => packets_text(report, path, message),
        Some(Way::InsideProcess) => format!("inside the process: {nothing}"),
        Some(way) => format!("{way}: {nothing}; {segments} of /dev/shm mapped by {by}"),
        None if proofs.iter().any(|p| p.found != first.found) => "not by the same way in all trials".into(),
        None => {
            let why = report.unclear.as_deref().or(report.contradiction.as_deref());
            format!("a way that is not told: {}", why.unwrap_or("no reason known"))
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
    // IP counts for the whole namespace: each once.
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
        text.push_str(&format!("; {} datagrams could not be put together again", count(failures.unsigned_abs())));
    }
    if let Some(told) = at_path(report) {
        text.push_str(&format!("; the path itself: {told}"));
    }
    text
}

/// Conditions of the same way in one line each, for the terminal and Markdown: which, and the way.
pub(crate) fn lines(report: &Report) -> Vec<(String, String)> {
    let mut groups: Vec<(&str, Vec<&ConditionReport>)> = Vec::new();
    for condition in &report.conditions {
        let Some(proof) = &condition.path_proof else { continue };
        match groups.iter_mut().find(|(text, _)| *text == proof.text) {
            Some((_, of)) => of.push(condition),
            None => groups.push((&proof.text, vec![condition])),
        }
    }
    let which = |of: &[&ConditionReport]| match of {
        [one] => one.name.clone(),
        all if all.len() == report.conditions.len() => format!("all {} conditions", all.len()),
        [first, rest @ ..] => format!("{} and {} more", first.name, rest.len()),
        [] => String::new(),
    };
    groups.into_iter().map(|(text, of)| (which(&of), text.to_owned())).collect()
}

/// Delivery inside the process is news by itself: the path of the study was not measured.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let with = |wanted: &dyn Fn(&PathProofReport) -> bool| -> Vec<&ConditionReport> {
        report.conditions.iter().filter(|c| c.path_proof.as_ref().is_some_and(wanted)).collect()
    };
    let mut all = Vec::new();
    let mut add = |code: &str, of: Vec<&ConditionReport>, words: &dyn Fn(&PathProofReport) -> String| {
        let Some((first, proof)) = of.first().and_then(|c| Some((c, c.path_proof.as_ref()?))) else { return };
        let more = match of.len() - 1 {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let ids: Vec<usize> = of.iter().map(|c| c.id).collect();
        let text = format!("{}{more}: {}", first.name, words(proof));
        all.push(Finding { evidence: "proof".into(), ..finding(FindingLevel::Caution, code, text, &ids) });
    };
    add("inside_process", with(&|p| p.found.as_deref() == Some("inside-process")), &|p| {
        let inside = p.text.strip_prefix("inside the process: ").unwrap_or(&p.text);
        format!("delivered inside the process: {inside}. The figures say nothing about a path.")
    });
    add("way_not_told", with(&|p| p.found.is_none() && p.unclear.is_some()), &|p| {
        format!("by which way messages went cannot be told: {}.", p.unclear.as_deref().unwrap_or_default())
    });
    all
}
