//! Sends samples of many topics with Cyclone DDS over the loopback interface, for `bench/watch.py`: one session writes, another
//! one with a Cyclone domain of its own reads. Prints the numbers of sent and received samples, and the CPU time of this process.
//!
//! Usage: `many_topics DOMAIN TOPICS SAMPLES_PER_SECOND SECONDS`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tailbound_driver::{Callbacks, Driver, Endpoint, Hot, Kind, Kv, ReceiveMode, Session, View};

const PAYLOAD: [u8; 200] = [7; 200];
/// Samples that are sent one after the other, before the next sleep.
const BURST: u64 = 10;

/// Counts the samples that were received.
#[derive(Default)]
struct Count(AtomicU64);

impl Callbacks for Count {
    fn on_sample(&self, _: &Hot, _: u64, _: &View) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn session(driver: &Driver, domain: u64, count: &Arc<Count>) -> Session {
    let options = Kv::new().with("domain", domain.to_string()).with("address", "127.0.0.1").with("peers", "127.0.0.1");
    Session::open(driver, &options.with("multicast", "off"), count.clone()).expect("a session of Cyclone DDS")
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|number| number.parse().ok()).collect();
    let &[domain, topics, per_second, seconds] = &numbers[..] else {
        panic!("many_topics DOMAIN TOPICS SAMPLES_PER_SECOND SECONDS")
    };
    let driver = Driver::linked("cyclonedds", tailbound_driver_cyclonedds::table()).expect("the driver");
    let count = Arc::new(Count::default());
    let (writing, reading) = (session(&driver, domain, &count), session(&driver, domain, &count));
    let qos = Kv::new().with("reliability", "reliable").with("history", "keep-all");
    let made = |session: &Session, kind: Kind, topic: u64| -> Endpoint {
        session.create(kind, &format!("topic_{topic}"), PAYLOAD.len() as u64, &qos, 0).expect("an end point")
    };
    let _readers: Vec<Endpoint> =
        (0..topics).map(|topic| made(&reading, Kind::Reader(ReceiveMode::Listener), topic)).collect();
    let writers: Vec<Endpoint> = (0..topics).map(|topic| made(&writing, Kind::Writer, topic)).collect();
    let deadline_ns = tailbound_host::monotonic_ns() + 60_000_000_000;
    writers.iter().for_each(|writer| writing.wait_matched(*writer, 1, deadline_ns).expect("a reader"));
    let begin_ns = tailbound_host::monotonic_ns();
    for number in 0..per_second * seconds {
        if number % BURST == 0 {
            let due_ns = begin_ns + (number * 1_000_000_000 / per_second) as i64;
            let left_ns = due_ns - tailbound_host::monotonic_ns();
            std::thread::sleep(std::time::Duration::from_nanos(left_ns.max(0) as u64));
        }
        let writer = writers[(number % topics) as usize];
        writing.send(writer, number / topics, &PAYLOAD).expect("a sample is sent");
    }
    let took_ns = tailbound_host::monotonic_ns() - begin_ns;
    writers.iter().for_each(|writer| writing.wait_acked(*writer, deadline_ns).expect("all samples are acknowledged"));
    let (sent, received) = (per_second * seconds, count.0.load(Relaxed));
    println!("{sent} sent, {received} received, {took_ns} ns, {} ns of CPU time", tailbound_host::process_cpu_ns());
}
