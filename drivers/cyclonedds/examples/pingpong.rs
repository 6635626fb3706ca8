//! Round trips between two processes through the driver table: stop-and-wait in listener mode, as `ddsperf ping` does.
//!
//! Usage: `pingpong [KEY=VALUE ...]`, with `size=16,1024,60000` `n=20000` `seconds=0` `role=both|ping|pong`
//! `place=processes|process`. Any other pair is an option of `open`, or a QoS policy if its key begins with `qos.`. The
//! program prints microseconds.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicUsize};
use std::time::{Duration, Instant};

use tailbound_abi::{TB_LISTENER, TB_READER, TB_WRITER, tb_driver, tb_host, tb_kv, tb_view};

/// Data of one end that the callback of the end uses. Only the callback writes `times`.
#[derive(Default)]
struct End {
    session: AtomicPtr<c_void>,
    writer: AtomicU32,
    sent_ns: AtomicI64,
    times: OnceLock<Vec<AtomicI64>>,
    count: AtomicUsize,
}

fn table() -> &'static tb_driver {
    // SAFETY: the driver's table is static.
    unsafe { &*tailbound_driver_cyclonedds::table() }
}

fn now_ns() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the given struct.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

fn check(what: &str, code: c_int) {
    if code < 0 {
        // SAFETY: last_error returns a string.
        let text = unsafe { CStr::from_ptr(table().last_error.unwrap()()) };
        panic!("{what}: {code}: {}", text.to_string_lossy());
    }
}

fn send(end: &End, seq: u64, data: *const u8, len: u64) {
    // SAFETY: session and writer are open, data is readable.
    check("send", unsafe {
        table().send.unwrap()(end.session.load(Relaxed), end.writer.load(Relaxed), seq, data, len, null())
    });
}

unsafe extern "C" fn on_sample(ctx: *mut c_void, _: u64, view: *const tb_view) {
    // SAFETY: the context is an End, and the view is valid during the call.
    let (end, view) = unsafe { (&*ctx.cast::<End>(), &*view) };
    let Some(times) = end.times.get() else {
        return send(end, view.seq, view.data, view.len);
    };
    let (now, i) = (now_ns(), end.count.load(Acquire));
    if i < times.len() {
        times[i].store(now - end.sent_ns.load(Relaxed), Relaxed);
        end.sent_ns.store(now_ns(), Relaxed);
        if i + 1 < times.len() {
            send(end, view.seq + 1, view.data, view.len);
        }
        end.count.store(i + 1, Release);
    }
}

/// Keys and values for the functions `open` and `create` of the driver's table.
#[derive(Clone, Default)]
struct Pairs(Vec<(CString, CString)>);

impl Pairs {
    fn raw(&self) -> Vec<tb_kv> {
        self.0.iter().map(|(k, v)| tb_kv { key: k.as_ptr(), value: v.as_ptr() }).collect()
    }

    fn set(&mut self, key: &str, value: &str) {
        let key = CString::new(key).unwrap();
        self.0.retain(|(k, _)| *k != key);
        if !value.is_empty() {
            self.0.push((key, CString::new(value).unwrap()));
        }
    }
}

/// Arguments of the command line of this example, parsed.
#[derive(Clone)]
struct Asked {
    open: Pairs,
    qos: Pairs,
    sizes: Vec<usize>,
    n: usize,
    seconds: u64,
    role: String,
    place: String,
}

impl Asked {
    fn parse() -> Self {
        let mut a = Asked {
            open: Pairs::default(),
            qos: Pairs::default(),
            sizes: vec![16, 1024, 60000],
            n: 20_000,
            seconds: 0,
            role: "both".into(),
            place: "processes".into(),
        };
        a.open.set("interface", "lo");
        a.open.set("max_message_size", "65500");
        for arg in std::env::args().skip(1) {
            let (key, value) = arg.split_once('=').expect("KEY=VALUE");
            match key {
                "size" => a.sizes = value.split(',').map(|s| s.parse().unwrap()).collect(),
                "n" => a.n = value.parse().unwrap(),
                "seconds" => a.seconds = value.parse().unwrap(),
                "role" => a.role = value.to_owned(),
                "place" => a.place = value.to_owned(),
                key => match key.strip_prefix("qos.") {
                    Some(key) => a.qos.set(key, value),
                    None => a.open.set(key, value),
                },
            }
        }
        a
    }
}

/// Opens a session with a writer and a reader in listener mode, and waits until both are matched.
fn start(end: &'static End, asked: &Asked, topics: [&CStr; 2]) {
    let host: &'static tb_host = Box::leak(Box::new(tb_host {
        size: size_of::<tb_host>() as u32,
        reserved: 0,
        ctx: (end as *const End).cast_mut().cast(),
        on_sample: Some(on_sample),
        on_match: None,
        log: Some(log),
    }));
    let (kv, qos) = (asked.open.raw(), asked.qos.raw());
    let max_len = asked.sizes.iter().copied().max().unwrap_or(0) as u64;
    let mut session = null_mut();
    // SAFETY: all pointers live until the calls return; host and end are static.
    unsafe {
        check("open", table().open.unwrap()(kv.as_ptr(), kv.len(), host, &mut session));
        end.session.store(session, Relaxed);
        let create = |kind, topic: &CStr| {
            let mut ep = 0;
            check(
                "create",
                table().create.unwrap()(
                    session,
                    kind,
                    TB_LISTENER,
                    topic.as_ptr(),
                    max_len,
                    qos.as_ptr(),
                    qos.len(),
                    0,
                    &mut ep,
                ),
            );
            ep
        };
        let writer = create(TB_WRITER, topics[0]);
        end.writer.store(writer, Relaxed);
        let reader = create(TB_READER, topics[1]);
        for ep in [writer, reader] {
            check("wait_matched", table().wait_matched.unwrap()(session, ep, 1, now_ns() + 20_000_000_000));
        }
    }
}

unsafe extern "C" fn log(_: *mut c_void, level: c_int, text: *const c_char) {
    // SAFETY: the string is valid during the call.
    eprintln!("log {level}: {}", unsafe { CStr::from_ptr(text) }.to_string_lossy());
}

/// Computes minimum, p50, p90, p99 and maximum of times in ns; the results are in microseconds.
fn quantiles(times: &[i64]) -> [f64; 5] {
    let mut times = times.to_vec();
    times.sort_unstable();
    [0.0, 0.5, 0.9, 0.99, 1.0].map(|q| times[((times.len() as f64 * q) as usize).min(times.len() - 1)] as f64 / 1e3)
}

/// Measures one series of round trips with a payload of `size` bytes, and prints the result.
fn series(end: &'static End, asked: &Asked, size: usize) {
    let payload = vec![0x5a_u8; size];
    end.count.store(0, Relaxed);
    end.sent_ns.store(now_ns(), Relaxed);
    send(end, 1, payload.as_ptr(), size as u64);
    let start = Instant::now();
    while end.count.load(Acquire) < asked.n
        && (asked.seconds == 0 || start.elapsed() < Duration::from_secs(asked.seconds))
    {
        std::thread::sleep(Duration::from_millis(200));
    }
    let n = end.count.swap(usize::MAX, AcqRel).min(asked.n);
    let times: Vec<i64> = end.times.get().unwrap()[n / 20..n].iter().map(|t| t.load(Relaxed)).collect();
    if times.is_empty() {
        println!("size {size} nothing came back");
        return;
    }
    let [min, p50, p90, p99, max] = quantiles(&times);
    println!("size {size} n {} min {min:.3} p50 {p50:.3} p90 {p90:.3} p99 {p99:.3} max {max:.3}", times.len());
    // Like ddsperf, this program computes values for each second, and prints the median of these values.
    let mut seconds: Vec<[f64; 5]> = Vec::new();
    let (mut first, mut passed) = (0, 0);
    for (i, t) in times.iter().enumerate() {
        passed += t;
        if passed > 1_000_000_000 || (seconds.is_empty() && i + 1 == times.len()) {
            seconds.push(quantiles(&times[first..=i]));
            (first, passed) = (i + 1, 0);
        }
    }
    let median = |i: usize| {
        seconds.sort_by(|a, b| a[i].total_cmp(&b[i]));
        seconds[seconds.len() / 2][i]
    };
    let [min, p50, p90, p99, max] = [0, 1, 2, 3, 4].map(median);
    println!("  median second: min {min:.3} p50 {p50:.3} p90 {p90:.3} p99 {p99:.3} max {max:.3}");
    std::thread::sleep(Duration::from_millis(100));
}

fn main() {
    let asked = Asked::parse();
    let (ping, pong) = (c"tailbound_ping", c"tailbound_pong");
    let serve = {
        let asked = asked.clone();
        move || start(Box::leak(Box::default()), &asked, [pong, ping])
    };
    let mut child = None;
    if asked.role == "pong" {
        serve();
        std::thread::sleep(Duration::from_secs(3600));
    } else if asked.place == "process" {
        std::thread::spawn(serve);
    } else if asked.role == "both" {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        child = Some(command.args(std::env::args().skip(1)).arg("role=pong").spawn().unwrap());
    }
    let end: &'static End = Box::leak(Box::default());
    let _ = end.times.set((0..asked.n).map(|_| AtomicI64::new(0)).collect());
    start(end, &asked, [ping, pong]);
    // The other end needs some time until it has matched too.
    std::thread::sleep(Duration::from_millis(300));
    for size in &asked.sizes {
        series(end, &asked, *size);
    }
    if let Some(mut child) = child {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
