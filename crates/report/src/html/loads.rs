//! The section of the HTML page about the work that the loads did, as measured.

use crate::html::table::{left, number, right, table, words};
use crate::tables::loads::{busy, per_second};
use tailbound_document::Report;
use tailbound_document::number::{Unit, count};

/// Makes the HTML table of the loads; empty if there were no loads.
pub(crate) fn section(report: &Report) -> String {
    if report.loads.is_empty() {
        return String::new();
    }
    let unit = Unit::of_all(report.loads.iter().map(|l| l.ran_ns.max(1))).unwrap_or(Unit::of(1e9));
    let some_send = report.loads.iter().any(|l| l.messages.is_some());
    let mut heads = vec![
        left("trial"),
        left("at"),
        left("load"),
        left("policy"),
        left("CPUs"),
        right("began after slot 0", unit.name()),
        right("ran", unit.name()),
        right("CPU time", unit.name()),
        right("busy", "%"),
        right("rounds", "per s"),
        right("bytes", "per s"),
    ];
    if some_send {
        heads.extend([left("half"), right("messages", "per s"), right("messages", "")]);
        heads.extend([right("late", ""), right("not taken", ""), right("missing", "")]);
    }
    let rows: Vec<String> = report
        .loads
        .iter()
        .map(|l| {
            let rate = |n: Option<u64>| number(&per_second(n, l.ran_ns).map_or("not known".into(), count));
            let cells = [
                words(&l.trial.to_string()),
                words(&l.at),
                words(&l.run),
                words(&l.policy),
                words(&l.cpus),
                number(&l.began_after_ns.map_or("never".into(), |ns| unit.number(ns as f64))),
                number(&unit.number(l.ran_ns as f64)),
                number(&unit.number(l.cpu_ns as f64)),
                number(&busy(l).map_or("not known".into(), |b| format!("{b:.0}"))),
                rate(l.rounds),
                rate(l.bytes),
            ];
            let of = |n: Option<u64>| number(&n.map_or(String::new(), count));
            let sent = [
                words(l.part.as_deref().unwrap_or_default()),
                of(per_second(l.messages, l.ran_ns)),
                of(l.messages),
                of(l.late),
                of(l.refused),
                of(l.missing),
            ];
            let sent = if some_send { sent.concat() } else { String::new() };
            format!("<tr>{}{sent}</tr>\n", cells.concat())
        })
        .collect();
    format!(
        "<section id=\"loads\"><h2>Loads</h2>\n<p class=\"lead\">Loads that ran during the measurement, as the kernel \
            counted them. Busy: CPU time of the load divided by the time for which it ran, in % of one \
            CPU.</p>\n{}</section>\n",
        table(&heads, &rows)
    )
}
