//! Counts the allocations and system calls of the hot thread exactly, from the first slot to the last.
//!
//! The test starts itself again as a child process that runs the ping end with the driver `null` at 1 kHz, and traces
//! the child. The test also adds a `getpid` call to the hot loop, and in another child a `Vec::push` that allocates. It
//! must find both: a count that cannot fail proves nothing.

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tailbound_driver::{Driver, Kind, Kv, ReceiveMode, Session};
use tailbound_model::{EchoCell, OnOverrun, SenderCell};
use tailbound_run::hot::*;

const SLOTS: usize = 1000;
/// Name that the hot thread takes while it measures; the tracer sees the change as a system call.
const BEGIN: &std::ffi::CStr = c"hot-begin";
const END: &std::ffi::CStr = c"hot-end";

struct Counting;
thread_local!(static ALLOCATIONS: Cell<u64> = const { Cell::new(0) });

// SAFETY: the system's allocator does all the work; the counter is a plain thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller keeps the conditions of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller keeps the conditions of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

enum Plant {
    Nothing,
    Getpid,
    Push(Vec<u64>),
}

struct Planted(std::cell::UnsafeCell<Plant>);
// SAFETY: only the sending thread calls the hook.
unsafe impl Sync for Planted {}
// SAFETY: as above.
unsafe impl Send for Planted {}

impl Hook for Planted {
    fn slot(&self, slot: u64) {
        // SAFETY: one thread.
        match unsafe { &mut *self.0.get() } {
            Plant::Nothing => {}
            // SAFETY: no preconditions. Through `syscall`, so that no cache answers.
            Plant::Getpid if slot == 500 => drop(unsafe { libc::syscall(libc::SYS_getpid) }),
            Plant::Push(list) if slot == 500 => list.push(slot),
            _ => {}
        }
    }
}

fn set_name(name: &std::ffi::CStr) {
    // SAFETY: a NUL-terminated name.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

fn child(plant: Plant) {
    let driver = Driver::linked("null", tailbound_driver_null::table()).unwrap();
    let kv = Kv::new();

    let pong_door: Arc<Door<Pong<Machine>>> = Arc::default();
    let pong_session: &'static Session = Box::leak(Box::new(Session::open(&driver, &kv, pong_door.clone()).unwrap()));
    let qos = Kv::new();
    let writer = pong_session.create(Kind::Writer, "tailbound_pong_t", 64, &qos, 0).unwrap();
    let echo: &'static [EchoCell] = Vec::leak((0..SLOTS + 64).map(|_| EchoCell::default()).collect());
    let pong = Arc::new(Pong {
        clock: Machine,
        writer: Port::new(pong_session, writer),
        cells: Ring::whole(echo),
        header: Box::leak(Box::default()),
    });
    let receiver = Arc::new(Receiver::new(pong));
    pong_door.open(&receiver);
    pong_session.create(Kind::Reader(ReceiveMode::Listener), "tailbound_ping_t", 64, &qos, 1).unwrap();

    let ping_door: Arc<Door<Ping<Machine, Planted>>> = Arc::default();
    let session: &'static Session = Box::leak(Box::new(Session::open(&driver, &kv, ping_door.clone()).unwrap()));
    let writer = session.create(Kind::Writer, "tailbound_ping_t", 64, &qos, 0).unwrap();
    let cells: &'static [SenderCell] = Vec::leak((0..SLOTS).map(|_| SenderCell::default()).collect());
    let ping = Arc::new(Ping::new(
        Machine,
        Planted(plant.into()),
        Port::new(session, writer),
        Ring::whole(cells),
        Box::leak(Box::default()),
        vec![0; 64].into(),
        Pace::Open { period_ns: 1_000_000, on_overrun: OnOverrun::CatchUp, loops: None },
        (SLOTS as u64, 0),
        100_000_000,
    ));
    let receiver = Arc::new(Receiver::new(ping.clone()));
    ping_door.open(&receiver);
    session.create(Kind::Reader(ReceiveMode::Listener), "tailbound_pong_t", 64, &qos, 1).unwrap();

    let t0 = Machine.now() + 10_000_000;
    let before = ALLOCATIONS.with(Cell::get);
    // As the measuring process does before its first slot: later calls of this thread are no system calls.
    thread_id();
    set_name(BEGIN);
    ping.run(t0, &mut || {});
    set_name(END);
    let allocations = ALLOCATIONS.with(Cell::get) - before;
    let answered = cells.iter().filter(|c| c.receive_ns.load(std::sync::atomic::Ordering::Relaxed) != 0).count();
    // If a slot is already due when the slot before has been sent, it is sent without a sleep.
    let sent = cells.iter().map(|c| c.send_end_ns.load(std::sync::atomic::Ordering::Relaxed));
    let late =
        sent.take(SLOTS - 1).enumerate().filter(|(slot, end)| *end >= t0 + (*slot as i64 + 1) * 1_000_000).count();
    println!("{allocations} {answered} {late}");
}

/// Child process that runs both ends on one thread, which waits for the next slot and for messages.
fn executor_child(plant: Plant) {
    let driver = Driver::linked("null", tailbound_driver_null::table()).unwrap();
    let silent = Arc::new(tailbound_driver::Silent);
    let session: &'static Session = Box::leak(Box::new(Session::open(&driver, &Kv::new(), silent).unwrap()));
    let create = |kind, topic| Port::new(session, session.create(kind, topic, 64, &Kv::new(), 0).unwrap());
    let reader = Kind::Reader(ReceiveMode::Block);
    let echo: &'static [EchoCell] = Vec::leak((0..SLOTS + 64).map(|_| EchoCell::default()).collect());
    let writer = create(Kind::Writer, "tailbound_pong_t");
    let pong = Pong { clock: Machine, writer, cells: Ring::whole(echo), header: Box::leak(Box::default()) };
    let pong = Receiver::new(Arc::new(pong));
    let cells: &'static [SenderCell] = Vec::leak((0..SLOTS).map(|_| SenderCell::default()).collect());
    let ping = Arc::new(Ping::new(
        Machine,
        Planted(plant.into()),
        create(Kind::Writer, "tailbound_ping_t"),
        Ring::whole(cells),
        Box::leak(Box::default()),
        vec![0; 64].into(),
        Pace::Open { period_ns: 1_000_000, on_overrun: OnOverrun::CatchUp, loops: None },
        (SLOTS as u64, 0),
        100_000_000,
    ));
    let receiver = Receiver::new(ping.clone());
    let readers = [create(reader, "tailbound_pong_t"), create(reader, "tailbound_ping_t")];
    let mut executor = Executor::new(Machine, vec![(readers[0], &receiver), (readers[1], &pong)]);

    let t0 = Machine.now() + 10_000_000;
    let before = ALLOCATIONS.with(Cell::get);
    // As the measuring process does before its first slot: later calls of this thread are no system calls.
    thread_id();
    set_name(BEGIN);
    ping.run_with(t0, &mut || {}, &mut executor);
    set_name(END);
    let allocations = ALLOCATIONS.with(Cell::get) - before;
    let answered = cells.iter().filter(|c| c.receive_ns.load(std::sync::atomic::Ordering::Relaxed) != 0).count();
    println!("{allocations} {answered}");
}

/// Child process that runs publisher and subscriber of a flow on one thread. If `period_ns` is given, the flow runs at
/// 1 kHz, and every tenth message has a row and is answered. Otherwise the flow runs as fast as it can, and every
/// thousandth message has a row and is answered.
fn flow_child(plant: Plant, period_ns: Option<i64>) {
    let row_every = if period_ns.is_some() { 10 } else { 1000 };
    let driver = Driver::linked("null", tailbound_driver_null::table()).unwrap();
    let counts = || Box::leak(Box::new(FlowMemory::map(FlowMemory::create(60).unwrap()).unwrap())).cells();
    let door: Arc<Door<Subscriber<Machine>>> = Arc::default();
    let session: &'static Session = Box::leak(Box::new(Session::open(&driver, &Kv::new(), door.clone()).unwrap()));
    let writer = session.create(Kind::Writer, "tailbound_pong_t", 64, &Kv::new(), 0).unwrap();
    let subscriber = Arc::new(Subscriber {
        clock: Machine,
        writer: Some(Port::new(session, writer)),
        counts: counts(),
        rows: Ring::whole(Vec::leak((0..SLOTS).map(|_| EchoCell::default()).collect())),
        header: Box::leak(Box::default()),
        row_every,
        received: Received::by_publisher(1),
        part: 0.into(),
    });
    subscriber.begin();
    let receiver = Arc::new(Receiver::new(subscriber.clone()));
    door.open(&receiver);
    session.create(Kind::Reader(ReceiveMode::Listener), "tailbound_ping_t", 64, &Kv::new(), 1).unwrap();

    let door: Arc<Door<Publisher<Machine, Planted>>> = Arc::default();
    let session: &'static Session = Box::leak(Box::new(Session::open(&driver, &Kv::new(), door.clone()).unwrap()));
    let writer = session.create(Kind::Writer, "tailbound_ping_t", 64, &Kv::new(), 0).unwrap();
    let publisher = Arc::new(Publisher {
        clock: Machine,
        hook: Planted(plant.into()),
        writer: Port::new(session, writer),
        counts: counts(),
        rows: Ring::whole(Vec::leak((0..SLOTS).map(|_| SenderCell::default()).collect())),
        header: Box::leak(Box::default()),
        payload: vec![0; 64].into(),
        pace: FlowPace {
            publisher: 0,
            period_ns,
            parts_ns: [100_000_000, 800_000_000, 100_000_000],
            row_every,
            batching: false,
        },
        answered: 0.into(),
        highest: 0.into(),
    });
    let receiver = Arc::new(Receiver::new(publisher.clone()));
    door.open(&receiver);
    session.create(Kind::Reader(ReceiveMode::Listener), "tailbound_pong_t", 64, &Kv::new(), 1).unwrap();

    let t0 = Machine.now() + 10_000_000;
    let before = ALLOCATIONS.with(Cell::get);
    // As the measuring process does before its first slot: later calls of this thread are no system calls.
    thread_id();
    set_name(BEGIN);
    publisher.run(t0);
    set_name(END);
    let allocations = ALLOCATIONS.with(Cell::get) - before;
    let (sent, came) = (publisher.counts.read(), subscriber.counts.read());
    if period_ns.is_some() {
        assert_eq!(sent.parts.map(|p| p.messages), [100, 800, 100]);
        assert_eq!(publisher.answered.load(std::sync::atomic::Ordering::Relaxed), 90, "pings of ramp-up and window");
    }
    assert_eq!(sent.messages(), came.messages());
    println!("{allocations} {}", came.messages());
}

#[derive(Debug)]
struct Counted {
    calls: BTreeMap<i64, u64>,
    allocations: u64,
    answered: usize,
    /// Number of slots that were already due when the sender reached them, so that the sender did not sleep before
    /// these slots.
    late: usize,
}

/// Runs the child process `what` and traces it. Returns `None` if tracing is not permitted here.
fn count(what: &str) -> Option<Counted> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--child", what]).stdout(Stdio::piped());
    // SAFETY: one system call between fork and exec.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(Into::into)) };
    let child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            println!("skipped: a child cannot be traced here: {e}");
            return None;
        }
    };
    let pid = Pid::from_raw(child.id() as i32);
    waitpid(pid, None).unwrap();
    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_TRACESYSGOOD | ptrace::Options::PTRACE_O_EXITKILL).unwrap();
    let mut calls = BTreeMap::new();
    let (mut inside, mut entering) = (false, true);
    loop {
        ptrace::syscall(pid, None).unwrap();
        match waitpid(pid, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::PtraceSyscall(_) => {
                if entering {
                    let registers = ptrace::getregs(pid).unwrap();
                    let number = registers.orig_rax as i64;
                    if number == libc::SYS_prctl && registers.rdi == libc::PR_SET_NAME as u64 {
                        let word = ptrace::read(pid, registers.rsi as ptrace::AddressType).unwrap().to_le_bytes();
                        inside = word.starts_with(b"hot-beg");
                    } else if inside {
                        *calls.entry(number).or_insert(0) += 1;
                    }
                }
                entering = !entering;
            }
            WaitStatus::Exited(..) => break,
            WaitStatus::Signaled(_, signal, _) => panic!("the child died of {signal}"),
            _ => {}
        }
    }
    let output = std::io::read_to_string(child.stdout.unwrap()).unwrap();
    let mut numbers = output.split_whitespace().map(|n| n.parse::<usize>().unwrap());
    let (allocations, answered) = (numbers.next().unwrap() as u64, numbers.next().unwrap());
    Some(Counted { calls, allocations, answered, late: numbers.next().unwrap_or(0) })
}

/// Checks the counts of the hot thread: one sleep for each slot, no other system call, no allocation.
fn verdict(counted: &Counted) -> Result<(), String> {
    let sleeps = counted.calls.get(&libc::SYS_clock_nanosleep).copied().unwrap_or(0);
    let others: BTreeMap<_, _> = counted.calls.iter().filter(|(n, _)| **n != libc::SYS_clock_nanosleep).collect();
    if counted.answered != SLOTS {
        return Err(format!("{} of {SLOTS} slots were answered", counted.answered));
    }
    if sleeps.abs_diff((SLOTS - counted.late) as u64) > 2 {
        return Err(format!("{sleeps} sleeps for {SLOTS} slots, {} of them late", counted.late));
    }
    if !others.is_empty() {
        return Err(format!("other system calls (number: times): {others:?}"));
    }
    if counted.allocations != 0 {
        return Err(format!("{} allocations", counted.allocations));
    }
    Ok(())
}

/// Checks the counts of the executor: it waits in the driver once for each slot, which is a futex call with this
/// driver, and makes no other system call and no allocation.
fn executor_verdict(counted: &Counted) -> Result<(), String> {
    let waits = counted.calls.get(&libc::SYS_futex).copied().unwrap_or(0);
    let others: Vec<_> = counted.calls.iter().filter(|(n, _)| **n != libc::SYS_futex).collect();
    if counted.answered != SLOTS || counted.allocations != 0 || !others.is_empty() || waits > SLOTS as u64 + 2 {
        return Err(format!("{counted:?}"));
    }
    Ok(())
}

/// Checks the counts of a flow at a rate: the thread sleeps, and reads the CPU time five times: at the begin of window
/// and drain for both ends, and at the end for the publisher.
fn flow_verdict(counted: &Counted) -> Result<(), String> {
    let calls = |number: i64| counted.calls.get(&number).copied().unwrap_or(0);
    let known = [libc::SYS_clock_nanosleep, libc::SYS_clock_gettime];
    let others = counted.calls.keys().filter(|n| !known.contains(n)).count();
    let (sleeps, reads) = (calls(libc::SYS_clock_nanosleep), calls(libc::SYS_clock_gettime));
    if counted.answered != SLOTS || counted.allocations != 0 || others > 0 || reads != 5 || sleeps > SLOTS as u64 + 1 {
        return Err(format!("{counted:?}"));
    }
    Ok(())
}

/// Checks the counts of a flow that runs as fast as it can: the thread sleeps once, until the flow begins, and reads
/// the CPU time five times.
fn flow_at_once_verdict(counted: &Counted) -> Result<(), String> {
    let calls = |number: i64| counted.calls.get(&number).copied().unwrap_or(0);
    let known = [libc::SYS_clock_nanosleep, libc::SYS_clock_gettime];
    let others = counted.calls.keys().filter(|n| !known.contains(n)).count();
    let (sleeps, reads) = (calls(libc::SYS_clock_nanosleep), calls(libc::SYS_clock_gettime));
    if counted.answered <= SLOTS || counted.allocations != 0 || others > 0 || reads != 5 || sleeps > 1 {
        return Err(format!("{counted:?}"));
    }
    Ok(())
}

fn main() {
    let mut args = std::env::args().skip(1);
    if std::env::args().any(|a| a == "--list") {
        // cargo-nextest asks a second time, with `--ignored`, for the ignored tests: there is no ignored test.
        if !std::env::args().any(|a| a == "--ignored") {
            println!("the_hot_thread_makes_no_other_system_call: test");
        }
        return;
    }
    if args.next().as_deref() == Some("--child") {
        return child(match args.next().as_deref() {
            Some("getpid") => Plant::Getpid,
            Some("executor") => return executor_child(Plant::Nothing),
            Some("executor getpid") => return executor_child(Plant::Getpid),
            Some("flow") => return flow_child(Plant::Nothing, Some(1_000_000)),
            Some("flow push") => return flow_child(Plant::Push(Vec::new()), Some(1_000_000)),
            Some("flow at once") => return flow_child(Plant::Nothing, None),
            Some("flow at once getpid") => return flow_child(Plant::Getpid, None),
            Some("push") => Plant::Push(Vec::new()),
            _ => Plant::Nothing,
        });
    }
    // The test runs with real-time priority if permitted, because tracer and child switch at every system call.
    let ahead = tailbound_model::Policy::Fifo { priority: 20 };
    if let Err(e) = tailbound_host::scheduling::set_policy(0, &ahead, false) {
        println!("without real-time priority: {e}");
    }
    let Some(plain) = count("nothing") else { return };
    println!("hot thread over {SLOTS} slots: {plain:?}");
    verdict(&plain).unwrap();
    for (planted, word) in [("getpid", "other system calls"), ("push", "allocations")] {
        let counted = count(planted).unwrap();
        let found = verdict(&counted);
        println!("planted {planted}: {found:?}");
        let found = found.expect_err("a planted call was not found");
        let late = found.contains("sleeps for");
        assert!(late || found.contains(word), "planted {planted}, found {found}");
        let call = counted.calls.contains_key(&libc::SYS_getpid);
        assert!(if planted == "getpid" { call } else { counted.allocations > 0 }, "planted {planted}: {counted:?}");
    }
    let executor = count("executor").unwrap();
    println!("executor over {SLOTS} slots: {executor:?}");
    executor_verdict(&executor).unwrap();
    let planted = executor_verdict(&count("executor getpid").unwrap());
    println!("planted getpid: {planted:?}");
    planted.expect_err("a planted call was not found");
    let flow = count("flow").unwrap();
    println!("flow over {SLOTS} messages: {flow:?}");
    flow_verdict(&flow).unwrap();
    let planted = flow_verdict(&count("flow push").unwrap());
    println!("planted push: {planted:?}");
    planted.expect_err("a planted push was not found");
    let flow = count("flow at once").unwrap();
    println!("flow as fast as it goes: {flow:?}");
    flow_at_once_verdict(&flow).unwrap();
    let planted = flow_at_once_verdict(&count("flow at once getpid").unwrap());
    println!("planted getpid: {planted:?}");
    planted.expect_err("a planted call was not found");
    println!("test result: ok. 9 passed; 0 failed");
}
