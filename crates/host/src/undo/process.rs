//! Undo: ends processes, found by their identity or by the run token on their command line or in their environment.

use super::outcome::Undone;
use crate::process::{self, Ended, Stat};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use tailbound_model::{ProcessId, RUN_TOKEN};

/// Time for a process to end after SIGTERM; an agent may be saving samples during this time.
const GRACE: Duration = Duration::from_secs(10);

/// Pause between two readings of the environment of a process that is in execve(2), and the maximum number of readings.
const EXEC_PAUSE: Duration = Duration::from_millis(2);
const EXEC_LOOKS: usize = 50;

/// The command-line argument before the run token.
const TOKEN_FLAG: &[u8] = b"--run-token";

pub(super) fn end(process: ProcessId, what: &str) -> io::Result<Undone> {
    let pid = process.pid;
    Ok(match process::end(process, GRACE)? {
        Ended::AlreadyGone => Undone::AlreadyGone,
        Ended::Asked => Undone::Did(format!("process {pid} ({what}) was ended")),
        Ended::Killed => Undone::Did(format!("process {pid} ({what}) was killed, because it ignored SIGTERM for 10 s")),
    })
}

/// Ends the process `process`, and all processes that have the run token `token`.
pub(super) fn end_with_all(process: ProcessId, what: &str, token: &str) -> io::Result<Undone> {
    let done = end(process, what)?;
    let children = if token.is_empty() { Undone::AlreadyGone } else { end_by_token(token)? };
    Ok(match (done, children) {
        (Undone::Did(one), Undone::Did(rest)) => Undone::Did(format!("{one}; {rest}")),
        (Undone::AlreadyGone, rest) => rest,
        (done, _) => done,
    })
}

pub(super) fn end_by_token(token: &str) -> io::Result<Undone> {
    if token.is_empty() {
        return Ok(Undone::LeftAlone("an empty run token names no process".into()));
    }
    let mut ended = Vec::new();
    loop {
        let found = find_by_token(token);
        if found.is_empty() {
            break;
        }
        for process in found {
            end(process, "agent")?;
            ended.push(process.pid.to_string());
        }
    }
    if ended.is_empty() {
        return Ok(Undone::AlreadyGone);
    }
    Ok(Undone::Did(format!("process {} was ended; it was found by its run token", ended.join(", "))))
}

/// Running processes of this user that have `--run-token TOKEN` in their arguments or the run token in their
/// environment.
fn find_by_token(token: &str) -> Vec<ProcessId> {
    let variable = format!("{RUN_TOKEN}={token}");
    let marked = |environment: &[u8]| environment.split(|&b| b == 0).any(|v| v == variable.as_bytes());
    let own = std::process::id() as i32;
    let uid = nix::unistd::getuid().as_raw();
    let Ok(proc) = fs::read_dir("/proc") else { return Vec::new() };
    proc.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        // The owner of the directory is not used: it is root for every program with file capabilities.
        if pid == own || real_uid(&fs::read_to_string(entry.path().join("status")).ok()?) != Some(uid) {
            return None;
        }
        let id = process::process_id(pid).ok()?;
        let (arguments, environment) = arguments_and_environment(&entry.path(), id)?;
        let is_meant = holds_token(&arguments, token.as_bytes()) || marked(&environment);
        (is_meant && process::is_alive(id)).then_some(id)
    })
    .collect()
}

/// Arguments and environment of a process; `None` if the process has ended. During execve(2) the environment reads as
/// empty, so an empty environment is read again for a short time.
fn arguments_and_environment(dir: &Path, process: ProcessId) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut looks = 0..EXEC_LOOKS;
    loop {
        let (arguments, environment) = (fs::read(dir.join("cmdline")).ok()?, fs::read(dir.join("environ")));
        // If the environment may not be read, only the arguments are used. Few processes always have an empty
        // environment.
        let is_empty = environment.as_ref().is_ok_and(Vec::is_empty);
        if !is_empty || looks.next().is_none() {
            return Some((arguments, environment.unwrap_or_default()));
        }
        if !process::is_alive(process) || is_of_the_kernel(dir) {
            return None;
        }
        std::thread::sleep(EXEC_PAUSE);
    }
}

/// Whether a process is a thread of the kernel, which has neither memory of its own nor arguments.
fn is_of_the_kernel(dir: &Path) -> bool {
    /// Flag PF_KTHREAD of include/linux/sched.h, which marks threads of the kernel.
    const KERNEL_THREAD: u64 = 0x0020_0000;
    let stat = dir.join("stat");
    stat.to_str()
        .and_then(|path| Stat::read(path).ok())
        .and_then(|s| s.field(9))
        .is_some_and(|f| f & KERNEL_THREAD != 0)
}

fn real_uid(status: &str) -> Option<u32> {
    status.lines().find_map(|l| l.strip_prefix("Uid:"))?.split_ascii_whitespace().next()?.parse().ok()
}

fn holds_token(cmdline: &[u8], token: &[u8]) -> bool {
    let arguments: Vec<&[u8]> = cmdline.split(|&b| b == 0).collect();
    arguments.windows(2).any(|pair| pair[0] == TOKEN_FLAG && pair[1] == token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_token_must_be_the_whole_argument_behind_its_flag() {
        assert!(holds_token(b"tailbound\0agent\0--run-token\0abc\0", b"abc"));
        assert!(!holds_token(b"tailbound\0agent\0--run-token\0abcd\0", b"abc"));
        assert!(!holds_token(b"grep\0abc\0--run-token\0", b"abc"));
    }

    #[test]
    fn a_process_is_found_by_its_token_and_ended() {
        let token = format!("test-{}", std::process::id());
        let spawn = |token: &str| {
            Command::new("sh")
                .args(["-c", "read line", "sh", "--run-token", token])
                .stdin(std::process::Stdio::piped())
                .spawn()
        };
        let (mut ours, mut other) = (spawn(&token).unwrap(), spawn(&format!("{token}-other")).unwrap());
        let done = end_by_token(&token).unwrap();
        assert_eq!(done, Undone::Did(format!("process {} was ended; it was found by its run token", ours.id())));
        ours.wait().unwrap();
        assert!(other.try_wait().unwrap().is_none(), "a process with another token is left alone");
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(end_by_token(&token).unwrap(), Undone::AlreadyGone);
        assert!(matches!(end_by_token("").unwrap(), Undone::LeftAlone(_)));
    }

    /// Test: a load process that has left its Unix session (setsid(2)) is found by the environment that it inherited.
    #[test]
    fn processes_left_behind_are_found_by_their_environment() {
        let token = format!("env-{}", std::process::id());
        let mut parent = Command::new("sh");
        parent.args(["-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"]).env(RUN_TOKEN, &token);
        let output = parent.output().unwrap();
        let pid: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        // `sh` may still be starting `sleep`; the environment stays the same.
        let gone = ProcessId { pid, start_ticks: 1 };
        let Undone::Did(text) = end_with_all(gone, "agent", &token).unwrap() else { panic!("nothing was ended") };
        assert!(text.contains("found by its run token"), "{text}");
        assert!(find_by_token(&token).is_empty());
    }

    #[test]
    fn a_reused_process_id_is_left_alone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = process::process_id(child.id() as i32).unwrap();
        let earlier = ProcessId { start_ticks: id.start_ticks - 1, ..id };
        assert_eq!(end(earlier, "agent").unwrap(), Undone::AlreadyGone);
        assert!(child.try_wait().unwrap().is_none());
        assert!(matches!(end(id, "agent").unwrap(), Undone::Did(_)));
        child.wait().unwrap();
    }
}
