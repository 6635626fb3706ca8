//! The loads of one trial at this place: starts them when they are due, ends them with the trial, and reports their
//! counts.

use super::child_process::rehearse;
use super::load_process::Running;
use crate::load::Half;
use std::os::fd::BorrowedFd;
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::Order;

struct Load {
    spec: LoadSpec,
    /// Bytes that the load process receives on its standard input.
    input: Vec<u8>,
    /// True if the load process starts before the load is due, so that the discovery of the load process is over when
    /// the load begins.
    held: bool,
    /// Scheduling of the load process. Before the trial, the agent tried whether this scheduling can be set.
    wanted: RoleScheduling,
    running: Option<Running>,
    done: LoadDone,
}

/// The places that the agent has in this order, as loads name them: its ends, or the neighbours of which it is one.
fn places(order: &Order) -> Vec<String> {
    let ends = order.ends.iter().map(|end| end.role.word().to_owned());
    ends.chain(order.neighbour_of.as_deref().map(LoadSpec::at_neighbours)).collect()
}

/// Lists the loads that run as processes at this place. Receivers come first and run for the whole trial, so that they
/// run when the first message is sent.
fn here(order: &Order) -> Vec<Here> {
    let mut all = Vec::new();
    for (index, load) in order.spec.loads.iter().enumerate().filter(|(_, l)| !l.run.is_inside()) {
        for (end, role) in places(order).into_iter().enumerate() {
            let sends = role == load.at;
            // A neighbour receives nothing, neither from an end nor from other neighbours.
            if !sends && (order.neighbour_of.is_some() || load.receiver().is_some_and(|receiver| receiver != role)) {
                continue;
            }
            let part = if sends { LoadPart::Sends } else { LoadPart::Receives };
            if !load.run.has_receiver() {
                all.extend(sends.then(|| Here { spec: load.clone(), part: None, input: Vec::new(), held: false }));
                continue;
            }
            let topic = matches!(load.run, LoadKind::Topic(_));
            let held = sends && topic && load.start != LoadStart::BeforeDiscovery;
            let half = Half { part, index, end, order: order.clone(), held };
            let input = serde_json::to_vec(&half).unwrap_or_default();
            let spec = if sends {
                load.clone()
            } else {
                LoadSpec { at: role, start: LoadStart::BeforeDiscovery, duration: None, ..load.clone() }
            };
            all.push(Here { spec, part: Some(part), input, held });
        }
    }
    all.sort_by_key(|here| here.part != Some(LoadPart::Receives));
    all
}

/// A load that runs at this place, or the sender or the receiver of such a load.
struct Here {
    spec: LoadSpec,
    part: Option<LoadPart>,
    input: Vec<u8>,
    held: bool,
}

/// All loads of a trial that run as processes at the place of this agent.
pub(super) struct Loads {
    loads: Vec<Load>,
    /// Time of the start message, ns; `None` = the message has not arrived yet.
    go_ns: Option<i64>,
    /// Longest time that the trial may take, ns.
    limit_ns: i64,
}

impl Loads {
    /// Prepares all loads, and starts the loads that begin before discovery.
    ///
    /// # Errors
    /// A load cannot be started, or its scheduling is refused.
    pub fn begin(order: &Order, limit_ns: i64) -> Result<Loads, Problem> {
        let refused = |load: &LoadSpec, problem: Problem| {
            let problem = problem.context(format_args!("load `{}` cannot be started", load.run));
            Problem { code: "load".into(), ..problem }
        };
        // The scheduling is tried now, so that a refusal is known before anything is measured.
        let loads = here(order).into_iter().map(|Here { spec, part, input, held }| {
            Ok(Load {
                wanted: rehearse(&spec.scheduling).map_err(|e| refused(&spec, e))?,
                done: LoadDone { run: spec.run.to_string(), at: spec.at.clone(), part, ..LoadDone::default() },
                spec,
                input,
                held,
                running: None,
            })
        });
        let mut loads = Loads { loads: loads.collect::<Result<_, Problem>>()?, go_ns: None, limit_ns };
        for load in loads.loads.iter_mut().filter(|l| l.held || l.spec.start == LoadStart::BeforeDiscovery) {
            load.start(limit_ns).map_err(|e| refused(&load.spec, e))?;
        }
        Ok(loads)
    }

    /// Handles the start message of the controller: starts the loads that begin together with the ends.
    pub fn go(&mut self) {
        self.go_ns = Some(host::monotonic_ns());
        self.start_due(|start| start == LoadStart::AfterMatching);
    }

    /// Starts the loads that are due. If a load cannot be started, its result has the reason, and the trial is invalid.
    fn start_due(&mut self, due: impl Fn(LoadStart) -> bool) {
        for load in self.loads.iter_mut().filter(|l| !l.begun() && due(l.spec.start)) {
            if let Err(e) = load.start(self.limit_ns) {
                load.done.failed = Some(format!("the load cannot be started: {e}"));
            }
        }
    }

    /// Time of the next planned start or end of a load, ns.
    pub fn next_ns(&self) -> Option<i64> {
        let of = |load: &Load| match (&load.running, load.spec.start, self.go_ns) {
            (_, LoadStart::At(after), Some(go)) if !load.begun() => Some(go.saturating_add(after.0)),
            (Some(running), ..) => running.end_ns,
            _ => None,
        };
        self.loads.iter().filter_map(of).min()
    }

    /// True if the sender and the receiver of every load that waits for its start are matched.
    pub fn have_met(&self) -> bool {
        self.loads.iter().all(|l| l.running.as_ref().is_none_or(Running::has_met))
    }

    /// Descriptors that become readable when the sender and the receiver of a waiting load are matched.
    pub fn meeting(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.loads.iter().filter_map(|l| l.running.as_ref().and_then(Running::meeting))
    }

    /// Descriptors that become readable when a load process has ended.
    pub fn ended(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.loads.iter().filter_map(|l| l.running.as_ref().map(Running::ended))
    }

    /// Starts the loads that are due to start, and ends the loads that are due to end.
    pub fn turn(&mut self) {
        let now = host::monotonic_ns();
        for load in &mut self.loads {
            load.running.iter_mut().for_each(Running::hear);
            load.end(|r| r.is_over() || r.end_ns.is_some_and(|end| end <= now));
        }
        let go = self.go_ns.unwrap_or(i64::MAX);
        self.start_due(|start| matches!(start, LoadStart::At(after) if go.saturating_add(after.0) <= now));
    }

    /// Ends all loads of the trial at this place. Returns the results of the loads.
    pub fn end(&mut self) -> Vec<LoadDone> {
        self.loads.iter_mut().for_each(|load| load.end(|_| true));
        self.loads.iter().map(|l| l.done.clone()).collect()
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        self.end();
    }
}

impl Load {
    fn begun(&self) -> bool {
        self.done.began_ns.is_some() || self.done.failed.is_some()
    }

    fn start(&mut self, limit_ns: i64) -> Result<(), Problem> {
        if let Some(held) = &mut self.running {
            self.done.began_ns = Some(held.release(&self.spec)?);
            return Ok(());
        }
        let running = Running::start(&self.spec, &self.input, self.wanted.clone(), limit_ns, self.held)?;
        self.done.began_ns = (!self.held).then_some(running.began_ns);
        (self.done.policy, self.done.cpus) = running.scheduling();
        self.running = Some(running);
        Ok(())
    }

    fn end(&mut self, is_due: impl FnOnce(&Running) -> bool) {
        let Some(running) = self.running.take_if(|r| is_due(r)) else { return };
        running.end(&self.spec, &mut self.done);
    }
}
