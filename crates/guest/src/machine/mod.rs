//! A running virtual machine: starts QEMU, waits for the guest, reads its state, pauses and stops it.

mod arguments;
pub(crate) mod console;
mod look;
mod order;
mod qmp;
mod snapshot;
mod threads;
mod tsc;

pub(crate) use arguments::{base, kernel_line};
pub use look::Look;
pub use order::{MachineOrder, Nic, Plug};
pub use qmp::NOT_COUNTED;
pub(crate) use snapshot::SNAPSHOTS;
pub use threads::OutsideThread;

use crate::error::{file_error, guest_error};
use crate::line::Mode;
use crate::ports::{HostChannel, await_answer};
use nix::sys::signal::{SigSet, Signal};
use qmp::Monitor;
use snapshot::Snapshot;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tailbound_model::{Problem, ProcessId, RUN_TOKEN, VmChannel};

/// Name of the socket of the QMP monitor that Tailbound uses.
const MONITOR: &str = "qmp.sock";
/// Longest time from the start of QEMU until QEMU answers on its QMP socket.
const STARTS: Duration = Duration::from_secs(20);
/// Longest time for QEMU to end after the QMP command `quit`.
const ENDS: Duration = Duration::from_secs(5);
/// Maximum length in bytes of the path of the machine's directory, so that paths of sockets in it are not too long
/// (unix(7)).
const LONGEST_DIRECTORY: usize = 90;

/// A running virtual machine, which ends when this value is dropped.
#[derive(Debug)]
pub struct Machine {
    name: String,
    directory: PathBuf,
    process: ProcessId,
    child: Mutex<Child>,
    monitor: Mutex<Option<Monitor>>,
    kvm: bool,
    threads: Vec<OutsideThread>,
    /// Where to keep the state of the guest after its boot; `None` = nowhere, or the guest was restored.
    snapshot: Option<Snapshot>,
    restored: bool,
}

impl Machine {
    /// Starts QEMU, sets the scheduling of its threads, and lets the guest boot. Returns before the guest has booted.
    ///
    /// # Errors
    /// QEMU does not start or runs with another accelerator, or the scheduling of a thread cannot be set.
    pub fn start(order: MachineOrder<'_>) -> Result<Machine, Problem> {
        let (name, directory) = (order.spec.name.clone(), order.directory.to_owned());
        let failed = |what: String| guest_error(format!("guest {name}: {what}"), "");
        if directory.as_os_str().len() > LONGEST_DIRECTORY {
            let text = format!("the path {} is too long for a directory of Unix sockets", directory.display());
            return Err(failed(text).with_remedy("use a directory with a shorter path, e.g. set TMPDIR"));
        }
        let channel = match order.spec.channel {
            VmChannel::VirtioSerial => {
                let ports = crate::ports::count(order.agents);
                HostChannel::Ports(ports.map_err(|e| e.context(format_args!("guest {name}")))?)
            }
            VmChannel::Tcp => HostChannel::Tcp(free_port().map_err(|e| failed(format!("no port is free: {e}")))?),
        };
        channel.write(&directory).map_err(file_error("write in", &directory))?;
        let mut command = Command::new(crate::qemu::PROGRAM);
        let arguments = arguments::arguments(&order, channel, tsc::khz());
        let snapshot = Snapshot::of(&order, &arguments);
        let saved = snapshot.as_ref().and_then(Snapshot::file);
        command.args(arguments).env(RUN_TOKEN, order.token);
        if saved.is_some() {
            // The state of the guest is named when the threads of QEMU have their scheduling.
            command.args(["-incoming", "defer"]);
        }
        if order.mode != Mode::Shell {
            let log = console::qemu_log(&directory);
            let log = File::create(&log).map_err(file_error("make", &log))?;
            let both = log.try_clone().map_err(|e| failed(e.to_string()))?;
            command.stdin(Stdio::null()).stdout(both).stderr(log);
            // Ctrl-C in the terminal must not reach QEMU: the caller decides.
            command.process_group(0);
        }
        let given: Vec<i32> = order.nics.iter().flat_map(|n| n.plug.fds()).collect();
        // A QEMU with the terminal must end with this process, because no other code would end it.
        let dies_along = order.mode == Mode::Shell;
        // SAFETY: between fork and exec the closure makes system calls with plain numbers, and allocates nothing; the
        // descriptors are open as long as `order` is.
        unsafe {
            command.pre_exec(move || {
                if dies_along {
                    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
                }
                given.iter().try_for_each(|fd| keep_open(*fd))
            })
        };
        let child = unblocked(&mut command).spawn().map_err(|e| crate::qemu::no_qemu(&e))?;
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
            restored: saved.is_some(),
            snapshot: snapshot.filter(|_| saved.is_none()),
        };
        // From here on QEMU ends when `machine` is dropped.
        if order.mode != Mode::Shell {
            machine.begin(&order, saved.as_deref(), pid)?;
        }
        Ok(machine)
    }

    fn begin(&mut self, order: &MachineOrder<'_>, saved: Option<&Path>, pid: i32) -> Result<(), Problem> {
        let (spec, kvm) = (order.spec, order.kvm);
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
        let refused = |e: io::Error| self.failed(&format!("QEMU refuses: {e}"));
        let runs_kvm = monitor.runs_kvm().map_err(refused)?;
        if runs_kvm != kvm {
            let word = |kvm| if kvm { "KVM" } else { "emulation" };
            return Err(self.failed(&format!(
                "the guest runs with {}, but {} was requested",
                word(runs_kvm),
                word(kvm)
            )));
        }
        let vcpus = monitor.vcpu_threads().map_err(refused)?;
        let threads = threads::set_scheduling(spec, pid, &vcpus)?;
        if let Some(file) = saved
            && let Err(e) = monitor.restore(file)
        {
            // The next guest boots. If the file cannot be removed, it is removed with the cache.
            let _ = std::fs::remove_file(file);
            return Err(refused(e));
        }
        monitor.go_on().map_err(refused)?;
        self.threads = threads;
        self.monitor = Mutex::new(Some(monitor));
        Ok(())
    }

    /// Waits until the guest answers. `given_up` is called twice a second; if it returns true, the waiting ends.
    ///
    /// # Errors
    /// The guest has ended or has not booted within `limit` (the error contains the end of its console), or `given_up`
    /// ended the waiting.
    pub fn wait(&self, limit: Duration, given_up: &dyn Fn() -> bool) -> Result<(), Problem> {
        let over = || {
            if given_up() {
                return Some(guest_error(format!("guest {}: waiting for the guest was given up", self.name), ""));
            }
            self.status().map(|_| self.failed("the guest ended while it booted"))
        };
        await_answer(&self.directory, limit, &over, &|e| {
            self.failed(&format!("the guest does not answer {} s after its start ({e})", limit.as_secs()))
        })?;
        if let Some(snapshot) = &self.snapshot
            && let Ok(mut monitor) = self.monitor.lock()
            && let Some(Err(e)) = monitor.as_mut().map(|monitor| snapshot.save(monitor))
        {
            // The next guest boots.
            tracing::warn!(guest = self.name, error = %e, "no snapshot of the guest");
        }
        Ok(())
    }

    /// Whether the guest was restored from a snapshot, so that it has not booted.
    pub fn restored(&self) -> bool {
        self.restored
    }

    /// Directory of the virtual machine's sockets, which is needed to open streams to the guest.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The QEMU process of the virtual machine.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Threads of the machine on this host, with the scheduling that was set before the guest started.
    pub fn threads(&self) -> &[OutsideThread] {
        &self.threads
    }

    /// Sentences about the threads of the machine whose scheduling now differs from the request.
    pub fn differs(&self) -> Vec<String> {
        threads::differing(self.process.pid, &self.threads)
    }

    /// Reads state and statistics of the machine from QEMU. Takes one or two milliseconds; the guest is not involved.
    ///
    /// # Errors
    /// QEMU does not answer on its monitor.
    pub fn look(&self) -> Result<Look, Problem> {
        self.ask_monitor(|monitor| monitor.look(self.kvm))
    }

    /// Stops the vCPUs of the machine.
    ///
    /// # Errors
    /// QEMU does not answer on its monitor.
    pub fn pause(&self) -> Result<(), Problem> {
        self.ask_monitor(Monitor::pause)
    }

    /// Lets the vCPUs of the machine run again.
    ///
    /// # Errors
    /// QEMU does not answer on its monitor.
    pub fn resume(&self) -> Result<(), Problem> {
        self.ask_monitor(Monitor::go_on)
    }

    /// Sentence about how QEMU ended, with the end of the guest's console; `None` if QEMU runs.
    pub fn ended(&self) -> Option<String> {
        let status = self.status()?;
        Some(format!("QEMU has ended ({status}){}", console::last_output(&self.directory)))
    }

    /// Waits until QEMU ends by itself.
    ///
    /// # Errors
    /// The process of QEMU cannot be waited for.
    pub fn wait_for_end(&self) -> io::Result<ExitStatus> {
        self.child.lock().map_err(|_| io::Error::other("a thread failed while it used the QEMU process"))?.wait()
    }

    /// Ends QEMU: asks it to quit, and kills it if it does not end within 5 s.
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
        // kill fails only if QEMU has just ended.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn ask_monitor<T>(&self, what: impl FnOnce(&mut Monitor) -> io::Result<T>) -> Result<T, Problem> {
        let broken = "a thread failed while it used the QMP monitor of QEMU";
        let mut monitor = self.monitor.lock().map_err(|_| self.failed(broken))?;
        let monitor = monitor.as_mut().ok_or_else(|| self.failed("the virtual machine has no QMP monitor"))?;
        what(monitor).map_err(|e| {
            // The connection is made anew, so that a late answer is not taken for the next one.
            if let Ok(anew) = Monitor::connect(&self.directory.join(MONITOR)) {
                *monitor = anew;
            }
            self.failed(&format!("QEMU refuses the request: {e}"))
        })
    }

    fn status(&self) -> Option<ExitStatus> {
        self.child.lock().ok()?.try_wait().ok()?
    }

    fn failed(&self, what: &str) -> Problem {
        let remedy = "read the last lines of QEMU's output; `tailbound guest shell` shows how the same kernel boots";
        guest_error(format!("guest {}: {what}{}", self.name, console::last_output(&self.directory)), remedy)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Makes a command start with no blocked signals, because otherwise the started program would inherit the signal mask
/// of this thread.
pub fn unblocked(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec the closure makes one system call on its own stack, and allocates nothing.
    unsafe { command.pre_exec(|| Ok(SigSet::empty().thread_set_mask()?)) }
}

/// Keeps a file descriptor open across exec, so that QEMU inherits it.
fn keep_open(fd: i32) -> io::Result<()> {
    // SAFETY: an integer, and flags that are plain numbers; a descriptor that is not open is an error.
    match unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Finds a free TCP port for QEMU. If another program takes the port before QEMU does, QEMU reports an error.
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
    fn a_started_program_receives_signals_that_this_thread_has_blocked() {
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTERM);
        blocked.thread_block().unwrap();
        let mut child = unblocked(Command::new("sleep").arg("1000")).spawn().unwrap();
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    }
}
