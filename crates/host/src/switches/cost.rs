//! Measures what the recording of events costs: the round trips of datagrams between two threads on the watched CPUs,
//! without the recording and with it in turn, because the clock rate of a CPU and other programs change with time. The CPUs
//! do not idle meanwhile.

use super::awake::{Awake, turn};
use super::loopback;
use super::ring::Ring;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};
use tailbound_model::{Attribution, CpuList, RecordedBy, RecordingCost};

/// Number of measurements without the recording, and as many with it.
const PAIRS: usize = 9;
/// Minimum number of pairs of measurements that gives a result.
const FEWEST_PAIRS: usize = 5;
/// Time after which no further pair is measured.
const LONGEST: Duration = Duration::from_millis(600);
/// Maximum number of round trips of one measurement.
const ROUND_TRIPS: usize = 200;
/// Minimum number of round trips of one measurement that gives a result.
const FEWEST: usize = 20;
/// Maximum time of one measurement.
const TIME: Duration = Duration::from_millis(10);
/// Size in bytes of the ring buffer for the page faults of one thread of the measurement.
const PAGES: usize = 32 << 10;
/// Time after which a measurement is given up, because a thread does not get its CPU.
const PATIENCE: Duration = Duration::from_millis(300);

/// The attribution level `packets` is cheap if its cost is at most the median round trip divided by this number.
const PART_OF_PACKETS: i64 = 5;
/// Another attribution level is cheap if its cost is at most the median round trip divided by this number.
const PART: i64 = 10;

/// Costs that this process has measured.
static KNOWN: Mutex<Vec<(RecordedBy, CpuList, RecordingCost)>> = Mutex::new(Vec::new());

/// Cost of following messages on `cpus`, with everything that the level `packets` records; the function `set` begins to
/// follow datagrams from these ports, or ends it if there are no ports, and returns whether it succeeded. `None` if the
/// cost cannot be measured here.
pub(super) fn of_packets(cpus: &CpuList, mut set: impl FnMut(&[u16]) -> bool) -> Option<RecordingCost> {
    if let Some(cost) = known(Attribution::Packets, RecordedBy::Bpf, cpus) {
        return Some(cost);
    }
    let loopback::Pair { sockets: (ours, theirs), ports } = loopback::pair().ok()?;
    let measure = || round_trips(cpus, false, Ok((ours.try_clone().ok()?, theirs.try_clone().ok()?)));
    let pair = || {
        let without = measure()?;
        let with = if set(&ports) { measure() } else { None };
        set(&[]);
        Some((without, with?))
    };
    measured(Attribution::Packets, RecordedBy::Bpf, cpus, pair)
}

/// The cost that this process has measured before.
pub(super) fn known(level: Attribution, by: RecordedBy, cpus: &CpuList) -> Option<RecordingCost> {
    let known = KNOWN.lock().ok()?;
    known.iter().find(|(b, c, cost)| *b == by && c == cpus && cost.level == level).map(|(_, _, cost)| *cost)
}

/// Durations of round trips without and with a recording, ns, each sorted.
type Measured = (Vec<i64>, Vec<i64>);

/// Measures a cost by pairs of measurements, while the CPUs do not idle and no other process measures.
fn measured(
    level: Attribution,
    by: RecordedBy,
    cpus: &CpuList,
    mut pair: impl FnMut() -> Option<Measured>,
) -> Option<RecordingCost> {
    let _turn = turn();
    let _awake = Awake::keep(cpus);
    let (mut pairs, begin) = (Vec::new(), Instant::now());
    // On a busy machine, a thread can be without its CPU for so long that a measurement has no result.
    while pairs.len() < PAIRS && begin.elapsed() < LONGEST {
        pairs.extend(pair());
    }
    if pairs.len() < FEWEST_PAIRS {
        return None;
    }
    let cost = cost(level, &pairs);
    KNOWN.lock().ok()?.push((by, cpus.clone(), cost));
    Some(cost)
}

/// Costs of recordings in this process.
pub(super) struct Costs;

impl Costs {
    /// Cost of a recording on `cpus`; the function `set` switches the recording on (true) and off, and returns whether
    /// it succeeded. `None` if the cost cannot be measured here.
    pub fn of(
        level: Attribution,
        by: RecordedBy,
        cpus: &CpuList,
        mut set: impl FnMut(bool) -> bool,
    ) -> Option<RecordingCost> {
        if let Some(cost) = known(level, by, cpus) {
            return Some(cost);
        }
        let pair = || {
            let without = round_trips(cpus, false, UnixDatagram::pair())?;
            // Perf events record the page faults of a thread at each of its context switches; BPF does not.
            let with = if set(true) { round_trips(cpus, by == RecordedBy::Perf, UnixDatagram::pair()) } else { None };
            set(false);
            Some((without, with?))
        };
        measured(level, by, cpus, pair)
    }
}

/// Whether a recording costs at most a tenth of a message, or at the level `packets` at most a fifth.
pub(super) fn is_cheap(cost: &RecordingCost) -> bool {
    let part = if cost.level == Attribution::Packets { PART_OF_PACKETS } else { PART };
    cost.per_message_ns.saturating_mul(part) <= cost.unwatched_ns
}

/// The cost that follows from pairs of round trips without and with the recording, each sorted: the median of the
/// differences.
fn cost(level: Attribution, pairs: &[Measured]) -> RecordingCost {
    let tenth = |sorted: &[i64]| sorted[sorted.len() / 10];
    let median = |mut all: Vec<i64>| {
        all.sort_unstable();
        all[all.len() / 2]
    };
    RecordingCost {
        level,
        per_message_ns: median(pairs.iter().map(|(without, with)| tenth(with) - tenth(without)).collect()),
        unwatched_ns: median(pairs.iter().flat_map(|(without, _)| without.iter().copied()).collect()),
    }
}

/// Two connected sockets.
type Sockets = (UnixDatagram, UnixDatagram);

/// Durations of round trips between a thread on the first and a thread on the last CPU of `cpus`, ns, sorted. `None` if
/// there are not enough of them. `faults`: whether page faults of both threads are recorded by perf events meanwhile.
fn round_trips(cpus: &CpuList, faults: bool, pair: io::Result<Sockets>) -> Option<Vec<i64>> {
    let pair = pair.ok()?;
    let (first, last) = (*cpus.0.first()?, *cpus.0.last()?);
    let (send, receive) = mpsc::channel();
    // The thread is not joined: without a CPU it would never end.
    std::thread::Builder::new()
        .name("cost".into())
        .spawn(move || send.send(exchange(first, last, faults, pair)))
        .ok()?;
    let mut sorted = receive.recv_timeout(PATIENCE).ok()?.ok()?;
    sorted.sort_unstable();
    (sorted.len() >= FEWEST).then_some(sorted)
}

/// Exchanges datagrams with a thread on the CPU `other`. Returns the durations of the round trips, ns. The sockets are
/// local ones, or in a network namespace of their own, because the packets of interfaces are counted while the ends wait
/// for the first message.
fn exchange(own: u32, other: u32, faults: bool, (ours, theirs): Sockets) -> io::Result<Vec<i64>> {
    let pin = |cpu| crate::scheduling::set_affinity(0, &CpuList::one(cpu)).map_err(io::Error::other);
    let record = move || faults.then(own_page_faults).flatten();
    ours.set_read_timeout(Some(TIME))?;
    theirs.set_read_timeout(Some(TIME))?;
    std::thread::Builder::new().name("cost".into()).spawn(move || -> io::Result<()> {
        pin(other)?;
        let _faults = record();
        let mut byte = [0];
        loop {
            // An empty datagram is the end, and so is silence.
            match theirs.recv(&mut byte)? {
                0 => return Ok(()),
                _ => theirs.send(&byte)?,
            };
        }
    })?;
    pin(own)?;
    let _faults = record();
    let (mut times, begin) = (Vec::with_capacity(ROUND_TRIPS), Instant::now());
    while times.len() < ROUND_TRIPS && begin.elapsed() < TIME {
        let sent = Instant::now();
        ours.send(&[1])?;
        ours.recv(&mut [0])?;
        times.push(sent.elapsed().as_nanos() as i64);
    }
    ours.send(&[])?;
    Ok(times)
}

/// Records the page faults of the calling thread until the value is dropped; `None` if that is not permitted.
fn own_page_faults() -> Option<Ring> {
    let mut ring = Ring::of_thread(nix::unistd::gettid().as_raw(), false, PAGES).ok()?;
    ring.enable().ok()?;
    Some(ring)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_the_median_difference_of_the_tenths() {
        let times = |first: i64| (first..first + 100).collect::<Vec<i64>>();
        let pairs = [1_500, 9_000, 1_500, -4_000, 1_500].map(|more| (times(20_000), times(20_000 + more)));
        let cost = cost(Attribution::Machine, &pairs);
        assert_eq!((cost.per_message_ns, cost.unwatched_ns), (1_500, 20_050));
        assert!(is_cheap(&cost));
        let more = RecordingCost { per_message_ns: 2_006, ..cost };
        let packets = RecordingCost { level: Attribution::Packets, ..more };
        assert!(!is_cheap(&more) && is_cheap(&packets));
        assert!(!is_cheap(&RecordingCost { per_message_ns: 4_011, ..packets }));
    }
}
