//! Runs `tailbound watch`: captures the packets of a network namespace, and says what the messages of other programs did.

use crate::cli::{TextFormat, Watch};
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
use tailbound_watch::{Captured, Seen, Watch as State, guid_words};

/// How often the end of the capture is looked at.
const TURN: Duration = Duration::from_millis(100);
/// Time after which --ask joins the domain: participants that speak are known by then.
const BEFORE_ASKING: Duration = Duration::from_millis(500);
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

/// Captures until the end of the time, or until the user ends it.
fn captured(args: &Watch, space: &NetNs) -> Result<WatchReport, Failure> {
    space.enter().map_err(|e| {
        Failure::not_fit(format!("the network namespace cannot be entered: {e}")).help("run the command as root")
    })?;
    let mut capture = Capture::open(args.interface.as_deref()).map_err(failed)?;
    let begin_ns = realtime_ns();
    let mut state = State::new(place(args), begin_ns, own_addresses());
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
            state.asks();
        }
        if let Some(file) = &mut samples {
            file.write(state.take_samples())?;
        }
    }
    drop(asking);
    let (duration, end_ns) = (begin.elapsed(), realtime_ns());
    // What was captured before the end may not have been read yet.
    let mut is_over = ended_early.is_some();
    while !is_over {
        let read = capture.read(Duration::ZERO, |packet| {
            is_over |= packet.stamp_ns > end_ns;
            if !is_over {
                state.packet(seen(packet));
            }
        });
        is_over |= !read.is_ok_and(|count| count > 0);
    }
    if let Some(file) = &mut samples {
        file.write(state.take_samples())?;
    }
    let dropped = capture.dropped().unwrap_or(0);
    // Another network namespace may belong to a container with a /dev/shm of its own.
    let is_own = args.netns.is_none() && args.container.is_none();
    let files = if is_own { shared_memory::files_by_middleware() } else { Default::default() };
    let mut report = state.report(end_ns, dropped, files);
    report.duration_ns = duration.as_nanos() as i64;
    report.warnings.extend(ended_early.map(|error| format!("the capture ended early: {error}")));
    report.warnings.extend(steps.warning());
    Ok(report)
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
