//! The C table over [`Session`].

use std::ffi::{c_char, c_int, c_void};

use tailbound_abi::{
    TB_ABI_MAJOR, TB_ABI_MINOR, TB_EINVAL, TB_EUNSUPPORTED, TB_OK, TB_WOKEN, tb_driver, tb_host, tb_kv, tb_send,
    tb_sink, tb_view,
};

use crate::error::{Outcome, code, fail, last};
use crate::options::{self, Options};
use crate::session::{Session, Waited};

mod query;

/// The driver table of `null`.
pub fn table() -> *const tb_driver {
    &raw const TABLE
}

static TABLE: tb_driver = tb_driver {
    abi_major: TB_ABI_MAJOR,
    abi_minor: TB_ABI_MINOR,
    size: size_of::<tb_driver>() as u32,
    flags: 0,
    describe: Some(query::describe),
    open: Some(open),
    create: Some(create),
    wait_matched: Some(wait_matched),
    send: Some(send),
    wait: Some(wait),
    take: Some(take),
    release: Some(release),
    wake: Some(wake),
    flush: Some(flush),
    wait_acked: Some(flush),
    query: Some(query),
    destroy: Some(destroy),
    close: Some(close),
    last_error: Some(last_error),
    loan: None,
    commit: None,
    reserved: [std::ptr::null_mut(); 8],
};

/// # Safety
/// `session` is null or came from `open` and was not closed.
#[inline]
unsafe fn session<'a>(session: *mut c_void) -> Outcome<&'a Session> {
    // SAFETY: the caller's promise.
    unsafe { session.cast::<Session>().as_ref() }.map_or_else(|| fail(TB_EINVAL, "the session is null"), Ok)
}

unsafe extern "C" fn open(kv: *const tb_kv, n: usize, host: *const tb_host, out: *mut *mut c_void) -> c_int {
    code((|| {
        if host.is_null() || out.is_null() {
            return fail(TB_EINVAL, "host and session must not be null");
        }
        // SAFETY: every version of the ABI begins `tb_host` with its size.
        if (unsafe { (*host).size } as usize) < size_of::<tb_host>() {
            return fail(TB_EINVAL, "the host's table is too short for ABI 1.0");
        }
        // SAFETY: the pointers are the caller's, valid by the rules of the ABI.
        unsafe { out.write(Box::into_raw(Box::new(Session::open(Options::parse(kv, n)?, *host)?)).cast()) };
        Ok(())
    })())
}

unsafe extern "C" fn create(
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
        if ep.is_null() {
            return fail(TB_EINVAL, "ep is null");
        }
        // SAFETY: the pointers are the caller's, valid by the rules of the ABI.
        unsafe {
            options::refuse_qos(qos, n)?;
            ep.write(session(s)?.create(kind, mode, options::text("topic", topic)?, max_len, tag)?);
        }
        Ok(())
    })())
}

unsafe extern "C" fn wait_matched(s: *mut c_void, ep: u32, peers: u32, deadline_ns: i64) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session(s) }.and_then(|s| s.wait_matched(ep, peers, deadline_ns)))
}

unsafe extern "C" fn send(s: *mut c_void, ep: u32, seq: u64, data: *const u8, len: u64, opt: *const tb_send) -> c_int {
    // SAFETY: `s` is an open session, `opt` null or valid, by the rules of the ABI.
    let (s, opt) = unsafe { (session(s), opt.as_ref()) };
    let outcome = s.and_then(|s| match (data.is_null() && len > 0, opt) {
        (true, _) => fail(TB_EINVAL, "data is null"),
        (_, Some(opt)) if opt.txtime_ns != 0 => fail(TB_EUNSUPPORTED, "the null driver has no launch time"),
        // SAFETY: `data` points to `len` octets by the rules of the ABI.
        _ => unsafe { s.send(ep, seq, data, len) },
    });
    match outcome {
        Ok(()) => TB_OK,
        failed => code(failed),
    }
}

unsafe extern "C" fn wait(s: *mut c_void, ep: *const u32, n: usize, deadline_ns: i64, ready: *mut u64) -> c_int {
    let mut woken = false;
    let outcome = (|| {
        if ep.is_null() || ready.is_null() {
            return fail(TB_EINVAL, "ep and ready must not be null");
        }
        // SAFETY: `ep` points to `n` numbers and `ready` is writable, by the rules of the ABI.
        unsafe {
            ready.write(0);
            match session(s)?.wait(std::slice::from_raw_parts(ep, n), deadline_ns)? {
                Waited::Ready(bits) => ready.write(bits),
                Waited::Woken => woken = true,
            }
        }
        Ok(())
    })();
    if woken { TB_WOKEN } else { code(outcome) }
}

unsafe extern "C" fn take(s: *mut c_void, ep: u32, out: *mut tb_view, cap: u32, n: *mut u32) -> c_int {
    code((|| {
        if n.is_null() || (out.is_null() && cap > 0) {
            return fail(TB_EINVAL, "out and n must not be null");
        }
        // SAFETY: `out` has room for `cap` views and `n` is writable, by the rules of the ABI.
        unsafe {
            n.write(0);
            if cap > 0 {
                n.write(session(s)?.take(ep, std::slice::from_raw_parts_mut(out, cap as usize))? as u32);
            }
        }
        Ok(())
    })())
}

unsafe extern "C" fn release(s: *mut c_void, ep: u32, views: *mut tb_view, n: u32) -> c_int {
    code((|| {
        if views.is_null() || n == 0 {
            return Ok(());
        }
        // SAFETY: `views` points to `n` views by the rules of the ABI.
        unsafe { session(s)?.release(ep, std::slice::from_raw_parts(views, n as usize)) }
    })())
}

unsafe extern "C" fn wake(s: *mut c_void) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session(s) }.map(Session::wake))
}

/// Also `wait_acked`: what `send` reported as sent is delivered.
unsafe extern "C" fn flush(s: *mut c_void, ep: u32, _deadline_ns: i64) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session(s) }.and_then(|s| s.existing(ep).map(|_| ())))
}

unsafe extern "C" fn query(s: *mut c_void, ep: u32, what: *const c_char, sink: tb_sink, ctx: *mut c_void) -> c_int {
    code((|| {
        // SAFETY: the pointers are the caller's, valid by the rules of the ABI.
        let (s, what) = unsafe { (session(s)?, options::text("what", what)?) };
        let Some(sink) = sink else { return fail(TB_EINVAL, "sink is null") };
        query::answer(s, ep, what, |bytes| {
            // SAFETY: the sink reads `len` bytes during the call.
            unsafe { sink(ctx, bytes.as_ptr().cast(), bytes.len()) };
        })
    })())
}

unsafe extern "C" fn destroy(s: *mut c_void, ep: u32) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session(s) }.and_then(|s| s.destroy(ep)))
}

unsafe extern "C" fn close(s: *mut c_void) {
    if !s.is_null() {
        // SAFETY: `s` came from `open`, and the host closes it once, when no call is inside.
        drop(unsafe { Box::from_raw(s.cast::<Session>()) });
    }
}

unsafe extern "C" fn last_error() -> *const c_char {
    last()
}
