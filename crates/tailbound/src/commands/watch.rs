//! Runs `tailbound watch`: captures the packets of a network namespace, and says what the messages of other programs did.

use super::watch_also::Also;
use super::watch_calls::Recording;
use super::watch_capture::{ENDED, TURN, failed, own_addresses, place, read_rest, seen};
use super::watch_cost;
use super::watch_files::{Files, not_written, save_study};
use super::watch_host::HostLook;
use super::watch_limit::CpuLimit;
use super::watch_live::Live;
use crate::cli::{TextFormat, Watch};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, errln, out, outln, width};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use tailbound_driver::{Endpoint, Kv, Session, Silent};
use tailbound_host::pod_process::pods_named;
use tailbound_host::{Capture, CaptureError, container, process_cpu_ns, read_offset, realtime_ns, shared_memory};
use tailbound_lab::netns::NetNs;
use tailbound_model::{ClockOffset, ExitCode};
use tailbound_report::WatchReport;
use tailbound_watch::{Captured, CapturedRow, Watch as State, guid_words};

/// Time after which --ask joins the domain: participants that speak are known by then.
const BEFORE_ASKING: Duration = Duration::from_millis(500);
/// How often --live with --format json prints a line.
const BETWEEN_LINES: Duration = Duration::from_secs(1);
/// Participants answer within a second or two.
const SHORTEST_WITH_ASK_NS: i64 = 2_000_000_000;
/// A step of the clock that matters for figures of lateness, ns.
const STEP_NS: i64 = 100_000;
/// The kernel adjusts the rate of CLOCK_REALTIME by at most a tenth (adjtimex(2), ticks).
const MOST_ADJUSTED: i64 = 10;

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
    let is_wrong = |topic: &String| topic.is_empty() || args.chain.iter().filter(|other| *other == topic).count() > 1;
    if args.chain.len() == 1 || args.chain.iter().any(is_wrong) {
        return Err(Failure::bad_input("--chain needs at least two topics, each with a name and once")
            .help("for example: --chain /camera,/detections,/cmd"));
    }
    if let Some(path) = args.out.as_ref().filter(|path| path.exists()) {
        return Err(not_written(path, &std::io::ErrorKind::AlreadyExists.into(), "--out"));
    }
    if let Some(path) = &args.read {
        let report = super::watch_file::read(args, path)?;
        return finish(args, &report, None);
    }
    let space = namespace(args)?;
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores a number.
        unsafe { sigaction(signal, &action) }.map_err(Failure::unexpected)?;
    }
    if args.along {
        return super::watch_along::along(args);
    }
    // A thread of its own enters the network namespace, and so do the threads that it starts.
    let found = std::thread::scope(|scope| scope.spawn(|| captured(args, &space)).join());
    let (report, failed) = found.map_err(|_| Failure::unexpected("the capture ended with a panic"))??;
    finish(args, &report, failed)
}

/// Prints what was seen, and saves the study of it. `failed`: what ended the capture early.
fn finish(args: &Watch, report: &WatchReport, failed: Option<Failure>) -> CommandResult {
    match args.format {
        TextFormat::Text => out!("{}", tailbound_report::render_watch(report, width(), colour())),
        TextFormat::Json if args.live => print_line(report)?,
        TextFormat::Json => outln!("{}", serde_json::to_string_pretty(report).map_err(Failure::unexpected)?),
    }
    if let Some(path) = &args.save_study {
        save_study(report, args.topic.as_deref(), path)?;
    }
    failed.map_or(Ok(ExitCode::Done), Err)
}

/// Prints what was seen as one line of JSON.
fn print_line(report: &WatchReport) -> Result<(), Failure> {
    outln!("{}", serde_json::to_string(report).map_err(Failure::unexpected)?);
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
        return of_process(process, "container");
    }
    if let Some(name) = &args.pod {
        return of_process(pod(name)?, "pod");
    }
    let Some(name) = &args.netns else { return NetNs::own().map_err(Failure::unexpected) };
    NetNs::open(name).map_err(|e| {
        Failure::bad_input(format!("the network namespace `{name}` cannot be opened: {e}"))
            .help("`ip netns` lists names; the namespace of a process is /proc/PID/ns/net")
    })
}

/// The network namespace of a process, which belongs to a container or a pod.
fn of_process(process: i32, whose: &str) -> Result<NetNs, Failure> {
    let path = format!("/proc/{process}/ns/net");
    NetNs::open(&path).map_err(|e| {
        Failure::not_fit(format!("{path}: the network namespace of the {whose} cannot be opened: {e}"))
            .help("run the command as root")
    })
}

/// A process of a pod on this node.
fn pod(name: &str) -> Result<i32, Failure> {
    let (namespace, pod) = name.rsplit_once('/').map_or((None, name), |(namespace, pod)| (Some(namespace), pod));
    let mut found = pods_named(pod);
    let is_unknown = found.iter().any(|of| of.namespace.is_none());
    found.retain(|of| namespace.is_none() || of.namespace.as_deref() == namespace);
    match &found[..] {
        [one] => Ok(one.pid),
        [] if is_unknown && namespace.is_some() => {
            Err(Failure::bad_input(format!("a pod `{pod}` runs on this node, and it is not known whether it is in the namespace of `{name}`")).help(
                "its files do not name a namespace, because it has no token of a service account: name the pod without a namespace, or give \
                 a process of it, --netns /proc/PID/ns/net",
            ))
        }
        [] => Err(Failure::bad_input(format!("no pod `{name}` with a network of its own runs on this node")).help(
            "run the command as root on the node of the pod, which `kubectl get pod -o wide` names; pods in the network of the node are in \
             its own network namespace",
        )),
        _ => {
            let namespaces: Vec<&str> = found.iter().map(|of| of.namespace.as_deref().unwrap_or("not known")).collect();
            Err(Failure::bad_input(format!("several pods on this node have the name `{name}`"))
                .help(format!("name the namespace, NAMESPACE/NAME; theirs: {}", namespaces.join(", "))))
        }
    }
}

/// Captures until the end of the time, until the user ends it, or until a file cannot be written. What was seen until then is not lost:
/// the failure of the file is the second part.
fn captured(args: &Watch, space: &NetNs) -> Result<(WatchReport, Option<Failure>), Failure> {
    space.enter().map_err(|e| {
        Failure::not_fit(format!("the network namespace cannot be entered: {e}")).help("run the command as root")
    })?;
    let also = args.also.as_deref().map(|host| Also::begin(args, host)).transpose()?;
    let cost = args.cost.then(|| watch_cost::measure(args.interface.as_deref())).transpose()?;
    let mut watching = Watching::begin(args)?;
    let end = watching.begin + Duration::from_nanos(args.duration.0.max(0).unsigned_abs());
    let mut ended_early = None;
    while !ENDED.load(SeqCst) && watching.files.failed.is_none() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let Watching { capture, state, .. } = &mut watching;
        if let Err(error) = capture.read(left.min(TURN), |packet| state.packet(seen(packet))) {
            ended_early = Some(error);
            break;
        }
        if watching.turn()? {
            break;
        }
    }
    let (mut report, mut files) = watching.end(ended_early);
    report.cost = cost;
    if let Some(also) = also {
        match also.finish(&report, &rows(files.kept.take().unwrap_or_default())) {
            Ok(joined) => report.also = Some(joined),
            Err(failure) => files.failed = files.failed.or(Some(failure)),
        }
    }
    files.metrics(&report);
    files.record(&report);
    Ok((report, files.failed))
}

/// A capture that runs, and what is done beside it.
struct Watching<'a> {
    args: &'a Watch,
    capture: Capture,
    state: State,
    files: Files<'a>,
    recording: Option<Recording>,
    limit: Option<CpuLimit>,
    live: Option<Live>,
    /// When the last line of --live with --format json was printed.
    next_line: Option<Instant>,
    asking: Option<Session>,
    steps: Steps,
    host: HostLook,
    begin: Instant,
    cpu_before_ns: i64,
}

impl<'a> Watching<'a> {
    fn begin(args: &'a Watch) -> Result<Watching<'a>, Failure> {
        let capture = Capture::open(args.interface.as_deref()).map_err(failed)?;
        let mut state = State::new(place(args), realtime_ns(), own_addresses());
        if !args.chain.is_empty() {
            state.link(args.chain.clone());
        }
        let recording = args.uprobes.then(|| Recording::begin(&mut state));
        let is_live = args.live && args.format == TextFormat::Text;
        if is_live {
            Live::check()?;
        }
        let files = Files::create(args, &mut state)?;
        let length = tailbound_report::number::time(args.duration.0 as f64);
        errln!("watching {} for {length}; Ctrl-C ends it", place(args));
        Ok(Watching {
            args,
            capture,
            state,
            files,
            recording,
            limit: args.cpu.map(CpuLimit::new),
            live: is_live.then(Live::open).transpose()?,
            next_line: (args.live && args.format == TextFormat::Json).then(Instant::now),
            asking: None,
            steps: Steps::new(),
            host: HostLook::new(),
            begin: Instant::now(),
            cpu_before_ns: process_cpu_ns(),
        })
    }

    /// What is done after packets were read. Returns whether the user ended the capture.
    fn turn(&mut self) -> Result<bool, Failure> {
        let Watching { state, capture, .. } = self;
        self.steps.look();
        self.host.turn(state);
        if self.args.ask && self.asking.is_none() && self.begin.elapsed() >= BEFORE_ASKING {
            self.asking = Some(ask(self.args, state)?);
            state.asks();
        }
        if let Some(recording) = &mut self.recording {
            recording.turn(state);
        }
        self.files.turn(state, capture);
        if let Some(limit) = &mut self.limit {
            limit.turn(state);
        }
        if let Some(at) = self.next_line.as_mut().filter(|at| at.elapsed() >= BETWEEN_LINES) {
            *at = Instant::now();
            print_line(&state.report(realtime_ns(), capture.dropped().unwrap_or(0), Default::default()))?;
        }
        let Some(live) = &mut self.live else { return Ok(false) };
        let dropped = capture.dropped().unwrap_or(0);
        live.turn(|| state.report(realtime_ns(), dropped, Default::default()))
    }

    /// Reads the rest, and returns what was seen with the files that are still written.
    fn end(self, ended_early: Option<CaptureError>) -> (WatchReport, Files<'a>) {
        let Watching {
            args, mut capture, mut state, mut files, mut recording, mut live, asking, steps, mut host, ..
        } = self;
        let (duration, end_ns) = (self.begin.elapsed(), realtime_ns());
        host.end(&mut state);
        // The terminal is as before from here on.
        let _ = live.take();
        if ended_early.is_none() {
            read_rest(&mut capture, &mut state, end_ns);
        }
        if let Some(recording) = &mut recording {
            recording.end(&mut state);
        }
        files.samples(&mut state);
        let dropped = capture.dropped().unwrap_or(0);
        // What is sent from now on is not read, so that its drops do not count.
        drop(capture);
        if let Some(session) = asking {
            nodes(&session, &mut state);
        }
        // Another network namespace may belong to a container with a /dev/shm of its own.
        let is_own = args.netns.is_none() && args.container.is_none() && args.pod.is_none();
        let shared = if is_own { shared_memory::files_by_middleware() } else { Default::default() };
        let mut report = state.report(end_ns, dropped, shared);
        report.duration_ns = duration.as_nanos() as i64;
        report.warnings.extend(ended_early.map(|error| format!("the capture ended early: {error}")));
        report.warnings.extend(steps.warning());
        report.clock_step_ns = (steps.largest_ns > 0).then_some(steps.largest_ns);
        report.cpu_ns = Some(process_cpu_ns() - self.cpu_before_ns);
        report.warnings.extend(self.limit.and_then(|limit| limit.warning()));
        report.warnings.extend(recording.into_iter().flat_map(Recording::warnings));
        (report, files)
    }
}

/// Samples with the identities of their writers as text.
fn rows(samples: Vec<Captured>) -> Vec<CapturedRow> {
    let row = |Captured { writer, number, source_ns, stamp_ns }| CapturedRow {
        guid: guid_words(writer),
        number,
        source_ns,
        stamp_ns,
    };
    samples.into_iter().map(row).collect()
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

/// Asks participants for the names of the nodes of ROS 2. Without an answer, the names are not known.
fn nodes(session: &Session, state: &mut State) {
    let answer = session.query(Endpoint::SESSION, "ros_nodes").unwrap_or_default();
    let nodes: Vec<Node> = serde_json::from_str(&answer).unwrap_or_default();
    for node in nodes {
        state.has_node(&node.name, node.writers.iter().map(String::as_str));
    }
}

/// A node of ROS 2 in the answer of the driver.
#[derive(serde::Deserialize)]
struct Node {
    name: String,
    writers: Vec<String>,
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
