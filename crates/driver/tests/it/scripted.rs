//! Tests of the scripted network of the driver `null`: the loading program must see the times that the script defines.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tailbound_driver::{
    Callbacks, Code, Driver, DriverClock, Endpoint, Hot, Kind, Kv, ReceiveMode, Session, Silent, View, ViewBuf, Wait,
};
use tailbound_driver_null::script::{Direction, Script, delay_ns};

static DOMAINS: AtomicU32 = AtomicU32::new(5000);

fn options(script: &str) -> Kv {
    let domain = DOMAINS.fetch_add(1, Ordering::Relaxed);
    Kv::new().with("domain", domain.to_string()).with("clock", "scripted").with("script", script)
}

fn null() -> Driver {
    Driver::linked("null", tailbound_driver_null::table()).unwrap()
}

/// Times of one message at the pong end of a test, in ns: its sequence number, receive time, begin and end of the
/// answer's send call, and kernel timestamp.
type Echo = (u64, i64, i64, i64, i64);

/// The times that the pong end and the ping end of a test record.
#[derive(Default)]
struct Notes {
    clock: OnceLock<DriverClock>,
    pong: OnceLock<Endpoint>,
    echoes: Mutex<Vec<Echo>>,
    /// Sequence number and receive time in ns of each answer at the ping end.
    answers: Mutex<Vec<(u64, i64)>>,
}

impl Callbacks for Notes {
    fn on_sample(&self, hot: &Hot, tag: u64, view: &View) {
        let now = || self.clock.get().unwrap().now();
        let arrived = now();
        if tag == 1 {
            let begin = now();
            hot.send(*self.pong.get().unwrap(), view.seq(), view.payload()).unwrap();
            self.echoes.lock().unwrap().push((view.seq(), arrived, begin, now(), view.kernel_rx_ns()));
        } else {
            self.answers.lock().unwrap().push((view.seq(), arrived));
        }
    }
}

struct Trial {
    /// Begin and end of each send call in ns, indexed by sequence number.
    sends: Vec<(i64, i64)>,
    notes: Arc<Notes>,
}

impl Trial {
    fn answer(&self, seq: u64) -> Option<i64> {
        self.notes.answers.lock().unwrap().iter().find(|(s, _)| *s == seq).map(|(_, at)| *at)
    }

    fn echo(&self, seq: u64) -> Option<Echo> {
        self.notes.echoes.lock().unwrap().iter().find(|e| e.0 == seq).copied()
    }
}

fn run(script: &str, n: u64, period_ns: i64) -> Trial {
    let options = options(script).with("timestamps", "on");
    let notes = Arc::new(Notes::default());
    let (ping, pong) = (
        Session::open(&null(), &options, notes.clone()).unwrap(),
        Session::open(&null(), &options, notes.clone()).unwrap(),
    );
    let clock = ping.clock().unwrap().unwrap();
    notes.clock.set(clock).unwrap();
    let none = Kv::new();
    let listener = Kind::Reader(ReceiveMode::Listener);
    pong.create(listener, "tailbound_ping", 64, &none, 1).unwrap();
    notes.pong.set(pong.create(Kind::Writer, "tailbound_pong", 64, &none, 0).unwrap()).unwrap();
    ping.create(listener, "tailbound_pong", 64, &none, 2).unwrap();
    let writer = ping.create(Kind::Writer, "tailbound_ping", 64, &none, 0).unwrap();
    ping.wait_matched(writer, 1, clock.now() + 1_000_000_000).unwrap();
    let t0 = clock.now() + 1_000_000;
    let mut sends = Vec::new();
    for k in 0..n {
        clock.sleep_until(t0 + k as i64 * period_ns);
        let begin = clock.now();
        ping.send(writer, k, &k.to_le_bytes()).unwrap();
        sends.push((begin, clock.now()));
    }
    clock.sleep_until(t0 + n as i64 * period_ns + 1_000_000_000);
    Trial { sends, notes }
}

#[test]
fn legs_are_the_draws_of_the_script() {
    let text = r#"{"seed": 9, "links": {
        "out": {"delay": {"lognormal": {"median_ns": 20000, "sigma": 0.5}}, "send_cost_ns": 700},
        "back": {"delay": {"uniform": [5000, 9000]}, "send_cost_ns": 300}}}"#;
    let script = Script::parse(text).unwrap();
    // The messages are so far apart that no listener is busy when the next message arrives.
    let trial = run(text, 2000, 1_000_000);
    let mut waited = 0;
    for seq in 0..2000 {
        let (begin, end) = trial.sends[seq as usize];
        let (_, echo_in, echo_begin, echo_end, kernel) = trial.echo(seq).unwrap();
        assert_eq!(end - begin, 700);
        assert_eq!(echo_in - begin, 700 + delay_ns(&script, Direction::Out, seq) as i64);
        assert_eq!((echo_begin - echo_in, echo_end - echo_begin), (0, 300));
        assert_eq!(trial.answer(seq).unwrap() - echo_end, delay_ns(&script, Direction::Back, seq) as i64);
        assert_eq!(kernel, script.realtime_offset_ns + echo_in);
        waited += echo_in - begin;
    }
    assert!((15_000..35_000).contains(&(waited / 2000)), "the mean of a lognormal delay is near its median");
    let again = run(text, 2000, 1_000_000);
    assert_eq!(*trial.notes.answers.lock().unwrap(), *again.notes.answers.lock().unwrap());
}

#[test]
fn losses_duplicates_and_overtaking() {
    let text = r#"{"links": {
        "out": {"delay": {"constant": 1000}, "loss": {"counters": [3], "probability": 0.1},
                "duplicate": {"counters": [5], "extra_ns": 400}},
        "back": {"delay": {"constant": 1000}, "reorder": {"counters": [8], "extra_ns": 250000}}}}"#;
    let script = Script::parse(text).unwrap();
    let trial = run(text, 1000, 100_000);
    let lost = |seq| script.fate(Direction::Out, seq).lost;
    assert!(lost(3) && !lost(5) && !lost(8));
    let expected = (0..1000).filter(|s| !lost(*s)).count();
    assert!((850..950).contains(&expected), "{expected} of 1000 at a loss of 10 %");
    let count = |seq: u64| trial.notes.echoes.lock().unwrap().iter().filter(|e| e.0 == seq).count();
    for seq in 0..1000 {
        let times = if seq == 5 { 2 } else { usize::from(!lost(seq)) };
        assert_eq!(count(seq), times, "message {seq}");
    }
    let order: Vec<u64> = trial.notes.answers.lock().unwrap().iter().map(|(s, _)| *s).collect();
    let at = |seq| order.iter().position(|s| *s == seq);
    assert!(at(8) > at((9..12).find(|s| !lost(*s)).unwrap()), "message 8 is overtaken");
}

#[test]
fn stalls_last_as_long_as_scripted() {
    // Messages are sent at 0, 100, 200, ... us; each leg takes 10 us.
    let run = |place: &str| {
        let stalls = format!(r#"[{{"where": "{place}", "at_ns": 205000, "for_ns": 250000}}]"#);
        let text = format!(r#"{{"links": {{"any": {{"delay": {{"constant": 10000}}}}}}, "stalls": {stalls}}}"#);
        let trial = run(&text, 10, 100_000);
        let zero = trial.sends[0].0;
        let echoes: Vec<_> = (0..6).map(|k| trial.echo(k).unwrap()).map(|e| (e.1 - zero, e.2 - zero)).collect();
        let answers: Vec<_> = (0..6).map(|k| trial.answer(k).unwrap() - zero).collect();
        let sends: Vec<_> = trial.sends.iter().map(|s| (s.0 - zero, s.1 - zero)).collect();
        (sends, echoes, answers)
    };
    let us = |list: &[i64]| list.iter().map(|t| t * 1000).collect::<Vec<_>>();

    let (_, echoes, answers) = run("out");
    assert_eq!(echoes.iter().map(|e| e.0).collect::<Vec<_>>(), us(&[10, 110, 455, 455, 455, 510]));
    assert_eq!(answers, us(&[20, 120, 465, 465, 465, 520]));

    let (_, echoes, answers) = run("back");
    assert_eq!(echoes.iter().map(|e| e.0).collect::<Vec<_>>(), us(&[10, 110, 210, 310, 410, 510]));
    assert_eq!(answers, us(&[20, 120, 455, 455, 455, 520]));

    // The pong end is busy until the end of the window, and then processes the messages that arrived in the window.
    let (_, echoes, answers) = run("turnaround");
    assert_eq!(echoes[2], (210_000, 455_000));
    assert_eq!(echoes.iter().map(|e| e.1).collect::<Vec<_>>(), us(&[10, 110, 455, 455, 455, 510]));
    assert_eq!(answers, us(&[20, 120, 465, 465, 465, 520]));

    // A send call that begins in the window blocks, at either end (the pong's send of message 2 blocks too). The slots
    // that were missed in the window are sent immediately after it.
    let (sends, _, answers) = run("send");
    assert_eq!(sends[3], (300_000, 455_000));
    assert_eq!(sends[4], (455_000, 455_000));
    assert_eq!(answers, us(&[20, 120, 465, 475, 475, 520]));
}

#[test]
fn the_wall_clock_steps() {
    let step = r#"{"clock_steps": [{"at_ns": 500000, "realtime_by_ns": -7000000}], "realtime_offset_ns": 1000}"#;
    let trial = run(step, 10, 100_000);
    let zero = trial.sends[0].0;
    for k in 0..10 {
        let (_, echo_in, _, _, kernel) = trial.echo(k).unwrap();
        let by = if echo_in - zero >= 500_000 { -7_000_000 } else { 0 };
        assert_eq!(kernel, 1000 + echo_in + by, "message {k}");
    }
}

#[test]
fn blocking_and_spinning_readers_move_the_clock() {
    for mode in [ReceiveMode::Block, ReceiveMode::Spin] {
        let options = options(r#"{"links": {"any": {"delay": {"list": [3000, 5000]}}}}"#);
        let s = Session::open(&null(), &options, Arc::new(Silent)).unwrap();
        let clock = s.clock().unwrap().unwrap();
        let none = Kv::new();
        let reader = s.create(Kind::Reader(mode), "tailbound_data", 64, &none, 0).unwrap();
        let writer = s.create(Kind::Writer, "tailbound_data", 64, &none, 0).unwrap();
        let mut views = ViewBuf::new(1);
        for k in 0..10 {
            let begin = clock.now();
            s.send(writer, k, b"x").unwrap();
            if mode == ReceiveMode::Block {
                assert_eq!(s.wait(&[reader], begin + 1_000_000), Ok(Wait::Ready(1)));
            }
            while s.take(reader, &mut views).unwrap() == 0 {}
            assert_eq!(clock.now() - begin, if k % 2 == 0 { 3000 } else { 5000 });
            s.release(reader, &mut views).unwrap();
        }
        let begin = clock.now();
        if mode == ReceiveMode::Block {
            assert_eq!(s.wait(&[reader], begin + 777), Ok(Wait::TimedOut));
            assert_eq!(clock.now() - begin, 777);
        } else {
            assert_eq!(s.take(reader, &mut views), Ok(0));
            assert!(clock.now() > begin, "a loop of takes ends");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let open = |kv: &Kv| Session::open(&null(), kv, Arc::new(Silent));
    let scripted = options(r#"{"seed": 4}"#);
    let _first = open(&scripted).unwrap();
    for (kv, about) in [
        (Kv::new().with("script", "{}"), "script: delays need virtual time"),
        (scripted.clone().with("script", r#"{"seed": 5}"#), "script: domain"),
        (scripted.clone().with("script", "{\"sed\": 5}"), "script: unknown field `sed`"),
        (Kv::new().with("domain", scripted.get("domain").unwrap()), "clock: domain"),
        (options(r#"{"links": {"out": {"loss": {"probability": 2}}}}"#), "script: loss: a probability"),
    ] {
        let error = open(&kv).unwrap_err();
        assert_eq!(error.code, Code::EINVAL);
        assert!(error.text.starts_with(about), "{}", error.text);
    }
    assert!(open(&Kv::new()).unwrap().clock().unwrap().is_none(), "real time has no clock of its own");
}
