//! Tests of `tailbound watch` behind a relay that delays and drops known packets on their way between two network namespaces.

use crate::support::host::cannot;
use crate::support::{Bench, fastdds};
use crate::watch::{SENT, in_namespace, watched, writers};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tailbound_model::NO_TIME;

/// The relay, a program in Python.
const RELAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/relay.py");

/// Slots and warm-up are [`SENT`] messages; the first of them have the same numbers as their samples.
fn study(driver: &str, qos: &str, payload: &str) -> String {
    format!(
        "study: relay\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 300, warm_up: 20, timeout: 2 s, receive: listener }} }}\n\
         rate: 50 Hz\ndriver: {driver}\npayload: {payload}\nqos: {{ {qos} }}\n\
         path: {{ existing: {{ ping: {{ interface: eth0 }}, pong: {{ interface: eth0 }} }} }}\n\
         ends:\n  ping: {{ place: {{ existing-netns: a }} }}\n  pong: {{ place: {{ existing-netns: b }} }}\n"
    )
}

/// Runs the study with the relay between its ends, and watches in the namespace of the pong. The namespaces end with the script, and no
/// other program sees their names.
fn relayed(bench: &Bench, study: &str) -> Value {
    bench.study(study);
    let script = "mkdir -p /run/netns; mount -t tmpfs none /run/netns; \
        for end in a b; do ip netns add $end; ip -n $end link set lo up; \
          ip link add to_$end type veth peer name eth0 netns $end; ip link set to_$end up; ip -n $end link set eth0 up; done; \
        ip -n a addr add 10.77.0.1/24 dev eth0; ip -n b addr add 10.77.0.2/24 dev eth0; \
        python3 $RELAY to_a to_b relayed.txt 3 >relay.out 2>relay.err & R=$!; trap 'kill $R' EXIT; until grep -q relaying relay.out; do kill -0 $R; sleep 0.05; done; \
        watching --netns b --samples samples.csv; \"$T\" run study.yaml --out record >/dev/null; stop";
    watched(bench, &in_namespace(bench, &script.replace("$RELAY", RELAY)))
}

/// What the relay did with one packet.
#[derive(Debug, Clone, Copy)]
struct Relayed {
    number: i64,
    part: i64,
    is_dropped: bool,
    before_ns: i64,
}

fn relay_log(bench: &Bench) -> Vec<Relayed> {
    let text = std::fs::read_to_string(bench.path("relayed.txt")).unwrap();
    let line = |line: &str| {
        let cells: Vec<i64> = line.split(' ').map(|cell| cell.parse().unwrap()).collect();
        Relayed { number: cells[0], part: cells[1], is_dropped: cells[2] == 1, before_ns: cells[3] }
    };
    text.lines().map(line).collect()
}

/// The writer of the ping.
fn of_ping(found: &Value) -> &Value {
    let all = writers(found);
    let ping = all.iter().find(|(topic, _)| topic["topic"].as_str().unwrap().contains("ping"));
    ping.unwrap_or_else(|| panic!("{found:#}")).1
}

/// Rows of the file of samples for this writer: number, source timestamp and time of capture.
fn samples_of(bench: &Bench, writer: &Value) -> Vec<[i64; 3]> {
    let text = std::fs::read_to_string(bench.path("samples.csv")).unwrap();
    let start = format!("{},", writer["guid"].as_str().unwrap());
    let row = |line: &str| line.split(',').map(|cell| cell.parse().unwrap()).collect::<Vec<i64>>().try_into().unwrap();
    text.lines().filter_map(|line| line.strip_prefix(&start)).map(row).collect()
}

/// Test: of each sample that the relay delayed, the time on the wire behind the relay lies after the relay began to forward it, and before
/// the receiver had it; the lateness that is shown contains the delay. Dropped samples are repetitions without a first transmission.
fn delays_of_a_relay_are_recovered(driver: &str) {
    let bench = Bench::new();
    let offset = || tailbound_host::realtime_ns() - tailbound_host::monotonic_ns();
    let before_ns = offset();
    let found = relayed(&bench, &study(driver, "reliability: reliable, history: keep-all", "1000 B"));
    // The clocks drift while the test runs, and two readings are not at one instant.
    let width_ns = (offset() - before_ns).abs() + 20_000;
    let writer = of_ping(&found);
    let log = relay_log(&bench);
    let dropped: BTreeSet<i64> = log.iter().filter(|r| r.is_dropped).map(|r| r.number).collect();
    let mut passed: BTreeMap<i64, Relayed> = BTreeMap::new();
    for relayed in log.iter().filter(|r| !r.is_dropped) {
        passed.entry(relayed.number).or_insert(*relayed);
    }
    assert_eq!(dropped.len() as u64, SENT / 10, "{dropped:?}");
    let protocol = |what: &str| writer["protocol"][what].as_u64().unwrap();
    assert_eq!(writer["samples"], SENT - SENT / 10, "{writer:#}");
    // Fast DDS sends several repetitions in one packet; those behind the copied bytes are numbers that were not seen.
    assert_eq!(
        (protocol("first_not_seen") + protocol("numbers_not_seen"), protocol("lost")),
        (SENT / 10, 0),
        "{writer:#}"
    );
    let behind = found["unread"]["behind_copied"].as_u64().unwrap();
    assert!(
        protocol("first_not_seen") > 0 && (protocol("numbers_not_seen") == 0 || behind > 0),
        "{behind}: {writer:#}"
    );
    let mut received = Vec::new();
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    record.slots(0, &mut |batch| received.extend(batch.echo_in_ns.iter().copied())).unwrap();
    let rows = samples_of(&bench, writer);
    assert_eq!(rows.len() as u64, SENT - SENT / 10);
    let mut late_ns = Vec::new();
    for [number, source_ns, captured_ns] in rows {
        assert!(!dropped.contains(&number), "{number} was dropped, and its repetition is no first transmission");
        let (forwarded_ns, received_ns) = (passed[&number].before_ns, received[number as usize - 1]);
        assert!(
            captured_ns >= forwarded_ns - width_ns,
            "sample {number}: captured at {captured_ns}, forwarded at {forwarded_ns}"
        );
        assert_ne!(received_ns, NO_TIME, "sample {number}");
        let received_ns = received_ns + before_ns + width_ns;
        assert!(captured_ns <= received_ns, "sample {number}: captured at {captured_ns}, received at {received_ns}");
        let planted_ns = number * 37 % 13 * 1_000_000;
        assert!(
            captured_ns - source_ns >= planted_ns,
            "sample {number}: {planted_ns} planted, {}",
            captured_ns - source_ns
        );
        late_ns.push(captured_ns - source_ns);
    }
    // The report shows these times: the writer is in another namespace, which can be another host, so that they are above the fastest.
    late_ns.sort_unstable();
    let (late, least_ns) =
        (&writer["lateness"], if writer["lateness"]["is_above_fastest"] == true { late_ns[0] } else { 0 });
    let shown = |what: &str| late["range"][what].as_i64().unwrap();
    assert_eq!(
        (shown("min_ns"), shown("max_ns")),
        (late_ns[0] - least_ns, late_ns.last().unwrap() - least_ns),
        "{writer:#}"
    );
    let half_ns = late_ns[late_ns.len().div_ceil(2) - 1];
    // Buckets are up to 0.8 % wide.
    assert!((shown("p50_ns") - (half_ns - least_ns)).abs() <= half_ns / 100, "{half_ns} - {least_ns}: {writer:#}");
    println!("{width_ns} ns wide; {late:#}");
}

#[test]
fn delays_of_a_relay_are_recovered_with_cyclonedds() {
    if !cannot() {
        delays_of_a_relay_are_recovered("cyclonedds");
    }
}

#[test]
fn delays_of_a_relay_are_recovered_with_fastdds() {
    if !cannot() && fastdds::built().is_some() {
        delays_of_a_relay_are_recovered("{ fastdds: { transport: udp } }");
    }
}

/// Test: without repetitions, each dropped sample is a gap between numbers, and is not called lost.
#[test]
fn dropped_samples_without_repetitions_are_gaps() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let found = relayed(&bench, &study("cyclonedds", "reliability: best-effort", "1000 B"));
    let (writer, log) = (of_ping(&found), relay_log(&bench));
    let dropped = log.iter().filter(|r| r.is_dropped).count() as u64;
    assert_eq!(dropped, SENT / 10, "{log:?}");
    let protocol = |what: &str| writer["protocol"][what].as_u64().unwrap();
    let seen = writer["samples"].as_u64().unwrap();
    // Of the last number no gap is known: nothing came after it.
    assert_eq!((seen, protocol("numbers_not_seen"), protocol("lost")), (SENT - dropped, dropped, 0), "{writer:#}");
}

/// Test: of samples in fragments, one to a packet, the relay drops the first transmission of some fragments; they are sent again.
#[test]
fn dropped_fragments_are_counted() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let small = "<CycloneDDS><Domain Id='any'><General><MaxMessageSize>1400B</MaxMessageSize><FragmentSize>1200B</FragmentSize></General>\
        </Domain></CycloneDDS>";
    std::fs::write(bench.path("small.xml"), small).unwrap();
    let found = relayed(
        &bench,
        &study("{ cyclonedds: { config: small.xml } }", "reliability: reliable, history: keep-all", "5000 B"),
    );
    let (writer, log) = (of_ping(&found), relay_log(&bench));
    let dropped: Vec<&Relayed> = log.iter().filter(|r| r.is_dropped).collect();
    // Four of the five fragments of a sample are long enough to be dropped.
    let (samples, fragments) = (SENT / 10, 4 * SENT / 10);
    assert!(dropped.len() as u64 == fragments && dropped.iter().all(|r| r.part > 0), "{dropped:?}");
    let protocol = |what: &str| writer["protocol"][what].as_u64().unwrap();
    // What passed the relay after the first transmission of the same fragment, which passed or was dropped.
    let mut seen = BTreeSet::new();
    let again = log.iter().filter(|r| !seen.insert((r.number, r.part)) && !r.is_dropped).count() as u64;
    assert_eq!((protocol("fragments"), protocol("again")), (5 * SENT - fragments, again), "{writer:#}");
    // A sample whose first transmission is not whole has no lateness.
    let late = writer["lateness"]["range"]["count"].as_u64().unwrap();
    assert_eq!((protocol("unfinished"), late, protocol("lost")), (samples, SENT - samples, 0), "{writer:#}");
}
