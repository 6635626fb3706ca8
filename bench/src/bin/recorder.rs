//! Measures the cost of recording a sample, without the cost of reading the clock.
//!
//! Both variants send over the driver `null` in real time, whose pong answers inside the sender's call; both read the
//! clock equally often. `product` uses the real ping and pong ends; `bare` only reads the clock and stores the value in
//! a register. The difference is the cost of the recorder: finding the row and writing the row, at both ends. The
//! variants run in turn (ABBA), and the results are medians over pairs.
//!
//! Usage: `recorder [SLOTS] [PAIRS]`

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tailbound_driver::{Driver, Kind, Kv, ReceiveMode, Session};
use tailbound_model::OnOverrun;
use tailbound_run::hot::*;

const PAYLOAD: usize = 64;

/// Two sessions of the driver `null`, each with a reader and a writer. The names of their topics contain `name`.
struct Wires {
    ping_writer: Port,
    pong_writer: Port,
    ping: &'static Session,
    pong: &'static Session,
    name: String,
}

fn wires<P: Sink, Q: Sink>(driver: &Driver, name: &str, ping: Arc<Door<P>>, pong: Arc<Door<Q>>) -> Wires {
    let open = |door| Session::open(driver, &Kv::new(), door);
    let ping: &'static Session = Box::leak(Box::new(open(ping).expect("a session")));
    let pong: &'static Session = Box::leak(Box::new(Session::open(driver, &Kv::new(), pong).expect("a session")));
    let writer = |session: &'static Session, topic: &str| {
        let ep = session.create(Kind::Writer, &format!("{topic}_{name}"), PAYLOAD as u64, &Kv::new(), 0);
        Port::new(session, ep.expect("a writer"))
    };
    Wires {
        ping_writer: writer(ping, "tailbound_ping"),
        pong_writer: writer(pong, "tailbound_pong"),
        ping,
        pong,
        name: name.to_owned(),
    }
}

impl Wires {
    fn read(&self) {
        let kind = Kind::Reader(ReceiveMode::Listener);
        let topic = |t: &str| format!("{t}_{}", self.name);
        self.pong.create(kind, &topic("tailbound_ping"), PAYLOAD as u64, &Kv::new(), 1).expect("a reader");
        self.ping.create(kind, &topic("tailbound_pong"), PAYLOAD as u64, &Kv::new(), 1).expect("a reader");
    }
}

/// A ping end for the measurement `bare`: it reads the clock as often as the real ping end, and stores nothing.
struct BarePing(AtomicI64);
impl Sink for BarePing {
    fn now(&self) -> i64 {
        Machine.now()
    }
    fn process(&self, arrival: &Arrival<'_>) {
        black_box((arrival.seq, Machine.now()));
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
    }
}
struct BarePong(Port);
impl Sink for BarePong {
    fn now(&self) -> i64 {
        Machine.now()
    }
    fn process(&self, arrival: &Arrival<'_>) {
        black_box(Machine.now());
        let _ = self.0.send(arrival.seq, arrival.payload);
        black_box(Machine.now());
    }
}

fn receiver<S: Sink>(sink: Arc<S>) -> Arc<Receiver<S>> {
    Arc::new(Receiver::new(sink))
}

/// Makes the sample memory as the product does: every page exists before the first sample.
fn memory(kind: MemoryKind, cells: usize) -> Memory {
    let file = Memory::create(kind, cells as u64).expect("sample memory");
    Memory::map(file, kind, false, true).expect("sample memory")
}

fn product(driver: &Driver, slots: usize, round: usize) -> f64 {
    let ping_door: Arc<Door<Ping<Machine>>> = Arc::default();
    let pong_door: Arc<Door<Pong<Machine>>> = Arc::default();
    let wires = wires(driver, &format!("p{round}"), ping_door.clone(), pong_door.clone());
    let (sent, echoed) = (memory(MemoryKind::Sender, slots), memory(MemoryKind::Echo, slots));
    let pong = Pong { clock: Machine, writer: wires.pong_writer, cells: echoed.echo(), header: echoed.header() };
    let cells = sent.sender();
    let ping = Arc::new(Ping::new(
        Machine,
        NoHook,
        wires.ping_writer,
        cells,
        sent.header(),
        vec![0; PAYLOAD].into(),
        // Every slot is already due, so the sender never sleeps.
        Pace::Open { period_ns: 1, on_overrun: OnOverrun::CatchUp, loops: None },
        (slots as u64, 0),
        1_000_000,
    ));
    pong_door.open(&receiver(Arc::new(pong)));
    ping_door.open(&receiver(ping.clone()));
    wires.read();
    let begin = Machine.now();
    ping.run(begin - slots as i64, &mut || {});
    let took = (Machine.now() - begin) as f64 / slots as f64;
    let answered = (0..slots as u64).filter(|n| cells.get(*n).is_some_and(|c| c.receive_ns.load(Relaxed) != 0)).count();
    assert_eq!(answered, slots, "a sample is missing");
    took
}

fn bare(driver: &Driver, slots: usize, round: usize) -> f64 {
    let (ping_door, pong_door): (Arc<Door<BarePing>>, Arc<Door<BarePong>>) = Default::default();
    let wires = wires(driver, &format!("b{round}"), ping_door.clone(), pong_door.clone());
    let ping = Arc::new(BarePing(AtomicI64::new(0)));
    pong_door.open(&receiver(Arc::new(BarePong(wires.pong_writer))));
    ping_door.open(&receiver(ping.clone()));
    wires.read();
    let payload = vec![0; PAYLOAD];
    let begin = Machine.now();
    for slot in 0..slots {
        black_box(Machine.now());
        let _ = wires.ping_writer.send(slot as u64, &payload);
        black_box(Machine.now());
    }
    let took = (Machine.now() - begin) as f64 / slots as f64;
    assert_eq!(ping.0.load(Relaxed), slots as i64, "an answer is missing");
    took
}

fn clock_read() -> f64 {
    let n = 1_000_000;
    let begin = Machine.now();
    for _ in 0..n {
        black_box(Machine.now());
    }
    (Machine.now() - begin) as f64 / f64::from(n)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("a number"));
    let (slots, pairs) = (args.next().unwrap_or(500_000), args.next().unwrap_or(11));
    let driver = Driver::linked("null", tailbound_driver_null::table()).expect("the null driver");
    let (mut with, mut without, mut difference) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (a, b) = if pair % 2 == 0 {
            let a = product(&driver, slots, pair);
            (a, bare(&driver, slots, pair))
        } else {
            let b = bare(&driver, slots, pair);
            (product(&driver, slots, pair), b)
        };
        with.push(a);
        without.push(b);
        // A round trip has two samples: a row of the sender and a row of the pong side.
        difference.push((a - b) / 2.0);
    }
    println!("clock read           {:6.1} ns", clock_read());
    println!("round trip with rows {:6.1} ns (median of {pairs}, {slots} slots each)", median(with));
    println!("round trip, no rows  {:6.1} ns", median(without));
    println!("recorder per sample  {:6.1} ns (goal: at most 25)", median(difference));
}
