//! Tests of rings that one thread drains while the threads of an end write them. The ends are the ends of the program;
//! only their driver is a test driver, which records the messages that an end sends. `dev/miri` runs these tests too.
//!
//! Apart from the ring itself, only two things order the threads of a test: a message, as on a network, and the end of
//! a drain period, as after 100 ms in a trial.

use super::*;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::thread;
use tailbound_abi::{TB_EWOULDBLOCK, TB_OK, tb_driver, tb_host, tb_kv, tb_send};
use tailbound_driver::{Driver, Kind, Kv, Session, Silent};
use tailbound_model::{CELL_OUT_OF_ORDER, CELL_SEND_FAILED, CELL_SKIPPED, OnOverrun};

const CELLS: u64 = if cfg!(miri) { 4 } else { 64 };
const SLOTS: u64 = if cfg!(miri) { 14 } else { 20_000 };
/// Clock ticks after which a slot is final, so that its row may be drained.
const SETTLE: i64 = 10;
const TIMEOUT: i64 = 20;

/// A clock that advances by one with each reading, so that no two readings are equal. Reading it does not order memory
/// accesses of different threads.
#[derive(Clone, Copy)]
struct Ticks(&'static AtomicI64);

impl Clock for Ticks {
    const SCRIPTED: bool = false;
    fn now(&self) -> i64 {
        self.0.fetch_add(1, Relaxed) + 1
    }
    fn sleep_until(&self, deadline_ns: i64) {
        self.0.fetch_max(deadline_ns, Relaxed);
        thread::yield_now();
    }
    fn realtime(&self) -> i64 {
        self.now()
    }
}

/// The messages that the writer of a test sends, and the times of the send calls.
struct Wire {
    clock: Ticks,
    /// Sequence number plus one of each sent message, in the order in which the messages were sent; 0 = nothing sent
    /// yet.
    sent: Box<[AtomicU64]>,
    count: AtomicUsize,
    /// Monotonic time within the send call of each message, indexed by the sequence number.
    called_ns: Box<[AtomicI64]>,
    /// Number of the slot after the last slot for which the send call was made.
    next: AtomicU64,
    ended: AtomicBool,
}

/// True if the test driver refuses to send the message with this sequence number.
fn is_refused(seq: u64) -> bool {
    seq % 5 == 3
}

thread_local! {
    /// The sent messages ([`Wire`]) of the session that this thread opens next.
    static NEXT: Cell<*const Wire> = const { Cell::new(std::ptr::null()) };
}

unsafe extern "C" fn open(_: *const tb_kv, _: usize, _: *const tb_host, session: *mut *mut c_void) -> c_int {
    // SAFETY: by the rules of the ABI the place of the session is writable.
    unsafe { session.write(NEXT.get().cast_mut().cast()) };
    TB_OK
}

#[rustfmt::skip] // nine arguments of no use
unsafe extern "C" fn create(
    _: *mut c_void, _: c_int, _: c_int, _: *const c_char, _: u64, _: *const tb_kv, _: usize, _: u64, ep: *mut u32,
) -> c_int {
    // SAFETY: by the rules of the ABI the place of the end point is writable.
    unsafe { ep.write(1) };
    TB_OK
}

unsafe extern "C" fn send(session: *mut c_void, _: u32, seq: u64, _: *const u8, _: u64, _: *const tb_send) -> c_int {
    // SAFETY: `open` gave a wire that is never freed.
    let wire = unsafe { &*session.cast::<Wire>() };
    wire.called_ns[seq as usize].store(wire.clock.now(), Relaxed);
    wire.next.fetch_max(seq + 1, Relaxed);
    if is_refused(seq) {
        return TB_EWOULDBLOCK;
    }
    // With stop-and-wait two threads may send at the same time.
    // `Release`: a network orders what came before the call and what the receiver does.
    wire.sent[wire.count.fetch_add(1, Relaxed)].store(seq + 1, Release);
    TB_OK
}

fn writer(clock: Ticks) -> (Port, &'static Wire) {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        // SAFETY: the table of a linked driver lives as long as the program; a table is plain data.
        let table: tb_driver = unsafe { tailbound_driver_null::table().read() };
        let table = tb_driver { open: Some(open), create: Some(create), send: Some(send), ..table };
        Driver::linked("null", Box::leak(Box::new(table))).unwrap()
    });
    let wire = Box::leak(Box::new(Wire {
        clock,
        sent: (0..=SLOTS).map(|_| AtomicU64::new(0)).collect(),
        count: AtomicUsize::new(0),
        called_ns: (0..SLOTS).map(|_| AtomicI64::new(0)).collect(),
        next: AtomicU64::new(0),
        ended: AtomicBool::new(false),
    }));
    NEXT.set(wire);
    let session: &'static Session = Box::leak(Box::new(Session::open(driver, &Kv::new(), Arc::new(Silent)).unwrap()));
    (Port::new(session, session.create(Kind::Writer, "tailbound_ring", 8, &Kv::new(), 0).unwrap()), wire)
}

/// Drain periods of a test. When a period is over, the thread that takes answers knows which rows were claimed for
/// draining before the period, and has finished with the answers that it took before.
#[derive(Default)]
struct Periods {
    begun: AtomicU64,
    over: AtomicU64,
}

impl Periods {
    /// Ends the present period. The thread that takes answers calls this function between two answers.
    fn pass(&self) {
        self.over.store(self.begun.load(Acquire), Release);
    }

    /// Ends all periods, because the thread takes no more answers.
    fn end(&self) {
        self.over.store(u64::MAX, Release);
    }

    fn wait(&self) {
        let period = self.begun.load(Relaxed) + 1;
        self.begun.store(period, Release);
        while self.over.load(Acquire) < period {
            thread::yield_now();
        }
    }
}

/// Drains the ring as the supervisor does, until `ended`. Returns the bytes of the rows that were stored.
fn drain(memory: &Memory, clock: Ticks, ended: &AtomicBool, mut period: impl FnMut()) -> Vec<u8> {
    let (header, mut bytes, mut sent) = (memory.header(), Vec::new(), 0);
    loop {
        // Looked at first: the rest is stored when nothing changes any more.
        let last = ended.load(Acquire);
        let claimed = header.drained.claimed.load(Relaxed);
        if claimed > sent {
            bytes.extend(memory.bytes(sent, claimed));
            memory.release(sent, claimed);
            sent = claimed;
        }
        if last {
            bytes.extend(memory.bytes(sent, memory.rows()));
            return bytes;
        }
        header.drained.claimed.store(memory.settled(claimed, u64::MAX, clock.0.load(Relaxed) - SETTLE), Release);
        period();
        thread::yield_now();
    }
}

/// Splits bytes into rows and each row into numbers, in the order of the fields. The last number but one of
/// a sender's row contains the flags and the number of answers.
fn rows<const N: usize>(bytes: &[u8]) -> Vec<[i64; N]> {
    let number = |bytes: &[u8]| i64::from_ne_bytes(bytes.try_into().unwrap());
    let row = |row: &[u8]| std::array::from_fn(|i| number(&row[8 * i..8 * i + 8]));
    assert_eq!(bytes.len() % (8 * N), 0);
    bytes.chunks_exact(8 * N).map(row).collect()
}

/// Waits until the ring has room for a slot, so that the trial does not end early. The atomic loads here are relaxed,
/// because the hot loop must get the order of the cells from its own load of `stored`.
fn await_room(clock: Ticks, header: &Header, slot: u64, each_look: impl Fn()) {
    while slot < SLOTS && slot >= header.drained.stored.load(Relaxed) + CELLS {
        // Slots settle as time passes.
        clock.now();
        each_look();
        thread::yield_now();
    }
}

/// Rule for the sending thread between its slots: it waits for room in the ring before each slot.
struct Patient<'a> {
    ping: &'a Ping<Ticks>,
    wire: &'a Wire,
    /// Number of the next slot of an open loop. Skipped slots are counted too.
    slot: u64,
}

impl Between for Patient<'_> {
    const BUSY: bool = true;
    fn until(&mut self, _: i64, deadline_ns: i64) -> i64 {
        let clock = self.ping.clock;
        if let Pace::Open { .. } = self.ping.pace {
            await_room(clock, self.ping.header, self.slot, || ());
            self.slot += 1;
            clock.sleep_until(deadline_ns);
        } else {
            await_room(clock, self.ping.header, self.wire.next.load(Relaxed), || ());
            thread::yield_now();
        }
        clock.now()
    }
}

/// Rule for the sending thread between its slots: it does not wait for room in the ring.
struct Hasty(Ticks);

impl Between for Hasty {
    const BUSY: bool = true;
    fn until(&mut self, _: i64, _: i64) -> i64 {
        thread::yield_now();
        self.0.now()
    }
}

/// The kernel's time stamp of the answer to a slot.
fn kernel_rx(slot: u64) -> i64 {
    slot as i64 * 1_000 + 7
}

/// Answers messages until `wire` has ended: one answer to each slot, two answers to every fourth slot, and a late
/// answer, after the slot was claimed for draining, to every sixth slot. Returns the number of all answers, and the
/// number of answers that certainly came too late.
fn take_answers(ping: &Ping<Ticks>, wire: &Wire, periods: &Periods) -> (u64, u64) {
    let claimed = |slot: u64| slot < ping.header.drained.claimed.load(Relaxed);
    let (mut taken, mut given, mut late, mut held) = (0, 0, 0, Vec::new());
    let answer = |seq: u64| {
        if let Pace::StopAndWait { .. } = ping.pace {
            await_room(ping.clock, ping.header, wire.next.load(Relaxed), || periods.pass());
        }
        ping.process(&Arrival { seq, kernel_rx_ns: kernel_rx(seq), received_ns: 0, thread: 1, payload: &[0; 8] });
        periods.pass();
    };
    loop {
        // Looked at first: what was sent before the end is seen.
        let ended = wire.ended.load(Acquire);
        while let Some(seq) = wire.sent[taken].load(Acquire).checked_sub(1) {
            taken += 1;
            if seq % 6 == 2 {
                held.push(seq);
                continue;
            }
            for _ in 0..1 + u64::from(seq % 4 == 0) {
                answer(seq);
                given += 1;
            }
        }
        // Also without an answer the thread sees periods go by.
        periods.pass();
        held.retain(|seq| {
            let is_late = claimed(*seq);
            if is_late || ended {
                answer(*seq);
                given += 1;
                late += u64::from(is_late);
            }
            !is_late && !ended
        });
        if ended {
            periods.end();
            return (given, late);
        }
        thread::yield_now();
    }
}

/// Runs a trial whose ring is drained meanwhile, and checks each row. `run` is the sending thread. Returns the number
/// of rows.
fn trial(pace: Pace, run: impl FnOnce(&Ping<Ticks>, &Wire) -> u64) -> u64 {
    let clock = Ticks(Box::leak(Box::default()));
    let memory = Memory::leaked(MemoryKind::Sender, CELLS, true);
    let (port, wire) = writer(clock);
    let (header, cells) = (memory.header(), memory.sender());
    let ping = Ping::new(clock, NoHook, port, cells, header, [0; 8].into(), pace, (SLOTS, 0), TIMEOUT);
    let (periods, ended) = (Periods::default(), AtomicBool::new(false));
    let (scheduled, (given, late), bytes) = thread::scope(|scope| {
        let answers = scope.spawn(|| take_answers(&ping, wire, &periods));
        let drain = scope.spawn(|| drain(&memory, clock, &ended, || periods.wait()));
        let scheduled = run(&ping, wire);
        wire.ended.store(true, Release);
        let counted = answers.join().unwrap();
        // As the measuring process does when the sender has ended.
        header.rows.store(scheduled, Release);
        ended.store(true, Release);
        (scheduled, counted, drain.join().unwrap())
    });

    let rows = rows::<7>(&bytes);
    assert_eq!(rows.len() as u64, scheduled);
    let (mut seen, mut sent) = (0, 0);
    for (slot, [wake, begin, end, receive, kernel, last, thread]) in (0..).zip(&rows) {
        assert_eq!(*thread > 0, *receive > 0, "slot {slot}: an answer has the thread that received it");
        let last = last.to_ne_bytes();
        let flags = u32::from_ne_bytes(last[..4].try_into().unwrap()) & !CELL_OUT_OF_ORDER;
        let answers = u32::from_ne_bytes(last[4..].try_into().unwrap());
        if flags == CELL_SKIPPED {
            assert_eq!((wake, begin, end, receive, kernel, answers), (&0, &0, &0, &0, &0, 0), "slot {slot}");
            continue;
        }
        // No two readings of the clock are equal: a row of another slot, or half a row, cannot pass this.
        let called = wire.called_ns[slot].load(Relaxed);
        assert!(*wake < *begin && *begin < called && called < *end, "slot {slot}: {rows:?}");
        let slot = slot as u64;
        assert_eq!(flags, if is_refused(slot) { CELL_SEND_FAILED } else { 0 }, "slot {slot}");
        sent += u64::from(!is_refused(slot));
        let most = if is_refused(slot) { 0 } else { 1 + u32::from(slot.is_multiple_of(4) && slot % 6 != 2) };
        assert!(answers <= most, "slot {slot}: {answers} answers");
        if answers == 0 {
            assert_eq!((receive, kernel), (&0, &0), "slot {slot}");
        } else {
            assert!(receive > begin && *kernel == kernel_rx(slot), "slot {slot}: {rows:?}");
        }
        seen += u64::from(answers);
    }
    assert_eq!(sent, wire.count.load(Relaxed) as u64);
    assert_eq!(ping.foreign(), 0);
    // Each answer is in its row, or is counted as late.
    let counted = header.late.load(Relaxed);
    assert_eq!(seen + counted, given);
    assert!(counted >= late, "{counted} and {late}");
    scheduled
}

fn run_patient(ping: &Ping<Ticks>, wire: &Wire) -> u64 {
    ping.run_with(ping.clock.now(), &mut || {}, &mut Patient { ping, wire, slot: 0 })
}

fn run_hasty(ping: &Ping<Ticks>, _: &Wire) -> u64 {
    ping.run_with(ping.clock.now(), &mut || {}, &mut Hasty(ping.clock))
}

#[test]
fn each_slot_is_stored_once_and_complete() {
    let pace = Pace::Open { period_ns: 1, on_overrun: OnOverrun::CatchUp, loops: None };
    assert_eq!(trial(pace, run_patient), SLOTS);
}

#[test]
fn each_slot_is_stored_once_and_complete_if_slots_are_skipped() {
    let pace = Pace::Open { period_ns: 40, on_overrun: OnOverrun::Skip, loops: None };
    assert_eq!(trial(pace, run_patient), SLOTS);
}

#[test]
fn a_full_ring_ends_the_trial_and_no_row_is_written_over() {
    let pace = Pace::Open { period_ns: 1, on_overrun: OnOverrun::CatchUp, loops: None };
    assert!((CELLS..=SLOTS).contains(&trial(pace, run_hasty)));
}

#[test]
fn each_slot_of_stop_and_wait_is_stored_once_and_complete() {
    // Both threads may send: if one takes the room that the other has seen, the trial ends early.
    let rows = trial(Pace::StopAndWait { duration_ns: None }, run_patient);
    assert!((CELLS..=SLOTS).contains(&rows));
}

#[test]
fn each_echo_is_stored_once_and_complete() {
    let clock = Ticks(Box::leak(Box::default()));
    let memory = Memory::leaked(MemoryKind::Echo, CELLS, true);
    let pong = Pong { clock, writer: writer(clock).0, cells: memory.echo(), header: memory.header() };
    let (header, ended) = (memory.header(), AtomicBool::new(false));
    let bytes = thread::scope(|scope| {
        let drain = scope.spawn(|| drain(&memory, clock, &ended, || ()));
        for seq in 0..SLOTS {
            // Every second lap waits for room; the other laps lose what finds the ring full.
            while (seq / CELLS).is_multiple_of(2)
                && header.rows.load(Relaxed) >= header.drained.stored.load(Relaxed) + CELLS
            {
                thread::yield_now();
            }
            pong.process(&Arrival {
                seq,
                kernel_rx_ns: kernel_rx(seq),
                received_ns: clock.now(),
                thread: 1,
                payload: &[0; 8],
            });
        }
        ended.store(true, Release);
        drain.join().unwrap()
    });
    let rows = rows::<6>(&bytes);
    assert_eq!(rows.len() as u64 + header.dropped.load(Relaxed), SLOTS);
    let mut before = 0;
    for [number, received, begin, end, kernel, thread] in &rows {
        assert!(*number > before, "{rows:?}");
        before = *number;
        let seq = *number as u64 - 1;
        assert_eq!((*kernel, *thread), (kernel_rx(seq), 1));
        if is_refused(seq) {
            assert_eq!((begin, end), (&0, &0));
        } else {
            assert!(received < begin && begin < end, "{rows:?}");
        }
    }
    assert_eq!(header.refused.load(Relaxed), (0..SLOTS).filter(|seq| is_refused(*seq)).count() as u64);
}
