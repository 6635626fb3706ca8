//! The section of the HTML page about the path that messages took.

use crate::escape::escape;
use crate::html::table::{left, number, right, table, words};
use tailbound_document::Report;
use tailbound_document::number::count;

/// Table of the path that messages took in every condition; empty if no message was sent.
pub(crate) fn section(report: &Report) -> String {
    let proven: Vec<_> = report.conditions.iter().filter_map(|c| Some((c, c.path_proof.as_ref()?))).collect();
    if proven.is_empty() {
        return String::new();
    }
    let heads = [
        left("condition"),
        left("asked"),
        left("found"),
        left("the driver says"),
        left("interface"),
        left("of"),
        right("packets", ""),
        right("packets", "per message"),
        right("bytes", "per message"),
        right("fragments", "per message"),
        right("multicast", "per message"),
        right("not reassembled", ""),
        right("without messages", "packets per s"),
    ];
    let mut rows = Vec::new();
    for (condition, proof) in &proven {
        let unknown = |way: &Option<String>| way.clone().unwrap_or("not known".into());
        let transports = proof.transports.join(", ");
        let asked = proof.asked.clone().unwrap_or("nothing".into());
        let found = unknown(&proof.found);
        let found = match &proof.contradiction {
            Some(why) => format!("<td class=\"l wrap\"><span class=\"bad\">not as asked</span> {}</td>", escape(why)),
            None => words(&found),
        };
        let head = [words(&condition.name), words(&asked), found, words(&transports)].concat();
        for interface in &proof.interfaces {
            let per = |n: f64| number(&format!("{n:.2}"));
            let cells = [
                words(&interface.interface),
                words(&interface.ends.join(", ")),
                number(&count(interface.packets.unsigned_abs())),
                per(interface.packets_per_message),
                number(&format!("{:.0}", interface.bytes_per_message)),
                per(interface.fragments_per_message),
                per(interface.multicast_per_message),
                number(&count(interface.reassembly_failures.unsigned_abs())),
                number(&interface.quiet_packets_per_s.map_or("not looked at".into(), |n| format!("{n:.1}"))),
            ];
            rows.push(format!("<tr>{head}{}</tr>\n", cells.concat()));
        }
    }
    let told: String = crate::tables::path_proof::lines(report)
        .into_iter()
        .map(|(which, way)| format!("<li>{}: {}</li>\n", escape(&which), escape(&way)))
        .collect();
    format!(
        "<section id=\"proof\"><h2>Path of the messages</h2>\n<p class=\"lead\">Packets and bytes that the interfaces carried \
            during the measurement, minus the traffic without messages. Fragments, multicast and failures are counted \
            for the whole network namespace.</p>\n<ul>{told}</ul>\n<details><summary>Interfaces, one by \
            one</summary>\n{}</details>\n{}</section>\n",
        table(&heads, &rows),
        ports(report)
    )
}

/// Makes the HTML table of the counters at the interfaces of the path between guests.
fn ports(report: &Report) -> String {
    let heads = [
        left("condition"),
        left("end"),
        left("interface of the path"),
        right("from the end", "packets"),
        right("to the end", "packets"),
        right("redirected", "packets"),
        right("the switch took", "packets"),
        right("the switch gave", "packets"),
    ];
    let counters =
        ["interface.rx_packets", "interface.tx_packets", "xdp.redirected", "switch.rx_packets", "switch.tx_packets"];
    let mut rows = Vec::new();
    for (condition, proof) in report.conditions.iter().filter_map(|c| Some((c, c.path_proof.as_ref()?))) {
        for port in &proof.ports {
            let of = |key: &&str| port.counters.get(*key).map_or("-".into(), |n| count(n.unsigned_abs()));
            let head = [words(&condition.name), words(&port.end), words(&port.interface)].concat();
            let cells: String = counters.iter().map(|key| number(&of(key))).collect();
            rows.push(format!("<tr>{head}{cells}</tr>\n"));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("<details><summary>The path itself, end by end</summary>\n{}</details>\n", table(&heads, &rows))
}
