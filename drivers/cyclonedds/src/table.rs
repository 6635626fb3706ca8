//! The table: C functions that check pointers, call the inner ones and keep the error text.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;

use tailbound_abi as abi;
use tailbound_abi::{tb_driver, tb_host, tb_kv, tb_send, tb_sink, tb_view};

use crate::endpoint::Wanted;
use crate::error::{self, Fail, Outcome};
use crate::qos::Policies;
use crate::session::Session;
use crate::{describe, kv, query, receive, send, wait};

static TABLE: tb_driver = tb_driver {
    abi_major: abi::TB_ABI_MAJOR,
    abi_minor: abi::TB_ABI_MINOR,
    size: size_of::<tb_driver>() as u32,
    flags: 0,
    describe: Some(c_describe),
    open: Some(c_open),
    create: Some(c_create),
    wait_matched: Some(c_wait_matched),
    send: Some(c_send),
    wait: Some(c_wait),
    take: Some(c_take),
    release: Some(c_release),
    wake: Some(c_wake),
    flush: Some(c_flush),
    wait_acked: Some(c_wait_acked),
    query: Some(c_query),
    destroy: Some(c_destroy),
    close: Some(c_close),
    last_error: Some(c_last_error),
    loan: None,
    commit: None,
    reserved: [core::ptr::null_mut(); 8],
};

/// The driver table of Cyclone DDS; constant for the life of the process.
pub fn table() -> *const tb_driver {
    &TABLE
}

#[inline]
fn code(outcome: Outcome<()>) -> c_int {
    match outcome {
        Ok(()) => abi::TB_OK,
        // Not an error: no text.
        Err(fail) if fail.code == abi::TB_WOKEN => fail.code,
        Err(fail) => error::report(fail),
    }
}

/// # Safety
/// `session` is null or came from `open` and is not closed.
#[inline]
unsafe fn session<'a>(session: *mut c_void) -> Outcome<&'a Session> {
    // SAFETY: by the caller's promise; sessions are only ever shared.
    unsafe { session.cast::<Session>().as_ref() }.ok_or_else(|| Fail::new(abi::TB_ECLOSED, "the session is null"))
}

/// # Safety
/// Null or NUL-terminated and alive.
unsafe fn text<'a>(s: *const c_char, what: &str) -> Outcome<&'a str> {
    if s.is_null() {
        return Err(Fail::invalid(format!("{what} is null")));
    }
    // SAFETY: by the caller's promise.
    unsafe { CStr::from_ptr(s) }.to_str().map_err(|_| Fail::invalid(format!("{what} is not UTF-8")))
}

fn place<T>(out: *mut T, what: &str) -> Outcome<&'static mut MaybeUninit<T>> {
    // SAFETY: null, or a place that the caller of the table lends for the call.
    unsafe { out.cast::<MaybeUninit<T>>().as_mut() }.ok_or_else(|| Fail::invalid(format!("{what} is null")))
}

unsafe extern "C" fn c_describe() -> *const c_char {
    describe::describe()
}

unsafe extern "C" fn c_last_error() -> *const c_char {
    error::last_error()
}

unsafe extern "C" fn c_open(pairs: *const tb_kv, n: usize, host: *const tb_host, out: *mut *mut c_void) -> c_int {
    code((|| {
        let out = place(out, "session")?;
        // SAFETY: the ABI's promise to `open`.
        let pairs = unsafe { kv::read(pairs, n) }?;
        out.write(Box::into_raw(Session::open(&pairs, host)?).cast());
        Ok(())
    })())
}

unsafe extern "C" fn c_create(
    s: *mut c_void,
    kind: c_int,
    mode: c_int,
    topic: *const c_char,
    max_len: u64,
    qos: *const tb_kv,
    n: usize,
    tag: u64,
    ep: *mut u32,
) -> c_int {
    code((|| {
        // SAFETY: the ABI's promise to `create`.
        let (session, topic, pairs) = unsafe { (session(s)?, text(topic, "topic")?, kv::read(qos, n)?) };
        let ep = place(ep, "ep")?;
        let policies = Policies::parse(&pairs, kind == abi::TB_WRITER)?;
        ep.write(session.create(&Wanted { kind, mode, topic, max_len, policies: &policies, tag })?);
        Ok(())
    })())
}

unsafe extern "C" fn c_wait_matched(s: *mut c_void, ep: u32, peers: u32, deadline_ns: i64) -> c_int {
    // SAFETY: the ABI's promise.
    code(unsafe { session(s) }.and_then(|s| s.wait_matched(ep, peers, deadline_ns)))
}

unsafe extern "C" fn c_send(
    s: *mut c_void,
    ep: u32,
    seq: u64,
    data: *const u8,
    len: u64,
    opt: *const tb_send,
) -> c_int {
    // SAFETY: the ABI's promise to `send`: data and options are readable for the call.
    code(unsafe { session(s).and_then(|s| send::send(s.endpoint(ep)?, s.domain.shared, seq, data, len, opt)) })
}

unsafe extern "C" fn c_wait(s: *mut c_void, ep: *const u32, n: usize, deadline_ns: i64, ready: *mut u64) -> c_int {
    code((|| {
        // SAFETY: the ABI's promise to `wait`: n numbers, or none.
        let (session, ids) =
            unsafe { (session(s)?, if n == 0 || ep.is_null() { &[] } else { core::slice::from_raw_parts(ep, n) }) };
        place(ready, "ready")?.write(session.wait(ids, deadline_ns)?);
        Ok(())
    })())
}

unsafe extern "C" fn c_take(s: *mut c_void, ep: u32, out: *mut tb_view, cap: u32, n: *mut u32) -> c_int {
    code((|| {
        // SAFETY: the ABI's promise to `take`: cap views, or none.
        let (session, out) = unsafe {
            let none = cap == 0 || out.is_null();
            (session(s)?, if none { &mut [][..] } else { core::slice::from_raw_parts_mut(out.cast(), cap as usize) })
        };
        place(n, "n")?.write(receive::take(session.endpoint(ep)?, out)?);
        Ok(())
    })())
}

unsafe extern "C" fn c_release(s: *mut c_void, ep: u32, views: *mut tb_view, n: u32) -> c_int {
    code((|| {
        // SAFETY: the ABI's promise to `release`: n views that `take` filled.
        let (session, views) = unsafe {
            let none = n == 0 || views.is_null();
            (session(s)?, if none { &mut [][..] } else { core::slice::from_raw_parts_mut(views, n as usize) })
        };
        receive::release(session.endpoint(ep)?, views);
        Ok(())
    })())
}

unsafe extern "C" fn c_wake(s: *mut c_void) -> c_int {
    // SAFETY: the ABI's promise.
    code(unsafe { session(s) }.and_then(Session::wake))
}

unsafe extern "C" fn c_flush(s: *mut c_void, ep: u32, _deadline_ns: i64) -> c_int {
    // SAFETY: the ABI's promise.
    code(unsafe { session(s) }.and_then(|s| send::flush(s.endpoint(ep)?.open()?)))
}

unsafe extern "C" fn c_wait_acked(s: *mut c_void, ep: u32, deadline_ns: i64) -> c_int {
    // SAFETY: the ABI's promise.
    code(unsafe { session(s) }.and_then(|s| wait::wait_acked(s.endpoint(ep)?, deadline_ns)))
}

unsafe extern "C" fn c_query(s: *mut c_void, ep: u32, what: *const c_char, sink: tb_sink, ctx: *mut c_void) -> c_int {
    code((|| {
        // SAFETY: the ABI's promise to `query`.
        let (session, what) = unsafe { (session(s)?, text(what, "what")?) };
        let sink = sink.ok_or_else(|| Fail::invalid("the sink is null"))?;
        let answer = query::answer(session, ep, what)?.to_string();
        // SAFETY: the host's sink with its own context; the bytes live through the call.
        unsafe { sink(ctx, answer.as_ptr().cast(), answer.len()) };
        Ok(())
    })())
}

unsafe extern "C" fn c_destroy(s: *mut c_void, ep: u32) -> c_int {
    // SAFETY: the ABI's promise.
    code(unsafe { session(s) }.and_then(|s| s.destroy(ep)))
}

unsafe extern "C" fn c_close(s: *mut c_void) {
    if !s.is_null() {
        // SAFETY: came from `open`, and the host calls nothing else with it from here on.
        drop(unsafe { Box::from_raw(s.cast::<Session>()) });
    }
}
