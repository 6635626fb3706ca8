//! Runs `tailbound watch`: captures the packets of a network namespace, and says what the messages of other programs did.

use crate::cli::{TextFormat, Watch};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, errln, out, outln, width};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tailbound_driver::{Kv, Session, Silent};
use tailbound_host::{Capture, CaptureError, Packet, container, realtime_ns, shared_memory};
use tailbound_lab::netns::NetNs;
use tailbound_model::{ExitCode, Nanos};
use tailbound_report::WatchReport;
use tailbound_watch::{Captured, Seen, Watch as State, guid_words};

/// How often the end of the capture is looked at.
const TURN: Duration = Duration::from_millis(100);
/// Time after which --ask joins the domain: participants that speak are known by then.
const BEFORE_ASKING: Duration = Duration::from_millis(500);
/// A change of the offset between CLOCK_REALTIME and CLOCK_MONOTONIC that is a step of the clock, ns: ten times what the kernel
/// adjusts in a turn at most.
const STEP_NS: i64 = 1_000_000;

/// Whether SIGINT or SIGTERM has arrived.
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: i32) {
    ENDED.store(true, SeqCst);
}

pub fn watch(args: &Watch) -> CommandResult {
    let space = namespace(args)?;
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores a number.
        unsafe { sigaction(signal, &action) }.map_err(Failure::unexpected)?;
    }
    // A thread of its own enters the network namespace, and so do the threads that it starts.
    let found = std::thread::scope(|scope| scope.spawn(|| captured(args, &space)).join());
    let report = found.map_err(|_| Failure::unexpected("the capture ended with a panic"))??;
    match args.format {
        TextFormat::Text => out!("{}", tailbound_report::render_watch(&report, width(), colour())),
        TextFormat::Json => outln!("{}", serde_json::to_string_pretty(&report).map_err(Failure::unexpected)?),
    }
    Ok(ExitCode::Done)
}

/// The network namespace in which packets are captured.
fn namespace(args: &Watch) -> Result<NetNs, Failure> {
    if let Some(name) = &args.container {
        let client = container::Client::find(None).map_err(|(what, remedy)| Failure::not_fit(what).help(remedy))?;
        let process = client.process(name).map_err(|e| {
            Failure::bad_input(format!("the container `{name}` cannot be found: {e}"))
                .help(format!("{} must list it as running", client.version))
        })?;
        return NetNs::open(&format!("/proc/{process}/ns/net")).map_err(Failure::not_fit);
    }
    let Some(name) = &args.netns else { return NetNs::own().map_err(Failure::unexpected) };
    NetNs::open(name).map_err(|e| {
        Failure::bad_input(format!("the network namespace `{name}` cannot be opened: {e}"))
            .help("`ip netns` lists names; the namespace of a process is /proc/PID/ns/net")
    })
}

/// Captures until the end of the time, or until the user ends it.
fn captured(args: &Watch, space: &NetNs) -> Result<WatchReport, Failure> {
    space.enter().map_err(|e| {
        Failure::not_fit(format!("the network namespace cannot be entered: {e}")).help("run the command as root")
    })?;
    let mut capture = Capture::open(args.interface.as_deref()).map_err(failed)?;
    let begin_ns = realtime_ns();
    let mut state = State::new(place(args), begin_ns);
    let mut samples = args.samples.as_deref().map(SampleFile::create).transpose()?;
    if samples.is_some() {
        state.keep_samples();
    }
    errln!("watching {} for {}; Ctrl-C ends it", place(args), tailbound_report::number::time(args.duration.0 as f64));
    let mut asking = None;
    let Nanos(duration_ns) = args.duration;
    let begin = Instant::now();
    let end = begin + Duration::from_nanos(duration_ns.max(0).unsigned_abs());
    let mut steps = Steps::new();
    let mut ended_early = None;
    while !ENDED.load(SeqCst) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        if let Err(error) = capture.read(left.min(TURN), |packet| state.packet(seen(packet))) {
            ended_early = Some(error);
            break;
        }
        steps.look();
        if args.ask && asking.is_none() && begin.elapsed() >= BEFORE_ASKING {
            asking = Some(ask(args, &state)?);
        }
        if let Some(file) = &mut samples {
            file.write(state.take_samples())?;
        }
    }
    drop(asking);
    let dropped = capture.dropped().unwrap_or(0);
    let mut report = state.report(realtime_ns(), dropped, shared_memory::files_by_middleware());
    report.warnings.extend(ended_early.map(|error| format!("the capture ended early: {error}")));
    report.warnings.extend(steps.warning());
    Ok(report)
}

fn seen(packet: Packet<'_>) -> Seen<'_> {
    let Packet { stamp_ns, interface, is_sent, bytes } = packet;
    Seen { stamp_ns, interface, is_sent, bytes }
}

/// Where packets are captured, in words.
fn place(args: &Watch) -> String {
    let space = match (&args.netns, &args.container) {
        (Some(name), _) => format!("network namespace {name}"),
        (None, Some(name)) => format!("container {name}"),
        (None, None) => "this network namespace".to_owned(),
    };
    match &args.interface {
        None => format!("all interfaces of {space}"),
        Some(interface) => format!("interface {interface} of {space}"),
    }
}

/// Joins the domain with a participant that has no writers and readers: all others then announce theirs to it. Participants that
/// do not use multicast are reached at the addresses from which messages came.
fn ask(args: &Watch, state: &State) -> Result<Session, Failure> {
    errln!(
        "warning: --ask joins the DDS domain {} as a participant: it sends messages of discovery, and all participants announce their \
         writers and readers to it",
        args.domain
    );
    let peers: Vec<String> = state.addresses().map(|address| address.to_string()).collect();
    let mut options = Kv::new().with("domain", args.domain.to_string());
    if !peers.is_empty() {
        options = options.with("peers", peers.join(","));
    }
    if let Some(interface) = &args.interface {
        options = options.with("interface", interface);
    }
    let driver = crate::drivers::find("cyclonedds").map_err(Failure::unexpected)?;
    Session::open(&driver, &options, Arc::new(Silent)).map_err(|e| {
        Failure::not_fit(format!("--ask cannot join the DDS domain {}: {e}", args.domain))
            .help("leave out --ask to capture without joining")
    })
}

fn failed(error: CaptureError) -> Failure {
    let exit = match error {
        CaptureError::NoInterface(_) => ExitCode::BadInput,
        _ => ExitCode::MachineNotFit,
    };
    Failure::of(exit, error.problem())
}

/// The file of `--samples`.
struct SampleFile<'a> {
    path: &'a Path,
    file: BufWriter<File>,
}

impl<'a> SampleFile<'a> {
    fn create(path: &'a Path) -> Result<SampleFile<'a>, Failure> {
        let file = File::create_new(path).map_err(|e| not_written(path, &e))?;
        let mut file = SampleFile { path, file: BufWriter::new(file) };
        file.line("writer,number,source_ns,captured_ns")?;
        Ok(file)
    }

    /// Appends samples. What is written is in the file after each turn, so that a killed command leaves whole lines.
    fn write(&mut self, samples: impl Iterator<Item = Captured>) -> Result<(), Failure> {
        for Captured { writer, number, source_ns, stamp_ns } in samples {
            let source = source_ns.map(|ns| ns.to_string()).unwrap_or_default();
            self.line(&format!("{},{number},{source},{stamp_ns}", guid_words(writer)))?;
        }
        self.file.flush().map_err(|e| not_written(self.path, &e))
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.file, "{text}").map_err(|e| not_written(self.path, &e))
    }
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_input(format!("{} cannot be written: {error}", path.display())).help("name a new file with --samples")
}

/// Steps of the clock of the host while it captures.
struct Steps {
    offset_ns: i64,
    largest_ns: i64,
    count: u32,
}

impl Steps {
    fn new() -> Steps {
        Steps { offset_ns: offset_ns(), largest_ns: 0, count: 0 }
    }

    fn look(&mut self) {
        let offset_ns = offset_ns();
        let step_ns = offset_ns - self.offset_ns;
        self.offset_ns = offset_ns;
        if step_ns.abs() > STEP_NS {
            self.count += 1;
            self.largest_ns = if step_ns.abs() > self.largest_ns.abs() { step_ns } else { self.largest_ns };
        }
    }

    fn warning(&self) -> Option<String> {
        (self.count > 0).then(|| {
            format!(
                "the clock of this host was set {} times while packets were captured, by {} at most: the lateness of samples at these \
                 times is wrong by as much",
                self.count,
                tailbound_report::number::time(self.largest_ns as f64)
            )
        })
    }
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns, between two readings of the latter.
fn offset_ns() -> i64 {
    let before = tailbound_host::monotonic_ns();
    let real = realtime_ns();
    let after = tailbound_host::monotonic_ns();
    real - before - (after - before) / 2
}
