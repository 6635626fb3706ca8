//! A machine that runs.

mod arguments;
pub(crate) mod console;
mod look;
mod qmp;
mod threads;
mod tsc;

pub(crate) use arguments::{base, kernel_line};
pub use look::Look;
pub use qmp::NOT_COUNTED;
pub use threads::OutsideThread;

use crate::error::GuestError;
use crate::kernel::Kernel;
use crate::line::{Mode, NicLine};
use crate::ports::{HostChannel, await_answer};
use nix::sys::signal::{SigSet, Signal};
use qmp::Monitor;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tailbound_model::{ProcessId, RUN_TOKEN, VmChannel, VmSpec};

/// The socket of the monitor that is Tailbound's own.
const MONITOR: &str = "qmp.sock";
/// QEMU answers on its socket within this time.
const STARTS: Duration = Duration::from_secs(20);
/// QEMU ends within this time when it is told to.
const ENDS: Duration = Duration::from_secs(5);
/// Paths of sockets are no longer than this (unix(7)), with the name of one in it.
const LONGEST_DIRECTORY: usize = 90;

/// An interface of a guest: what it is there, and what joins it to this host.
#[derive(Debug)]
pub struct Nic {
    /// As the guest sees it.
    pub line: NicLine,
    /// What it is plugged into.
    pub plug: Plug,
}

/// What an interface is plugged into.
#[derive(Debug)]
pub enum Plug {
    /// A tap or macvtap that the caller has opened.
    Tap {
        /// One for each pair of queues.
        fds: Vec<OwnedFd>,
        /// `/dev/vhost-net`, opened as often: the kernel carries the datagrams.
        vhost_fds: Option<Vec<OwnedFd>>,
    },
    /// Two sockets for datagrams.
    Datagram {
        /// Path of its own.
        local: PathBuf,
        /// Path of the other machine's.
        remote: PathBuf,
    },
    /// A card of this host by its PCI address, given whole (VFIO).
    Device(String),
}

/// What a machine is started from.
#[derive(Debug)]
pub struct MachineOrder<'a> {
    /// What it is to be.
    pub spec: &'a VmSpec,
    /// KVM runs it; else it is emulated.
    pub kvm: bool,
    /// What it boots.
    pub kernel: &'a Kernel,
    /// What it finds there.
    pub initramfs: &'a Path,
    /// An empty directory for its sockets and its console.
    pub directory: &'a Path,
    /// Interfaces.
    pub nics: Vec<Nic>,
    /// Name of the run in the environment of QEMU, by which a clean-up finds it.
    pub token: &'a str,
    /// What it is there for.
    pub mode: Mode,
    /// So many agents may be in it at a time.
    pub agents: u32,
}

/// A machine that runs. It ends when it is dropped.
#[derive(Debug)]
pub struct Machine {
    name: String,
    directory: PathBuf,
    process: ProcessId,
    child: Mutex<Child>,
    monitor: Mutex<Option<Monitor>>,
    kvm: bool,
    threads: Vec<OutsideThread>,
}

impl Machine {
    /// Starts QEMU, gives its threads what was asked for them, and lets the guest boot. Returns before it has.
    ///
    /// # Errors
    /// QEMU does not start, or not as asked; a thread does not get what was asked for it.
    pub fn start(order: MachineOrder<'_>) -> Result<Machine, GuestError> {
        let (name, directory) = (order.spec.name.clone(), order.directory.to_owned());
        let failed = |what: String| GuestError::new(format!("guest {name}: {what}"), "");
        if directory.as_os_str().len() > LONGEST_DIRECTORY {
            let text = format!("the path {} is too long for sockets in it", directory.display());
            return Err(GuestError { mend: "name a shorter directory, e.g. with TMPDIR".into(), ..failed(text) });
        }
        let channel = match order.spec.channel {
            VmChannel::VirtioSerial => {
                let ports = crate::ports::count(order.agents);
                HostChannel::Ports(ports.map_err(|e| GuestError { mend: e.mend, ..failed(e.what) })?)
            }
            VmChannel::Tcp => HostChannel::Tcp(free_port().map_err(|e| failed(format!("no port is free: {e}")))?),
        };
        channel.write(&directory).map_err(GuestError::file("write in", &directory))?;
        let mut command = Command::new(super::prepare::PROGRAM);
        command.args(arguments::arguments(&order, channel, tsc::khz())).env(RUN_TOKEN, order.token);
        if order.mode != Mode::Shell {
            let log = console::qemu_log(&directory);
            let log = File::create(&log).map_err(GuestError::file("make", &log))?;
            let both = log.try_clone().map_err(|e| failed(e.to_string()))?;
            command.stdin(Stdio::null()).stdout(both).stderr(log);
            // A Ctrl-C is the business of whoever started it.
            command.process_group(0);
        }
        let given: Vec<i32> = order.nics.iter().flat_map(|n| n.plug.fds()).collect();
        // Nobody else would end one that has the terminal.
        let dies_along = order.mode == Mode::Shell;
        // SAFETY: between fork and exec the closure makes system calls with plain numbers, and allocates nothing; the
        // descriptors are open as long as `order` is.
        unsafe {
            command.pre_exec(move || {
                if dies_along {
                    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
                }
                given.iter().try_for_each(|fd| hand_on(*fd))
            })
        };
        let child = unblocked(&mut command).spawn().map_err(|e| super::prepare::no_qemu(&e))?;
        let pid = child.id() as i32;
        let process = tailbound_host::process_id(pid).map_err(|e| failed(format!("QEMU has ended: {e}")))?;
        let mut machine = Machine {
            name,
            directory,
            process,
            child: Mutex::new(child),
            monitor: Mutex::new(None),
            kvm: order.kvm,
            threads: Vec::new(),
        };
        // From here on it ends when it is dropped.
        if order.mode != Mode::Shell {
            machine.begin(order.spec, order.kvm, pid)?;
        }
        Ok(machine)
    }

    fn begin(&mut self, spec: &VmSpec, kvm: bool, pid: i32) -> Result<(), GuestError> {
        let deadline = Instant::now() + STARTS;
        let socket = self.directory.join(MONITOR);
        let mut monitor = loop {
            match Monitor::connect(&socket) {
                Ok(monitor) => break monitor,
                Err(_) if self.status().is_some() => return Err(self.failed("QEMU does not start")),
                Err(e) if Instant::now() > deadline => return Err(self.failed(&format!("QEMU does not answer: {e}"))),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let said = |e: io::Error| self.failed(&format!("QEMU refuses: {e}"));
        let runs_kvm = monitor.runs_kvm().map_err(said)?;
        if runs_kvm != kvm {
            let word = |kvm| if kvm { "KVM" } else { "emulation" };
            return Err(self.failed(&format!("it runs by {} where {} was asked", word(runs_kvm), word(kvm))));
        }
        let vcpus = monitor.vcpu_threads().map_err(said)?;
        let threads = threads::govern(spec, pid, &vcpus)?;
        monitor.go_on().map_err(said)?;
        self.threads = threads;
        self.monitor = Mutex::new(Some(monitor));
        Ok(())
    }

    /// Waits until the guest answers, or nobody wants it any more: `given_up` is asked twice a second.
    ///
    /// # Errors
    /// It has ended, or not booted within `limit`: with the end of its console; or it was given up.
    pub fn wait(&self, limit: Duration, given_up: &dyn Fn() -> bool) -> Result<(), GuestError> {
        let over = || {
            if given_up() {
                return Some(GuestError::new(format!("guest {}: given up", self.name), ""));
            }
            self.status().map(|_| self.failed("it ended while it booted"))
        };
        await_answer(&self.directory, limit, &over, &|e| {
            self.failed(&format!("it does not answer {} s after it was started ({e})", limit.as_secs()))
        })
    }

    /// Its directory: what a stream to it needs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The process of QEMU.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// The threads that it is on this host, as they were given their policy and CPUs before the guest began.
    pub fn threads(&self) -> &[OutsideThread] {
        &self.threads
    }

    /// Sentences about those of them that have other by now than was asked for them.
    pub fn differs(&self) -> Vec<String> {
        threads::differing(self.process.pid, &self.threads)
    }

    /// What QEMU tells of it at this moment. Takes a millisecond or two, and says nothing to the guest.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn look(&self) -> Result<Look, GuestError> {
        self.say(|monitor| monitor.look(self.kvm))
    }

    /// Stops its virtual CPUs.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn pause(&self) -> Result<(), GuestError> {
        self.say(Monitor::pause)
    }

    /// Lets them run again.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn resume(&self) -> Result<(), GuestError> {
        self.say(Monitor::go_on)
    }

    /// How it ended, with the end of its console, where it has.
    pub fn ended(&self) -> Option<String> {
        let status = self.status()?;
        Some(format!("QEMU has ended ({status}){}", console::said(&self.directory)))
    }

    /// Waits for it to end by itself.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait_for_end(&self) -> io::Result<ExitStatus> {
        self.child.lock().map_err(|_| io::Error::other("it is not to be had"))?.wait()
    }

    /// Ends it.
    pub fn stop(&self) {
        let Ok(mut child) = self.child.lock() else { return };
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Some(mut monitor) = self.monitor.lock().ok().and_then(|mut m| m.take())
            && monitor.quit().is_ok()
        {
            let deadline = Instant::now() + ENDS;
            while Instant::now() < deadline {
                if matches!(child.try_wait(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // It has ended by itself otherwise.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn say<T>(&self, what: impl FnOnce(&mut Monitor) -> io::Result<T>) -> Result<T, GuestError> {
        let mut monitor = self.monitor.lock().map_err(|_| self.failed("its monitor is not to be had"))?;
        let monitor = monitor.as_mut().ok_or_else(|| self.failed("it has no monitor"))?;
        what(monitor).map_err(|e| {
            // An answer that comes too late is not to be taken for the next one.
            if let Ok(anew) = Monitor::connect(&self.directory.join(MONITOR)) {
                *monitor = anew;
            }
            self.failed(&format!("QEMU does not do it: {e}"))
        })
    }

    fn status(&self) -> Option<ExitStatus> {
        self.child.lock().ok()?.try_wait().ok()?
    }

    fn failed(&self, what: &str) -> GuestError {
        let mend = "look at the end of what it said; `tailbound guest shell` with the same kernel shows it booting";
        GuestError::new(format!("guest {}: {what}{}", self.name, console::said(&self.directory)), mend)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Plug {
    fn fds(&self) -> Vec<i32> {
        match self {
            Plug::Tap { fds, vhost_fds } => {
                fds.iter().chain(vhost_fds.iter().flatten()).map(AsRawFd::as_raw_fd).collect()
            }
            Plug::Datagram { .. } | Plug::Device(_) => Vec::new(),
        }
    }
}

/// Lets a program begin without the signals blocked that this thread has blocked: a mask outlives exec.
pub fn unblocked(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec the closure makes one system call on its own stack, and allocates nothing.
    unsafe { command.pre_exec(|| Ok(SigSet::empty().thread_set_mask()?)) }
}

/// Leaves a descriptor open for the program that follows.
fn hand_on(fd: i32) -> io::Result<()> {
    // SAFETY: an integer, and flags that are plain numbers; a descriptor that is not open is an error.
    match unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// QEMU is told a number, so it is found before: somebody may take it in between, which QEMU then says.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::kill;
    use nix::unistd::Pid;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn what_is_started_takes_signals_that_this_thread_has_blocked() {
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTERM);
        blocked.thread_block().unwrap();
        let mut child = unblocked(Command::new("sleep").arg("1000")).spawn().unwrap();
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    }
}
