//! Processes, identified by process id and start time: if a process id is reused, the start time differs.
//!
//! Input: a process id. Output: a [`ProcessId`], whether the process still runs, and how the process ended. A pidfd
//! keeps the identity between the check and the signal; if the kernel refuses pidfds, the start time is compared again
//! right before the signal.

use nix::sys::resource::{Resource, getrlimit};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tailbound_model::ProcessId;

/// The fields of /proc/PID/stat, numbered from 1 as in proc_pid_stat(5). The process name in it can contain spaces and
/// parentheses.
#[derive(Debug, Clone)]
pub struct Stat {
    after_name: Vec<String>,
}

impl Stat {
    /// Reads a stat file in /proc of a process or thread.
    pub fn read(path: &str) -> io::Result<Stat> {
        let text = fs::read_to_string(path)?;
        Stat::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: not a stat line")))
    }

    /// Parses the line of a file /proc/PID/stat.
    pub fn parse(text: &str) -> Option<Stat> {
        let rest = &text[text.rfind(')')? + 1..];
        let after_name: Vec<String> = rest.split_ascii_whitespace().map(str::to_owned).collect();
        (after_name.len() >= 20).then_some(Stat { after_name })
    }

    /// Value of the field with this number, counted as in proc_pid_stat(5); the first field available is 3 (state).
    pub fn field(&self, number: usize) -> Option<u64> {
        self.after_name.get(number.checked_sub(3)?)?.parse().ok()
    }

    /// State letter of the process: `R`, `S`, `Z`, ...
    pub fn state(&self) -> char {
        self.after_name[0].chars().next().unwrap_or('?')
    }

    /// Start time of the process in clock ticks since boot.
    pub fn start_ticks(&self) -> Option<u64> {
        self.field(22)
    }
}

/// The names among `names` that a running process has as its name (/proc/PID/comm).
pub fn running(names: &[&'static str]) -> Vec<&'static str> {
    let processes: Vec<String> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("comm")).ok())
        .collect();
    names.iter().copied().filter(|name| processes.iter().any(|comm| comm.trim_end() == *name)).collect()
}

/// True if a process of the network namespace of this process listens at this TCP port, of any address. False if the process does not
/// exist.
pub fn has_tcp_listener(pid: i32, port: u16) -> bool {
    // State TCP_LISTEN of include/net/tcp_states.h.
    const LISTEN: &str = "0A";
    let is_listener = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let local = words.nth(1).and_then(|address| address.rsplit_once(':'));
        local.is_some_and(|(_, of_line)| u16::from_str_radix(of_line, 16) == Ok(port)) && words.nth(1) == Some(LISTEN)
    };
    ["tcp", "tcp6"].iter().any(|table| {
        // Kernels without IPv6 have one table.
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        text.lines().skip(1).any(is_listener)
    })
}

/// Id of the current boot of this host's kernel.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Identity of this process's monotonic clock: the boot id, and the time namespace if the kernel has time namespaces
/// (time_namespaces(7) can shift the clock). Equal texts mean the same clock.
///
/// # Errors
/// /proc is not mounted.
pub fn clock_id() -> io::Result<String> {
    let (boot, link) = (boot_id()?, fs::read_link("/proc/self/ns/time"));
    let inode = link.as_ref().ok().and_then(|l| l.to_str()?.strip_prefix("time:[")?.strip_suffix(']'));
    Ok(inode.map_or(boot.clone(), |inode| format!("{boot}/{inode}")))
}

/// Identity of the process that currently has this process id.
pub fn process_id(pid: i32) -> io::Result<ProcessId> {
    let stat = Stat::read(&format!("/proc/{pid}/stat"))?;
    let start_ticks = stat.start_ticks().ok_or(io::ErrorKind::InvalidData)?;
    Ok(ProcessId { pid, start_ticks })
}

/// The identity of the calling process: process id and start time.
pub fn this_process() -> io::Result<ProcessId> {
    process_id(std::process::id() as i32)
}

/// Whether the process runs. A zombie, which waits for its parent to collect it, does not run.
pub fn is_alive(process: ProcessId) -> bool {
    Handle::open(process).is_some_and(|handle| !handle.wait(Duration::ZERO))
}

/// Effective capabilities of the calling thread, one bit for each capability.
pub(crate) fn effective_capabilities() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:")).ok_or(io::ErrorKind::NotFound)?;
    u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)
}

/// Soft limit of a resource as text, `unlimited` if there is no limit.
pub(crate) fn limit_text(resource: Resource) -> String {
    match getrlimit(resource) {
        Ok((nix::sys::resource::RLIM_INFINITY, _)) => "unlimited".into(),
        Ok((soft, _)) => soft.to_string(),
        Err(error) => format!("not readable ({error})"),
    }
}

/// Directory of this process's control group for a controller, if mounted in the usual place: in the v1 hierarchy of
/// the controller, or else in the unified hierarchy. In a container the mount shows the container's own group at the
/// top, not the path known to the host.
pub(crate) fn cgroup_dir(controller: &str) -> Option<PathBuf> {
    group_dir(&fs::read_to_string("/proc/self/cgroup").ok()?, controller)
}

/// Directories of a process's control group for a controller and of the groups that contain it, the innermost first;
/// empty if they cannot be found.
pub(crate) fn group_dirs(pid: i32, controller: &str) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let innermost = group_dir(&text, controller);
    let is_group = |dir: &&Path| dir.join("cgroup.procs").exists();
    innermost.iter().flat_map(|dir| dir.ancestors().take_while(is_group)).map(Path::to_path_buf).collect()
}

/// Directory of the control group for a controller, found from the text of /proc/PID/cgroup.
pub(crate) fn group_dir(text: &str, controller: &str) -> Option<PathBuf> {
    let path = |wanted: &dyn Fn(&str) -> bool| {
        text.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let there = |mount: PathBuf, path: String| [mount.join(path), mount].into_iter().find(|dir| dir.is_dir());
    let v1 = path(&|list: &str| list.split(',').any(|c| c == controller))
        .and_then(|p| there(PathBuf::from("/sys/fs/cgroup").join(controller), p));
    v1.or_else(|| path(&|list: &str| list.is_empty()).and_then(|p| there("/sys/fs/cgroup".into(), p)))
}

/// How a process ended when the function [`end`] was called for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The process had ended before [`end`] was called.
    AlreadyGone,
    /// The process ended after [`end`] had sent SIGTERM.
    Asked,
    /// The process ended only after [`end`] had sent SIGKILL.
    Killed,
}

/// Ends a process: sends SIGTERM, waits at most `grace`, then sends SIGKILL; returns when the process has ended.
///
/// # Errors
/// The signal is not permitted, or the process still exists 5 s after SIGKILL.
pub fn end(process: ProcessId, grace: Duration) -> io::Result<Ended> {
    if process.pid == 1 || process.pid == std::process::id() as i32 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("will not end process {}", process.pid)));
    }
    let Some(handle) = Handle::open(process) else { return Ok(Ended::AlreadyGone) };
    if handle.wait(Duration::ZERO) {
        return Ok(Ended::AlreadyGone);
    }
    if !handle.signal(libc::SIGTERM)? {
        return Ok(Ended::AlreadyGone);
    }
    // A stopped process handles SIGTERM only after it continues.
    handle.signal(libc::SIGCONT)?;
    if handle.wait(grace) {
        return Ok(Ended::Asked);
    }
    handle.signal(libc::SIGKILL)?;
    if handle.wait(Duration::from_secs(5)) {
        return Ok(Ended::Killed);
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("process {} still exists 5 s after SIGKILL", process.pid)))
}

/// Sends a signal to a process. Returns false if the process has ended.
///
/// # Errors
/// The signal is not permitted.
pub fn signal(process: ProcessId, signal: i32) -> io::Result<bool> {
    Handle::open(process).map_or(Ok(false), |handle| handle.signal(signal))
}

/// Waits at most `limit` until a process has ended. Returns whether it has ended.
pub fn wait_for_end(process: ProcessId, limit: Duration) -> bool {
    Handle::open(process).is_none_or(|handle| handle.wait(limit))
}

/// Opens a descriptor of a process (pidfd) that becomes readable when the process ends.
///
/// # Errors
/// There is no such process, or the kernel has no pidfds (before 5.3).
pub fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// A process whose identity is secured by a pidfd, if the kernel has pidfds.
struct Handle {
    process: ProcessId,
    pidfd: Option<OwnedFd>,
}

impl Handle {
    /// Opens the process with this identity; `None` if no process has this identity (any more).
    fn open(process: ProcessId) -> Option<Handle> {
        // kill(2) takes 0 and negative ids as groups or as all processes, never as one process.
        if process.pid <= 0 {
            return None;
        }
        let pidfd = match pidfd(process.pid) {
            Ok(fd) => Some(fd),
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return None,
            Err(_) => None,
        };
        let handle = Handle { process, pidfd };
        handle.same().then_some(handle)
    }

    fn same(&self) -> bool {
        process_id(self.process.pid).is_ok_and(|now| now == self.process)
    }

    /// Sends a signal to the process; `false` if the process has ended.
    fn signal(&self, signal: i32) -> io::Result<bool> {
        let result = match &self.pidfd {
            // SAFETY: the descriptor is open for the life of self; a null siginfo is allowed.
            Some(fd) => unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    fd.as_raw_fd(),
                    signal,
                    std::ptr::null::<libc::siginfo_t>(),
                    0,
                )
            },
            None if !self.same() => return Ok(false),
            // SAFETY: plain integers; the pid is above 1.
            None => i64::from(unsafe { libc::kill(self.process.pid, signal) }),
        };
        if result == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ESRCH) { Ok(false) } else { Err(error) }
    }

    /// Waits until all threads of the process have ended; `false` if some still run after `limit`.
    fn wait(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let gone = match &self.pidfd {
                Some(fd) => {
                    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                    // SAFETY: one valid pollfd, count 1.
                    let ready = unsafe { libc::poll(&mut poll, 1, left.as_millis().min(1000) as i32) };
                    ready > 0
                }
                None => match Stat::read(&format!("/proc/{}/stat", self.process.pid)) {
                    Ok(stat) => {
                        matches!(stat.state(), 'Z' | 'X') || stat.start_ticks() != Some(self.process.start_ticks)
                    }
                    Err(_) => true,
                },
            };
            if gone {
                return true;
            }
            if left.is_zero() {
                return false;
            }
            if self.pidfd.is_none() {
                std::thread::sleep(left.min(Duration::from_millis(10)));
            }
        }
    }
}

/// Threads of the hypervisor process `pid` with their names, including the kernel's threads for its vhost devices, which are
/// separate processes before Linux 6.4.
///
/// # Errors
/// The process does not run.
pub fn hypervisor_threads(pid: i32) -> io::Result<Vec<(i32, String)>> {
    let named = |path: std::path::PathBuf| {
        let tid = path.file_name()?.to_str()?.parse().ok()?;
        Some((tid, std::fs::read_to_string(path.join("comm")).ok()?.trim().to_owned()))
    };
    let list = |at: String| -> io::Result<Vec<(i32, String)>> {
        Ok(std::fs::read_dir(at)?.flatten().filter_map(|e| named(e.path())).collect())
    };
    let mut own = list(format!("/proc/{pid}/task"))?;
    let worker = format!("vhost-{pid}");
    own.extend(list("/proc".into())?.into_iter().filter(|(tid, name)| *name == worker && *tid != pid));
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let tail = "S 1 2 3 0 -1 4194560 11 12 13 14 15 16 17 18 20 0 1 0 98841 5124096 947";
        let stat = Stat::parse(&format!("42 (a) b (c) {tail}")).unwrap();
        assert_eq!(stat.state(), 'S');
        assert_eq!(stat.field(10), Some(11));
        assert_eq!(stat.start_ticks(), Some(98841));
        assert!(Stat::parse("42 (cut off) S 1 2").is_none());
    }

    #[test]
    fn a_port_counts_while_a_socket_listens_at_it() {
        use std::net::{TcpListener, TcpStream};
        let me = std::process::id() as i32;
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine without IPv6 has no such address.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let at = listener.local_addr().unwrap();
            let connected = TcpStream::connect(at).unwrap();
            let own = connected.local_addr().unwrap().port();
            assert_eq!([at.port(), own].map(|port| has_tcp_listener(me, port)), [true, false], "{address}");
            assert!(!has_tcp_listener(-1, at.port()));
            drop(listener);
            assert!(!has_tcp_listener(me, at.port()), "{address}");
        }
    }

    #[test]
    fn this_process_is_alive_and_the_same_id_with_another_start_time_is_not() {
        let me = this_process().unwrap();
        assert!(is_alive(me));
        assert!(!is_alive(ProcessId { start_ticks: me.start_ticks + 1, ..me }));
        assert!(!is_alive(ProcessId { pid: -1, start_ticks: 0 }));
        assert!(!is_alive(ProcessId { pid: 0, start_ticks: 0 }));
    }

    #[test]
    fn a_process_gets_sigterm_first_and_sigkill_if_it_ignores_that() {
        let mut polite = Command::new("sleep").arg("60").spawn().unwrap();
        let id = process_id(polite.id() as i32).unwrap();
        assert_eq!(end(id, Duration::from_secs(5)).unwrap(), Ended::Asked);
        assert!(!is_alive(id), "a process that waits to be collected counts as gone");
        polite.wait().unwrap();
        assert_eq!(end(id, Duration::from_secs(5)).unwrap(), Ended::AlreadyGone);

        let mut deaf = Command::new("sh")
            .args(["-c", "trap '' TERM; echo ready; while :; do sleep 1; done"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 5];
        io::Read::read_exact(deaf.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let id = process_id(deaf.id() as i32).unwrap();
        assert_eq!(end(id, Duration::from_millis(50)).unwrap(), Ended::Killed);
        deaf.wait().unwrap();
    }
}
