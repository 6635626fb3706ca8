//! QEMU's monitor: the few words that are said to it (QMP).

use super::look::{COUNTS, Look};
use qapi::{Qmp, Stream, qmp};
use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// QEMU answers within this time.
const ANSWERS: Duration = Duration::from_secs(10);

/// Why an emulated machine has no statistics.
pub const NOT_COUNTED: &str = "not counted: emulated";

pub(super) struct Monitor(Qmp<Stream<BufReader<UnixStream>, UnixStream>>);

impl Monitor {
    pub fn connect(socket: &Path) -> io::Result<Monitor> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWERS))?;
        let mut monitor = Qmp::new(Stream::new(BufReader::new(stream.try_clone()?), stream));
        monitor.handshake()?;
        Ok(Monitor(monitor))
    }

    /// Thread of each virtual CPU -> its number.
    pub fn vcpu_threads(&mut self) -> io::Result<BTreeMap<i32, usize>> {
        let cpus = self.0.execute(&qmp::query_cpus_fast {})?;
        let of = |cpu| match cpu {
            qmp::CpuInfoFast::x86_64(base) => Some((base.thread_id as i32, base.cpu_index as usize)),
            _ => None,
        };
        Ok(cpus.into_iter().filter_map(of).collect())
    }

    /// KVM runs it.
    pub fn runs_kvm(&mut self) -> io::Result<bool> {
        Ok(self.0.execute(&qmp::query_kvm {})?.enabled)
    }

    /// What it is at this moment.
    ///
    /// `kvm`: KVM runs it, and counts.
    pub fn look(&mut self, kvm: bool) -> io::Result<Look> {
        let vcpus = match kvm {
            true => self.counts().map_err(|e| format!("query-stats of QEMU: {e}")),
            false => Err(NOT_COUNTED.into()),
        };
        // What happened before the answer has come before it.
        let runs = self.0.execute(&qmp::query_status {})?.running;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let events = self.0.events().filter_map(|event| told(&event)).collect();
        Ok(Look { vcpus, runs, at_ns: now.as_nanos() as i64, events })
    }

    /// Statistics of KVM for each virtual CPU.
    fn counts(&mut self) -> io::Result<Vec<BTreeMap<String, i64>>> {
        let of = qmp::StatsRequest { names: None, provider: qmp::StatsProvider::kvm };
        let all = qmp::StatsVCPUFilter { vcpus: None };
        let mut told =
            self.0.execute(&qmp::query_stats(qmp::StatsFilter::vcpu { providers: Some(vec![of]), vcpu: all }))?;
        let number = |stat: qmp::Stats| match stat.value {
            qmp::StatsValue::scalar(n) if COUNTS.contains(&stat.name.as_str()) => {
                Some((stat.name, i64::try_from(n).ok()?))
            }
            _ => None,
        };
        // QEMU tells them in an order of its own.
        let paths = self.vcpu_paths()?;
        let place = |vcpu: &qmp::StatsResult| paths.iter().position(|path| Some(path) == vcpu.qom_path.as_ref());
        told.sort_by_key(|vcpu| place(vcpu).unwrap_or(usize::MAX));
        Ok(told.into_iter().map(|vcpu| vcpu.stats.into_iter().filter_map(number).collect()).collect())
    }

    /// What QEMU calls each virtual CPU, in their order.
    fn vcpu_paths(&mut self) -> io::Result<Vec<String>> {
        let cpus = self.0.execute(&qmp::query_cpus_fast {})?;
        let of = |cpu| match cpu {
            qmp::CpuInfoFast::x86_64(base) => Some((base.cpu_index, base.qom_path)),
            _ => None,
        };
        let mut paths: Vec<(i64, String)> = cpus.into_iter().filter_map(of).collect();
        paths.sort();
        Ok(paths.into_iter().map(|(_, path)| path).collect())
    }

    pub fn go_on(&mut self) -> io::Result<()> {
        self.0.execute(&qmp::cont {}).map(drop).map_err(io::Error::from)
    }

    pub fn pause(&mut self) -> io::Result<()> {
        self.0.execute(&qmp::stop {}).map(drop).map_err(io::Error::from)
    }

    pub fn quit(&mut self) -> io::Result<()> {
        self.0.execute(&qmp::quit {}).map(drop).map_err(io::Error::from)
    }
}

/// The time of an event, and its name.
fn told(event: &qmp::Event) -> Option<(i64, String)> {
    let event = serde_json::to_value(event).ok()?;
    let of = |part: &str| event["timestamp"][part].as_i64();
    Some((of("seconds")? * 1_000_000_000 + of("microseconds")? * 1_000, event["event"].as_str()?.to_owned()))
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Monitor")
    }
}
