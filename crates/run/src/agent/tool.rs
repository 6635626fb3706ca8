//! Runs a tool in place of an end. The program that answers starts before the start message. The program that measures
//! starts with that message, and the trial is over when this program ends.

use super::child_process::{Process, rehearse};
use super::loads::Loads;
use nix::sys::signal::Signal;
use std::os::fd::BorrowedFd;
use std::process::{Command, Stdio};
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::*;

/// Longest time for the tool's program that answers to become ready, ns.
const READY_NS: i64 = 10_000_000_000;
/// If the program that answers prints no line when it is ready: time after its start at which the agent takes the
/// program to be ready, ns.
const GRACE_NS: i64 = 300_000_000;
/// Time between two checks of the output of the program that answers, ns.
const LOOK_NS: i64 = 20_000_000;
/// Time after the start message at which the threads of the program are read, ns. The program has created its threads
/// by then.
const THREADS_NS: i64 = 500_000_000;
/// Longest time for one program of a tool to end by itself after the other program is done, ns.
const BY_ITSELF_NS: i64 = 5_000_000_000;
/// Largest number of bytes that are read of the output of a tool's program.
const MOST_OUTPUT: u64 = 2 << 20;
/// Largest number of bytes that the program may write to a file or to its output. If the program writes more, the
/// kernel ends it.
const LARGEST_FILE: u64 = 64 << 20;
/// A program that measures has failed if it runs for less than the time for which it was asked to run, divided by this
/// number.
const EARLY: i64 = 2;

enum State {
    /// State of a tool's end: the program that answers was started, and must be ready by `until_ns`.
    Starting { until_ns: i64 },
    /// State of a tool's end: the agent has sent the message `prepared` to the controller.
    Ready,
    /// State of a tool's end: the agent has received the start message from the controller.
    Going,
    /// State of a tool's end: the program at the other end is done; this program must end by `until_ns`.
    Stopping { until_ns: i64 },
    /// State of a tool's end: the agent has sent the message `done` to the controller.
    Done,
}

pub(super) struct ToolRun {
    order: Order,
    tool: ToolOrder,
    end: String,
    wanted: RoleScheduling,
    loads: Loads,
    process: Option<Process>,
    state: State,
    /// Time at which the threads of the tool's program are read, ns.
    read_ns: Option<i64>,
    threads: ThreadTable,
    warnings: Vec<Warning>,
    done: ToolDone,
}

impl ToolRun {
    /// Starts the loads that begin before discovery. Also starts the tool's program if it is the program that answers.
    pub fn start(order: Order) -> Result<ToolRun, Failed> {
        let (Some(tool), Some(end)) = (order.tool.clone(), order.ends.first().cloned()) else {
            let text = "the order to run a tool names no program or no end";
            return Err(Failed::new("tool", ExitCode::Unexpected, text, ""));
        };
        let _ = host::scheduling::set_affinity(0, &order.housekeeping);
        let scheduling = order.scheduling();
        let asked = RoleScheduling { policy: scheduling.policy, cpus: scheduling.cpus.clone() };
        let wanted = rehearse(&asked).map_err(|problem| Failed::of(ExitCode::MachineNotFit, problem))?;
        let limit_ns = READY_NS + tool.longest_ns;
        let loads = Loads::begin(&order, limit_ns).map_err(|problem| Failed::of(ExitCode::MachineNotFit, problem))?;
        let mut run = ToolRun {
            end: end.role.word().to_owned(),
            wanted,
            loads,
            process: None,
            state: State::Starting { until_ns: 0 },
            read_ns: None,
            threads: ThreadTable::default(),
            warnings: Vec::new(),
            done: ToolDone::default(),
            tool,
            order,
        };
        if !run.tool.measures && !run.tool.command.is_empty() {
            run.begin();
            let shows_it = run.tool.ready.is_some() || run.tool.listens.is_some();
            let wait_ns = if shows_it { READY_NS } else { GRACE_NS };
            run.state = State::Starting { until_ns: host::monotonic_ns() + wait_ns };
        }
        Ok(run)
    }

    fn begin(&mut self) {
        let Some((program, arguments)) = self.tool.command.split_first() else { return };
        let mut command = Command::new(program);
        command.args(arguments).envs(&self.tool.environment).stdin(Stdio::null());
        // `turn` kills a program that exceeds its longest time.
        match Process::start(command, self.wanted.clone(), READY_NS + self.tool.longest_ns, Some(LARGEST_FILE)) {
            Ok(process) => {
                self.done.process.began_ns = process.began_ns;
                (self.done.process.policy, self.done.process.cpus) =
                    (process.policy.to_string(), process.cpus.to_string());
                self.process = Some(process);
            }
            Err(e) => self.fail(format!("`{program}` cannot be started: {e}")),
        }
    }

    /// Records why the tool's program failed. Only the first reason is kept, because the first failure causes the later
    /// failures.
    fn fail(&mut self, why: String) {
        self.done.failed.get_or_insert(why);
    }

    /// Descriptors that become readable when the function `turn` has something to do for the tool's program.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let watched = matches!(self.state, State::Starting { .. } | State::Stopping { .. })
            || matches!(self.state, State::Going) && self.tool.measures;
        let own = self.process.iter().filter(move |_| watched).map(Process::ended);
        own.chain(self.loads.ended()).chain(self.loads.meeting())
    }

    /// Next time at which the function `turn` has something to do for the tool's program, ns.
    pub fn next_ns(&self) -> Option<i64> {
        let own = match self.state {
            State::Starting { .. } => Some(host::monotonic_ns() + LOOK_NS),
            State::Stopping { until_ns } => Some(until_ns),
            State::Going => self.longest_ns().into_iter().chain(self.read_ns).min(),
            State::Ready | State::Done => None,
        };
        own.into_iter().chain(self.loads.next_ns()).min()
    }

    /// Time at which the tool's program that measures is killed, ns.
    fn longest_ns(&self) -> Option<i64> {
        let began_ns = self.process.as_ref().filter(|_| self.tool.measures)?.began_ns;
        Some(began_ns.saturating_add(self.tool.longest_ns))
    }

    /// Handles a message from the controller to the agent.
    pub fn take(&mut self, message: &Message) {
        match message {
            Message::Go => {
                self.loads.go();
                self.state = State::Going;
                if self.tool.measures {
                    self.begin();
                }
                self.read_ns = Some(host::monotonic_ns() + THREADS_NS);
            }
            // The program that measures gets this message if the other program never became ready.
            Message::Stop | Message::Sent(_) if !matches!(self.state, State::Done) => {
                let patience_ns = if self.tool.stop_signal == 0 { BY_ITSELF_NS } else { 0 };
                self.state = State::Stopping { until_ns: host::monotonic_ns() + patience_ns };
            }
            _ => {}
        }
    }

    /// Carries out all due steps of the tool's program in the trial. Returns messages for the controller.
    pub fn turn(&mut self) -> Vec<Message> {
        self.loads.turn();
        let now = host::monotonic_ns();
        if self.read_ns.is_some_and(|due| now >= due) {
            self.read_ns = None;
            self.read_threads();
        }
        let is_over = self.process.as_ref().is_none_or(Process::is_over);
        match self.state {
            State::Starting { until_ns } => self.starting(is_over, now >= until_ns),
            State::Going if self.tool.measures => {
                let overdue = self.longest_ns().is_some_and(|longest| now >= longest);
                if overdue && !is_over {
                    let longest = Nanos(self.tool.longest_ns);
                    self.fail(format!("the program had not ended after {longest}, and was killed"));
                }
                if is_over || overdue { self.through() } else { Vec::new() }
            }
            State::Stopping { until_ns } if is_over || now >= until_ns => self.through(),
            State::Going | State::Stopping { .. } | State::Ready | State::Done => Vec::new(),
        }
    }

    fn starting(&mut self, is_over: bool, is_late: bool) -> Vec<Message> {
        let mut unmatched = self.done.failed.clone();
        if let (Some(process), None) = (&mut self.process, &unmatched) {
            let said = process.said(MOST_OUTPUT);
            let ready = match (self.tool.listens, &self.tool.ready) {
                (Some(port), _) => Some(host::process::has_tcp_listener(process.pid(), port)),
                (None, Some(line)) => Some(tailbound_tools::first(line, &said).is_some()),
                (None, None) => None,
            };
            match (ready, is_over, is_late) {
                (Some(true), ..) | (None, false, true) => {}
                (_, true, _) => unmatched = Some(format!("the program ended before it was ready{}", last(&said))),
                (Some(false), false, true) => unmatched = Some(self.never_ready(&said)),
                (_, false, false) => return Vec::new(),
            }
        }
        if !self.loads.have_met() {
            return Vec::new();
        }
        if let Some(why) = unmatched.clone() {
            self.fail(why);
        }
        self.state = State::Ready;
        let ready = EndReady { name: self.end.clone(), unmatched, ..EndReady::default() };
        vec![Message::Prepared(Box::new(Prepared { ends: vec![ready], ..Prepared::default() }))]
    }

    /// The reason why the program that answers is not ready, which printed `said`.
    fn never_ready(&self, said: &str) -> String {
        let (within, last) = (Nanos(READY_NS), last(said));
        match (self.tool.listens, &self.tool.ready) {
            (Some(port), _) => format!("the program did not listen at the TCP port {port} within {within}{last}"),
            (None, line) => {
                let line = line.as_deref().unwrap_or_default();
                format!("the program printed no line that matches `{line}` within {within}{last}")
            }
        }
    }

    /// Reads the state of the threads of the tool's program.
    fn read_threads(&mut self) {
        let Some(process) = &self.process else { return };
        let role = |_: &str| "other".to_owned();
        // A program that has ended has no threads.
        let Ok(mut scan) = host::read_threads(process.pid(), &role) else { return };
        for row in &mut scan.rows {
            if row.tid == process.pid() {
                row.role = "main".into();
            }
            row.asked =
                RoleScheduling { policy: self.order.scheduling().policy, cpus: self.order.scheduling().cpus.clone() };
            for (what, asked, found) in differences(row) {
                let text = format!("thread {} of the program has {what} {found}, the study asks for {asked}", row.name);
                let warning = Warning::new("thread_not_as_asked", Severity::Invalid, text, "");
                self.warnings.push(warning.at_end(self.end.clone()));
            }
        }
        self.threads = ThreadTable {
            ends: vec![self.end.clone()],
            pid: process.pid(),
            before: scan.rows,
            before_ns: Some(host::monotonic_ns()),
            ..ThreadTable::default()
        };
    }

    /// Ends the tool's program. Returns the message to the controller with the result of the program.
    fn through(&mut self) -> Vec<Message> {
        self.state = State::Done;
        self.read_ns = None;
        if let Some(mut process) = self.process.take() {
            let signal = Signal::try_from(self.tool.stop_signal).unwrap_or(Signal::SIGTERM);
            let over = process.end(signal);
            self.done.output = process.said(MOST_OUTPUT);
            let ran_ns = over.at_ns - process.began_ns;
            let done = &mut self.done.process;
            (done.ended_ns, done.cpu_ns) = (over.at_ns, over.cpu_ns);
            done.ended = if over.by_itself { over.status.to_string() } else { "it was ended".into() };
            if process.written() > MOST_OUTPUT {
                let (written, most) = (ByteSize(process.written()), ByteSize(MOST_OUTPUT));
                self.fail(format!("the program wrote {written}, of which at most {most} are read"));
            } else if over.by_itself && !over.status.success() {
                let (ran, last) = (Nanos(ran_ns), last(&self.done.output));
                self.fail(format!("the program ended after {ran} ({}){last}", over.status));
            } else if over.by_itself && self.tool.measures && ran_ns < self.tool.told_ns / EARLY {
                let (ran, told, last) = (Nanos(ran_ns), Nanos(self.tool.told_ns), last(&self.done.output));
                self.fail(format!("the program was asked to run for {told} and ended after {ran}{last}"));
            }
        }
        let done = Done {
            threads: std::mem::take(&mut self.threads),
            warnings: std::mem::take(&mut self.warnings),
            loads: self.loads.end(),
            tool: Some(std::mem::take(&mut self.done)),
            ..Done::default()
        };
        vec![Message::Done(Box::new(done))]
    }
}

/// Lists the differences between the scheduling that the study asks for a thread and the scheduling that the kernel
/// reports: property, asked value, found value.
fn differences(row: &ThreadRow) -> Vec<(&'static str, String, String)> {
    let policy =
        row.asked.policy.filter(|p| *p != row.policy).map(|p| ("policy", p.to_string(), row.policy.to_string()));
    let cpus = row.asked.cpus.as_ref().filter(|c| **c != row.cpus);
    policy.into_iter().chain(cpus.map(|c| ("CPUs", c.to_string(), row.cpus.to_string()))).collect()
}

/// The end of a sentence that quotes a program's output: the first line that contains `error`, or else the last line.
fn last(said: &str) -> String {
    if let Some(line) = said.lines().find(|l| l.to_ascii_lowercase().contains("error")) {
        return format!("; it wrote: {}", line.trim());
    }
    match said.lines().rfind(|l| !l.trim().is_empty()) {
        Some(line) => format!("; it last wrote: {}", line.trim()),
        None => "; it wrote nothing".into(),
    }
}
