//! The section of the HTML page about the guests (virtual machines) of each trial.

use crate::html::table::{left, number, right, table, words};
use std::collections::BTreeMap;
use tailbound_document::Report;
use tailbound_document::number::count;
use tailbound_model::GuestSeen;

/// Explains guests without an end.
const NEIGHBOURS: &str =
    " No end runs in a neighbour: it ran beside a measured guest, and answered after the last message.";

/// True if at least one trial of the report ran in a guest (virtual machine).
pub(crate) fn are_there(report: &Report) -> bool {
    report.trials.iter().any(|t| !t.guests.is_empty())
}

/// Makes the HTML table of the guests; empty if there were no guests.
pub(crate) fn section(report: &Report) -> String {
    if !are_there(report) {
        return String::new();
    }
    let heads = [
        left("trial"),
        left("guest"),
        left("vCPU"),
        right("exits", ""),
        right("halts", ""),
        right("polls before a halt", "with success"),
        right("polls before a halt", "all"),
        right("interrupts injected", ""),
    ];
    let has_neighbours = report.trials.iter().flat_map(|t| &t.guests).any(|guest| guest.neighbour);
    let neighbours = if has_neighbours { NEIGHBOURS } else { "" };
    let rows: Vec<String> =
        report.trials.iter().flat_map(|t| t.guests.iter().flat_map(move |guest| rows(t.id, guest))).collect();
    format!(
        "<section id=\"guests\"><h2>Guests</h2>\n<p class=\"lead\">Counters of the hypervisor for each virtual CPU \
            during the measurement.{neighbours}</p>\n<details><summary>Trial by trial</summary>\n{}</details>\n</section>\n",
        table(&heads, &rows)
    )
}

fn rows(trial: usize, guest: &GuestSeen) -> Vec<String> {
    let row = |vcpu: &str, counted: &BTreeMap<String, i64>| {
        let of = |key: &str| number(&counted.get(key).map_or("-".into(), |n| count(n.unsigned_abs())));
        let cells = [
            words(&trial.to_string()),
            words(&guest.guest),
            words(vcpu),
            of("exits"),
            of("halt_exits"),
            of("halt_successful_poll"),
            of("halt_attempted_poll"),
            of("irq_injections"),
        ];
        format!("<tr>{}</tr>\n", cells.concat())
    };
    match &guest.not_counted {
        Some(why) => vec![row(why, &BTreeMap::new())],
        None => guest.vcpus.iter().enumerate().map(|(n, counted)| row(&n.to_string(), counted)).collect(),
    }
}
