//! The loads of one trial in this place: started when they are due, ended with the trial, and what they really did.

use super::process::rehearse;
use super::running::Running;
use crate::load::Half;
use std::os::fd::BorrowedFd;
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::Order;

struct Load {
    spec: LoadSpec,
    /// What its process reads on standard input.
    input: Vec<u8>,
    /// Its process is there before it is due, so that meeting takes none of its time.
    held: bool,
    /// Its scheduling, tried.
    wanted: RoleScheduling,
    running: Option<Running>,
    done: LoadDone,
}

/// The loads that run as processes in this place, and what they read: receivers first, so that they are there when
/// something is sent. A receiver is there from the beginning to the end.
fn here(order: &Order) -> Vec<Here> {
    let mut all = Vec::new();
    for (index, load) in order.spec.loads.iter().enumerate().filter(|(_, l)| !l.run.is_inside()) {
        for (end, role) in order.ends.iter().map(|e| e.role.word()).enumerate() {
            let sends = role == load.at;
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
                LoadSpec { at: role.into(), start: LoadStart::BeforeDiscovery, duration: None, ..load.clone() }
            };
            all.push(Here { spec, part: Some(part), input, held });
        }
    }
    all.sort_by_key(|here| here.part != Some(LoadPart::Receives));
    all
}

/// A load, or the half of it, that runs in this place.
struct Here {
    spec: LoadSpec,
    part: Option<LoadPart>,
    input: Vec<u8>,
    held: bool,
}

/// All loads of a trial in this place.
pub(super) struct Loads {
    loads: Vec<Load>,
    /// When the word to begin came.
    go_ns: Option<i64>,
    /// The longest that the trial may take.
    limit_ns: i64,
}

impl Loads {
    /// Makes them known, and starts those that come before discovery.
    ///
    /// # Errors
    /// A load cannot be started or scheduled: what and why.
    pub fn begin(order: &Order, limit_ns: i64) -> Result<Loads, String> {
        let refused = |load: &LoadSpec, e: String| format!("load `{}` cannot be started: {e}", load.run);
        // What would be refused later is told before anything is measured.
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
        let mut loads = Loads { loads: loads.collect::<Result<_, String>>()?, go_ns: None, limit_ns };
        for load in loads.loads.iter_mut().filter(|l| l.held || l.spec.start == LoadStart::BeforeDiscovery) {
            load.start(limit_ns).map_err(|e| refused(&load.spec, e))?;
        }
        Ok(loads)
    }

    /// The ends begin.
    pub fn go(&mut self) {
        self.go_ns = Some(host::monotonic_ns());
        self.start_due(|start| start == LoadStart::AfterMatching);
    }

    /// One that cannot be started makes the trial invalid: the reason is in its account.
    fn start_due(&mut self, due: impl Fn(LoadStart) -> bool) {
        for load in self.loads.iter_mut().filter(|l| !l.begun() && due(l.spec.start)) {
            if let Err(e) = load.start(self.limit_ns) {
                load.done.failed = Some(format!("it cannot be started: {e}"));
            }
        }
    }

    /// When something is to be done next.
    pub fn next_ns(&self) -> Option<i64> {
        let of = |load: &Load| match (&load.running, load.spec.start, self.go_ns) {
            (_, LoadStart::At(after), Some(go)) if !load.begun() => Some(go.saturating_add(after.0)),
            (Some(running), ..) => running.end_ns,
            _ => None,
        };
        self.loads.iter().filter_map(of).min()
    }

    /// No load is still waiting for its halves to meet.
    pub fn have_met(&self) -> bool {
        self.loads.iter().all(|l| l.running.as_ref().is_none_or(Running::has_met))
    }

    /// Readable when a load has met.
    pub fn meeting(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.loads.iter().filter_map(|l| l.running.as_ref().and_then(Running::meeting))
    }

    /// Readable when a load has ended by itself.
    pub fn ended(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.loads.iter().filter_map(|l| l.running.as_ref().map(Running::ended))
    }

    /// Does what is due.
    pub fn turn(&mut self) {
        let now = host::monotonic_ns();
        for load in &mut self.loads {
            load.running.iter_mut().for_each(Running::hear);
            load.end(|r| r.is_over() || r.end_ns.is_some_and(|end| end <= now));
        }
        let go = self.go_ns.unwrap_or(i64::MAX);
        self.start_due(|start| matches!(start, LoadStart::At(after) if go.saturating_add(after.0) <= now));
    }

    /// Ends all; what they did.
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

    fn start(&mut self, limit_ns: i64) -> Result<(), String> {
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
