//! Tests of the single-threaded executor: one thread does all work of every end that the executor serves.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tailbound_driver::{Driver, Kind, Kv, ReceiveMode, Session, Silent};
use tailbound_model::{EchoCell, OnOverrun, SenderCell};
use tailbound_run::hot::*;

const SLOTS: usize = 200;

/// For each processed message or slot: the name of the end, and the id of the thread that processed it.
type Seen = Arc<Mutex<Vec<(&'static str, i32)>>>;

fn thread() -> i32 {
    // SAFETY: no argument, cannot fail.
    unsafe { libc::gettid() }
}

/// An end of a test that records which thread processes its messages.
struct Watched<S> {
    end: S,
    seen: Seen,
    name: &'static str,
}

impl<S: Sink> Sink for Watched<S> {
    fn now(&self) -> i64 {
        self.end.now()
    }
    fn process(&self, arrival: &Arrival<'_>) {
        self.seen.lock().unwrap().push((self.name, thread()));
        self.end.process(arrival);
    }
}

/// Hook of the ping end that records which thread handles the timer.
struct Timer(Seen);

impl Hook for Timer {
    fn slot(&self, _: u64) {
        self.0.lock().unwrap().push(("timer", thread()));
    }
}

fn receiver<S: Sink>(end: S, name: &'static str, seen: &Seen) -> Receiver<Watched<S>> {
    let sink = Arc::new(Watched { end, seen: Arc::clone(seen), name });
    Receiver::new(sink)
}

#[test]
fn timer_and_both_readers_are_served_by_one_thread() {
    let driver = Driver::linked("null", tailbound_driver_null::table()).unwrap();
    let session: &'static Session = Box::leak(Box::new(Session::open(&driver, &Kv::new(), Arc::new(Silent)).unwrap()));
    let create = |kind, topic| Port::new(session, session.create(kind, topic, 64, &Kv::new(), 0).unwrap());
    let reader = Kind::Reader(ReceiveMode::Block);
    let seen = Seen::default();
    let echo: &'static [EchoCell] = Vec::leak((0..SLOTS).map(|_| EchoCell::default()).collect());
    let writer = create(Kind::Writer, "tailbound_pong_t");
    let pong = Pong { clock: Machine, writer, cells: Ring::whole(echo), header: Box::leak(Box::default()) };
    let cells: &'static [SenderCell] = Vec::leak((0..SLOTS).map(|_| SenderCell::default()).collect());
    let ping = Ping::new(
        Machine,
        Timer(Arc::clone(&seen)),
        create(Kind::Writer, "tailbound_ping_t"),
        Ring::whole(cells),
        Box::leak(Box::default()),
        vec![0; 64].into(),
        Pace::Open { period_ns: 100_000, on_overrun: OnOverrun::CatchUp, loops: None },
        (SLOTS as u64, 0),
        100_000_000,
    );
    let (ping, pong) = (receiver(ping, "ping", &seen), receiver(pong, "pong", &seen));
    let readers = [create(reader, "tailbound_pong_t"), create(reader, "tailbound_ping_t")];
    let mut executor = Executor::new(Machine, vec![(readers[0], &ping), (readers[1], &pong)]);
    ping.sink.end.run_with(Machine.now() + 1_000_000, &mut || {}, &mut executor);

    let seen = seen.lock().unwrap();
    for who in ["timer", "pong", "ping"] {
        assert_eq!(seen.iter().filter(|(name, _)| *name == who).count(), SLOTS, "{who}");
    }
    assert_eq!(seen.iter().map(|(_, tid)| *tid).collect::<BTreeSet<_>>(), BTreeSet::from([thread()]));
}
