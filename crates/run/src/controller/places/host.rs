//! One connected place with its host agent, the agent that answers questions about the place.

use super::host_agent::{HostAgent, send_heartbeats};
use super::place::Place;
use super::{all_at_once, not_fit};
use crate::controller::RunError;
use crate::controller::context::RunContext;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tailbound_guest::Look;
use tailbound_lab::Far;
use tailbound_lab::netns::NetNs;
use tailbound_model::*;
use tailbound_wire::{Message, Order};

/// Largest number of hosts whose host agents the controller starts at the same time.
const AT_ONCE: usize = 8;

/// A place to which the controller has a connection, and whose host agent is not started yet.
pub(super) struct Candidate {
    pub reached: Box<dyn Place>,
    pub place: PlaceSpec,
    /// Name of the place in sentences, for example `host guest-1`.
    pub called: String,
    /// Name of the place in the record. It is needed because two hosts may report the same host name.
    pub named: String,
}

/// A place to which the controller has a connection. The controller treats the place as another host, even if the place
/// shares the kernel of this host.
pub(in crate::controller) struct Host {
    /// The place as the study specifies it, for example a pod or another host.
    pub place: PlaceSpec,
    /// Name of the place in sentences, for example `host guest-1`.
    called: String,
    /// The connection to the place; `None` once the controller has closed the connection.
    reached: Mutex<Option<Box<dyn Place>>>,
    address: Option<IpAddr>,
    netns: Option<NetNs>,
    /// Time without received bytes after which an agent at the place counts as lost.
    pub patience: Duration,
    /// Name of the cluster node on which the pod runs, if the place is a pod.
    pub node: Option<String>,
    /// Name of the pod in the cluster, if the place is a pod.
    pub pod: Option<String>,
    /// Pod that observes the cluster node on which the pod runs, if the study asks for an observer.
    pub observer: Option<Arc<Host>>,
    /// CPUs that an agent may use at the place.
    pub cpus: Vec<u32>,
    pub facts: HostFacts,
    /// Identifier of the clock of the host.
    pub clock: String,
    /// Remarks for the user about the place, one sentence each.
    pub remarks: Vec<String>,
    /// Reason why figures of the place say nothing about speed; `None` = there is no such reason.
    pub functional_only: Option<String>,
    agent: Arc<Mutex<HostAgent>>,
}

/// A host agent that has started, and what it has answered.
struct Asked {
    agent: HostAgent,
    clock: String,
    cpus: Vec<u32>,
    facts: HostFacts,
}

impl Host {
    /// Starts the host agent, which answers questions about a host.
    ///
    /// # Errors
    /// Tailbound does not start on the host, or the host has another release of Tailbound.
    pub(super) fn start(candidate: Candidate, context: &RunContext, help: &Help<'_>) -> Result<Host, RunError> {
        let mut all = Host::start_all(vec![candidate], context, help)?;
        Ok(all.swap_remove(0))
    }

    /// Starts the host agents of several hosts at the same time. If one agent cannot be started, the connections to all
    /// hosts are closed.
    ///
    /// # Errors
    /// Tailbound does not start on a host, or a host has another release of Tailbound.
    pub(super) fn start_all(all: Vec<Candidate>, context: &RunContext, help: &Help<'_>) -> Result<Vec<Host>, RunError> {
        let mut answers = Vec::new();
        for some in all.chunks(AT_ONCE) {
            let ask = |c: &Candidate| Host::ask_host(&*c.reached, &c.called, &context.run_id, help);
            answers.extend(all_at_once(some.iter().collect(), ask));
        }
        if answers.iter().any(Result::is_err) {
            for candidate in all {
                candidate.reached.leave(context);
            }
            return answers.into_iter().find_map(Result::err).map_or_else(|| Ok(Vec::new()), Err);
        }
        let host = |(Candidate { reached, place, called, named }, Asked { agent, clock, cpus, facts })| {
            let facts = HostFacts { host: named, ..facts };
            let (address, netns, patience) = (reached.address(), reached.netns(), reached.patience());
            let agent = Arc::new(Mutex::new(agent));
            send_heartbeats(&agent);
            Host {
                place,
                called,
                reached: Mutex::new(Some(reached)),
                address,
                netns,
                patience,
                node: None,
                pod: None,
                observer: None,
                cpus,
                facts,
                clock,
                remarks: Vec::new(),
                functional_only: None,
                agent,
            }
        };
        Ok(all.into_iter().zip(answers.into_iter().flatten()).map(host).collect())
    }

    fn ask_host(reached: &dyn Place, called: &str, run_id: &str, help: &Help<'_>) -> Result<Asked, RunError> {
        let (mut agent, hello) = HostAgent::start(reached.host_agent_command(run_id), reached.patience())
            .map_err(|problem| not_fit(format!("{called}{}: {}", help.program, problem.what), help.by_hand))?;
        if hello.tailbound != env!("CARGO_PKG_VERSION") {
            let text = format!("{called} has Tailbound {}, this is {}", hello.tailbound, env!("CARGO_PKG_VERSION"));
            return Err(not_fit(text, help.other_release));
        }
        if let Err(e) = reached.check_started() {
            agent.leave();
            return Err(e);
        }
        let fail = |text: String| not_fit(format!("{called}: {text}"), "");
        match (agent.ask(Ask::Cpus), agent.ask(Ask::Facts)) {
            (Ok(Answer::Cpus(cpus)), Ok(Answer::Facts(facts))) => {
                Ok(Asked { agent, clock: hello.clock, cpus, facts: *facts })
            }
            (Err(e), _) | (_, Err(e)) => Err(fail(e.to_string())),
            _ => Err(fail("the host agent sent an answer to another question".into())),
        }
    }

    /// CPUs to which a study can pin threads at the place: those that an agent may use, and isolated ones, on which the kernel
    /// starts no program that does not ask for them.
    pub fn pinnable_cpus(&self) -> CpuList {
        let isolated = match self.facts.get("cpu.isolated") {
            Some(FactValue::Text(cpus)) => cpus.parse().unwrap_or_default(),
            _ => CpuList::default(),
        };
        CpuList(self.cpus.iter().copied().chain(isolated.0).collect())
    }

    /// Id of the process on this machine (for example `ssh`) that passes on the control stream of the host agent.
    pub fn carrier(&self) -> Option<i32> {
        Some(self.agent.lock().ok()?.carrier())
    }

    /// True if the host agent has answered all questions so far.
    pub fn answers(&self) -> bool {
        self.agent.lock().is_ok_and(|agent| agent.answers())
    }

    /// Sentence that says how the host ended or why it is stopped; `None` = it runs, or this is not known.
    pub fn ended(&self) -> Option<String> {
        let text = self.reached.lock().ok()?.as_ref()?.ended()?;
        Some(self.sentence(&text))
    }

    /// Reads what the hypervisor reports about the guest now, or the reason why the hypervisor does not answer. `None`
    /// = the host is not a guest, or the guest has ended.
    pub fn look(&self) -> Option<Result<Look, Problem>> {
        self.reached.lock().ok()?.as_ref()?.look()
    }

    /// Threads on this host that run the guest; none if the host is not a guest of this host.
    pub fn threads_outside(&self) -> Vec<GuestThread> {
        let reached = self.reached.lock().ok();
        reached.and_then(|reached| reached.as_ref().map(|place| place.threads_outside())).unwrap_or_default()
    }

    /// Changes settings of the host through its agent.
    ///
    /// # Errors
    /// A setting cannot be changed. In this case no setting is changed.
    pub fn set(&self, run_id: &str, settings: &[KnobSpec]) -> Result<Vec<KnobDone>, RunError> {
        let (run, settings) = (format!("{run_id}-there"), settings.to_vec());
        match Far::ask(self, Ask::Set { run, settings }) {
            Ok(Answer::Set(done)) => Ok(done.into_iter().map(|d| self.named(d)).collect()),
            Ok(Answer::Failed(problem, _)) => Err(RunError::of(ExitCode::MachineNotFit, problem.context(&self.called))),
            Ok(other) => Err(not_fit(self.sentence(&format!("the host agent sent {other:?} instead of settings")), "")),
            Err(e) => Err(not_fit(e, "")),
        }
    }

    /// Lists the settings of the host that no longer have the value that was set, as sentences.
    pub fn changed(&self) -> Vec<String> {
        match Far::ask(self, Ask::Changed) {
            Ok(Answer::Changed(texts)) => texts.iter().map(|t| self.sentence(t)).collect(),
            Ok(other) => vec![self.sentence(&format!("the host agent sent {other:?} instead of settings"))],
            // A lost host is reported with its agents.
            Err(_) => Vec::new(),
        }
    }

    /// Lists the properties of the place that are no longer as the study asks, as sentences.
    pub fn differences(&self) -> Vec<String> {
        let texts = self.reached.lock().ok().and_then(|place| Some(place.as_ref()?.differences())).unwrap_or_default();
        texts.iter().map(|t| self.sentence(t)).collect()
    }

    /// Restores the settings of the host. If this function is not called, the host agent restores the settings when it
    /// ends.
    pub fn restore_settings(&self) -> RestoreAnswer {
        match Far::ask(self, Ask::Restore) {
            Ok(Answer::Restore(RestoreAnswer { settings, left_alone, failed })) => RestoreAnswer {
                settings: settings.into_iter().map(|d| self.named(d)).collect(),
                left_alone: left_alone.iter().map(|t| self.sentence(t)).collect(),
                failed: failed.iter().map(|t| self.sentence(t)).collect(),
            },
            _ => RestoreAnswer::default(),
        }
    }

    /// Begins to watch the clock of the host by its time service.
    ///
    /// # Errors
    /// The service cannot be asked.
    pub fn watch_clock(&self, run_id: &str, spec: &ClockSpec) -> Result<(), RunError> {
        self.ask_clock(Ask::WatchClock { run: run_id.to_owned(), spec: spec.clone() }).map(drop)
    }

    /// `None` = the watched clock is in step; otherwise the problem that it is not, with what was seen of it.
    ///
    /// # Errors
    /// The host no longer answers.
    pub fn clock_state(&self) -> Result<Option<Problem>, RunError> {
        self.ask_clock(Ask::ClockState)
    }

    fn ask_clock(&self, ask: Ask) -> Result<Option<Problem>, RunError> {
        match Far::ask(self, ask) {
            Ok(Answer::ClockState(state)) => Ok(state.map(|problem| problem.context(&self.called))),
            Ok(Answer::Failed(problem, _)) => Err(RunError::of(ExitCode::MachineNotFit, problem.context(&self.called))),
            Ok(other) => {
                Err(not_fit(self.sentence(&format!("the host agent sent {other:?} instead of its clock")), ""))
            }
            Err(e) => Err(not_fit(e, "")),
        }
    }

    /// The history of the watched clock from a time of its CLOCK_MONOTONIC (ns) on; `None` if the host no longer answers.
    pub fn clock_history(&self, from_ns: i64) -> Option<ClockHistory> {
        match Far::ask(self, Ask::ClockHistory(from_ns)) {
            Ok(Answer::ClockHistory(history)) => Some(ClockHistory { host: self.facts.host.clone(), ..*history }),
            _ => None,
        }
    }

    /// CLOCK_MONOTONIC of the host, ns; `None` if the host no longer answers.
    pub fn monotonic_ns(&self) -> Option<i64> {
        match Far::ask(self, Ask::Clock) {
            Ok(Answer::Clock(now_ns)) => Some(now_ns),
            _ => None,
        }
    }

    /// Orders the host agent to prepare the loads of a neighbour. If the agent no longer answers, `end_loads` reports it.
    ///
    /// # Errors
    /// The agent cannot prepare a load, or sends another answer.
    pub fn prepare_loads(&self, order: Order) -> Result<(), RunError> {
        match self.with_agent(|agent| agent.exchange(Message::Prepare(Box::new(order)))) {
            Ok(Message::Failed(failed)) => {
                Err(RunError::of(ExitCode::MachineNotFit, failed.problem.context(&self.called)))
            }
            Ok(Message::Prepared(_)) | Err(_) => Ok(()),
            Ok(_) => Err(not_fit(self.sentence("the host agent did not say whether the loads are prepared"), "")),
        }
    }

    /// Starts the prepared loads of a neighbour. If the agent no longer answers, `end_loads` reports it.
    pub fn start_loads(&self) {
        let _ = self.with_agent(|agent| agent.send(Message::Go));
    }

    /// Ends the loads of a neighbour, and returns their results; `None` if the agent no longer answers.
    pub fn end_loads(&self) -> Option<Vec<LoadDone>> {
        match self.with_agent(|agent| agent.exchange(Message::Stop)) {
            Ok(Message::Done(done)) => Some(done.loads),
            _ => None,
        }
    }

    fn with_agent<T>(&self, what: impl FnOnce(&mut HostAgent) -> io::Result<T>) -> io::Result<T> {
        let mut agent = self.agent.lock().map_err(|_| {
            io::Error::other("the connection to the host agent cannot be used, because a thread that used it panicked")
        })?;
        what(&mut agent).map_err(|e| io::Error::new(e.kind(), self.sentence(&e.to_string())))
    }

    fn named(&self, done: KnobDone) -> KnobDone {
        KnobDone { at: self.called.clone(), ..done }
    }

    fn sentence(&self, text: &str) -> String {
        format!("{}: {text}", self.called)
    }

    /// Ends the host agent and closes the connection to the host. Returns a sentence about things that could not be
    /// removed.
    pub fn leave(&self, context: &RunContext) -> Option<String> {
        if let Ok(mut agent) = self.agent.lock() {
            let name = format!("host-{}", crate::log::file_name(&self.facts.host));
            crate::log::keep(&context.logs, &name, &agent.take_log());
            agent.leave();
        }
        let place = self.reached.lock().ok()?.take()?;
        place.leave(context).map(|text| self.sentence(&text))
    }
}

/// Remedies for the user if Tailbound does not start on a host.
pub(super) struct Help<'a> {
    /// Path of the Tailbound program, in brackets after a space, if the study names the program; otherwise empty.
    pub program: &'a str,
    /// Remedy for the user if the agent does not start on the host.
    pub by_hand: &'a str,
    /// Remedy for the user if the agent on the host is of another release of Tailbound.
    pub other_release: &'a str,
}

impl Far for Host {
    fn name(&self) -> &str {
        &self.called
    }

    fn address(&self) -> Option<IpAddr> {
        self.address
    }

    fn netns(&self) -> Option<NetNs> {
        self.netns.clone()
    }

    fn ask(&self, ask: Ask) -> io::Result<Answer> {
        self.with_agent(|agent| agent.ask(ask))
    }

    fn program(&self) -> Command {
        match self.reached.lock().ok().as_ref().and_then(|place| place.as_ref()) {
            Some(place) => place.command(),
            // The host was left: nothing can be started there.
            None => Command::new("false"),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.called)
    }
}
