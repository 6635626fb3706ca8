//! Runs `tailbound guest`: builds, starts and uses virtual machines of this host.

use super::record_dir::RecordDir;
use crate::cli::{GuestAccelerator, GuestBuild, GuestKernel, GuestMachine, GuestRun, GuestSub};
use crate::failure::{CommandResult, Failure};
use crate::output::{errln, outln};
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tailbound_bundle::Contents;
use tailbound_guest::*;
use tailbound_host::Journal;
use tailbound_model::{Accelerator, ExitCode, KernelChoice, Problem, Undo, VmSpec};

/// Programs for interactive use that are copied to a guest if this host has them.
const PROGRAMS: [&str; 8] = ["sh", "busybox", "ip", "tc", "ethtool", "taskset", "chrt", "modprobe"];
/// Longest time for the boot of a guest; an emulated guest on a loaded host is slow.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

pub fn guest(command: &GuestSub) -> CommandResult {
    tailbound_host::take_own_name();
    match command {
        GuestSub::Build(args) => build(args),
        GuestSub::Shell(args) => shell(&args.machine),
        GuestSub::Run(args) => run(args),
        GuestSub::Serve => {
            serve_named().map(|()| ExitCode::Done).map_err(unexpected("agents cannot be started in this guest"))
        }
        GuestSub::Stream { directory, with_a_run, words } => stream_to(directory, *with_a_run, words),
        GuestSub::Init => {
            serve().map(|()| ExitCode::Done).map_err(unexpected("agents cannot be started in this guest"))
        }
        GuestSub::Clock { ppm, step_ms } => set_clock(*ppm, step_ms.map(Duration::from_millis))
            .map(|()| ExitCode::Done)
            .map_err(unexpected("cannot set the clock")),
        GuestSub::RunInside => serve_run(io::stdin().lock(), io::stdout())
            .map(|()| ExitCode::Done)
            .map_err(unexpected("the study cannot be run in this guest")),
    }
}

fn unexpected(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |e| Failure::unexpected(format!("{what}: {e}"))
}

fn failed(problem: impl Into<Problem>) -> Failure {
    Failure::of(ExitCode::RunFailed, problem)
}

fn not_fit(problem: Problem) -> Failure {
    Failure::of(ExitCode::MachineNotFit, problem)
}

fn choice(args: &GuestKernel) -> Result<KernelChoice, Failure> {
    match (args.kernel.as_str(), &args.modules) {
        (image, modules) if image != "host" && !image.ends_with(".deb") => {
            Ok(KernelChoice::Image { image: image.to_owned(), modules: modules.clone() })
        }
        (_, Some(_)) => Err(Failure::bad_input("--modules needs --kernel with a kernel image")),
        ("host", None) => Ok(KernelChoice::Host),
        (package, None) => Ok(KernelChoice::Package(package.to_owned())),
    }
}

/// Collects the files of a guest: this program with all drivers, programs for interactive use, and the programs and
/// files that the user named.
fn contents(args: &GuestKernel) -> Result<Contents, Failure> {
    let program = tailbound_host::own_file().map_err(unexpected("cannot find this program"))?;
    let drivers = super::bundle::driver_files(&[])?;
    let contents = Contents::gather(&program, env!("CARGO_PKG_VERSION"), &drivers)
        .map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let contents = with_programs(contents, &PROGRAMS).map_err(failed)?;
    with_named(contents, &args.with).map_err(not_fit)
}

fn build(args: &GuestBuild) -> CommandResult {
    let cache = Cache::of_user().map_err(not_fit)?;
    let kernel = Kernel::find(&choice(&args.kernel)?, &cache).map_err(not_fit)?;
    let made =
        initramfs(&kernel, &contents(&args.kernel)?, (&args.kernel.module, &NETWORK), &cache).map_err(not_fit)?;
    let (mut image, mut file) = (kernel.image.clone(), made.file.clone());
    if let Some(out) = &args.out {
        let copy = |from: &Path, name: &str| {
            let to = out.join(name);
            std::fs::create_dir_all(out).and_then(|()| std::fs::copy(from, &to)).map(|_| to)
        };
        let copied = copy(&image, "kernel").and_then(|kernel| Ok((kernel, copy(&file, "initramfs")?)));
        (image, file) = copied.map_err(|e| Failure::run_failed(format!("cannot write to {}: {e}", out.display())))?;
    }
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    let bytes = image.metadata().map_or(0, |m| m.len());
    outln!("kernel     {}  {}, {} MB", image.display(), kernel.version, megabytes(bytes));
    outln!("initramfs  {}  {} MB", file.display(), megabytes(made.bytes));
    outln!("modules    {}", if made.modules.is_empty() { "none".into() } else { made.modules.join(" ") });
    Ok(ExitCode::Done)
}

fn spec(args: &GuestMachine, name: &str) -> Result<VmSpec, Failure> {
    Ok(VmSpec {
        name: name.into(),
        kernel: choice(&args.kernel)?,
        accelerator: match args.accelerator {
            GuestAccelerator::Kvm => Accelerator::Kvm,
            GuestAccelerator::Any => Accelerator::Any,
            GuestAccelerator::Emulated => Accelerator::Emulated,
        },
        vcpus: args.vcpus,
        memory_mib: args.memory,
        command_line: args.command_line.clone(),
        modules: args.kernel.module.clone(),
        ..VmSpec::default()
    })
}

/// Temporary directory for the sockets of one virtual machine; the directory is removed when this value is dropped.
struct Directory(PathBuf);

impl Directory {
    /// Returns a path for the temporary directory of a virtual machine; no other process uses this path.
    fn path() -> PathBuf {
        let name = format!("tailbound-guest.partial-{}-{}", std::process::id(), tailbound_host::monotonic_ns());
        std::env::temp_dir().join(name)
    }

    /// Creates the temporary directory of a virtual machine for this user alone. If the path exists already, somebody
    /// else made it, and this function fails.
    fn make(path: PathBuf) -> Result<Directory, Failure> {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| Failure::run_failed(format!("cannot create {}: {e}", path.display())))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // If the removal fails, a small directory stays in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn prepared(args: &GuestMachine, name: &str) -> Result<(VmSpec, Prepared), Failure> {
    let (spec, cache) = (spec(args, name)?, Cache::of_user().map_err(not_fit)?);
    let prepared = prepare(&spec, &contents(&args.kernel)?, &NETWORK, &cache).map_err(not_fit)?;
    if let Some(why) = &prepared.without_kvm {
        let why = why.lines().next().unwrap_or_default();
        errln!("warning: the guest is emulated, so its latencies say nothing about real hardware: {why}");
    }
    Ok((spec, prepared))
}

fn shell(args: &GuestMachine) -> CommandResult {
    let (spec, prepared) = prepared(args, "shell")?;
    let directory = Directory::make(Directory::path())?;
    let machine = start(&spec, &prepared, &directory, ("", Mode::Shell))?;
    machine.wait_for_end().map_err(unexpected("cannot wait for QEMU"))?;
    Ok(ExitCode::Done)
}

fn start(
    spec: &VmSpec,
    prepared: &Prepared,
    directory: &Directory,
    (token, mode): (&str, Mode),
) -> Result<Machine, Failure> {
    let order = MachineOrder {
        spec,
        kvm: prepared.kvm,
        kernel: &prepared.kernel,
        initramfs: &prepared.initramfs.file,
        directory: &directory.0,
        nics: Vec::new(),
        token,
        mode,
        agents: 2,
        snapshots: prepared.snapshots.as_ref(),
    };
    Machine::start(order).map_err(failed)
}

fn run(args: &GuestRun) -> CommandResult {
    let given = args.study.to_string_lossy().into_owned();
    let text = match std::fs::read_to_string(&args.study) {
        Ok(text) => Some(text),
        Err(e) if e.kind() == io::ErrorKind::NotFound && !given.contains(['/', '.']) => None,
        Err(e) => return Err(Failure::bad_input(format!("cannot read {given}: {e}"))),
    };
    let stem = args.study.file_stem().unwrap_or_default().to_string_lossy();
    let record = RecordDir::choose(args.out.as_deref(), &stem, false)?.path;
    if record.exists() {
        let text = format!("{} exists already", record.display());
        return Err(Failure::bad_input(text).help("name another directory with --out"));
    }
    let (spec, prepared) = prepared(&args.machine, "study")?;
    let token = format!("guest-{}-{}", std::process::id(), tailbound_host::monotonic_ns());
    let journal = Arc::new(Journal::create(&token).map_err(failed)?);
    let path = Directory::path();
    let made = journal.before(Undo::RemovePartialRecord { path: path.display().to_string() }).map_err(failed)?;
    let entry = journal.before(Undo::EndProcessByToken { token: token.clone() }).map_err(failed)?;
    let ended = Arc::new(AtomicBool::new(false));
    let in_directory = |directory: Directory| {
        undo_at_signal(journal.clone(), ended.clone()).map_err(unexpected("cannot wait for signals"))?;
        // The guest ends when `machine` is dropped.
        let machine = start(&spec, &prepared, &directory, (&token, Mode::Agents))?;
        machine.wait(BOOT_LIMIT, &|| false).map_err(failed)?;
        let order = GuestRunOrder { study: given, text, record, arguments: args.arguments.clone() };
        inside(&order, &machine)
    };
    let ran = Directory::make(path).and_then(in_directory);
    while ended.load(Ordering::SeqCst) {
        // A signal ended the guest. The thread of the signal reports this and ends the process.
        std::thread::park();
    }
    [entry, made].into_iter().try_for_each(|e| journal.done(e)).and_then(|()| journal.finish()).map_err(failed)?;
    // The exit code of the run in the guest is the exit code of this command.
    std::process::exit(ran?)
}

/// Starts a thread that ends the guest and this process at Ctrl-C or SIGTERM. The thread sets `ended` before it ends
/// the guest.
fn undo_at_signal(journal: Arc<Journal>, ended: Arc<AtomicBool>) -> io::Result<()> {
    let mut waited = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM].into_iter().for_each(|signal| waited.add(signal));
    // Child processes inherit the blocked signals, so they are started with `unblocked`.
    waited.thread_block()?;
    std::thread::spawn(move || {
        let Ok(signal) = waited.wait() else { return };
        ended.store(true, Ordering::SeqCst);
        let undone = journal.undo_all(&mut |_| {}).and_then(|()| journal.finish());
        match undone {
            Ok(()) => errln!("error: ended by {}", signal.as_str()),
            Err(e) => errln!("error: ended by {}; {e}", signal.as_str()),
        }
        std::process::exit(ExitCode::RunFailed as i32)
    });
    Ok(())
}

/// Runs the study in a booted guest and returns the exit code of the run.
fn inside(order: &GuestRunOrder, machine: &Machine) -> Result<i32, Failure> {
    let mut command: Command = tailbound_host::own_program().map_err(unexpected("cannot start this program"))?;
    command.args(["guest", "stream", "--with-a-run", "--directory"]).arg(machine.directory());
    command.args(["--", "guest", "within"]);
    // The stream is in a process group of its own: at Ctrl-C the guest is ended first, and the stream ends with the guest.
    let mut stream = unblocked(command.process_group(0))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(unexpected("cannot start this program"))?;
    let (Some(to), Some(from)) = (stream.stdin.take(), stream.stdout.take()) else {
        return Err(Failure::unexpected(
            "the process that carries messages to and from the guest was started without standard input or output",
        ));
    };
    let code = run_in_guest(order, (to, from), (io::stdout(), io::stderr())).map_err(|e| {
        let ended = machine.ended().map_or_else(String::new, |text| format!("; {text}"));
        failed(Problem { what: format!("{}{ended}", e.what), ..e })
    })?;
    // The answer is complete, so the exit status of the stream does not matter.
    let _ = stream.wait();
    Ok(code)
}

fn stream_to(directory: &Path, with_a_run: bool, words: &[String]) -> CommandResult {
    let patience = if with_a_run { PATIENCE_WITH_A_RUN } else { PATIENCE };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(unexpected("cannot start the runtime"))?;
    let streamed = runtime.block_on(stream(directory, words, tokio::io::stdin(), tokio::io::stdout(), patience));
    // A thread may still be blocked on standard input.
    runtime.shutdown_background();
    streamed.map(|()| ExitCode::Done).map_err(failed)
}
