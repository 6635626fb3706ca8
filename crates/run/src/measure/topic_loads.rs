//! Topic loads inside the measuring process: they use the participant of an end, and the sender and the receiver of a
//! load each have their own thread.
//!
//! The load threads are created before the first slot and joined after the last slot. The measured threads do not wait
//! for load threads.

use crate::end_plan::EndPlan;
use crate::load::topic::{self, Counts};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::thread::JoinHandle;
use tailbound_driver::Session;
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::{Failed, Order, Role};

/// First characters of the names of load threads. The index of the load follows.
const NAME: &str = "tb-load-";

/// Load that the thread with this name runs; `None` = the thread runs no load.
pub(super) fn load_of<'a>(order: &'a Order, thread: &str) -> Option<&'a LoadSpec> {
    order.spec.loads.get(thread.strip_prefix(NAME)?.parse::<usize>().ok()?)
}

struct Running {
    thread: JoinHandle<()>,
    load: LoadSpec,
    part: LoadPart,
    topic: TopicLoad,
    counts: Arc<Counts>,
    /// Time at which the `topic` load begins, ns; 0 = not known yet.
    begin: Arc<AtomicI64>,
    done: LoadDone,
}

/// All loads of kind `topic` that run in this measuring process.
pub(super) struct TopicLoads {
    running: Vec<Running>,
    over: Arc<AtomicBool>,
}

impl TopicLoads {
    /// Creates the end points and the threads of all topic loads.
    ///
    /// # Errors
    /// The driver refuses an end point, or the kernel refuses the scheduling.
    pub fn start(
        order: &Order,
        plans: &[EndPlan],
        session: impl Fn(Role) -> Option<&'static Session>,
    ) -> Result<TopicLoads, Failed> {
        let mut loads = TopicLoads { running: Vec::new(), over: Arc::default() };
        for (index, load) in order.spec.loads.iter().enumerate() {
            let LoadKind::Topic(topic) = &load.run else { continue };
            if !load.run.is_inside() {
                continue;
            }
            for plan in plans {
                let Some(session) = session(plan.role) else { continue };
                let part = if plan.role.word() == load.at { LoadPart::Sends } else { LoadPart::Receives };
                let running = start(order, index, (load, topic, part), (plan, session), loads.over.clone());
                let refused = |problem: Problem| {
                    let problem = problem.context(format_args!("load `{}` cannot be started", load.run));
                    Failed::of(ExitCode::MachineNotFit, problem)
                };
                loads.running.push(running.map_err(refused)?);
            }
        }
        Ok(loads)
    }

    /// Handles the start message: sets the time at which each waiting load begins.
    pub fn go(&mut self) {
        let now = host::monotonic_ns();
        for running in &mut self.running {
            let begin = match running.load.start {
                LoadStart::BeforeDiscovery => continue,
                LoadStart::AfterMatching => now,
                LoadStart::At(after) => now.saturating_add(after.0),
            };
            if running.part == LoadPart::Sends {
                running.begin.store(begin, Release);
                running.thread.thread().unpark();
            }
        }
    }

    /// Ends all loads of kind `topic`. Returns their results.
    pub fn end(self) -> Vec<LoadDone> {
        self.over.store(true, Release);
        let end = |running: Running| {
            running.thread.thread().unpark();
            let Running { thread, load, part, topic, counts, begin, mut done } = running;
            if thread.join().is_err() {
                done.failed = Some("the thread of the load panicked".into());
            }
            let (now, begin) = (host::monotonic_ns(), begin.load(Acquire));
            if begin != 0 && begin < now {
                done.began_ns = Some(begin);
                done.ended_ns =
                    Some(load.duration.filter(|_| part == LoadPart::Sends).map_or(now, |d| now.min(begin + d.0)));
            }
            counts.did(&topic, part).tell(&mut done);
            done.cpu_ns = counts.cpu_ns();
            if part == LoadPart::Sends && done.began_ns.is_some() && done.messages == Some(0) {
                done.failed.get_or_insert_with(|| "the load sent no message".into());
            }
            done
        };
        self.running.into_iter().map(end).collect()
    }
}

fn start(
    order: &Order,
    index: usize,
    (load, topic, part): (&LoadSpec, &TopicLoad, LoadPart),
    (plan, session): (&EndPlan, &'static Session),
    over: Arc<AtomicBool>,
) -> Result<Running, Problem> {
    let failed = |what: String| Problem::new("load", what, "");
    let ep = topic::create(session, order, plan, (index, part))?;
    let (counts, begin) = (Arc::<Counts>::default(), Arc::<AtomicI64>::default());
    if part == LoadPart::Receives || load.start == LoadStart::BeforeDiscovery {
        begin.store(host::monotonic_ns(), Release);
    }
    let (ready, wait) = std::sync::mpsc::channel();
    let thread = {
        let (counts, begin, load, topic) = (counts.clone(), begin.clone(), load.clone(), topic.clone());
        let body = move || {
            let scheduled = host::apply(0, &load.scheduling).map_err(|e| e.to_string());
            let found = scheduled.and_then(|()| host::read_back(0).map_err(|e| e.to_string()));
            if ready.send(found.clone()).is_err() || found.is_err() {
                return;
            }
            let is_over = || over.load(Acquire);
            if part == LoadPart::Receives {
                topic::read(session, ep, &is_over, &counts);
            } else {
                while begin.load(Acquire) == 0 && !is_over() {
                    std::thread::park();
                }
                let begin_ns = begin.load(Acquire);
                let end_ns = load.duration.map_or(i64::MAX, |d| begin_ns.saturating_add(d.0));
                let is_over = || is_over() || host::monotonic_ns() >= end_ns;
                topic::write(session, ep, &topic, begin_ns, &is_over, &counts);
            }
            counts.note_cpu();
        };
        std::thread::Builder::new().name(format!("{NAME}{index}")).spawn(body).map_err(|e| failed(e.to_string()))?
    };
    let scheduled = wait.recv().map_err(|e| failed(e.to_string()))?;
    let (policy, cpus) = scheduled.map_err(failed)?;
    let done = LoadDone {
        run: load.run.to_string(),
        at: plan.role.word().into(),
        part: Some(part),
        policy: policy.to_string(),
        cpus: cpus.to_string(),
        ..LoadDone::default()
    };
    Ok(Running { thread, load: load.clone(), part, topic: topic.clone(), counts, begin, done })
}
