//! The agent: the supervisor of the measuring process at one place.
//!
//! The agent exchanges messages with the controller on its standard input and output, keeps the sample memory, reads
//! the clocks once a second on a CPU that is not measured, and saves the samples if the controller disappears. The
//! agent is one thread without async.

mod card_clocks;
mod card_stamping;
mod child_process;
mod host_clock;
mod host_settings;
mod late_messages;
mod live_causes;
mod live_figures;
mod load_process;
mod loads;
mod measuring_process;
mod neighbour_loads;
mod real_time_guard;
mod ring_drain;
mod signals;
mod thread_watch;
mod tool;
mod trial;

use crate::connection::Connection;
use host_clock::HostClock;
use host_settings::Settings;
use neighbour_loads::NeighbourLoads;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use tailbound_host as host;
use tailbound_lab::Answers;
use tailbound_model::{Answer, Ask};
use tailbound_wire::*;
use tool::ToolRun;
use tracing::level_filters::LevelFilter;
use trial::Trial;

pub use measuring_process::measuring_process;

/// Runs the agent until the controller sends `bye` or disappears, or until SIGTERM arrives. Returns the exit code.
pub fn main() -> i32 {
    // SAFETY: standard input and output, owned by nobody else in this process.
    let (input, output) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
    let mut agent = Agent::new(Connection::new(input, output));
    let (Ok(signals), Ok(children)) = (signals::termination(), signals::children()) else { return 1 };
    let code = match agent.serve(signals.as_raw_fd(), &children) {
        Ok(()) => 0,
        Err(e) => {
            tracing::warn!(%e, "the control stream to the controller broke");
            1
        }
    };
    if let Some(trial) = agent.trial.take() {
        trial.rescue();
    }
    let lines = crate::log::take();
    if !lines.is_empty() {
        // Standard error is a file in the record.
        eprint!("{lines}");
    }
    for reason in agent.clock.end() {
        eprintln!("tailbound agent: {reason}; `tailbound lab cleanup` tries again");
    }
    for reason in agent.settings.restore_settings().failed {
        // The controller is gone, so that only standard error is left.
        eprintln!("tailbound agent: a setting could not be restored: {reason}; `tailbound lab cleanup` tries again");
    }
    code
}

const SECOND: i64 = 1_000_000_000;

struct Agent {
    controller: Connection,
    trial: Option<Trial>,
    tool: Option<ToolRun>,
    /// Loads of this machine, if it is a guest at which no end runs.
    neighbour_loads: NeighbourLoads,
    heartbeats: u64,
    next_heartbeat_ns: i64,
    allowed: Vec<u32>,
    answers: Answers,
    settings: Settings,
    clock: HostClock,
    /// True once the agent has received an order from the controller. From then on the agent sends a heartbeat every
    /// second.
    ordered: bool,
    /// Time without a received message after which the agent ends, ns; 0 = the agent ends only when its stream ends.
    lease_ns: i64,
    last_received_ns: i64,
    /// Level of the diagnostics log, from the controller.
    log_level: LevelFilter,
    /// Whether the controller understands summaries of late messages while a trial runs.
    has_summaries: bool,
    /// Whether the controller understands causes while a trial runs.
    has_causes: bool,
}

enum Ready {
    Controller,
    Child,
    Log,
    Load,
    Switches,
    /// Event source: the tool's program, which is checked in every turn of the agent's loop.
    Tool,
    Terminated,
    /// Event: a child process of the agent has ended, was stopped or was continued.
    Children,
}

impl Agent {
    fn new(controller: Connection) -> Agent {
        Agent {
            controller,
            trial: None,
            tool: None,
            neighbour_loads: NeighbourLoads::default(),
            heartbeats: 0,
            next_heartbeat_ns: host::monotonic_ns() + SECOND,
            allowed: host::allowed_cpus(),
            answers: Answers::default(),
            settings: Settings::default(),
            clock: HostClock::default(),
            ordered: false,
            lease_ns: 0,
            last_received_ns: host::monotonic_ns(),
            log_level: LevelFilter::INFO,
            has_summaries: false,
            has_causes: false,
        }
    }

    fn serve(&mut self, signals: i32, children: &SignalFd) -> io::Result<()> {
        self.controller.send(Message::Hello(hello()))?;
        loop {
            for ready in self.poll(signals, children)? {
                match ready {
                    Ready::Terminated => {
                        tracing::warn!("the agent was asked by a signal to end");
                        return Ok(());
                    }
                    Ready::Tool => {}
                    Ready::Children => {
                        while let Ok(Some(_)) = children.read_signal() {}
                        self.trial.iter_mut().for_each(|trial| trial.switches.child_changed());
                    }
                    Ready::Switches => self.trial.iter_mut().for_each(|trial| trial.switches.read()),
                    Ready::Controller => {
                        if !self.controller.fill()? {
                            return Ok(());
                        }
                        self.last_received_ns = host::monotonic_ns();
                        while let Some(frame) = self.controller.pending()? {
                            let Frame::Message(message) = frame else { continue };
                            if *message == Message::Bye {
                                return Ok(());
                            }
                            self.order(*message)?;
                        }
                    }
                    Ready::Log => self.trial.iter_mut().for_each(Trial::read_log),
                    Ready::Load => self.trial.iter_mut().for_each(|trial| trial.loads.turn()),
                    Ready::Child => {
                        if let Some(trial) = &mut self.trial {
                            for message in trial.receive() {
                                self.controller.send(message)?;
                            }
                        }
                    }
                }
            }
            let now = host::monotonic_ns();
            if let Some(trial) = &mut self.trial
                && trial.next_drain_ns().is_some_and(|due| now >= due)
            {
                trial.drain(&mut self.controller)?;
            }
            if let Some(trial) = &mut self.trial
                && trial.loads.next_ns().is_some_and(|due| now >= due)
            {
                trial.loads.turn();
            }
            if let Some(trial) = &mut self.trial
                && trial.switches.next_ns().is_some_and(|due| now >= due)
            {
                trial.switches.count();
                trial.look_for_late_messages();
            }
            if let Some(message) = self.trial.as_mut().and_then(Trial::prepared) {
                self.controller.send(message)?;
            }
            if let Some(tool) = &mut self.tool {
                for message in tool.turn() {
                    self.controller.send(message)?;
                }
            }
            if self.lease_ns > 0 && now - self.last_received_ns > self.lease_ns {
                tracing::warn!(lease_ns = self.lease_ns, "the agent received nothing during its lease, and ends");
                return Ok(());
            }
            if now >= self.next_heartbeat_ns {
                self.next_heartbeat_ns = now + SECOND;
                // An agent that only answers questions sends no heartbeats: nobody reads them.
                if self.ordered {
                    let message = self.heartbeat();
                    self.controller.send(message)?;
                }
                self.trial.iter_mut().for_each(Trial::read_clocks);
                self.trial.iter_mut().for_each(|trial| trial.switches.read());
            }
        }
    }

    /// The message that shows that this agent runs: a heartbeat, the summary of late messages that is due, what was found of their
    /// causes, or round trips.
    fn heartbeat(&mut self) -> Message {
        if let Some(summary) = self.trial.as_mut().filter(|_| self.has_summaries).and_then(Trial::summary) {
            return Message::SoFar(summary);
        }
        if let Some(causes) = self.trial.as_mut().filter(|_| self.has_causes).and_then(Trial::causes) {
            return causes;
        }
        self.heartbeats += 1;
        // Every other time, so that time spans worth keeping are passed on too.
        let are_figures_next = self.heartbeats.is_multiple_of(2);
        let spare = self.trial.as_mut().filter(|_| !are_figures_next).and_then(Trial::unsent);
        if let (None, Some(figures)) = (spare, self.trial.as_mut().and_then(Trial::figures)) {
            return Message::Figures(figures);
        }
        let spare = spare.or_else(|| self.trial.as_mut().and_then(Trial::unsent));
        Message::Heartbeat(Heartbeat { n: self.heartbeats, received: self.controller.received(), spare })
    }

    fn poll(&self, signals: i32, children: &SignalFd) -> io::Result<Vec<Ready>> {
        // SAFETY: the descriptor is open for the life of `main`.
        let signals = unsafe { std::os::fd::BorrowedFd::borrow_raw(signals) };
        let mut fds = vec![
            PollFd::new(self.controller.input().as_fd(), PollFlags::POLLIN),
            PollFd::new(signals, PollFlags::POLLIN),
            PollFd::new(children.as_fd(), PollFlags::POLLIN),
        ];
        let mut ready = vec![Ready::Controller, Ready::Terminated, Ready::Children];
        if let Some(trial) = &self.trial {
            for (fd, what) in [(trial.socket(), Ready::Child), (trial.log(), Ready::Log)] {
                if let Some(fd) = fd {
                    fds.push(PollFd::new(fd, PollFlags::POLLIN));
                    ready.push(what);
                }
            }
            for fd in trial.switches.fds() {
                fds.push(PollFd::new(fd, PollFlags::POLLIN));
                ready.push(Ready::Switches);
            }
            for fd in trial.loads.ended().chain(trial.loads.meeting()) {
                fds.push(PollFd::new(fd, PollFlags::POLLIN));
                ready.push(Ready::Load);
            }
        }
        for fd in self.tool.iter().flat_map(ToolRun::fds) {
            fds.push(PollFd::new(fd, PollFlags::POLLIN));
            ready.push(Ready::Tool);
        }
        let due =
            self.trial.iter().flat_map(|t| [t.next_drain_ns(), t.loads.next_ns(), t.switches.next_ns()]).flatten();
        let due = due.chain(self.tool.iter().filter_map(ToolRun::next_ns));
        let next_ns = due.fold(self.next_heartbeat_ns, i64::min);
        let wait_ms = ((next_ns - host::monotonic_ns()) / 1_000_000).clamp(0, 1000) as u16 + 1;
        match poll(&mut fds, PollTimeout::from(wait_ms)) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => return Ok(Vec::new()),
            Err(e) => return Err(e.into()),
        }
        let hot: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        Ok(ready.into_iter().zip(hot).filter_map(|(what, hot)| hot.then_some(what)).collect())
    }

    fn order(&mut self, message: Message) -> io::Result<()> {
        // An agent in a neighbour answers questions between its orders, among which there must be no heartbeats.
        if let Some(answers) = self.neighbour_loads.order(&message) {
            return answers.into_iter().try_for_each(|answer| self.controller.send(answer));
        }
        self.ordered |= matches!(message, Message::Prepare(_));
        match message {
            Message::Hello(hello) => {
                self.log_level = crate::log::agent(&hello.capabilities);
                tracing::info!(pid = std::process::id(), tailbound = hello.tailbound, "agent begins");
                self.lease_ns = hello.lease_ns;
                let has = |capability: &str| hello.capabilities.iter().any(|word| word == capability);
                (self.has_summaries, self.has_causes) = (has(SO_FAR), has(CAUSES));
                Ok(())
            }
            Message::Ask(ask) => {
                tracing::debug!(?ask, "question of the controller");
                let answer = match ask {
                    Ask::Log => Answer::Log(crate::log::of_holder(self.log_level) + &crate::log::take()),
                    ask => {
                        let own = self.settings.answer(&ask).or_else(|| self.clock.answer(&ask));
                        own.unwrap_or_else(|| self.answers.answer(ask))
                    }
                };
                if let Answer::Failed(problem, _) = &answer {
                    tracing::info!(%problem, "the agent cannot answer the question of the controller");
                }
                self.controller.send(Message::Answer(answer))
            }
            Message::Prepare(order) if order.tool.is_some() => match ToolRun::start(*order) {
                Ok(tool) => {
                    self.tool = Some(tool);
                    Ok(())
                }
                Err(failed) => self.refuse(failed),
            },
            Message::Prepare(order) => match Trial::start(*order, &self.allowed) {
                Ok(trial) => {
                    self.trial = Some(trial);
                    Ok(())
                }
                Err(failed) => self.refuse(failed),
            },
            Message::Go | Message::GoAt(_) | Message::Stop | Message::Sent(_) => {
                self.tool.iter_mut().for_each(|tool| tool.take(&message));
                if let Some(trial) = &mut self.trial {
                    if matches!(message, Message::Go | Message::GoAt(_)) {
                        trial.read_clocks();
                    }
                    trial.pass_on(message);
                }
                Ok(())
            }
            Message::EndEarly => {
                self.trial.iter_mut().for_each(Trial::end_early);
                Ok(())
            }
            Message::Stored(stored) => {
                self.trial.iter_mut().for_each(|trial| trial.stored(stored));
                Ok(())
            }
            Message::Collect => {
                if let Some(trial) = &mut self.trial {
                    trial.read_clocks();
                    trial.collect(&mut self.controller)?;
                }
                self.controller.send(Message::Collected)
            }
            Message::Switches(windows) => {
                let seen = self.trial.as_mut().map(|trial| trial.switches_within(&windows)).unwrap_or_default();
                self.controller.send(Message::Switched(Box::new(seen)))
            }
            Message::Spare(spare) => {
                self.trial.iter_mut().for_each(|trial| trial.spare_for_another(spare));
                Ok(())
            }
            Message::Absence(absence) => {
                self.trial.iter_mut().for_each(|trial| trial.look_for_causes(absence));
                Ok(())
            }
            Message::Finish => {
                self.tool = None;
                if let Some(trial) = self.trial.take() {
                    trial.finish();
                }
                self.controller.send(Message::Finished)
            }
            _ => Ok(()),
        }
    }
}

impl Agent {
    fn refuse(&mut self, failed: Failed) -> io::Result<()> {
        tracing::warn!(code = failed.problem.code, what = failed.problem.what, "the order cannot be carried out");
        self.controller.send(Message::Failed(failed))
    }
}

fn hello() -> Hello {
    Hello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        tailbound: env!("CARGO_PKG_VERSION").into(),
        session: format!("{}-{}", std::process::id(), host::monotonic_ns()),
        capabilities: ["memory-fd", SPARES, SO_FAR, CAUSES].map(str::to_owned).to_vec(),
        lease_ns: 0,
        boot_id: host::boot_id().unwrap_or_default(),
        clock: host::clock_id().unwrap_or_default(),
        pid: std::process::id() as i32,
    }
}

#[cfg(test)]
mod tests;
