//! Whether the messages of a trial left within the windows of their gates (IEEE 802.1Q).

use super::RunError;
use std::path::Path;
use tailbound_gates::Gate;
use tailbound_model::{Metric, PathEnd, Severity, TrialSpec, Warning};
use tailbound_record::{Columns, Departures, Record};

/// Warnings about messages of a trial that left, or arrived, before their gate permitted them, by the schedule that the kernel reported.
/// If the ends have different clocks, only messages with stamps of their sender are checked. `dir`: directory of the record.
///
/// # Errors
/// The samples cannot be read.
pub(super) fn outside(
    dir: &Path,
    (trial, has_one_clock): (usize, bool),
    ends: &[PathEnd],
    spec: &TrialSpec,
) -> Result<Vec<Warning>, RunError> {
    let gates = Gate::of_ends(ends, spec);
    if gates.is_empty() {
        return Ok(Vec::new());
    }
    let mut counts = vec![(0, 0); gates.len()];
    let metrics = [Metric::FromIntended, Metric::Out, Metric::Turnaround, Metric::Back];
    let columns = Columns::of(&metrics).with_echo_begin().with_seq();
    let record = Record::open(dir)?;
    let launch_ns = record.manifest.launch_wait_ns(trial);
    let departures = gates.iter().map(|(end, _)| Departures::of(&record, trial, end));
    let departures: Vec<Departures> = departures.collect::<Result<_, _>>()?;
    record.scan(trial, &columns, &mut |batch| {
        for (((end, gate), departures), (outside, all)) in gates.iter().zip(&departures).zip(&mut counts) {
            for (i, sent_ns, received_ns) in batch.ways(end == "ping").filter(|(i, ..)| !batch.warm_up[*i]) {
                let ready_ns = if end == "ping" { batch.ready_ns(i, sent_ns, launch_ns) } else { sent_ns };
                let times = (ready_ns, has_one_clock.then_some(received_ns));
                let Some(departure) = departures.of_message(batch.seq[i], times, gate.is_by_card()) else { continue };
                *all += 1;
                *outside += u64::from(departure.left_ns < gate.permitted_ns(departure.ready_ns));
            }
        }
    })?;
    let found = gates.iter().zip(counts).filter(|(_, (outside, _))| *outside > 0);
    Ok(found.map(|((end, _), counts)| warning(end, counts)).collect())
}

fn warning(end: &str, (outside, all): (u64, u64)) -> Warning {
    let what = format!(
        "{outside} of {all} messages of the {end} left or arrived before their gate permitted them: the schedule that the kernel \
         reported is not effective"
    );
    let help = "look at the queue discipline of the interface while a trial runs (tc qdisc show): another program may have \
                replaced it, the clock of the schedule was set, or the network card does not do what it accepted";
    Warning::new("gate_not_effective", Severity::Invalid, what, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_that_is_not_effective_is_said_with_numbers() {
        let warning = warning("pong", (12, 500));
        assert_eq!(warning.severity, Severity::Invalid);
        assert_eq!(
            warning.problem.what,
            "12 of 500 messages of the pong left or arrived before their gate permitted them: the schedule that the kernel \
             reported is not effective"
        );
    }
}
