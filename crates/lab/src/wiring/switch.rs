//! The programs of a private Open vSwitch in the namespace of the wiring.

use super::action::{Program, control_socket};
use crate::netns::NetNs;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tailbound_host::{EntryId, Journal};
use tailbound_model::{RUN_TOKEN, Undo};

/// Longest time until the socket of a program of Open vSwitch exists; usually about 100 ms on a loaded machine.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// A running daemon of Open vSwitch with its entry in the journal.
#[derive(Debug)]
pub(super) struct Daemon {
    child: Child,
    entry: EntryId,
}

/// Makes a command that runs in the namespace of the wiring and uses only `dir` for files of Open vSwitch.
pub(super) fn command(program: Program, dir: &Path, netns: &NetNs) -> io::Result<Command> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("{} is not installed", program.name()));
    let mut command = Command::new(program.find().ok_or_else(missing)?);
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, dir);
    }
    // The dispatcher of libxdp is skipped, because it pins files in /sys/fs/bpf of the host.
    command.env("LIBXDP_SKIP_DISPATCHER", "1");
    let netns = netns.clone();
    // SAFETY: between fork and exec the closure makes one system call on a descriptor that it owns, and allocates nothing.
    unsafe { command.pre_exec(move || netns.enter()) };
    command.stdin(Stdio::null());
    Ok(command)
}

fn log_of(program: Program, dir: &Path) -> PathBuf {
    dir.join(program.name()).with_extension("log")
}

impl Daemon {
    /// Writes the journal entry of a daemon, and then starts the daemon; its output goes to a file in `dir`.
    pub fn start(
        program: Program,
        arguments: &[String],
        (dir, netns): (&Path, &NetNs),
        (run_id, journal): (&str, &Journal),
        daemons: &mut Vec<Daemon>,
    ) -> io::Result<()> {
        let token = format!("{run_id}-{}", program.name());
        let log = File::create(log_of(program, dir))?;
        let mut command = command(program, dir, netns)?;
        command.args(arguments).env(RUN_TOKEN, &token);
        // Ctrl-C must reach only the controller.
        command.process_group(0).stdout(log.try_clone()?).stderr(log);
        let entry = journal.before(Undo::EndProcessByToken { token: token.clone() }).map_err(io::Error::other)?;
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                // Nothing was started. If the journal cannot be written, the entry is void when this process ends.
                let _ = journal.done(entry);
                return Err(error);
            }
        };
        let pid = child.id() as i32;
        daemons.push(Daemon { child, entry });
        if let Ok(process) = tailbound_host::process_id(pid) {
            let what = format!("{} of run {run_id}", program.name());
            journal.update(entry, Undo::EndProcess { process, what, token }).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Waits until the socket of the daemon exists, at most 20 s.
    pub async fn ready(&mut self, program: Program, socket: &Path, dir: &Path) -> io::Result<()> {
        let end = Instant::now() + READY_WITHIN;
        while !socket.exists() {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("the program ended ({status}): {}", last_output(program, dir))));
            }
            if Instant::now() > end {
                return Err(io::Error::other(format!(
                    "the program is not ready after 20 s: {}",
                    last_output(program, dir)
                )));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Ends a daemon of Open vSwitch and all its child processes.
    pub fn end(mut self, journal: &Journal) -> Result<(), tailbound_host::JournalError> {
        journal.undo(self.entry)?;
        // The process has ended; `wait` only collects it.
        let _ = self.child.wait();
        Ok(())
    }
}

/// The last lines of the output of a program of Open vSwitch.
fn last_output(program: Program, dir: &Path) -> String {
    let text = fs::read_to_string(log_of(program, dir)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

/// Runs a program of Open vSwitch to its end and returns its output.
pub(super) async fn run(program: Program, arguments: &[String], (dir, netns): (&Path, &NetNs)) -> io::Result<String> {
    let mut command = command(program, dir, netns)?;
    command.args(arguments);
    let output = tokio::process::Command::from(command).output().await?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(io::Error::other(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
}

/// Returns the switch's error message about a port that the switch could not add, if there is one.
pub(super) async fn refused(socket: &Path, at: (&Path, &NetNs)) -> io::Result<Option<String>> {
    let words = "--timeout=20 --bare --columns=name,error find interface error!=[]";
    let mut arguments = vec![format!("--db=unix:{}", socket.display())];
    arguments.extend(words.split(' ').map(str::to_owned));
    let text = run(Program::Configure, &arguments, at).await?;
    Ok(Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty()))
}

/// Finds the datapath type in the arguments that configure the switch; `system` is the datapath of the kernel.
fn datapath_type(arguments: &[String]) -> &str {
    arguments.iter().find_map(|a| a.strip_prefix("datapath_type=")).unwrap_or_default()
}

/// Waits until the machine has been up for 10 s. Open vSwitch (3.1.0) counts CPUs at most every 10 s of the time since
/// boot; before the first count it knows no CPU, has no thread for packets from its kernel datapath, and loses these
/// packets.
pub(super) async fn wait_for_cpu_count(arguments: &[String]) {
    const COUNTS: Duration = Duration::from_millis(10_100);
    if datapath_type(arguments) == "system" {
        let since_boot = Duration::from_nanos(tailbound_host::monotonic_ns().unsigned_abs());
        tokio::time::sleep(COUNTS.saturating_sub(since_boot)).await;
    }
}

/// Checks that all ports of the switch are in a datapath of the requested type.
pub(super) async fn verify(arguments: &[String], ports: &[String], (dir, netns): (&Path, &NetNs)) -> io::Result<()> {
    let wanted = datapath_type(arguments);
    let show = ["-t", &control_socket(dir).display().to_string(), "-T", "5", "dpif/show"].map(str::to_owned);
    let shown = run(Program::Ask, &show, (dir, netns)).await?;
    let paths = data_paths(&shown);
    let of_kind = paths.iter().find(|(kind, _)| *kind == wanted).map(|(_, names)| names.as_slice()).unwrap_or_default();
    match ports.iter().find(|port| !of_kind.contains(&port.as_str())) {
        None => Ok(()),
        Some(port) => {
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            Err(io::Error::other(format!("{port} is in no datapath of the type `{wanted}`; the switch has: {shown}")))
        }
    }
}

/// Parses the type and the ports of each datapath of the switch, from lines `TYPE@NAME: ...` followed by bridges and
/// lines `PORT 1/2: (TYPE)`.
fn data_paths(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut paths: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let (Some((kind, _)), false) = (line.split_once('@'), line.starts_with(' ')) {
            paths.push((kind, Vec::new()));
        } else if let (Some((name, _)), Some((_, names))) = (line.trim().split_once(' '), paths.last_mut()) {
            names.push(name);
        }
    }
    paths
}

/// Reads the counters of each port of the switch, such as `switch.rx_packets`, and of all ports together:
/// `switch.lookups_hit` (packets that the datapath forwarded itself), `switch.lookups_missed` (packets passed to the
/// daemon) and `switch.lookups_lost`. Blocks for a moment.
pub(super) fn counts((dir, netns): (&Path, &NetNs)) -> io::Result<BTreeMap<String, BTreeMap<String, i64>>> {
    let mut ask = command(Program::Ask, dir, netns)?;
    ask.arg("-t").arg(control_socket(dir)).args(["-T", "5", "dpctl/show", "-s"]);
    Ok(parse(&String::from_utf8_lossy(&ask.output()?.stdout)))
}

/// Parses the counters of the switch from lines `port 2: NAME (type: ...)`, each followed by `RX packets:7 errors:0
/// dropped:0 ...` and an equal line for TX.
fn parse(text: &str) -> BTreeMap<String, BTreeMap<String, i64>> {
    let mut all: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    let mut name = "";
    let mut lookups: BTreeMap<String, i64> = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("lookups: ") {
            let pairs = rest.split_whitespace().filter_map(|word| word.split_once(':'));
            let numbers = pairs.filter_map(|(key, value)| Some((format!("switch.lookups_{key}"), value.parse().ok()?)));
            lookups.extend(numbers);
        }
        if let Some((_, rest)) = line.strip_prefix("port ").and_then(|rest| rest.split_once(": ")) {
            name = rest.split_whitespace().next().unwrap_or("");
        }
        let Some(direction) = ["RX", "TX"].into_iter().find(|word| line.starts_with(&format!("{word} "))) else {
            continue;
        };
        let pairs = line.split_whitespace().filter_map(|word| word.split_once(':'));
        let numbers = pairs.filter_map(|(key, value)| Some((key, value.parse().ok()?)));
        let named = numbers.map(|(key, value)| (format!("switch.{}_{key}", direction.to_lowercase()), value));
        all.entry(name.to_owned()).or_default().extend(named);
    }
    all.values_mut().for_each(|counts| counts.extend(lookups.clone()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_switch_are_named_by_port_and_direction() {
        let text = "netdev@ovs-netdev:\n  lookups: hit:4 missed:2 lost:0\n  port 0: ovs-netdev (tap)\n    \
                    RX packets:0 errors:? dropped:0\n  port 2: tb1-q0 (afxdp: n_rxq=1)\n    \
                    RX packets:7 errors:0 dropped:1 overruns:? frame:0\n    TX packets:5 errors:0 dropped:0\n    \
                    RX bytes:1 (2 KiB) TX bytes:?\n";
        let all = parse(text);
        assert_eq!(all["tb1-q0"]["switch.rx_packets"], 7);
        assert_eq!(all["tb1-q0"]["switch.rx_dropped"], 1);
        assert_eq!(all["tb1-q0"]["switch.tx_packets"], 5);
        assert_eq!(all["tb1-q0"]["switch.lookups_hit"], 4);
        assert!(!all["ovs-netdev"].contains_key("switch.rx_errors"));
    }

    #[test]
    fn ports_are_grouped_by_the_type_of_their_datapath() {
        let text =
            "netdev@ovs-netdev: hit:0 missed:0\n  tbs0:\n    tb1-q0 1/2: (afxdp: n_rxq=1)\n    tbs0 65534/1: (tap)\n";
        assert_eq!(data_paths(text), [("netdev", vec!["tb1-q0", "tbs0"])]);
    }
}
