//! Findings: sentences of the report about what was measured or what failed, the most important first.

pub(crate) mod causes;
mod delivery;
mod finding;
mod flow;
mod growth;
mod held;
mod host_settings;
mod instead;
mod latency;
mod limits;
mod loads;
mod losses;
mod more_messages;
mod movement;
mod path_proof;
mod patterns;
pub(crate) mod quantile_words;
mod record;
mod repeated;
mod rounding;
mod side_by_side;
mod starved;
mod tail_estimate;
mod tools;
mod until;
mod warm_up;
mod worst_leg;

use tailbound_document::{Finding, Report};

/// Makes all findings of a report, in the order in which they should be read.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let mut all = record::untrusted(report);
    all.extend(report.conditions.iter().filter_map(|c| latency::failed(report, c)));
    all.extend(delivery::dropped_between_threads(report));
    all.extend(until::findings(report));
    all.extend(repeated::findings(report));
    all.extend(flow::findings(report));
    all.extend(growth::findings(report));
    all.extend(latency::results(report));
    all.extend(side_by_side::findings(report));
    all.extend(tools::findings(report));
    all.extend(causes::findings(report));
    all.extend(held::findings(report));
    all.extend(movement::findings(report));
    all.extend(limits::cautions(report));
    all.extend(more_messages::hints(report));
    // A broken promise of the QoS comes first, even before reasons not to trust other trials.
    all.sort_by_key(|f| (f.code != delivery::RELIABLE_LOST, f.level));
    all
}
