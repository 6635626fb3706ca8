//! Tests of the ring of slots at its limits: a full ring, late answers, foreign sequence numbers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tailbound_driver::{Driver, Kind, Kv, Session, Silent};
use tailbound_model::{OnOverrun, SenderCell};
use tailbound_run::hot::*;

const CELLS: u64 = 64;

fn ping(pace: Pace, slots: u64) -> Ping<Machine> {
    ping_with(NoHook, pace, (slots, 0))
}

/// A ping whose sending thread is held up by `hook`.
fn ping_with<H: Hook>(hook: H, pace: Pace, slots: (u64, u64)) -> Ping<Machine, H> {
    let driver = Driver::linked("null", tailbound_driver_null::table()).unwrap();
    let session = Session::open(&driver, &Kv::new(), Arc::new(Silent)).unwrap();
    let session: &'static Session = Box::leak(Box::new(session));
    let writer = session.create(Kind::Writer, "tailbound_ring", 8, &Kv::new(), 0).unwrap();
    let cells: Vec<SenderCell> = (0..CELLS).map(|_| SenderCell::default()).collect();
    let writer = Port::new(session, writer);
    let header: &'static Header = Box::leak(Box::default());
    Ping::new(Machine, hook, writer, Ring::wrapped(cells.leak()), header, vec![0; 8].into(), pace, slots, 1_000_000)
}

fn answer(ping: &Ping<Machine>, seq: u64) {
    ping.process(&Arrival { seq, kernel_rx_ns: 0, received_ns: Machine.now(), thread: 1, payload: &[0; 8] });
}

#[test]
fn a_full_ring_ends_the_trial_and_counts_what_was_not_sent() {
    let pace = Pace::Open { period_ns: 1, on_overrun: OnOverrun::CatchUp, loops: None };
    let ping = ping(pace, 3 * CELLS);
    assert_eq!(ping.run(Machine.now(), &mut || {}), CELLS);
    assert_eq!(ping.header.dropped.load(Relaxed), 2 * CELLS);
    assert_eq!(ping.header.drained.stored.load(Relaxed), 0);
}

#[test]
fn a_full_ring_ends_stop_and_wait() {
    let ping = ping(Pace::StopAndWait { duration_ns: Some(60_000_000_000) }, u64::MAX >> 16);
    // No end answers: each slot is lost after the timeout of a millisecond.
    assert_eq!(ping.run(Machine.now(), &mut || {}), CELLS);
    assert_eq!(ping.header.dropped.load(Relaxed), 1);
    assert!(!ping.ran_out_of_memory());
}

#[test]
fn room_comes_back_with_what_is_stored() {
    let pace = Pace::Open { period_ns: 1, on_overrun: OnOverrun::CatchUp, loops: None };
    let ping = ping(pace, 3 * CELLS);
    ping.header.drained.stored.store(CELLS, Relaxed);
    assert_eq!(ping.run(Machine.now(), &mut || {}), 2 * CELLS);
    assert_eq!(ping.header.dropped.load(Relaxed), CELLS);
}

#[test]
fn answers_to_stored_slots_are_counted_and_change_nothing() {
    let ping = ping(Pace::Open { period_ns: 1, on_overrun: OnOverrun::CatchUp, loops: None }, 3 * CELLS);
    (0..CELLS).for_each(|slot| ping.cells.get(slot).unwrap().send_begin_ns.store(1, Relaxed));
    ping.header.drained.claimed.store(10, Relaxed);
    ping.header.drained.stored.store(8, Relaxed);
    let receive = |slot| ping.cells.get(slot).unwrap().receive_ns.load(Relaxed);
    // Slot 9 is claimed; slot 7 + CELLS lies in a cell that is free again; slot 8 + CELLS has none yet.
    answer(&ping, 9);
    assert_eq!((ping.header.late.load(Relaxed), receive(9)), (1, 0));
    answer(&ping, 7 + CELLS);
    assert_ne!(receive(7 + CELLS), 0);
    answer(&ping, 8 + CELLS);
    answer(&ping, 3 * CELLS);
    assert_eq!(ping.foreign(), 2);
    assert_eq!(ping.header.raced.load(Relaxed), 0);
}

/// Test: a received sample does not count as the answer to a slot that was not sent yet.
#[test]
fn a_stranger_is_no_answer() {
    let ping = ping(Pace::Open { period_ns: 1, on_overrun: OnOverrun::CatchUp, loops: None }, CELLS);
    ping.cells.get(3).unwrap().send_begin_ns.store(1, Relaxed);
    for seq in [4, CELLS, 1 << 48, (1 << 48) + 3, u64::MAX] {
        answer(&ping, seq);
    }
    assert_eq!(ping.foreign(), 5);
    assert!((0..CELLS).all(|slot| ping.cells.get(slot).unwrap().receive_ns.load(Relaxed) == 0));
    answer(&ping, 3);
    assert_eq!(ping.foreign(), 5);
    assert_ne!(ping.cells.get(3).unwrap().receive_ns.load(Relaxed), 0);
}

/// A hook that holds the sender up for this time in each slot of a range.
struct HeldUp(std::ops::RangeInclusive<u64>, Duration);

impl Hook for HeldUp {
    fn slot(&self, slot: u64) {
        if self.0.contains(&slot) {
            std::thread::sleep(self.1);
        }
    }
}

/// Test: a trial that counts loops has one slot more for each slot after the warm-up that its sender missed.
#[test]
fn a_trial_of_loops_ends_later_by_the_slots_that_were_missed() {
    const LOOPS: u64 = 20;
    const WARM_UP: u64 = 10;
    let pace = Pace::Open { period_ns: 1_000_000, on_overrun: OnOverrun::Skip, loops: Some(LOOPS) };
    for (held_up, is_longer) in [(15..=15, true), (3..=3, false)] {
        let hook = HeldUp(held_up, Duration::from_micros(6_500));
        let ping = ping_with(hook, pace, (WARM_UP + 4 * LOOPS, WARM_UP));
        ping.header.drained.stored.store(4 * LOOPS, Relaxed);
        let begun = ping.run(Machine.now(), &mut || {});
        let (code, not_sent) = ping.send_failures();
        assert_eq!((code, ping.missing_loops()), (0, None));
        // The machine itself may hold the sender up too.
        assert!(not_sent >= 5, "{not_sent}");
        let of_warm_up = if is_longer { 0..=not_sent - 5 } else { 5..=not_sent };
        let longer = begun - WARM_UP - LOOPS;
        assert!(of_warm_up.contains(&(not_sent - longer)), "{longer} of {not_sent} missed slots");
    }
}

#[test]
fn a_sender_that_misses_most_slots_ends_with_missing_loops() {
    let pace = Pace::Open { period_ns: 1_000_000, on_overrun: OnOverrun::Skip, loops: Some(10) };
    let ping = ping_with(HeldUp(0..=40, Duration::from_micros(7_500)), pace, (40, 0));
    assert_eq!(ping.run(Machine.now(), &mut || {}), 40);
    let sent = 40 - ping.send_failures().1;
    assert!(sent < 10 && ping.missing_loops() == Some(10 - sent), "{sent} sent, {:?} missing", ping.missing_loops());
}
