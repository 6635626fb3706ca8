//! Kernel counters that are read repeatedly while a process measures, and that explain why it was delayed or why its
//! datagrams were dropped: CPU quotas (kernel documentation: scheduler/sched-bwc), dropped datagrams and fragments of
//! its network namespace (RFC 4113, RFC 4293), packets that interfaces and CPUs dropped (proc_pid_net(5)), run delays of given threads (scheduler/sched-stats), and the steal time of
//! CPUs (proc_stat(5)).

use crate::interface::{InterfaceCounters, parse_dev, parse_pairs};
use crate::process::group_dirs;
use crate::{steal, throttle};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tailbound_model::{Counter, CounterMove, CounterSeries, CounterSet, CpuList};

/// Time between two readings, ns: often enough to place a stop by a quota, whose period is 100 ms by default, and seldom
/// enough not to disturb an end that shares a CPU with the reader (a reading takes about 80 us).
const STEP_NS: i64 = 50_000_000;
/// The control groups of the process are looked up again after this time, ns: the process can be moved.
const LOOK_UP_NS: i64 = 1_000_000_000;
/// Largest number of increases of a counter that are kept; with more, the older half is left out.
const MOST_MOVES: usize = 20_000;

/// Counters of one process, its control groups and its network namespace, with their increases so far.
pub struct CounterWatch {
    pid: i32,
    threads: Vec<i32>,
    /// The CPUs whose steal time is read; none if this machine has no hypervisor.
    cpus: CpuList,
    groups: Vec<PathBuf>,
    looked_up_ns: i64,
    read_ns: i64,
    longest_step_ns: i64,
    last: BTreeMap<(Counter, String), u64>,
    moves: BTreeMap<(Counter, String), Moves>,
}

/// Increases of one counter, in the order of time.
#[derive(Default)]
struct Moves {
    kept: Vec<CounterMove>,
    /// End of the last increase that was left out, monotonic ns.
    complete_from_ns: Option<i64>,
}

impl Moves {
    /// Adds an increase. If there are `most` already, the older half is left out.
    fn push(&mut self, new: CounterMove, most: usize) {
        if self.kept.len() == most
            && let Some(last) = self.kept.drain(..most / 2).next_back()
        {
            self.complete_from_ns = Some(last.to_ns);
        }
        self.kept.push(new);
    }
}

impl CounterWatch {
    /// Reads the counters for the first time. `pid` is the measuring process; the run delays of its `threads` and the steal
    /// time of `cpus` are read too.
    pub fn begin(pid: i32, threads: &[i32], cpus: &CpuList) -> CounterWatch {
        let mut watch = CounterWatch {
            pid,
            threads: threads.to_vec(),
            cpus: if steal::can_be() { cpus.clone() } else { CpuList::default() },
            groups: Vec::new(),
            looked_up_ns: i64::MIN,
            read_ns: crate::monotonic_ns(),
            longest_step_ns: 0,
            last: BTreeMap::new(),
            moves: BTreeMap::new(),
        };
        watch.read();
        watch
    }

    /// Time at which the counters should be read next, monotonic ns.
    pub fn next_ns(&self) -> i64 {
        self.read_ns + STEP_NS
    }

    /// Reads all counters, and keeps the increases since the previous reading. Counters that cannot be read are left
    /// out.
    pub fn read(&mut self) {
        let now = crate::monotonic_ns();
        if self.looked_up_ns.checked_add(LOOK_UP_NS).is_none_or(|due| now >= due) {
            self.groups = group_dirs(self.pid, "cpu");
            self.looked_up_ns = now;
        }
        let from_ns = std::mem::replace(&mut self.read_ns, now);
        // The readings themselves take time: an increase may lie after the time at which they began.
        let values = self.values();
        let to_ns = crate::monotonic_ns();
        self.longest_step_ns = self.longest_step_ns.max(to_ns - from_ns);
        for (key, value) in values {
            let Some(before) = self.last.insert(key.clone(), value) else { continue };
            // A process that was moved can have another group with the same name.
            if let by @ 1.. = value.saturating_sub(before) {
                self.moves.entry(key).or_default().push(CounterMove { from_ns, to_ns, by }, MOST_MOVES);
            }
        }
    }

    fn values(&self) -> Vec<((Counter, String), u64)> {
        let mut values = Vec::new();
        for group in &self.groups {
            if let Some(ns) = throttle::throttled_in(group).and_then(|t| u64::try_from(t.ns).ok()) {
                values.push(((Counter::QuotaThrottledNs, group.display().to_string()), ns));
            }
        }
        if let Ok(text) = fs::read_to_string(format!("/proc/{}/net/snmp", self.pid)) {
            let mut all = BTreeMap::new();
            parse_pairs(&text, &mut all);
            let named =
                [("Udp.RcvbufErrors", Counter::SocketBufferDrops), ("Ip.ReasmFails", Counter::ReassemblyFailures)];
            let value = |name| all.get(name).and_then(|n| u64::try_from(*n).ok());
            values.extend(named.into_iter().filter_map(|(name, c)| Some(((c, String::new()), value(name)?))));
        }
        values.extend(self.dropped_by_interfaces());
        if let Some(packets) = fs::read_to_string("/proc/net/softnet_stat").ok().and_then(|text| backlog_drops(&text)) {
            values.push(((Counter::BacklogDrops, String::new()), packets));
        }
        // Time on a CPU, time in which the thread was ready and had none (ns), number of runs.
        let delay = |tid: &i32| {
            let text = fs::read_to_string(format!("/proc/{}/task/{tid}/schedstat", self.pid)).ok()?;
            Some(((Counter::RunDelayNs, format!("thread {tid}")), text.split(' ').nth(1)?.parse().ok()?))
        };
        values.extend(self.threads.iter().filter_map(delay));
        if !self.cpus.0.is_empty() {
            let stolen = steal::stolen().into_iter().filter(|(cpu, _)| self.cpus.0.contains(cpu));
            values.extend(stolen.map(|(cpu, ns)| ((Counter::StealNs, CounterSeries::of_cpu(cpu)), ns)));
        }
        values
    }

    /// Packets that the interfaces of the process's network namespace dropped. The file is read without the kernel's lock of
    /// network settings (RTNL), which a starved thread can hold for long.
    fn dropped_by_interfaces(&self) -> Vec<((Counter, String), u64)> {
        let text = fs::read_to_string(format!("/proc/{}/net/dev", self.pid)).unwrap_or_default();
        let of = |i: InterfaceCounters| {
            let sent = ((Counter::InterfaceSendDrops, i.name.clone()), i.tx_dropped);
            [((Counter::InterfaceReceiveDrops, i.name), i.rx_dropped), sent]
        };
        parse_dev(&text).into_iter().flat_map(of).collect()
    }

    /// Adds to a set the kinds of counters that increased between two readings around a time span (begin and end, monotonic ns), but for
    /// run delays, which increase nearly always.
    pub fn add_moved(&self, (begin_ns, end_ns): (i64, i64), moved: &mut CounterSet) {
        for ((counter, _), moves) in self.moves.iter().filter(|((counter, _), _)| *counter != Counter::RunDelayNs) {
            let after = moves.kept.partition_point(|m| m.to_ns < begin_ns);
            if moves.kept.get(after).is_some_and(|m| m.from_ns <= end_ns) {
                moved.add(*counter);
            }
        }
    }

    /// The increases of all counters that increased, in the order of time. Run delays increase nearly always: only those
    /// within the time spans `windows` are given.
    pub fn series(&self, windows: &[(i64, i64)]) -> Vec<CounterSeries> {
        let within = |m: &&CounterMove| windows.iter().any(|(begin, end)| m.from_ns <= *end && *begin <= m.to_ns);
        let one = |((counter, of), moves): (&(Counter, String), &Moves)| CounterSeries {
            counter: *counter,
            of: of.clone(),
            moves: moves.kept.iter().filter(|m| *counter != Counter::RunDelayNs || within(m)).copied().collect(),
            longest_step_ns: self.longest_step_ns,
            complete_from_ns: moves.complete_from_ns,
        };
        self.moves.iter().map(one).collect()
    }
}

/// Packets that the CPUs of the host dropped because their backlogs were full: the second column of each CPU, in
/// hexadecimal digits.
fn backlog_drops(softnet_stat: &str) -> Option<u64> {
    let of_cpu = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    softnet_stat.lines().map(of_cpu).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::sync::{Barrier, mpsc};

    /// Test: datagrams that overflow a receive buffer are counted between the two readings around them.
    #[test]
    fn datagrams_dropped_at_a_full_buffer_are_counted() {
        let mut watch = CounterWatch::begin(std::process::id() as i32, &[], &CpuList::default());
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let begin_ns = crate::monotonic_ns();
        // No receive buffer holds 64 MiB.
        for _ in 0..2_048 {
            sender.send_to(&[0; 32_768], receiver.local_addr().unwrap()).unwrap();
        }
        let end_ns = crate::monotonic_ns();
        watch.read();
        let series = watch.series(&[]);
        let dropped = series.iter().find(|s| s.counter == Counter::SocketBufferDrops).expect("drops were counted");
        let covers = |m: &&CounterMove| m.from_ns <= begin_ns && end_ns <= m.to_ns && m.by >= 1;
        assert!(dropped.moves.iter().any(|m| covers(&m)), "{dropped:?}");
        assert!(dropped.longest_step_ns >= end_ns - begin_ns);
        let moved = |span| {
            let mut moved = CounterSet::default();
            watch.add_moved(span, &mut moved);
            moved.has(Counter::SocketBufferDrops)
        };
        let (earlier, later) = ((begin_ns - 2_000_000_000, begin_ns - 1_000_000_000), (i64::MAX - 1, i64::MAX));
        assert_eq!([(begin_ns, end_ns), earlier, later].map(moved), [true, false, false]);
    }

    #[test]
    fn the_drops_of_all_cpus_are_added_up() {
        let two = "000c3eb9 0000000a 00000000\n000c1479 00000011 00000000\n";
        assert_eq!([two, "000c3eb9\n"].map(backlog_drops), [Some(27), None]);
        assert!(backlog_drops(&fs::read_to_string("/proc/net/softnet_stat").unwrap()).is_some());
    }

    #[test]
    fn the_interfaces_of_a_process_have_counters_of_drops() {
        let watch = CounterWatch::begin(std::process::id() as i32, &[], &CpuList::default());
        let read: Vec<(Counter, String)> = watch.dropped_by_interfaces().into_iter().map(|(key, _)| key).collect();
        for counter in [Counter::InterfaceReceiveDrops, Counter::InterfaceSendDrops] {
            assert!(read.contains(&(counter, "lo".to_owned())), "{read:?}");
        }
    }

    #[test]
    fn what_is_left_out_of_a_long_trial_is_stated() {
        let mut moves = Moves::default();
        (0..4).for_each(|n| moves.push(CounterMove { from_ns: n * 50, to_ns: n * 50 + 51, by: 1 }, 4));
        assert_eq!((moves.kept.len(), moves.complete_from_ns), (4, None));
        moves.push(CounterMove { from_ns: 200, to_ns: 251, by: 1 }, 4);
        let begins: Vec<i64> = moves.kept.iter().map(|m| m.from_ns).collect();
        assert_eq!((begins, moves.complete_from_ns), (vec![100, 150, 200], Some(101)));
    }

    /// Test: two threads share a CPU, so that at least half of the time of both together is a wait of one of them.
    #[test]
    fn the_wait_of_a_thread_for_its_cpu_is_counted_in_its_time() {
        const BUSY_NS: i64 = 200_000_000;
        let cpus = CpuList::one(*crate::allowed_cpus().last().expect("a CPU"));
        let (send, receive) = mpsc::channel();
        let (start, busy_no_longer, read) = (Barrier::new(3), Barrier::new(3), Barrier::new(3));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    crate::scheduling::set_affinity(0, &cpus).unwrap();
                    send.send(nix::unistd::gettid().as_raw()).unwrap();
                    start.wait();
                    let until = crate::monotonic_ns() + BUSY_NS;
                    while crate::monotonic_ns() < until {}
                    busy_no_longer.wait();
                    // The counter of a thread that has ended cannot be read.
                    read.wait();
                });
            }
            let threads: Vec<i32> = receive.iter().take(2).collect();
            let mut watch = CounterWatch::begin(std::process::id() as i32, &threads, &CpuList::default());
            let begin_ns = crate::monotonic_ns();
            start.wait();
            busy_no_longer.wait();
            watch.read();
            read.wait();
            let waited = |windows: &[(i64, i64)]| -> u64 {
                let series = watch.series(windows);
                let delays = series.iter().filter(|s| s.counter == Counter::RunDelayNs);
                delays.flat_map(|s| &s.moves).map(|m| m.by).sum()
            };
            let (of_both, earlier) = (waited(&[(begin_ns, begin_ns + BUSY_NS)]), waited(&[(0, 1)]));
            assert!(of_both as i64 >= BUSY_NS / 2, "{of_both} ns");
            assert_eq!(earlier, 0);
        });
    }
}
