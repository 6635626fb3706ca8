//! Client of QEMU's machine protocol (QMP), which sends one JSON object per line over a Unix socket. Only the commands
//! that Tailbound needs are here.

use super::look::{COUNTS, Look};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tailbound_host::read_offset;

/// Longest time to wait for QEMU's answer to a QMP command.
const ANSWERS: Duration = Duration::from_secs(10);

/// Time between two looks at a snapshot that QEMU writes or reads.
const LOOKS: Duration = Duration::from_millis(5);
/// Longest time for QEMU to write or read a snapshot.
const SNAPSHOT_TAKES: Duration = Duration::from_secs(60);

/// The reason that the record gives if an emulated machine has no statistics.
pub const NOT_COUNTED: &str = "not counted: emulated";

#[derive(Debug)]
pub(super) struct Monitor {
    stream: BufReader<UnixStream>,
    /// Events of QEMU that arrived before an answer and were not read yet.
    events: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct VirtualCpu {
    cpu_index: usize,
    thread_id: i32,
    qom_path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Statistics {
    qom_path: Option<String>,
    stats: Vec<Statistic>,
}

#[derive(Deserialize)]
struct Statistic {
    name: String,
    /// Value of a KVM statistic: a number, a truth value, or a list of numbers.
    value: Value,
}

#[derive(Deserialize)]
struct Kvm {
    enabled: bool,
}

#[derive(Deserialize)]
struct Status {
    running: bool,
    status: String,
}

impl Monitor {
    pub fn connect(socket: &Path) -> io::Result<Monitor> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWERS))?;
        let mut monitor = Monitor { stream: BufReader::new(stream), events: Vec::new() };
        let greeting = monitor.read()?;
        if greeting.get("QMP").is_none() {
            return Err(io::Error::other(format!("QEMU greeted with {greeting}")));
        }
        monitor.execute::<Value>("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Reads one JSON object from QEMU's QMP socket.
    fn read(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "QEMU closed its monitor"));
        }
        serde_json::from_str(&line).map_err(io::Error::from)
    }

    /// Sends a command to QEMU and returns the answer; events that arrive before the answer are kept.
    fn execute<T: DeserializeOwned>(&mut self, command: &str, arguments: Value) -> io::Result<T> {
        let request = json!({ "execute": command, "arguments": arguments });
        self.stream.get_mut().write_all(format!("{request}\n").as_bytes())?;
        loop {
            let mut answer = self.read()?;
            if let Some(value) = answer.get_mut("return") {
                return T::deserialize(value.take()).map_err(io::Error::from);
            }
            if let Some(error) = answer.get("error") {
                return Err(io::Error::other(error["desc"].as_str().unwrap_or("QEMU gave no reason").to_owned()));
            }
            if answer.get("event").is_some() {
                self.events.push(answer);
            }
        }
    }

    /// The vCPUs of the virtual machine, in the order of their numbers.
    fn vcpus(&mut self) -> io::Result<Vec<VirtualCpu>> {
        let mut vcpus: Vec<VirtualCpu> = self.execute("query-cpus-fast", json!({}))?;
        vcpus.sort_by_key(|vcpu| vcpu.cpu_index);
        Ok(vcpus)
    }

    /// The number of each vCPU of the virtual machine, by the id of its thread on the host.
    pub fn vcpu_threads(&mut self) -> io::Result<BTreeMap<i32, usize>> {
        Ok(self.vcpus()?.into_iter().map(|vcpu| (vcpu.thread_id, vcpu.cpu_index)).collect())
    }

    /// Whether KVM runs the virtual machine; otherwise QEMU emulates its processor.
    pub fn runs_kvm(&mut self) -> io::Result<bool> {
        Ok(self.execute::<Kvm>("query-kvm", json!({}))?.enabled)
    }

    /// Reads the state of the machine at this moment, and the statistics of KVM if KVM runs the machine.
    ///
    /// `kvm`: whether KVM runs the machine and counts its events.
    pub fn look(&mut self, kvm: bool) -> io::Result<Look> {
        let vcpus = match kvm {
            true => self.counts().map_err(|e| format!("query-stats of QEMU: {e}")),
            false => Err(NOT_COUNTED.into()),
        };
        // QEMU sends events that happened before the answer ahead of the answer.
        let runs = self.execute::<Status>("query-status", json!({}))?.running;
        let clocks = read_offset();
        let (at_ns, monotonic_ns) = (clocks.at_ns + clocks.offset_ns, clocks.at_ns);
        let events = self.events.drain(..).filter_map(|event| time_and_name(&event)).collect();
        Ok(Look { vcpus, runs, at_ns, monotonic_ns, events })
    }

    /// Statistics that KVM counts for each vCPU of the virtual machine, by name.
    fn counts(&mut self) -> io::Result<Vec<BTreeMap<String, i64>>> {
        let of_kvm = json!({ "target": "vcpu", "providers": [{ "provider": "kvm" }] });
        let mut all: Vec<Statistics> = self.execute("query-stats", of_kvm)?;
        let number = |stat: Statistic| match stat.value.as_i64() {
            Some(n) if COUNTS.contains(&stat.name.as_str()) => Some((stat.name, n)),
            _ => None,
        };
        // QEMU does not list virtual CPUs by number.
        let vcpus = self.vcpus()?;
        let number_of = |path: &Option<String>| vcpus.iter().position(|vcpu| Some(&vcpu.qom_path) == path.as_ref());
        all.sort_by_key(|of| number_of(&of.qom_path).unwrap_or(usize::MAX));
        Ok(all.into_iter().map(|of| of.stats.into_iter().filter_map(number).collect()).collect())
    }

    pub fn go_on(&mut self) -> io::Result<()> {
        self.execute::<Value>("cont", json!({})).map(drop)
    }

    pub fn pause(&mut self) -> io::Result<()> {
        self.execute::<Value>("stop", json!({})).map(drop)
    }

    /// Writes the state of the machine into a file. The guest is paused meanwhile, and runs afterwards, also if the file
    /// could not be written.
    pub fn save(&mut self, file: &Path) -> io::Result<()> {
        self.pause()?;
        let saved = self.save_paused(file);
        self.go_on().and(saved)
    }

    fn save_paused(&mut self, file: &Path) -> io::Result<()> {
        // QEMU limits the rate by default, to spare a network.
        self.execute::<Value>("migrate-set-parameters", json!({ "max-bandwidth": u64::from(u32::MAX) * 1000 }))?;
        self.execute::<Value>("migrate", json!({ "uri": format!("exec:cat > '{}'", file.display()) }))?;
        let until = Instant::now() + SNAPSHOT_TAKES;
        loop {
            let state: Value = self.execute("query-migrate", json!({}))?;
            match state["status"].as_str().unwrap_or_default() {
                "completed" => return Ok(()),
                "failed" | "cancelled" => return Err(io::Error::other(format!("the migration ended: {state}"))),
                _ if Instant::now() > until => return Err(io::ErrorKind::TimedOut.into()),
                _ => std::thread::sleep(LOOKS),
            }
        }
    }

    /// Reads the state of the machine from a file. QEMU was started with `-incoming defer`. The guest is paused
    /// afterwards.
    pub fn restore(&mut self, file: &Path) -> io::Result<()> {
        // A machine that was moved announces its address on its network by packets, which nobody expects here.
        self.execute::<Value>("migrate-set-parameters", json!({ "announce-rounds": 0 }))?;
        self.execute::<Value>("migrate-incoming", json!({ "uri": format!("exec:cat '{}'", file.display()) }))?;
        // QEMU ends if the file is not complete.
        let until = Instant::now() + SNAPSHOT_TAKES;
        while self.execute::<Status>("query-status", json!({}))?.status == "inmigrate" {
            if Instant::now() > until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(LOOKS);
        }
        Ok(())
    }

    pub fn quit(&mut self) -> io::Result<()> {
        self.execute::<Value>("quit", json!({})).map(drop)
    }
}

/// Time of a QEMU event in ns since 1970, and name of the event.
fn time_and_name(event: &Value) -> Option<(i64, String)> {
    let of = |part: &str| event["timestamp"][part].as_i64();
    Some((of("seconds")? * 1_000_000_000 + of("microseconds")? * 1_000, event["event"].as_str()?.to_owned()))
}
