//! Runs `tailbound watch`: captures the packets of a network namespace, and says what the messages of other programs did.

use super::report::replace_metrics;
use super::watch_live::Live;
use crate::cli::{MetricsFile, TextFormat, Watch};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, errln, out, outln, width};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tailbound_driver::{Kv, Session, Silent};
use tailbound_host::{Capture, CaptureError, Packet, container, read_offset, realtime_ns, shared_memory};
use tailbound_lab::netns::NetNs;
use tailbound_model::{ClockOffset, ExitCode, Nanos};
use tailbound_report::WatchReport;
use tailbound_watch::{Captured, NoStudy, Seen, Watch as State, guid_words};

/// How often the end of the capture is looked at.
const TURN: Duration = Duration::from_millis(100);
/// Time after which --ask joins the domain: participants that speak are known by then.
const BEFORE_ASKING: Duration = Duration::from_millis(500);
/// How often the file of --metrics is written.
const BETWEEN_METRICS: Duration = Duration::from_secs(5);
/// Participants answer within a second or two.
const SHORTEST_WITH_ASK_NS: i64 = 2_000_000_000;
/// A step of the clock that matters for figures of lateness, ns.
const STEP_NS: i64 = 100_000;
/// The kernel adjusts the rate of CLOCK_REALTIME by at most a tenth (adjtimex(2), ticks).
const MOST_ADJUSTED: i64 = 10;

/// Whether SIGINT or SIGTERM has arrived.
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: i32) {
    ENDED.store(true, SeqCst);
}

pub fn watch(args: &Watch) -> CommandResult {
    if args.ask && args.duration.0 < SHORTEST_WITH_ASK_NS {
        return Err(
            Failure::bad_input("--ask needs at least 2 s, in which participants answer").help("write --for 2s or more")
        );
    }
    if let Some(path) = args.save_study.as_ref().filter(|path| path.exists()) {
        return Err(not_written(path, &std::io::ErrorKind::AlreadyExists.into(), "--save-study"));
    }
    let space = namespace(args)?;
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores a number.
        unsafe { sigaction(signal, &action) }.map_err(Failure::unexpected)?;
    }
    // A thread of its own enters the network namespace, and so do the threads that it starts.
    let found = std::thread::scope(|scope| scope.spawn(|| captured(args, &space)).join());
    let (report, failed) = found.map_err(|_| Failure::unexpected("the capture ended with a panic"))??;
    match args.format {
        TextFormat::Text => out!("{}", tailbound_report::render_watch(&report, width(), colour())),
        TextFormat::Json => outln!("{}", serde_json::to_string_pretty(&report).map_err(Failure::unexpected)?),
    }
    if let Some(path) = &args.save_study {
        save_study(&report, args.topic.as_deref(), path)?;
    }
    failed.map_or(Ok(ExitCode::Done), Err)
}

/// Writes the study that repeats what was seen.
fn save_study(report: &WatchReport, topic: Option<&str>, path: &Path) -> Result<(), Failure> {
    let saved = tailbound_watch::study(report, topic).map_err(|error| match error {
        NoStudy::NothingSeen => Failure::bad_input(format!(
            "{}: no study can be made, because no topic with a known name was seen with two samples",
            path.display()
        ))
        .help("watch for longer, or with --ask, which makes participants announce their topics again"),
        NoStudy::NoSuchTopic(names) => Failure::bad_input(format!(
            "{}: no study can be made of the topic `{}`, of which no two samples were seen",
            path.display(),
            topic.unwrap_or_default()
        ))
        .help(format!("topics that were seen: {}", names.join(", "))),
    })?;
    File::create_new(path)
        .and_then(|mut file| file.write_all(saved.text.as_bytes()))
        .map_err(|e| not_written(path, &e, "--save-study"))?;
    let (topic, path) = (saved.topic, path.display());
    errln!("{path} measures {topic} beside {} other writers: tailbound run {path}", saved.loads);
    Ok(())
}

/// The network namespace in which packets are captured.
fn namespace(args: &Watch) -> Result<NetNs, Failure> {
    if let Some(name) = &args.container {
        let client = container::Client::find(None).map_err(|(what, remedy)| Failure::not_fit(what).help(remedy))?;
        let process = client.process(name).map_err(|e| {
            Failure::bad_input(format!("the container `{name}` cannot be found: {e}"))
                .help(format!("{} must list it as running", client.version))
        })?;
        let path = format!("/proc/{process}/ns/net");
        return NetNs::open(&path).map_err(|e| {
            Failure::not_fit(format!("{path}: the network namespace of the container cannot be opened: {e}"))
                .help("run the command as root")
        });
    }
    let Some(name) = &args.netns else { return NetNs::own().map_err(Failure::unexpected) };
    NetNs::open(name).map_err(|e| {
        Failure::bad_input(format!("the network namespace `{name}` cannot be opened: {e}"))
            .help("`ip netns` lists names; the namespace of a process is /proc/PID/ns/net")
    })
}

/// Captures until the end of the time, until the user ends it, or until a file cannot be written. What was seen until then is not lost:
/// the failure of the file is the second part.
fn captured(args: &Watch, space: &NetNs) -> Result<(WatchReport, Option<Failure>), Failure> {
    space.enter().map_err(|e| {
        Failure::not_fit(format!("the network namespace cannot be entered: {e}")).help("run the command as root")
    })?;
    let mut capture = Capture::open(args.interface.as_deref()).map_err(failed)?;
    let begin_ns = realtime_ns();
    let mut state = State::new(place(args), begin_ns, own_addresses());
    let mut files = Files::create(args, &mut state)?;
    errln!("watching {} for {}; Ctrl-C ends it", place(args), tailbound_report::number::time(args.duration.0 as f64));
    let mut asking = None;
    let Nanos(duration_ns) = args.duration;
    let begin = Instant::now();
    let end = begin + Duration::from_nanos(duration_ns.max(0).unsigned_abs());
    let mut steps = Steps::new();
    let mut ended_early = None;
    let mut live = args.live.then(Live::open).transpose()?;
    while !ENDED.load(SeqCst) && files.failed.is_none() {
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
            state.asks();
        }
        files.turn(&mut state, &mut capture);
        if let Some(live) = &mut live {
            let dropped = capture.dropped().unwrap_or(0);
            if live.turn(|| state.report(realtime_ns(), dropped, Default::default()))? {
                break;
            }
        }
    }
    drop((asking, live));
    let (duration, end_ns) = (begin.elapsed(), realtime_ns());
    if ended_early.is_none() {
        read_rest(&mut capture, &mut state, end_ns);
    }
    files.samples(&mut state);
    let dropped = capture.dropped().unwrap_or(0);
    // Another network namespace may belong to a container with a /dev/shm of its own.
    let is_own = args.netns.is_none() && args.container.is_none();
    let shared = if is_own { shared_memory::files_by_middleware() } else { Default::default() };
    let mut report = state.report(end_ns, dropped, shared);
    report.duration_ns = duration.as_nanos() as i64;
    report.warnings.extend(ended_early.map(|error| format!("the capture ended early: {error}")));
    report.warnings.extend(steps.warning());
    files.metrics(&report);
    Ok((report, files.failed))
}

/// Reads what was captured before the end, and not read until then.
fn read_rest(capture: &mut Capture, state: &mut State, end_ns: i64) {
    let mut is_over = false;
    while !is_over {
        let read = capture.read(Duration::ZERO, |packet| {
            is_over |= packet.stamp_ns > end_ns;
            if !is_over {
                state.packet(seen(packet));
            }
        });
        is_over |= !read.is_ok_and(|count| count > 0);
    }
}

/// The addresses of the interfaces of the network namespace. An interface that gets its address later is not there.
fn own_addresses() -> BTreeSet<IpAddr> {
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let version_4 = address.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
        version_4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::from(address.ip())))
    };
    nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(address).collect()
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
    // The session has IPv4 alone.
    let peers: Vec<String> = state.addresses().filter(IpAddr::is_ipv4).map(|address| address.to_string()).collect();
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

/// What is written while packets are captured.
struct Files<'a> {
    samples: Option<SampleFile<'a>>,
    metrics: Option<&'a MetricsFile>,
    metrics_at: Instant,
    /// The first file that could not be written. No other is written after it.
    failed: Option<Failure>,
}

impl<'a> Files<'a> {
    fn create(args: &'a Watch, state: &mut State) -> Result<Files<'a>, Failure> {
        let samples = args.samples.as_deref().map(SampleFile::create).transpose()?;
        if samples.is_some() {
            state.keep_samples();
        }
        Ok(Files { samples, metrics: args.metrics.as_ref(), metrics_at: Instant::now(), failed: None })
    }

    /// Appends the samples of a turn, and writes the metrics when their time has come.
    fn turn(&mut self, state: &mut State, capture: &mut Capture) {
        self.samples(state);
        if self.metrics.is_some() && self.metrics_at.elapsed() >= BETWEEN_METRICS {
            self.metrics_at = Instant::now();
            let dropped = capture.dropped().unwrap_or(0);
            self.metrics(&state.report(realtime_ns(), dropped, Default::default()));
        }
    }

    fn samples(&mut self, state: &mut State) {
        if let (Some(file), None) = (&mut self.samples, &self.failed) {
            self.failed = file.write(state.take_samples()).err();
        }
    }

    fn metrics(&mut self, report: &WatchReport) {
        if let (Some(MetricsFile { path, format }), None) = (self.metrics, &self.failed) {
            let text = tailbound_report::render_watch_metrics(report, *format);
            self.failed = replace_metrics(path, text).err();
        }
    }
}

/// The file of `--samples`.
struct SampleFile<'a> {
    path: &'a Path,
    file: BufWriter<File>,
}

impl<'a> SampleFile<'a> {
    fn create(path: &'a Path) -> Result<SampleFile<'a>, Failure> {
        let file = File::create_new(path).map_err(|e| not_written(path, &e, "--samples"))?;
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
        self.file.flush().map_err(|e| not_written(self.path, &e, "--samples"))
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.file, "{text}").map_err(|e| not_written(self.path, &e, "--samples"))
    }
}

fn not_written(path: &Path, error: &std::io::Error, flag: &str) -> Failure {
    Failure::bad_input(format!("{} cannot be written: {error}", path.display()))
        .help(format!("name a new file with {flag}"))
}

/// Steps of the clock of the host while it captures.
struct Steps {
    last: ClockOffset,
    largest_ns: i64,
}

impl Steps {
    fn new() -> Steps {
        Steps { last: read_offset(), largest_ns: 0 }
    }

    fn look(&mut self) {
        let now = read_offset();
        // The uncertainty of the readings, and what the kernel may adjust in this time.
        let between_ns = now.at_ns - self.last.at_ns;
        let width_ns = now.width_ns + self.last.width_ns + between_ns / MOST_ADJUSTED;
        let step_ns = (now.offset_ns - self.last.offset_ns).abs();
        self.last = now;
        if step_ns > width_ns + STEP_NS {
            self.largest_ns = self.largest_ns.max(step_ns);
        }
    }

    fn warning(&self) -> Option<String> {
        (self.largest_ns > 0).then(|| {
            format!(
                "the clock of this host was set while packets were captured, by {} at most: the lateness of samples at this time is wrong \
                 by as much",
                tailbound_report::number::time(self.largest_ns as f64)
            )
        })
    }
}
