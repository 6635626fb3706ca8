//! Another program in the place of an end. The one that answers is there before the word to begin; the one that measures
//! starts with it, and the trial is over when it has ended.

use super::loads::Loads;
use super::process::{Process, rehearse};
use nix::sys::signal::Signal;
use std::os::fd::BorrowedFd;
use std::process::{Command, Stdio};
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::*;

/// What the program that answers may take until it is ready.
const READY_NS: i64 = 10_000_000_000;
/// How long it is given where nothing tells that it is ready.
const GRACE_NS: i64 = 300_000_000;
/// How often is looked whether it is.
const LOOK_NS: i64 = 20_000_000;
/// When the threads of the one that measures are read, after its start: it has made them all by then.
const THREADS_NS: i64 = 500_000_000;
/// What one that ends by itself may take to it.
const BY_ITSELF_NS: i64 = 5_000_000_000;
/// Octets of output that are read.
const MOST_OUTPUT: u64 = 2 << 20;
/// Octets that it may write to any file, its output among them: the kernel ends it then.
const LARGEST_FILE: u64 = 64 << 20;
/// One that was told how long to run and ends before this share of it has failed.
const EARLY: i64 = 2;

enum State {
    /// It is to be ready by then.
    Starting { until_ns: i64 },
    /// `prepared` is told.
    Ready,
    /// The word to begin came.
    Going,
    /// The other is through; it ends by itself before then.
    Stopping { until_ns: i64 },
    /// `done` is told.
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
    /// When its threads are to be read.
    read_ns: Option<i64>,
    threads: ThreadTable,
    warnings: Vec<Warning>,
    done: ToolDone,
}

impl ToolRun {
    /// Starts the loads that come before discovery, and the program if it is the one that answers.
    pub fn start(order: Order) -> Result<ToolRun, Failed> {
        let fail = |code: &str, exit: ExitCode, text: String| Failed {
            code: code.into(),
            text,
            mend: String::new(),
            exit: exit as u8,
        };
        let (Some(tool), Some(end)) = (order.tool.clone(), order.ends.first().cloned()) else {
            return Err(fail("tool", ExitCode::Unexpected, "an order for a program without one".into()));
        };
        let _ = host::scheduling::set_affinity(0, &order.housekeeping);
        let asked = RoleScheduling { policy: end.scheduling.policy, cpus: end.scheduling.cpus };
        let wanted = rehearse(&asked).map_err(|text| fail("scheduling", ExitCode::MachineNotFit, text))?;
        let limit_ns = READY_NS + tool.longest_ns;
        let loads = Loads::begin(&order, limit_ns).map_err(|text| fail("load", ExitCode::MachineNotFit, text))?;
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
            let wait_ns = if run.tool.ready.is_some() { READY_NS } else { GRACE_NS };
            run.state = State::Starting { until_ns: host::monotonic_ns() + wait_ns };
        }
        Ok(run)
    }

    fn begin(&mut self) {
        let Some((program, arguments)) = self.tool.command.split_first() else { return };
        let mut command = Command::new(program);
        command.args(arguments).envs(&self.tool.environment).stdin(Stdio::null());
        // The clock of a program in real time is its own; it is killed after its longest by the turn.
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

    /// The first reason is the cause of those that follow.
    fn fail(&mut self, why: String) {
        self.done.failed.get_or_insert(why);
    }

    /// Readable when there is something to do.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let watched = matches!(self.state, State::Starting { .. } | State::Stopping { .. })
            || matches!(self.state, State::Going) && self.tool.measures;
        let own = self.process.iter().filter(move |_| watched).map(Process::ended);
        own.chain(self.loads.ended()).chain(self.loads.meeting())
    }

    /// When there is.
    pub fn next_ns(&self) -> Option<i64> {
        let own = match self.state {
            State::Starting { .. } => Some(host::monotonic_ns() + LOOK_NS),
            State::Stopping { until_ns } => Some(until_ns),
            State::Going => self.longest_ns().into_iter().chain(self.read_ns).min(),
            State::Ready | State::Done => None,
        };
        own.into_iter().chain(self.loads.next_ns()).min()
    }

    /// When the one that measures is killed.
    fn longest_ns(&self) -> Option<i64> {
        let began_ns = self.process.as_ref().filter(|_| self.tool.measures)?.began_ns;
        Some(began_ns.saturating_add(self.tool.longest_ns))
    }

    pub fn tell(&mut self, message: &Message) {
        match message {
            Message::Go => {
                self.loads.go();
                self.state = State::Going;
                if self.tool.measures {
                    self.begin();
                }
                self.read_ns = Some(host::monotonic_ns() + THREADS_NS);
            }
            // Of the one that measures: the other never became ready.
            Message::Stop | Message::Sent(_) if !matches!(self.state, State::Done) => {
                let patience_ns = if self.tool.stop_signal == 0 { BY_ITSELF_NS } else { 0 };
                self.state = State::Stopping { until_ns: host::monotonic_ns() + patience_ns };
            }
            _ => {}
        }
    }

    /// Does what is due.
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
                    self.fail(format!("it had not ended after {longest}, and was killed"));
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
            let ready = self.tool.ready.as_ref().map(|line| tailbound_tools::first(line, &said).is_some());
            match (ready, is_over, is_late) {
                (Some(true), ..) | (None, false, true) => {}
                (_, true, _) => unmatched = Some(format!("it ended before it was ready{}", last(&said))),
                (Some(false), false, true) => {
                    let line = self.tool.ready.clone().unwrap_or_default();
                    let within = Nanos(READY_NS);
                    unmatched = Some(format!("it printed no line like `{line}` within {within}{}", last(&said)));
                }
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

    /// Threads of the program as the kernel has them, once it is at work.
    fn read_threads(&mut self) {
        let Some(process) = &self.process else { return };
        let role = |_: &str| "other".to_owned();
        // One that has ended meanwhile has none.
        let Ok(mut scan) = host::read_threads(process.pid(), &role) else { return };
        for row in &mut scan.rows {
            if row.tid == process.pid() {
                row.role = "main".into();
            }
            row.asked = RoleScheduling {
                policy: self.order.ends[0].scheduling.policy,
                cpus: self.order.ends[0].scheduling.cpus.clone(),
            };
            for (what, asked, found) in differences(row) {
                let text = format!("thread {} of the program has {what} {found}, asked was {asked}", row.name);
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

    /// Ends the program, and tells what it did.
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
                let (written, most) = (Octets(process.written()), Octets(MOST_OUTPUT));
                self.fail(format!("it wrote {written}, of which {most} at most are read"));
            } else if over.by_itself && !over.status.success() {
                let (ran, last) = (Nanos(ran_ns), last(&self.done.output));
                self.fail(format!("it ended after {ran} ({}){last}", over.status));
            } else if over.by_itself && self.tool.measures && ran_ns < self.tool.told_ns / EARLY {
                let (ran, told, last) = (Nanos(ran_ns), Nanos(self.tool.told_ns), last(&self.done.output));
                self.fail(format!("it was to run for {told} and ended after {ran}{last}"));
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

/// What of a thread is not as asked: what it is, what was asked, what the kernel has.
fn differences(row: &ThreadRow) -> Vec<(&'static str, String, String)> {
    let policy =
        row.asked.policy.filter(|p| *p != row.policy).map(|p| ("policy", p.to_string(), row.policy.to_string()));
    let cpus = row.asked.cpus.as_ref().filter(|c| **c != row.cpus);
    policy.into_iter().chain(cpus.map(|c| ("CPUs", c.to_string(), row.cpus.to_string()))).collect()
}

/// The first line of its that tells of an error, or else its last, as the end of a sentence.
fn last(said: &str) -> String {
    if let Some(line) = said.lines().find(|l| l.to_ascii_lowercase().contains("error")) {
        return format!("; it wrote: {}", line.trim());
    }
    match said.lines().rfind(|l| !l.trim().is_empty()) {
        Some(line) => format!("; it last wrote: {}", line.trim()),
        None => "; it wrote nothing".into(),
    }
}
