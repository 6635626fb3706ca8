//! The load `topic`: a second topic through the measured driver, with a writer at one place and a reader at the other.
//!
//! The sender and the receiver of the load each run in their own process, or on a thread of the measuring process with
//! the session of the end (`measure/topic_loads.rs`).

use super::{Did, Half, broken, is_over};
use crate::end_plan::{DriverSource, EndPlan};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tailbound_driver::{Endpoint, Kind, Session, Silent, ViewBuf, Wait};
use tailbound_host::monotonic_ns;
use tailbound_model::*;
use tailbound_stats::SplitMix64;
use tailbound_wire::Order;

/// Time between two checks whether a `topic` load is over, ns.
const TURN_NS: i64 = 50_000_000;
/// Byte that the sending process of a load writes to the supervisor once it has found its receiver.
const MET: u8 = b'm';

/// Counters of a running load of kind `topic`.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    messages: AtomicU64,
    late: AtomicU64,
    refused: AtomicU64,
    first: AtomicU64,
    next: AtomicU64,
    cpu_ns: AtomicU64,
}

impl Counts {
    /// CPU time of the thread that ran the `topic` load, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Relaxed)
    }

    /// Records the CPU time of the calling thread, which is about to end.
    pub fn note_cpu(&self) {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock exists on Linux, and `time` is valid; on error `time` stays zero.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        self.cpu_ns.store(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Relaxed);
    }

    pub fn did(&self, topic: &TopicLoad, part: LoadPart) -> Did {
        let messages = self.messages.load(Relaxed);
        let sends = part == LoadPart::Sends;
        let span = self.next.load(Relaxed) - self.first.load(Relaxed).min(self.next.load(Relaxed));
        Did {
            bytes: Some(messages * topic.payload.0),
            messages: Some(messages),
            late: sends.then(|| self.late.load(Relaxed)),
            refused: sends.then(|| self.refused.load(Relaxed)),
            missing: (!sends).then(|| span.saturating_sub(messages)),
            ..Did::default()
        }
    }
}

/// Creates the writer or the reader of a topic load.
pub(crate) fn create(
    session: &Session,
    order: &Order,
    plan: &EndPlan,
    (index, part): (usize, LoadPart),
) -> Result<Endpoint, Problem> {
    let LoadKind::Topic(topic) = &order.spec.loads[index].run else {
        return Err(broken("the controller's order names a load that is not of kind `topic`"));
    };
    let kind = match part {
        LoadPart::Sends => Kind::Writer,
        LoadPart::Receives => Kind::Reader(tailbound_driver::ReceiveMode::Block),
    };
    let qos = plan.load_qos(topic, part == LoadPart::Sends);
    let name = format!("tailbound_load_{}_{}_{index}", order.run_id, order.trial);
    // No other end point has this tag, so an end that shares the session ignores the callbacks of the load.
    session.create(kind, &name, topic.payload.0, &qos, 1000 + index as u64).map_err(|e| broken(e.to_string()))
}

/// Sends messages of the load at the rate of its topic, from `begin_ns` on until `over` returns true.
pub(crate) fn write(
    session: &Session,
    ep: Endpoint,
    topic: &TopicLoad,
    begin_ns: i64,
    over: &dyn Fn() -> bool,
    counts: &Counts,
) {
    let payload = vec![0x5a; topic.payload.0 as usize];
    let period = topic.rate.period().map_or(0, |p| p.0);
    // A refused message has no number, so the reader does not count it as missing.
    let (mut slot, mut number) = (0_i64, 0_u64);
    let jitter = topic.jitter.map_or(0, |jitter| jitter.0.max(0) as u64);
    let mut random = SplitMix64(begin_ns as u64 ^ u64::from(ep.0).rotate_left(32));
    let mut later = 0;
    while !over() {
        let early = begin_ns + slot * period + later - monotonic_ns();
        if early > 0 {
            std::thread::sleep(Duration::from_nanos(early.min(TURN_NS) as u64));
            continue;
        }
        counts.late.fetch_add(u64::from(-early >= period), Relaxed);
        match session.send(ep, number, &payload) {
            Ok(()) => {
                counts.messages.fetch_add(1, Relaxed);
                number += 1;
            }
            Err(_) => drop(counts.refused.fetch_add(1, Relaxed)),
        }
        slot += 1;
        later = if jitter > 0 { (random.bits() % jitter) as i64 } else { 0 };
    }
}

/// Receives messages of a `topic` load until `over` returns true.
pub(crate) fn read(session: &Session, ep: Endpoint, over: &dyn Fn() -> bool, counts: &Counts) {
    let mut views = ViewBuf::new(8);
    while !over() {
        if !matches!(session.wait(&[ep], monotonic_ns() + TURN_NS), Ok(Wait::Ready(_))) {
            continue;
        }
        let Ok(1..) = session.take(ep, &mut views) else { continue };
        for view in views.iter() {
            if counts.messages.fetch_add(1, Relaxed) == 0 {
                counts.first.store(view.seq(), Relaxed);
            }
            counts.next.fetch_max(view.seq() + 1, Relaxed);
        }
        // If the driver cannot release its views, it gives no more samples, and they count as missing.
        let _ = session.release(ep, &mut views);
    }
}

/// Reports to the supervisor that the sender and the receiver of the load are matched. Returns when the supervisor has
/// answered, or when the load is over.
fn say_met_and_wait() -> io::Result<()> {
    let socket = io::stdin();
    nix::unistd::write(&socket, &[MET])?;
    while !is_over() {
        let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => return Ok(()),
            // The signal that ends the load has arrived.
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Runs the sender or the receiver of a `topic` load in a process of its own.
pub(super) fn run(half: &Half, drivers: DriverSource) -> Result<Did, Problem> {
    let (order, spec) = (&half.order, half.spec()?);
    let LoadKind::Topic(topic) = &spec.run else {
        return Err(broken("the controller's order names a load that is not of kind `topic`"));
    };
    let driver = drivers(&order.spec.driver.name)?;
    let plan = EndPlan::new(order, half.end()?, driver.description())?;
    let session = Session::open(&driver, &plan.options, Arc::new(Silent)).map_err(|e| broken(e.to_string()))?;
    let ep = create(&session, order, &plan, (half.index, half.part))?;
    let counts = Counts::default();
    match half.part {
        LoadPart::Receives => read(&session, ep, &is_over, &counts),
        LoadPart::Sends => {
            let until = monotonic_ns() + order.match_timeout_ns;
            while !is_over() && session.wait_matched(ep, 1, (monotonic_ns() + TURN_NS).min(until)).is_err() {
                if monotonic_ns() >= until {
                    let why = session.query(ep, "unmatched").unwrap_or_default();
                    return Err(broken(format!("the writer of the load found no reader: {why}")));
                }
            }
            if half.held {
                say_met_and_wait()
                    .map_err(|e| broken(format!("the start message of the supervisor cannot be received: {e}")))?;
            }
            write(&session, ep, topic, monotonic_ns(), &is_over, &counts);
        }
    }
    let did = counts.did(topic, half.part);
    // An assertion of Fast DDS ends a process that still has conditions attached.
    let _ = session.destroy(ep);
    // The process ends next, and with it the session: a middleware that is slow to close delays nothing.
    std::mem::forget(session);
    Ok(did)
}
