//! Processes by an identity that survives the reuse of process ids: id and start time.
//!
//! In: a process id. Out: [`ProcessId`], whether it still lives, and its end. A pidfd pins the process between the check
//! and the signal; where the kernel refuses pidfds the start time is compared again right before the signal.

use nix::sys::resource::{Resource, getrlimit};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tailbound_model::ProcessId;

/// The fields of /proc/PID/stat, numbered as in proc_pid_stat(5) from 1; the name may hold spaces and parentheses.
#[derive(Debug, Clone)]
pub struct Stat {
    after_name: Vec<String>,
}

impl Stat {
    /// Reads a stat file.
    pub fn read(path: &str) -> io::Result<Stat> {
        let text = fs::read_to_string(path)?;
        Stat::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: not a stat line")))
    }

    /// Takes a stat line apart.
    pub fn parse(text: &str) -> Option<Stat> {
        let rest = &text[text.rfind(')')? + 1..];
        let after_name: Vec<String> = rest.split_ascii_whitespace().map(str::to_owned).collect();
        (after_name.len() >= 20).then_some(Stat { after_name })
    }

    /// Field `number`, from 3 (state) on.
    pub fn field(&self, number: usize) -> Option<u64> {
        self.after_name.get(number.checked_sub(3)?)?.parse().ok()
    }

    /// The state letter: `R`, `S`, `Z`, ...
    pub fn state(&self) -> char {
        self.after_name[0].chars().next().unwrap_or('?')
    }

    /// Start time in clock ticks since boot.
    pub fn start_ticks(&self) -> Option<u64> {
        self.field(22)
    }
}

/// The id of the kernel's boot.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The identity of this process's monotonic clock: that of the kernel, and of the time namespace where there are such
/// (time_namespaces(7) may shift the clock). Equal words mean one clock.
///
/// # Errors
/// /proc is not there.
pub fn clock_id() -> io::Result<String> {
    let (boot, link) = (boot_id()?, fs::read_link("/proc/self/ns/time"));
    let inode = link.as_ref().ok().and_then(|l| l.to_str()?.strip_prefix("time:[")?.strip_suffix(']'));
    Ok(inode.map_or(boot.clone(), |inode| format!("{boot}/{inode}")))
}

/// The identity of the process that now has this id.
pub fn process_id(pid: i32) -> io::Result<ProcessId> {
    let stat = Stat::read(&format!("/proc/{pid}/stat"))?;
    let start_ticks = stat.start_ticks().ok_or(io::ErrorKind::InvalidData)?;
    Ok(ProcessId { pid, start_ticks })
}

/// The identity of the calling process.
pub fn this_process() -> io::Result<ProcessId> {
    process_id(std::process::id() as i32)
}

/// True while the process runs; one that has ended and waits for its parent to collect it does not.
pub fn is_alive(process: ProcessId) -> bool {
    Handle::open(process).is_some_and(|handle| !handle.wait(Duration::ZERO))
}

/// Effective capabilities of the calling thread, one bit each.
pub(crate) fn effective_capabilities() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:")).ok_or(io::ErrorKind::NotFound)?;
    u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)
}

/// The soft limit of a resource as text; `unlimited` where it is.
pub(crate) fn limit_text(resource: Resource) -> String {
    match getrlimit(resource) {
        Ok((nix::sys::resource::RLIM_INFINITY, _)) => "unlimited".into(),
        Ok((soft, _)) => soft.to_string(),
        Err(error) => format!("not readable ({error})"),
    }
}

/// Directory of this process's control group for a controller, where it is mounted in the usual place: the v1 hierarchy
/// of the controller, or else the unified one. In a container the mount shows its own group at the top, and not the path
/// that the host knows it by.
pub(crate) fn cgroup_dir(controller: &str) -> Option<PathBuf> {
    group_dir(&fs::read_to_string("/proc/self/cgroup").ok()?, controller)
}

/// The same of the process whose /proc/PID/cgroup this is.
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

/// How a process was found when it was to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It had ended before.
    AlreadyGone,
    /// It ended after SIGTERM.
    Asked,
    /// It had to be killed.
    Killed,
}

/// Ends a process: SIGTERM, at most `grace` for it to finish, then SIGKILL; returns when it is gone.
///
/// # Errors
/// The signal is not permitted, or the process is still there 5 s after SIGKILL.
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
    // A stopped process takes SIGTERM only once it continues.
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

/// A descriptor of a process: readable once it has ended.
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

/// One process, pinned.
struct Handle {
    process: ProcessId,
    pidfd: Option<OwnedFd>,
}

impl Handle {
    /// `None` when no such process exists (any more).
    fn open(process: ProcessId) -> Option<Handle> {
        // 0 and negative ids address groups or everybody when used in kill(2): never one process.
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

    /// Sends a signal; `false` when the process is gone.
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

    /// Waits until the whole process has ended; `false` when it has not within `limit`.
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
    fn this_process_lives_and_another_start_time_does_not() {
        let me = this_process().unwrap();
        assert!(is_alive(me));
        assert!(!is_alive(ProcessId { start_ticks: me.start_ticks + 1, ..me }));
        assert!(!is_alive(ProcessId { pid: -1, start_ticks: 0 }));
        assert!(!is_alive(ProcessId { pid: 0, start_ticks: 0 }));
    }

    #[test]
    fn a_process_is_asked_first_and_killed_when_it_will_not_go() {
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
