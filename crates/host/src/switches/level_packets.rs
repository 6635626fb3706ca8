//! Adds the level `packets` to a recording by BPF: the messages of a process are followed too.

use super::cost::{self, is_cheap};
use super::follow::{Follower, Sockets};
use super::opening::Opened;
use super::tracer::Tracer;
use tailbound_model::{Attribution, CpuList, Problem, RecordedBy, Recorder};

impl Opened {
    /// Follows the messages of a process too, if the kernel permits it; otherwise the recorder says why it does not.
    pub(super) fn with_packets(mut self, threads: &[i32], cpus: &CpuList, process: i32) -> Opened {
        let attached = self.attach_packets();
        let Some(mut recorder) = self.recorder.take() else { return self };
        if let Err(refused) = attached {
            recorder.instead = Some(format!("packets cannot be followed: {}", refused.what));
            return Opened { recorder: Some(recorder), ..self };
        }
        let cost = cost::of_packets(cpus, |ports| self.try_packets(threads, cpus, ports));
        let recorder =
            Recorder { cost, others: recorder.cost.into_iter().collect(), level: Attribution::Packets, ..recorder };
        Opened { recorder: Some(recorder), follower: Some(Follower::new(Sockets::of(process))), ..self }
    }

    /// Follows the messages of a process too, if it has sockets of UDP and if this is cheap. The recorder has both costs.
    pub(super) fn with_cheap_packets(mut self, threads: &[i32], cpus: &CpuList, process: i32) -> Opened {
        let sockets = Sockets::of(process);
        let known = cost::known(Attribution::Packets, RecordedBy::Bpf, cpus);
        if sockets.ports.is_empty() || self.recorder.is_none() {
            return self;
        }
        let worth_it = known.is_none_or(|cost| is_cheap(&cost)) && self.attach_packets().is_ok();
        let cost = match worth_it {
            true => cost::of_packets(cpus, |ports| self.try_packets(threads, cpus, ports)),
            false => known,
        };
        let Some(recorder) = self.recorder.take() else { return self };
        if !worth_it || !cost.is_some_and(|cost| is_cheap(&cost)) {
            self.tracer.iter_mut().for_each(Tracer::detach_packets);
            let recorder = Recorder { others: cost.into_iter().collect(), ..recorder };
            return Opened { recorder: Some(recorder), ..self };
        }
        let recorder =
            Recorder { cost, others: recorder.cost.into_iter().collect(), level: Attribution::Packets, ..recorder };
        Opened { recorder: Some(recorder), follower: Some(Follower::new(sockets)), ..self }
    }

    fn attach_packets(&mut self) -> Result<(), Problem> {
        match &mut self.tracer {
            Some(tracer) => tracer.attach_packets(),
            None => Err(Problem::new("no_tracer", "the events are not recorded by BPF", "")),
        }
    }

    /// Begins to record everything, and to follow datagrams from these ports, or ends it if there are no ports. Returns
    /// whether it succeeded.
    fn try_packets(&mut self, threads: &[i32], cpus: &CpuList, ports: &[u16]) -> bool {
        if ports.is_empty() {
            self.end();
            let lost = self.tracer.as_mut().map(|tracer| tracer.read_packets(|_| {}));
            return lost.is_some();
        }
        self.begin(threads, cpus).is_ok()
            && self.tracer.as_mut().is_some_and(|tracer| tracer.watch_packets(ports).is_ok())
    }
}
