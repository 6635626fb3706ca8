//! Tests of the module `side`, which makes the table of functions of drivers in Rust: calls that are refused before a
//! session sees them, and results of a session.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use tailbound_abi::side::{self, Fail, Host, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::*;

/// A driver for tests without a middleware: it sends every sample back to the loading program.
struct Echo {
    host: Host,
    wakes: AtomicU32,
}

thread_local! {
    /// Number of open sessions of the test's driver.
    static OPEN: Cell<u32> = const { Cell::new(0) };
}

static TABLE: tb_driver = side::table::<Echo>();

impl side::Session for Echo {
    const MAX_PAYLOAD_BYTES: u64 = 8;

    fn describe() -> &'static CStr {
        c"{}"
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Echo> {
        if let Some(option) = options.iter().find(|o| o.key != "domain") {
            return Err(option.bad(TB_EINVAL, "no such option"));
        }
        OPEN.set(OPEN.get() + 1);
        Ok(Echo { host, wakes: AtomicU32::new(0) })
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        Ok(wanted.max_len as u32 + wanted.qos.len() as u32)
    }

    fn wait_matched(&self, _: u32, peers: u32, _: i64) -> Outcome {
        if peers == 0 { Ok(()) } else { fail(TB_ETIMEDOUT, "nobody") }
    }

    fn send(&self, ep: u32, seq: u64, payload: &[u8], batch: bool) -> Outcome {
        let view = tb_view { seq, data: payload.as_ptr(), len: payload.len() as u64, ..tb_view::default() };
        // SAFETY: the session is open, and the payload lives through the call.
        unsafe { self.host.on_sample(u64::from(ep) + u64::from(batch), &view) };
        Ok(())
    }

    fn wait(&self, eps: &[u32], _: i64) -> Outcome<Waited> {
        if self.wakes.swap(0, Ordering::SeqCst) > 0 { Ok(Waited::Woken) } else { Ok(Waited::Ready(eps.len() as u64)) }
    }

    fn take(&self, ep: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        for view in &mut *out {
            view.write(tb_view { loan: u64::from(ep), ..tb_view::default() });
        }
        Ok(out.len())
    }

    fn release(&self, ep: u32, views: &mut [tb_view]) -> Outcome {
        if views.iter().all(|v| v.loan == u64::from(ep)) { Ok(()) } else { Err(Fail::invalid("not mine")) }
    }

    fn wake(&self) -> Outcome {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn flush(&self, ep: u32, _: i64) -> Outcome {
        Err(Fail::closed(ep))
    }

    fn query(&self, _: u32, what: &str) -> Outcome<Vec<u8>> {
        Ok(what.into())
    }

    fn destroy(&self, _: u32) -> Outcome {
        Ok(())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        OPEN.set(OPEN.get() - 1);
    }
}

/// The recorded arguments of each call of `on_sample`: tag of the reader, sequence number, payload bytes.
type Heard = Vec<(u64, u64, Vec<u8>)>;

unsafe extern "C" fn on_sample(ctx: *mut c_void, tag: u64, view: *const tb_view) {
    // SAFETY: the context is a `Heard`, and the view is valid during the call.
    unsafe {
        let bytes = std::slice::from_raw_parts((*view).data, (*view).len as usize);
        (*ctx.cast::<Heard>()).push((tag, (*view).seq, bytes.to_vec()));
    }
}

fn host(heard: &mut Heard) -> tb_host {
    tb_host {
        size: size_of::<tb_host>() as u32,
        reserved: 0,
        ctx: (&raw mut *heard).cast(),
        on_sample: Some(on_sample),
        on_match: None,
        log: None,
    }
}

fn open(host: *const tb_host) -> *mut c_void {
    let mut session = null_mut();
    // SAFETY: the call gets a valid host, no options, and memory for the session.
    assert_eq!(unsafe { TABLE.open.unwrap()(null(), 0, host, &mut session) }, TB_OK);
    session
}

/// Checks that a call returned the expected result code, and that `last_error` then returns the expected text.
#[track_caller]
fn refused(rc: c_int, code: c_int, text: &str) {
    // SAFETY: `last_error` returns a string of this thread.
    let last = unsafe { CStr::from_ptr(TABLE.last_error.unwrap()()) }.to_str().unwrap();
    assert_eq!((rc, last), (code, text));
}

#[test]
fn what_open_and_create_cannot_use_is_refused() {
    let mut heard = Heard::new();
    let whole = host(&mut heard);
    let short = tb_host { size: 8, ..whole };
    let mut session = null_mut();
    let unknown = tb_kv { key: c"colour".as_ptr(), value: c"red".as_ptr() };
    let f = TABLE.open.unwrap();
    // SAFETY: every pointer is null or valid.
    unsafe {
        refused(f(null(), 0, null(), &mut session), TB_EINVAL, "host is null");
        refused(
            f(null(), 0, &short, &mut session),
            TB_EINVAL,
            "the callback table of the loading program is too short for ABI 1.0",
        );
        refused(f(null(), 0, &whole, null_mut()), TB_EINVAL, "session is null");
        refused(f(null(), 1, &whole, &mut session), TB_EINVAL, "the list of options is null");
        refused(f(&unknown, 1, &whole, &mut session), TB_EINVAL, "colour=red: no such option");
    }
    assert!(session.is_null());

    let deaf = tb_host { on_sample: None, ..whole };
    let (session, deaf) = (open(&whole), open(&deaf));
    let mut ep = 0;
    let mut create = |session, kind, mode, topic: *const c_char, max_len| {
        // SAFETY: the session is null or open, the topic null or a string; there is one policy, and memory for the
        // result.
        unsafe { TABLE.create.unwrap()(session, kind, mode, topic, max_len, &unknown, 1, 0, &mut ep) }
    };
    let topic = c"t".as_ptr();
    refused(create(null_mut(), TB_WRITER, 0, topic, 8), TB_EINVAL, "the session is null");
    refused(create(session, TB_WRITER, 0, null(), 8), TB_EINVAL, "topic is null");
    refused(create(session, TB_WRITER, 0, c"\xff".as_ptr(), 8), TB_EINVAL, "topic is not UTF-8");
    refused(create(session, 2, 0, topic, 8), TB_EINVAL, "kind 2 is neither TB_WRITER nor TB_READER");
    refused(create(session, TB_READER, 3, topic, 8), TB_EUNSUPPORTED, "receive mode 3 does not exist");
    let text = "the receive mode listener needs the callback on_sample of the loading program";
    refused(create(deaf, TB_READER, TB_LISTENER, topic, 8), TB_EINVAL, text);
    refused(create(session, TB_WRITER, 0, topic, 9), TB_ETOOBIG, "max_len 9 B is more than the driver's limit of 8 B");
    assert_eq!(create(session, TB_WRITER, 3, topic, 8), TB_OK);
    assert_eq!(ep, 9);
    // SAFETY: both sessions are open; the pointer to the result is null.
    unsafe {
        let rc = TABLE.create.unwrap()(session, TB_WRITER, 0, topic, 8, null(), 0, 0, null_mut());
        refused(rc, TB_EINVAL, "ep is null");
        TABLE.close.unwrap()(session);
        TABLE.close.unwrap()(deaf);
        TABLE.close.unwrap()(null_mut());
    }
    assert_eq!(OPEN.get(), 0);
}

#[test]
fn what_is_sent_arrives_or_is_refused() {
    let mut heard = Heard::new();
    let host = host(&mut heard);
    let (s, f) = (open(&host), TABLE.send.unwrap());
    let options = |flags, txtime_ns| tb_send { size: size_of::<tb_send>() as u32, flags, txtime_ns };
    let bytes = [1, 2, 3];
    // SAFETY: the session is open; every pointer is null or valid.
    unsafe {
        assert_eq!(f(s, 1, 7, bytes.as_ptr(), 3, null()), TB_OK);
        assert_eq!(f(s, 1, 8, null(), 0, &options(TB_SEND_BATCH, 0)), TB_OK);
        refused(f(s, 1, 9, null(), 3, null()), TB_EINVAL, "data is null");
        let text = "18446744073709551615 B of payload; the driver takes at most 8 B";
        refused(f(s, 1, 9, bytes.as_ptr(), u64::MAX, null()), TB_ETOOBIG, text);
        refused(
            f(s, 1, 9, bytes.as_ptr(), 3, &options(0, 1)),
            TB_EUNSUPPORTED,
            "the driver cannot send a message at a given time",
        );
        let short = tb_send { size: 8, ..options(0, 0) };
        let text = "the options of send are too short for ABI 1.0";
        refused(f(s, 1, 9, bytes.as_ptr(), 3, &short), TB_EINVAL, text);
        refused(f(null_mut(), 1, 9, bytes.as_ptr(), 3, null()), TB_EINVAL, "the session is null");
        TABLE.close.unwrap()(s);
    }
    assert_eq!(heard, [(1, 7, vec![1, 2, 3]), (2, 8, vec![])]);
}

#[test]
fn a_wait_that_is_woken_leaves_no_text() {
    let mut heard = Heard::new();
    let host = host(&mut heard);
    let (s, f) = (open(&host), TABLE.wait.unwrap());
    let eps = [1; 65];
    let mut ready = 77;
    // SAFETY: the session is open; every pointer is null or valid.
    unsafe {
        refused(f(s, eps.as_ptr(), 65, 0, &mut ready), TB_EINVAL, "wait takes 1 to 64 readers");
        assert_eq!(ready, 0);
        assert_eq!((f(s, eps.as_ptr(), 64, 0, &mut ready), ready), (TB_OK, 64));
        refused(f(s, null(), 0, 0, &mut ready), TB_EINVAL, "wait takes 1 to 64 readers");
        refused(f(s, null(), 1, 0, &mut ready), TB_EINVAL, "ep is null");
        refused(f(s, eps.as_ptr(), 1, 0, null_mut()), TB_EINVAL, "ready is null");
        refused(TABLE.wait_matched.unwrap()(s, 1, 1, 0), TB_ETIMEDOUT, "nobody");
        assert_eq!(TABLE.wake.unwrap()(s), TB_OK);
        refused(f(s, eps.as_ptr(), 1, 0, &mut ready), TB_WOKEN, "nobody");
        assert_eq!(ready, 0);
        TABLE.close.unwrap()(s);
    }
}

#[test]
fn views_come_and_go() {
    let mut heard = Heard::new();
    let host = host(&mut heard);
    let (s, take, release) = (open(&host), TABLE.take.unwrap(), TABLE.release.unwrap());
    let mut views = [tb_view::default(); 4];
    let (out, mut n) = (views.as_mut_ptr(), 77);
    // SAFETY: the session is open; every pointer is null or has room for the given number of elements.
    unsafe {
        assert_eq!((take(s, 5, out, 3, &mut n), n), (TB_OK, 3));
        refused(take(s, 5, null_mut(), 3, &mut n), TB_EINVAL, "out is null");
        assert_eq!(n, 0);
        assert_eq!(take(s, 5, null_mut(), 0, &mut n), TB_OK);
        refused(take(s, 5, out, 3, null_mut()), TB_EINVAL, "n is null");
        assert_eq!(release(s, 5, out, 3), TB_OK);
        refused(release(s, 6, out, 3), TB_EINVAL, "not mine");
        refused(release(s, 5, null_mut(), 3), TB_EINVAL, "views is null");
        refused(TABLE.wait_acked.unwrap()(s, 4, 0), TB_ECLOSED, "end point 4 does not exist (any more)");
        TABLE.close.unwrap()(s);
    }
}

#[test]
fn answers_go_to_the_sink() {
    unsafe extern "C" fn sink(ctx: *mut c_void, bytes: *const c_char, len: usize) {
        // SAFETY: the context is a vector, and there are `len` bytes.
        unsafe { (*ctx.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(bytes.cast(), len)) };
    }
    let mut heard = Heard::new();
    let host = host(&mut heard);
    let (s, f) = (open(&host), TABLE.query.unwrap());
    let mut answer: Vec<u8> = Vec::new();
    let ctx = (&raw mut answer).cast();
    // SAFETY: the session is open; every pointer is null or valid.
    unsafe {
        refused(f(s, 0, null(), Some(sink), ctx), TB_EINVAL, "what is null");
        refused(f(s, 0, c"qos".as_ptr(), None, ctx), TB_EINVAL, "sink is null");
        assert_eq!(f(s, 0, c"qos".as_ptr(), Some(sink), ctx), TB_OK);
        assert_eq!(CStr::from_ptr(TABLE.describe.unwrap()()), c"{}");
        TABLE.close.unwrap()(s);
    }
    assert_eq!(answer, b"qos");
}
