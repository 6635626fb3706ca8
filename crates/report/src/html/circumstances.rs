//! The sections of the HTML page about the path check, the trials and the study file.

use crate::escape::{escape, prose};
use crate::html::table::{left, number, right, table, words};
use tailbound_document::number::{Unit, count, three_digits, time};
use tailbound_document::{HostFact, PathReport, PathSide, Report};
use tailbound_model::{SecurityFacts, TrialStatus};

pub(crate) fn path(report: &Report) -> String {
    if report.path.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section id=\"path\"><h2>Path</h2>\n<p class=\"lead\">Results of the path check: plain datagrams that were \
         sent before the driver started.</p>\n",
    );
    for path in &report.path {
        html.push_str(&one_path(path));
    }
    html.push_str("</section>\n");
    html
}

fn one_path(path: &PathReport) -> String {
    let ids: Vec<String> = path.trials.iter().map(usize::to_string).collect();
    let trials = if ids.len() == 1 { "trial" } else { "trials" };
    let largest = |n: u64| if n == 0 { "nothing".to_owned() } else { format!("{}\u{202f}B", count(n)) };
    let mut facts = vec![
        format!(
            "datagrams of up to {} passed on the way out, and of up to {} on the way back",
            largest(path.max_datagram_ping_to_pong),
            largest(path.max_datagram_pong_to_ping)
        ),
        format!("fragments {}", if path.fragments_pass { "pass" } else { "do not pass" }),
        match path.multicast_passes {
            Some(true) => "multicast passes".into(),
            Some(false) => "multicast does not pass".into(),
            None => "multicast was not tried".into(),
        },
    ];
    if let Some(ns) = path.probe_round_trip_ns {
        facts.push(format!("the fastest probe took {}", time(ns as f64)));
    }
    if let Some(found) = &path.discovery {
        let at = found.server.as_ref().map_or_else(String::new, |server| format!(" at {server}"));
        let at = found.name.as_ref().map_or(at, |name| format!(", by the name {name}"));
        facts.push(format!("discovery was by {}{at}: {}", found.by, found.why));
    }
    facts.extend(path.security.as_ref().map(security));
    let heads = [
        left("end"),
        left("interface"),
        left("address"),
        right("MTU", "B"),
        left("state"),
        right("speed", "Mbit/s"),
        right("queues", "tx"),
        right("queues", "rx"),
        left("offloads on"),
    ];
    let interface = |e: &PathSide| {
        let vlan = e.vlan.as_ref().map(|vlan| format!("VLAN {vlan}"));
        let all = [Some(e.interface.clone()), vlan, e.shaping.clone()];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let optional = |n: Option<u64>| number(&n.map_or("not known".into(), count));
    let rows: Vec<String> = path
        .ends
        .iter()
        .map(|e| {
            let cells = [
                words(&e.end),
                words(&interface(e)),
                words(&e.address),
                number(&count(e.mtu.into())),
                words(if e.up { "up" } else { "down" }),
                optional(e.speed_mbit_s.and_then(|s| u64::try_from(s).ok())),
                optional(e.tx_queues.map(u64::from)),
                optional(e.rx_queues.map(u64::from)),
                format!("<td class=\"l wrap\">{}</td>", escape(&e.offloads.join(", "))),
            ];
            format!("<tr>{}</tr>\n", cells.concat())
        })
        .collect();
    let cards = cards(&path.ends);
    let remarks: String = path.remarks.iter().map(|r| format!("<p class=\"bad\">{}</p>\n", prose(r))).collect();
    format!(
        "<h3>{} <span class=\"note\">({trials} {})</span></h3>\n<p>{}.</p>\n{remarks}{}{cards}",
        escape(&path.path),
        ids.join(", "),
        escape(&facts.join("; ")),
        table(&heads, &rows)
    )
}

/// Sentence part about the DDS Security of the ends, with what their drivers report.
fn security(facts: &SecurityFacts) -> String {
    let in_force: Vec<String> = facts.in_force.iter().map(|(end, what)| format!("{end}: {what}")).collect();
    let reported = if in_force.is_empty() { "nothing".into() } else { in_force.join(", ") };
    format!(
        "DDS Security had the governance {} ({}) and certificates {}; the drivers report {reported}",
        facts.governance, facts.protections, facts.certificates
    )
}

/// Facts about the network devices of the interfaces, as each interface's host reports them.
fn cards(ends: &[PathSide]) -> String {
    let heads = [left("end"), left("device of its interface"), left("seen there"), left("source")];
    let row = |(end, fact): (&PathSide, &HostFact)| {
        let value = fact.value.as_str().map_or_else(|| fact.value.to_string(), str::to_owned);
        let value = format!("<td class=\"l wrap\">{}</td>", escape(&value));
        format!("<tr>{}</tr>\n", [words(&end.end), words(&fact.key), value, words(&fact.source)].concat())
    };
    let rows: Vec<String> = ends.iter().flat_map(|end| end.card.iter().map(move |fact| (end, fact))).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("<details><summary>Their devices</summary>\n{}</details>\n", table(&heads, &rows))
}

/// Makes the collapsed HTML table of the trials, with the settings that the trials really had.
pub(crate) fn trials(report: &Report) -> String {
    let heads = [
        left("trial"),
        left("condition"),
        left("status"),
        left("end"),
        left("QoS in effect"),
        right("message", "B"),
        right("matched after", "ms"),
        left("memory locked"),
        right("timer slack", "ns"),
        right("rows dropped", ""),
        right("control stream", "B"),
        right("controller", "% of a CPU"),
    ];
    let mut rows = Vec::new();
    for id in &report.run.order {
        let Some(trial) = report.trial(*id) else { continue };
        let (status, bad) = match trial.status {
            TrialStatus::Pending => ("not begun", false),
            TrialStatus::Running => ("cut off", true),
            TrialStatus::Valid => ("valid", false),
            TrialStatus::Invalid => ("invalid", true),
        };
        let status =
            if bad { format!("<td class=\"l\"><span class=\"bad\">{status}</span></td>") } else { words(status) };
        let name = report.conditions.get(trial.condition).map_or("", |c| &c.name);
        let head = [words(&id.to_string()), words(name), status].concat();
        if trial.ends.is_empty() {
            rows.push(format!("<tr>{head}{}</tr>\n", "<td></td>".repeat(heads.len() - 3)));
        }
        for (end, found) in &trial.ends {
            let qos: Vec<String> = found.qos.iter().map(|(k, v)| format!("{k} {v}")).collect();
            let optional = |n: Option<u64>| number(&n.map_or("not known".into(), count));
            let cells = [
                words(end),
                format!("<td class=\"l wrap\">{}</td>", escape(&qos.join(", "))),
                optional(found.serialised_bytes),
                number(&found.matched_after_ns.map_or("not known".into(), |ns| Unit::Ms.number(ns as f64))),
                words(if found.memory_locked { "yes" } else { "no" }),
                optional(found.timer_slack_ns),
                number(&count(found.rows_dropped)),
                number(&count(found.control_bytes)),
                number(&trial.controller_share.map_or("not known".into(), |s| three_digits(100.0 * s))),
            ];
            rows.push(format!("<tr>{head}{}</tr>\n", cells.concat()));
        }
    }
    format!(
        "<details id=\"trials\"><summary>Trials, in the order in which they ran</summary>\n{}</details>\n",
        table(&heads, &rows)
    )
}

/// The text of the study file, so that a reader who has only the page can repeat the measurement.
pub(crate) fn study(report: &Report) -> String {
    let settings: String = report.run.settings.iter().map(|s| format!(" <code>--set {}</code>", escape(s))).collect();
    format!(
        "<details id=\"study\"><summary>The study file (seed {})</summary>{}<pre>{}</pre></details>\n",
        report.run.seed,
        if settings.is_empty() { String::new() } else { format!("<p>With{settings}.</p>") },
        escape(&report.run.study_source)
    )
}
