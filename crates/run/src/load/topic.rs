//! A second topic through the measured driver: a writer at one place, a reader at the other.
//!
//! In a process of its own, or on a thread of the measuring process with the end's session (`measure/beside.rs`).

use super::{Did, Half, is_over};
use crate::measure::DriverSource;
use crate::measure::{open_options, policies};
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
use tailbound_wire::{Order, Role};

/// It looks this often whether it is over.
const TURN_NS: i64 = 50_000_000;
/// What a sender says once it has met its receiver.
const MET: u8 = b'm';

/// What is counted while it runs.
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
    /// CPU time of the thread that counted.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Relaxed)
    }

    /// The calling thread ends: keeps its CPU time.
    pub fn note_cpu(&self) {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock exists on Linux, and the place is ours; on error it stays zero.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        self.cpu_ns.store(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Relaxed);
    }

    pub fn did(&self, topic: &TopicLoad, part: LoadPart) -> Did {
        let messages = self.messages.load(Relaxed);
        let sends = part == LoadPart::Sends;
        let span = self.next.load(Relaxed) - self.first.load(Relaxed).min(self.next.load(Relaxed));
        Did {
            octets: Some(messages * topic.payload.0),
            messages: Some(messages),
            late: sends.then(|| self.late.load(Relaxed)),
            refused: sends.then(|| self.refused.load(Relaxed)),
            missing: (!sends).then(|| span.saturating_sub(messages)),
            ..Did::default()
        }
    }
}

/// The topic of a load.
pub(crate) fn create(
    session: &Session,
    order: &Order,
    (index, role): (usize, Role),
    part: LoadPart,
) -> Result<Endpoint, String> {
    let LoadKind::Topic(topic) = &order.spec.loads[index].run else { return Err("the load is no topic".into()) };
    let sends = part == LoadPart::Sends;
    let kind = if sends { Kind::Writer } else { Kind::Reader(tailbound_driver::ReceiveMode::Block) };
    let name = format!("tailbound_load_{}_{}_{index}", order.run_id, order.trial);
    // A tag of its own: whoever opened the session is not called for it.
    session
        .create(kind, &name, topic.payload.0, &policies(order, role, sends), 1000 + index as u64)
        .map_err(|e| e.to_string())
}

/// Writes at the topic's rate from `begin_ns` on, until `over`.
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
    // What was refused has no number: the reader does not miss it.
    let (mut slot, mut number) = (0_i64, 0_u64);
    while !over() {
        let early = begin_ns + slot * period - monotonic_ns();
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
    }
}

/// Reads until `over`.
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
        // A driver that cannot take its views back will not lend more: the samples are missing then.
        let _ = session.release(ep, &mut views);
    }
}

/// Tells the supervisor that the halves have met; returns when it says so, or when all is over.
fn say_met_and_wait() -> io::Result<()> {
    let socket = io::stdin();
    nix::unistd::write(&socket, &[MET])?;
    while !is_over() {
        let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => return Ok(()),
            // The signal that ends it.
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// One half in a process of its own.
pub(super) fn run(half: &Half, drivers: DriverSource) -> Result<Did, String> {
    let (order, spec) = (&half.order, half.spec()?);
    let LoadKind::Topic(topic) = &spec.run else { return Err("the load is no topic".into()) };
    let driver = drivers(&order.spec.driver.name).map_err(|e| e.to_string())?;
    let options = open_options(order, half.end()?, &driver);
    let session = Session::open(&driver, &options, Arc::new(Silent)).map_err(|e| e.to_string())?;
    let ep = create(&session, order, (half.index, half.end()?.role), half.part)?;
    let counts = Counts::default();
    match half.part {
        LoadPart::Receives => read(&session, ep, &is_over, &counts),
        LoadPart::Sends => {
            let until = monotonic_ns() + order.match_timeout_ns;
            while !is_over() && session.wait_matched(ep, 1, (monotonic_ns() + TURN_NS).min(until)).is_err() {
                if monotonic_ns() >= until {
                    let why = session.query(ep, "unmatched").unwrap_or_default();
                    return Err(format!("its writer never met the reader: {why}"));
                }
            }
            if half.held {
                say_met_and_wait().map_err(|e| format!("the word to begin cannot be heard: {e}"))?;
            }
            write(&session, ep, topic, monotonic_ns(), &is_over, &counts);
        }
    }
    let did = counts.did(topic, half.part);
    // Fast DDS ends a process that has conditions attached by an assertion.
    let _ = session.destroy(ep);
    // The process ends next, and with it the session; a middleware that takes its time to close delays nothing.
    std::mem::forget(session);
    Ok(did)
}
