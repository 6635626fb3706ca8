//! Records calls of programs of ROS 2 while packets are captured (`watch --uprobes`).

use crate::output::errln;
use std::time::{Duration, Instant};
use tailbound_host::calls::{Call as Recorded, CallKind as RecordedKind, Calls};
use tailbound_host::realtime_ns;
use tailbound_host::switches::TRACER_FILE;
use tailbound_watch::{Call, CallKind, Watch as State};

/// How often new processes are looked for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Calls that are recorded, or why they are not.
pub struct Recording {
    calls: Option<Calls>,
    looked: Instant,
    refusals: Vec<String>,
    lost: u64,
}

impl Recording {
    /// Attaches to the programs of the network namespace of this thread. If that is refused, packets are captured all the same.
    pub fn begin(state: &mut State) -> Recording {
        let mut recording = Recording { calls: None, looked: Instant::now(), refusals: Vec::new(), lost: 0 };
        let tracer = tailbound_driver::search_directories().into_iter().map(|dir| dir.join(TRACER_FILE));
        match tracer.into_iter().find(|file| file.exists()) {
            None => {
                recording.refusals.push(format!("the tracer ({TRACER_FILE}) is not installed: dev/tracer builds it"))
            }
            Some(file) => match Calls::open(&file) {
                Ok(mut calls) => {
                    recording.refusals = calls.attach_installed();
                    recording.calls = Some(calls);
                }
                Err(problem) => recording.refusals.push(problem.what),
            },
        }
        if recording.calls.is_some() {
            state.record_calls();
            recording.look();
        }
        for refusal in &recording.refusals {
            errln!("warning: --uprobes: {refusal}");
        }
        recording
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        self.refusals.extend(self.calls.iter_mut().flat_map(Calls::attach_new));
    }

    /// Reads the calls until now.
    pub fn turn(&mut self, state: &mut State) {
        if self.looked.elapsed() >= BETWEEN_LOOKS {
            self.look();
        }
        let now_ns = realtime_ns();
        if let Some(calls) = &mut self.calls {
            self.lost = calls.read(|recorded| state.call(&call(recorded)));
        }
        state.calls_until(now_ns, self.lost);
    }

    /// Reads the last calls.
    pub fn end(&mut self, state: &mut State) {
        self.turn(state);
        state.calls_end();
    }

    /// What is to be known about the recorded calls.
    pub fn warnings(self) -> Vec<String> {
        let mut warnings: Vec<String> = self.refusals.iter().map(|refusal| format!("--uprobes: {refusal}")).collect();
        if self.calls.is_some_and(|calls| calls.functions() == 0) {
            warnings.push(
                "--uprobes: no process of this network namespace has a library of ROS 2 (librmw_implementation.so, or librmw_*.so) that \
                 publishes and takes messages"
                    .to_owned(),
            );
        }
        if self.lost > 0 {
            warnings.push(format!(
                "--uprobes: calls were not read fast enough (missing: {}): takes of messages without the call that published them may be \
                 due to this",
                tailbound_report::number::count(self.lost)
            ));
        }
        warnings
    }
}

fn call(recorded: Recorded<'_>) -> Call<'_> {
    let Recorded { kind, process, thread, topic, by, begin_ns, end_ns } = recorded;
    // Of a wait, `topic` is the name of the thread, here and there.
    let kind = match kind {
        RecordedKind::Publish => CallKind::Publish { source_ns: None, has_end: true },
        RecordedKind::Take(source_ns) => CallKind::Take { source_ns },
        RecordedKind::Execute => CallKind::Execute,
        RecordedKind::Waited(by_ns) => CallKind::Waited { by, by_ns },
    };
    Call { kind, process, thread, topic, begin_ns, end_ns }
}
