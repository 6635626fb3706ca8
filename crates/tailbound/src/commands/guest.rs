//! `tailbound guest`: virtual machines of this host.

use crate::cli::{GuestAccelerator, GuestBuild, GuestKernel, GuestMachine, GuestRun, GuestSub};
use crate::exit::{Failure, Outcome};
use crate::say::{errln, outln};
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
use tailbound_model::{Accelerator, ExitCode, KernelChoice, Undo, VmSpec};

/// Programs for people, where this host has them.
const PROGRAMS: [&str; 8] = ["sh", "busybox", "ip", "tc", "ethtool", "taskset", "chrt", "modprobe"];
/// An emulated guest on a loaded host takes its time.
const BOOTS: Duration = Duration::from_secs(120);

pub fn guest(command: &GuestSub) -> Outcome {
    tailbound_host::take_own_name();
    match command {
        GuestSub::Build(args) => build(args),
        GuestSub::Shell(args) => shell(&args.machine),
        GuestSub::Run(args) => run(args),
        GuestSub::Serve => serve_named().map(|()| ExitCode::Done).map_err(unexpected("cannot serve")),
        GuestSub::Stream { directory, with_a_run, words } => stream_to(directory, *with_a_run, words),
        GuestSub::Init => serve().map(|()| ExitCode::Done).map_err(unexpected("cannot serve")),
        GuestSub::Clock { ppm, step_ms } => set_clock(*ppm, step_ms.map(Duration::from_millis))
            .map(|()| ExitCode::Done)
            .map_err(unexpected("cannot set the clock")),
        GuestSub::Within => {
            within(io::stdin().lock(), io::stdout()).map(|()| ExitCode::Done).map_err(unexpected("cannot run it here"))
        }
    }
}

fn unexpected(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |e| Failure::new(ExitCode::Unexpected, format!("{what}: {e}"))
}

fn not_fit(e: GuestError) -> Failure {
    Failure::new(ExitCode::MachineNotFit, e)
}

fn failed(e: GuestError) -> Failure {
    Failure::new(ExitCode::RunFailed, e)
}

fn choice(args: &GuestKernel) -> Result<KernelChoice, Failure> {
    match (args.kernel.as_str(), &args.modules) {
        (image, modules) if image != "host" && !image.ends_with(".deb") => {
            Ok(KernelChoice::Image { image: image.to_owned(), modules: modules.clone() })
        }
        (_, Some(_)) => Err(Failure::new(ExitCode::BadInput, "--modules is for a kernel that is an image")),
        ("host", None) => Ok(KernelChoice::Host),
        (package, None) => Ok(KernelChoice::Package(package.to_owned())),
    }
}

/// This program with all drivers, programs for people, and what the user names.
fn contents(args: &GuestKernel) -> Result<Contents, Failure> {
    let program = tailbound_host::own_file().map_err(unexpected("cannot find this program"))?;
    let drivers = super::bundle::files(&[])?;
    let contents = Contents::gather(&program, env!("CARGO_PKG_VERSION"), &drivers)
        .map_err(|e| Failure::new(ExitCode::RunFailed, e))?;
    let contents = with_programs(contents, &PROGRAMS).map_err(failed)?;
    with_named(contents, &args.with).map_err(not_fit)
}

fn build(args: &GuestBuild) -> Outcome {
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
        (image, file) =
            copied.map_err(|e| Failure::new(ExitCode::RunFailed, format!("cannot write to {}: {e}", out.display())))?;
    }
    let megabytes = |octets: u64| octets.div_ceil(1_000_000);
    let octets = image.metadata().map_or(0, |m| m.len());
    outln!("kernel     {}  {}, {} MB", image.display(), kernel.version, megabytes(octets));
    outln!("initramfs  {}  {} MB", file.display(), megabytes(made.octets));
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

/// A directory for the sockets of a machine, gone with it.
struct Directory(PathBuf);

impl Directory {
    /// A path that nothing else has.
    fn path() -> PathBuf {
        let name = format!("tailbound-guest.partial-{}-{}", std::process::id(), tailbound_host::monotonic_ns());
        std::env::temp_dir().join(name)
    }

    /// For this user alone; one that is there already is somebody else's.
    fn make(path: PathBuf) -> Result<Directory, Failure> {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| Failure::new(ExitCode::RunFailed, format!("cannot make {}: {e}", path.display())))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // One that stays is small, and in a directory for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn prepared(args: &GuestMachine, name: &str) -> Result<(VmSpec, Prepared), Failure> {
    let (spec, cache) = (spec(args, name)?, Cache::of_user().map_err(not_fit)?);
    let prepared = prepare(&spec, &contents(&args.kernel)?, &NETWORK, &cache).map_err(not_fit)?;
    if let Some(why) = &prepared.without_kvm {
        let why = why.lines().next().unwrap_or_default();
        errln!("tailbound guest: emulated, so that what is measured is functional only: {why}");
    }
    Ok((spec, prepared))
}

fn shell(args: &GuestMachine) -> Outcome {
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
    };
    Machine::start(order).map_err(failed)
}

fn run(args: &GuestRun) -> Outcome {
    let given = args.study.to_string_lossy().into_owned();
    let text = match std::fs::read_to_string(&args.study) {
        Ok(text) => Some(text),
        Err(e) if e.kind() == io::ErrorKind::NotFound && !given.contains(['/', '.']) => None,
        Err(e) => return Err(Failure::new(ExitCode::BadInput, format!("cannot read {given}: {e}"))),
    };
    let stem = args.study.file_stem().unwrap_or_default().to_string_lossy();
    let record = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("tailbound-{stem}")));
    if record.exists() {
        let text = format!("{} is there already: name another directory with --out", record.display());
        return Err(Failure::new(ExitCode::BadInput, text));
    }
    let (spec, prepared) = prepared(&args.machine, "study")?;
    let written = |e: tailbound_host::JournalError| Failure::new(ExitCode::RunFailed, e);
    let token = format!("guest-{}-{}", std::process::id(), tailbound_host::monotonic_ns());
    let journal = Arc::new(Journal::create(&token).map_err(written)?);
    let path = Directory::path();
    let made = journal.before(Undo::RemovePartialRecord { path: path.display().to_string() }).map_err(written)?;
    let entry = journal.before(Undo::EndProcessByToken { token: token.clone() }).map_err(written)?;
    let ended = Arc::new(AtomicBool::new(false));
    let in_directory = |directory: Directory| {
        undo_at_signal(journal.clone(), ended.clone()).map_err(unexpected("cannot wait for signals"))?;
        // The guest ends with the machine.
        let machine = start(&spec, &prepared, &directory, (&token, Mode::Agents))?;
        machine.wait(BOOTS, &|| false).map_err(failed)?;
        let order = InsideOrder { study: given, text, record, arguments: args.arguments.clone() };
        inside(&order, &machine)
    };
    let ran = Directory::make(path).and_then(in_directory);
    while ended.load(Ordering::SeqCst) {
        // A guest that a signal has ended is told of as that.
        std::thread::park();
    }
    [entry, made].into_iter().try_for_each(|e| journal.done(e)).and_then(|()| journal.finish()).map_err(written)?;
    // What the run ends with there is what this ends with, whatever it means.
    std::process::exit(ran?)
}

/// A Ctrl-C ends the guest, too; then `ended` is set first.
fn undo_at_signal(journal: Arc<Journal>, ended: Arc<AtomicBool>) -> io::Result<()> {
    let mut waited = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM].into_iter().for_each(|signal| waited.add(signal));
    // What is started would inherit it: `unblocked`.
    waited.thread_block()?;
    std::thread::spawn(move || {
        let Ok(signal) = waited.wait() else { return };
        ended.store(true, Ordering::SeqCst);
        let undone = journal.undo_all(&mut |_| {}).and_then(|()| journal.finish());
        match undone {
            Ok(()) => errln!("tailbound: ended by {}", signal.as_str()),
            Err(e) => errln!("tailbound: ended by {}; {e}", signal.as_str()),
        }
        std::process::exit(ExitCode::RunFailed as i32)
    });
    Ok(())
}

/// Has the study run in a guest that is up.
fn inside(order: &InsideOrder, machine: &Machine) -> Result<i32, Failure> {
    let mut command: Command = tailbound_host::own_program().map_err(unexpected("cannot start this program"))?;
    command.args(["guest", "stream", "--with-a-run", "--directory"]).arg(machine.directory());
    command.args(["--", "guest", "within"]);
    // A Ctrl-C ends the guest, and with it the stream.
    let mut stream = unblocked(command.process_group(0))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(unexpected("cannot start this program"))?;
    let (Some(to), Some(from)) = (stream.stdin.take(), stream.stdout.take()) else {
        return Err(Failure::new(ExitCode::Unexpected, "the stream to the guest has no ends"));
    };
    let code = run_inside(order, (to, from), (io::stdout(), io::stderr())).map_err(|e| {
        let ended = machine.ended().map_or_else(String::new, |text| format!("; {text}"));
        failed(GuestError { what: format!("{}{ended}", e.what), ..e })
    })?;
    // All that was to come has come.
    let _ = stream.wait();
    Ok(code)
}

fn stream_to(directory: &Path, with_a_run: bool, words: &[String]) -> Outcome {
    let patience = if with_a_run { PATIENCE_WITH_A_RUN } else { PATIENCE };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unexpected("cannot begin"))?;
    let streamed = runtime.block_on(stream(directory, words, tokio::io::stdin(), tokio::io::stdout(), patience));
    // A thread may still wait for standard input.
    runtime.shutdown_background();
    streamed.map(|()| ExitCode::Done).map_err(failed)
}
