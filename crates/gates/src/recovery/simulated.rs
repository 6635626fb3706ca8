//! Truth tests: schedules are recovered from simulated messages that passed their gates.

use super::{NotRecovered, Probe, Recovered, Recovery, recover, used_send_times};
use tailbound_stats::{SplitMix64, share_interval};

/// Number of messages of a schedule.
const MESSAGES: usize = 4_000;

struct Random(SplitMix64);

impl Random {
    /// A number from 0 to 1.
    fn share(&mut self) -> f64 {
        (self.0.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number of an exponential distribution.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }

    /// A number whose logarithm is uniformly distributed.
    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }
}

/// The truth about a simulated gate: cycle, and when each window opens and closes after time 0 of the cycle, ns.
struct Truth {
    cycle_ns: f64,
    windows: Vec<(f64, f64)>,
    base_ns: f64,
}

impl Truth {
    /// A cycle of 1 to 100 ms with two or three windows. Each window, and each part between two, lasts for at least a twentieth
    /// of the cycle and at least 100 us.
    fn random(random: &mut Random) -> Truth {
        let cycle_ns = random.log_uniform(1e6, 1e8);
        let parts = if random.share() < 0.5 { 4 } else { 6 };
        let least_ns = (cycle_ns / 20.0).max(100_000.0);
        let lengths: Vec<f64> = (0..parts).map(|_| random.exponential(1.0)).collect();
        let scale = (cycle_ns - parts as f64 * least_ns) / lengths.iter().sum::<f64>();
        let mut at_ns = 0.0;
        let mut edges = Vec::new();
        for length in lengths {
            edges.push(at_ns);
            at_ns += least_ns + scale * length;
        }
        let windows = edges.chunks(2).map(|edge| (edge[0], edge[1])).collect();
        Truth { cycle_ns, windows, base_ns: random.share() * cycle_ns }
    }

    /// When a message passes that is ready at a time, ns.
    fn passes_ns(&self, ready_ns: f64) -> f64 {
        let cycle = ((ready_ns - self.base_ns) / self.cycle_ns).floor();
        let begin_ns = self.base_ns + cycle * self.cycle_ns;
        let next = self.windows.iter().map(|(open, close)| (begin_ns + open, begin_ns + close));
        let again_ns = begin_ns + self.cycle_ns + self.windows[0].0;
        next.into_iter().find(|(_, close)| ready_ns <= *close).map_or(again_ns, |(open, _)| ready_ns.max(open))
    }
}

/// How the send times of messages follow each other.
enum Pace {
    /// At a fixed period, later by an exponentially distributed time of 60 us.
    Period(f64),
    /// At random times with this mean distance.
    Random(f64),
}

/// The times of messages through a gate: the shortest way is 30 us; other delays are exponentially distributed with a mean of 50 us,
/// and 1 % of the messages stall for 1 to 5 ms. A random share of this is before the gate. No message overtakes another.
fn probes(random: &mut Random, number: usize, pace: &Pace, gate: Option<&Truth>) -> Vec<Probe> {
    let before = random.share();
    let (mut due_ns, mut ready_ns, mut arrived_ns) = (1e9, 0.0_f64, 0.0_f64);
    let mut found = Vec::new();
    for _ in 0..number {
        let sent_ns = match pace {
            Pace::Period(period_ns) => {
                due_ns += period_ns;
                due_ns + random.exponential(60_000.0)
            }
            Pace::Random(mean_ns) => {
                due_ns += random.exponential(*mean_ns);
                due_ns
            }
        };
        let mut delay_ns = |share: f64| share * (30_000.0 + random.exponential(50_000.0));
        let (mut on_ns, mut off_ns) = (delay_ns(before), delay_ns(1.0 - before));
        if random.share() < 0.01 {
            let stall_ns = 1e6 + 4e6 * random.share();
            if random.share() < before { on_ns += stall_ns } else { off_ns += stall_ns }
        }
        ready_ns = ready_ns.max(sent_ns + on_ns);
        let passed_ns = gate.map_or(ready_ns, |gate| gate.passes_ns(ready_ns));
        arrived_ns = (arrived_ns + 2_000.0).max(passed_ns + off_ns);
        found.push(Probe { sent_ns: sent_ns as i64, arrived_ns: arrived_ns as i64 });
    }
    found
}

/// Number of intervals of edges that hold the true edge of the same window, for a schedule whose cycle and number of windows are
/// right. The windows of both are in the order of time; the first true window is the one with which the windows are nearest to each
/// other.
fn holding(truth: &Truth, found: &Recovery) -> Option<usize> {
    if found.windows.len() != truth.windows.len() || (found.cycle.ns / truth.cycle_ns - 1.0).abs() > 0.01 {
        return None;
    }
    // The time from the recovered to the true edge.
    let apart_ns = |edge: &Recovered, true_ns: f64| {
        let ns = truth.base_ns + true_ns - (found.reference_ns as f64 + edge.ns);
        ns - truth.cycle_ns * (ns / truth.cycle_ns).round()
    };
    let edges = |first: usize| {
        let truths = truth.windows.iter().cycle().skip(first);
        found
            .windows
            .iter()
            .zip(truths)
            .flat_map(|(window, (opens_ns, closes_ns))| [(window.opens, *opens_ns), (window.closes, *closes_ns)])
    };
    let distance_ns = |first: &usize| edges(*first).map(|(edge, true_ns)| apart_ns(&edge, true_ns).abs()).sum::<f64>();
    let first = (0..truth.windows.len()).min_by(|a, b| distance_ns(a).total_cmp(&distance_ns(b)))?;
    let holds = |(edge, true_ns): &(Recovered, f64)| {
        (edge.low_ns - edge.ns..=edge.high_ns - edge.ns).contains(&apart_ns(edge, *true_ns))
    };
    Some(edges(first).filter(holds).count())
}

/// How many of the intervals of recovered schedules hold the truth.
struct Held {
    /// Number of intervals of edges that hold the true edge, and number of true edges.
    edges: (u64, u64),
    /// Number of intervals of cycles that hold the true cycle, and number of schedules.
    cycles: (u64, u64),
}

/// Recovers random schedules. If a schedule is not recovered, its intervals hold nothing; if its cycle or number of windows is wrong, no
/// interval of its edges holds the truth.
fn schedules(seed: u64, number: usize) -> Held {
    let mut random = Random(SplitMix64(seed));
    let (mut edges, mut held, mut cycles, mut wrong, mut refused) = (0, 0, 0, 0, 0);
    let mut widths = Vec::new();
    for case in 0..number {
        let truth = Truth::random(&mut random);
        let mean_ns = random.log_uniform(1e6, 1e7);
        let pace = if random.share() < 0.5 { Pace::Period(mean_ns) } else { Pace::Random(mean_ns) };
        edges += 2 * truth.windows.len();
        let all = probes(&mut random, MESSAGES, &pace, Some(&truth));
        let found = match recover(&all) {
            Ok(found) => found,
            Err(reason) => {
                println!("case {case}: cycle {} ns, a message every {mean_ns} ns: {reason:?}", truth.cycle_ns);
                refused += 1;
                continue;
            }
        };
        cycles += usize::from((found.cycle.low_ns..=found.cycle.high_ns).contains(&truth.cycle_ns));
        let Some(of_edges) = holding(&truth, &found) else {
            let (windows, of) = (truth.windows.len(), found.windows.len());
            println!(
                "case {case}: cycle {} ns, {windows} windows: found {:?}, {of} windows",
                truth.cycle_ns, found.cycle
            );
            wrong += 1;
            continue;
        };
        held += of_edges;
        let all = found.windows.iter().flat_map(|window| [window.opens, window.closes]);
        widths.extend(all.map(|edge| (edge.high_ns - edge.low_ns) / 2.0 / truth.cycle_ns));
    }
    widths.sort_by(f64::total_cmp);
    let width = |share: f64| 100.0 * widths[(widths.len() as f64 * share) as usize];
    println!(
        "{number} schedules with seed {seed}: {held} of {edges} intervals of edges and {cycles} of cycles hold the truth; {wrong} \
         schedules are wrong, {refused} not recovered; half widths: median {:.2} %, nine in ten below {:.2} % of the cycle",
        width(0.5),
        width(0.9)
    );
    assert!(width(0.5) <= 2.0, "{} %", width(0.5));
    Held { edges: (held as u64, edges as u64), cycles: (cycles as u64, number as u64) }
}

#[test]
fn intervals_hold_the_edges_of_twelve_schedules() {
    let found = schedules(20_261_127, 12);
    for (held, of) in [found.edges, found.cycles] {
        assert!(10 * held >= 9 * of, "{held} of {of} intervals hold the truth");
    }
}

/// Test: a share of 95 % is certain, as the lower limit of the share's interval. The limit for edges takes the intervals of one
/// schedule for independent, although they are missing together if a schedule is not recovered.
#[test]
fn long_intervals_hold_the_edges_of_many_schedules() {
    let found = schedules(7, 200);
    for (held, of) in [found.edges, found.cycles] {
        let (low, _) = share_interval(held, of);
        assert!(low >= 0.95, "{held} of {of} intervals hold the truth: at least {:.1} %", 100.0 * low);
    }
}

/// A cycle of 20 ms with two windows.
fn twenty_ms() -> Truth {
    Truth { cycle_ns: 20e6, windows: vec![(0.0, 3e6), (9e6, 11e6)], base_ns: 5e6 }
}

#[test]
fn messages_without_a_gate_have_no_schedule() {
    for seed in 0..20 {
        let mut random = Random(SplitMix64(seed));
        let mean_ns = random.log_uniform(1e6, 1e7);
        let pace = if seed % 2 == 0 { Pace::Period(mean_ns) } else { Pace::Random(mean_ns) };
        let found = recover(&probes(&mut random, MESSAGES, &pace, None));
        assert_eq!(
            found,
            Err(NotRecovered::NoGate { probes: MESSAGES as u64 }),
            "seed {seed}, a message every {mean_ns} ns"
        );
    }
}

#[test]
fn too_few_messages_have_no_schedule() {
    let mut random = Random(SplitMix64(1));
    let all = probes(&mut random, 199, &Pace::Random(7e6), Some(&twenty_ms()));
    assert_eq!(recover(&all), Err(NotRecovered::TooFewProbes { probes: 199, needs: 200 }));
    assert_eq!(recover(&[]), Err(NotRecovered::TooFewProbes { probes: 0, needs: 200 }));
}

/// Test: intervals on a wrong window do not count. Each edge of the last two schedules is
/// a true edge, but half of them are edges of the other window.
#[test]
fn an_interval_on_another_window_does_not_hold_the_truth() {
    let truth = twenty_ms();
    let at = |ns: f64| Recovered { ns, low_ns: ns - 1e5, high_ns: ns + 1e5 };
    let window = |opens, closes| super::RecoveredWindow { opens: at(opens), closes: at(closes) };
    let recovery = |windows| Recovery {
        reference_ns: truth.base_ns as i64,
        cycle: at(truth.cycle_ns),
        windows,
        probes: 1_000,
        shortest_way_ns: 0,
        largest_gap_ns: 0.0,
    };
    assert_eq!(holding(&truth, &recovery(vec![window(0.0, 3e6), window(9e6, 11e6)])), Some(4));
    // The same windows, of which the first one in the order of time is the second true one.
    assert_eq!(holding(&truth, &recovery(vec![window(9e6, 11e6), window(20e6, 23e6)])), Some(4));
    // One window twice, and windows that end with the edge of another window.
    assert_eq!(holding(&truth, &recovery(vec![window(0.0, 3e6), window(0.0, 3e6)])), Some(2));
    assert_eq!(holding(&truth, &recovery(vec![window(0.0, 11e6), window(9e6, 23e6)])), Some(2));
}

/// Test: in six cycles, there are too few openings for an interval of the cycle.
#[test]
fn messages_of_few_cycles_have_no_schedule() {
    let truth = Truth { cycle_ns: 90e6, windows: vec![(0.0, 40e6)], base_ns: 5e6 };
    let message = |number: i64| {
        let sent_ns = number * 1_734_567;
        Probe { sent_ns, arrived_ns: truth.passes_ns(sent_ns as f64) as i64 + 30_000 }
    };
    let found = recover(&(0..300).map(message).collect::<Vec<_>>());
    let Err(NotRecovered::TooFewCycles { cycle_ns, span_ns }) = found else { panic!("{found:?}") };
    assert!((cycle_ns / truth.cycle_ns - 1.0).abs() < 0.05 && span_ns == 299.0 * 1_734_567.0, "{cycle_ns}, {span_ns}");
}

/// Test: of messages of 300 s, the messages of the first 250 s are used, also the ones that arrive later.
#[test]
fn messages_after_the_longest_time_are_left_out() {
    let truth = twenty_ms();
    let message = |number: i64| {
        let sent_ns = 1_000 + number * 97_123_457;
        Probe { sent_ns, arrived_ns: truth.passes_ns(sent_ns as f64) as i64 + 30_000 }
    };
    let mut all: Vec<Probe> = (0..3_000).map(message).collect();
    let times = used_send_times(&all);
    assert_eq!(times, 1_000..250_000_001_000);
    let used = all.iter_mut().filter(|probe| times.contains(&probe.sent_ns));
    let (number, last) = used.fold((0, None), |(number, _), probe| (number + 1, Some(probe)));
    last.unwrap().arrived_ns = 290_000_000_000;
    let found = recover(&all).unwrap();
    assert_eq!((found.probes, holding(&truth, &found)), (number, Some(4)));
}

/// Test: the messages are sent at 4, 5 and 8 phases of the cycle, and a little later.
#[test]
fn messages_at_few_phases_have_no_schedule() {
    for (seed, period_ns) in [(1, 25e6), (2, 4e6), (3, 7.5e6)] {
        let mut random = Random(SplitMix64(seed));
        let found = recover(&probes(&mut random, MESSAGES, &Pace::Period(period_ns), Some(&twenty_ms())));
        assert!(matches!(found, Err(NotRecovered::PhasesNotCovered { .. })), "{period_ns}: {found:?}");
    }
}

/// Test: if all messages are sent at one phase, they wait alike.
#[test]
fn messages_at_one_phase_meet_no_gate() {
    let found = recover(&probes(&mut Random(SplitMix64(4)), MESSAGES, &Pace::Period(20e6), Some(&twenty_ms())));
    assert!(matches!(found, Err(NotRecovered::NoGate { .. } | NotRecovered::PhasesNotCovered { .. })), "{found:?}");
}

#[test]
fn times_without_other_delays_show_the_edges_themselves() {
    let truth = twenty_ms();
    let message = |number: i64| {
        let sent_ns = number * 7_123_457;
        Probe { sent_ns, arrived_ns: truth.passes_ns(sent_ns as f64) as i64 + 30_000 }
    };
    let found = recover(&(0..2_000).map(message).collect::<Vec<_>>()).unwrap();
    assert_eq!((holding(&truth, &found), found.shortest_way_ns), (Some(4), 30_000));
    // The gate is somewhere on the shortest way of 30 us, and a message was sent every 10 us of the cycle.
    let widest_ns =
        found.windows.iter().flat_map(|w| [w.opens, w.closes]).map(|e| e.high_ns - e.low_ns).fold(0.0, f64::max);
    assert!(widest_ns < 120_000.0, "{widest_ns} ns");
}
