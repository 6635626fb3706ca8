//! Loads of a guest in which no end runs: the agent that answers questions about the guest runs them.

use super::loads::Loads;
use super::trial::longest_ns;
use tailbound_model::ExitCode;
use tailbound_wire::{Done, Failed, Message};

/// The loads of a trial in this guest, from the order to prepare them until they have ended.
#[derive(Default)]
pub(super) struct NeighbourLoads(Option<Loads>);

impl NeighbourLoads {
    /// Carries out a message of the controller that concerns these loads, and returns the answers. Returns `None` if the
    /// message does not concern them.
    pub fn order(&mut self, message: &Message) -> Option<Vec<Message>> {
        match (message, &mut self.0) {
            (Message::Prepare(order), _) if order.neighbour_of.is_some() => {
                // Loads of an earlier trial that were not ended must not run beside new ones.
                self.0 = None;
                Some(vec![match Loads::begin(order, longest_ns(order)) {
                    Ok(loads) => {
                        self.0 = Some(loads);
                        Message::Prepared(Box::default())
                    }
                    Err(problem) => Message::Failed(Failed::of(ExitCode::MachineNotFit, problem)),
                }])
            }
            (Message::Go, Some(loads)) => {
                loads.go();
                Some(Vec::new())
            }
            (Message::Stop, Some(loads)) => {
                let done = Done { loads: loads.end(), ..Done::default() };
                self.0 = None;
                Some(vec![Message::Done(Box::new(done))])
            }
            _ => None,
        }
    }
}
