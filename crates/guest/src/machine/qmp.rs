//! QEMU's monitor: the few words that are said to it (QMP).

use super::look::{COUNTS, Look};
use qapi::{Qmp, Stream, qmp};
use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

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
        Ok(Look { vcpus })
    }

    /// Statistics of KVM for each virtual CPU.
    fn counts(&mut self) -> io::Result<Vec<BTreeMap<String, i64>>> {
        let of = qmp::StatsRequest { names: None, provider: qmp::StatsProvider::kvm };
        let all = qmp::StatsVCPUFilter { vcpus: None };
        let told = self.0.execute(&qmp::query_stats(qmp::StatsFilter::vcpu { providers: Some(vec![of]), vcpu: all }))?;
        let number = |stat: qmp::Stats| match stat.value {
            qmp::StatsValue::scalar(n) if COUNTS.contains(&stat.name.as_str()) => Some((stat.name, i64::try_from(n).ok()?)),
            _ => None,
        };
        Ok(told.into_iter().map(|vcpu| vcpu.stats.into_iter().filter_map(number).collect()).collect())
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

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Monitor")
    }
}
