//! Loads in the neighbours of measured guests, in which no end runs: their host agents run the loads.

use super::RunError;
use super::active_lab::ActiveLab;
use super::load_checks::fell_short;
use super::places::{Host, all_at_once};
use std::sync::Arc;
use tailbound_lab::Far;
use tailbound_model::{LoadDone, PlaceSpec, Severity, Warning};
use tailbound_wire::{Order, StreamPath};

/// Neighbours that were ordered to prepare loads.
pub(super) struct NeighbourLoads(Vec<Arc<Host>>);

impl NeighbourLoads {
    /// Prepares and starts the loads of the trial in the neighbours, if it has such loads. `of_end` is the order of an end
    /// of the trial; without it, no load is started. The call blocks for a moment. A neighbour that does not answer makes the
    /// trial invalid, because it does not report its loads either.
    ///
    /// # Errors
    /// A load cannot be prepared.
    pub fn begin(lab: &ActiveLab, of_end: Option<&Order>) -> Result<NeighbourLoads, RunError> {
        let Some(of_end) = of_end else { return Ok(NeighbourLoads(Vec::new())) };
        let loads = &of_end.spec.loads;
        let all = lab.neighbours().iter();
        let all = all.filter(|(end, _)| loads.iter().any(|load| load.of_neighbours() == Some(*end)));
        let orders: Vec<(&Arc<Host>, Order)> = all.map(|(end, host)| (host, order(of_end, end, host))).collect();
        let prepared = NeighbourLoads(orders.iter().map(|(host, _)| (*host).clone()).collect());
        let answers = all_at_once(orders, |(host, order)| host.prepare_loads(order));
        if let Some(error) = answers.into_iter().find_map(Result::err) {
            prepared.end();
            return Err(error);
        }
        prepared.0.iter().for_each(|host| host.start_loads());
        Ok(prepared)
    }

    /// Ends the loads and returns their results, with warnings of loads that did not run as asked and of neighbours that do
    /// not answer.
    pub fn end(self) -> (Vec<LoadDone>, Vec<Warning>) {
        let (mut all, mut warnings) = (Vec::new(), Vec::new());
        let ended = all_at_once(self.0, |host| (host.end_loads(), host));
        for (loads, host) in ended {
            let at = match &host.place {
                PlaceSpec::Vm(guest) => guest.name.clone(),
                place => place.to_string(),
            };
            match loads {
                Some(loads) => all.extend(loads.into_iter().map(|load: LoadDone| LoadDone { at: at.clone(), ..load })),
                None => warnings.push(not_reported(&at)),
            }
        }
        warnings.extend(all.iter().filter_map(fell_short));
        (all, warnings)
    }
}

/// The order for a neighbour of the guest of `end`, made from the order for an end of the trial.
fn order(of_end: &Order, end: &str, host: &Host) -> Order {
    let from = |path: &StreamPath| StreamPath { from: host.address().unwrap_or(path.from), ..*path };
    Order {
        ends: Vec::new(),
        neighbour_of: Some(end.to_owned()),
        streams: of_end.streams.iter().map(from).collect(),
        rescue: None,
        ..of_end.clone()
    }
}

/// Makes the warning that it is not known what the loads of a neighbour did.
fn not_reported(guest: &str) -> Warning {
    let text = format!("guest {guest} did not report what its loads did, so that it is not known whether they ran");
    let remedy = "read the console of the guest in the record (logs/console-NAME.log), and repeat the trial";
    Warning::new("load_fell_short", Severity::Invalid, text, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_of_which_nothing_is_known_make_the_trial_invalid() {
        let warning = not_reported("pong.neighbour-1");
        assert_eq!(warning.severity, Severity::Invalid);
        insta::assert_snapshot!(warning.problem, @"guest pong.neighbour-1 did not report what its loads did, so that it is not known whether they ran; read the console of the guest in the record (logs/console-NAME.log), and repeat the trial");
    }
}
