//! The table of functions of a [`Session`]: C functions that check their arguments, call the session and keep the text
//! of an error.

use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;

use super::fail::{Fail, Outcome, fail, last};
use super::host::Host;
use super::pair;
use super::raw::{many, many_mut, place, text};
use super::session::{MAX_READERS, Session, Waited, Wanted};
use crate::{
    TB_ABI_MAJOR, TB_ABI_MINOR, TB_EINVAL, TB_ETOOBIG, TB_EUNSUPPORTED, TB_LISTENER, TB_OK, TB_READER, TB_SEND_BATCH,
    TB_SPIN, TB_WOKEN, TB_WRITER, tb_driver, tb_host, tb_kv, tb_send, tb_sink, tb_view,
};

/// Makes the table of functions of a driver whose session type is `S`; the optional functions `loan` and `commit` are
/// null pointers. A driver keeps the table in a `static` and returns its address from `tailbound_driver_v1`.
pub const fn table<S: Session>() -> tb_driver {
    tb_driver {
        abi_major: TB_ABI_MAJOR,
        abi_minor: TB_ABI_MINOR,
        size: size_of::<tb_driver>() as u32,
        flags: 0,
        describe: Some(describe::<S>),
        open: Some(open::<S>),
        create: Some(create::<S>),
        wait_matched: Some(wait_matched::<S>),
        send: Some(send::<S>),
        wait: Some(wait::<S>),
        take: Some(take::<S>),
        release: Some(release::<S>),
        wake: Some(wake::<S>),
        flush: Some(flush::<S>),
        wait_acked: Some(wait_acked::<S>),
        query: Some(query::<S>),
        destroy: Some(destroy::<S>),
        close: Some(close::<S>),
        last_error: Some(last_error),
        loan: None,
        commit: None,
        reserved: [core::ptr::null_mut(); 8],
    }
}

#[inline]
fn code(outcome: Outcome) -> c_int {
    match outcome {
        Ok(()) => TB_OK,
        Err(fail) => fail.report(),
    }
}

/// Returns the session to which a pointer of the caller points, or a failure if the pointer is null.
///
/// # Safety
/// `session` is null, or came from `open` of the same table and was not closed.
#[inline]
unsafe fn session<'a, S: Session>(session: *mut c_void) -> Outcome<&'a S> {
    // SAFETY: the caller of this function promises it; sessions are only shared, never borrowed mutably.
    unsafe { session.cast::<S>().as_ref() }.ok_or_else(|| Fail::invalid("the session is null"))
}

unsafe extern "C" fn describe<S: Session>() -> *const c_char {
    S::describe().as_ptr()
}

unsafe extern "C" fn last_error() -> *const c_char {
    last()
}

unsafe extern "C" fn open<S: Session>(kv: *const tb_kv, n: usize, host: *const tb_host, s: *mut *mut c_void) -> c_int {
    code((|| {
        // SAFETY: by the rules of the ABI the pointers point to `n` pairs, a host, and memory for the session.
        let (host, pairs, s) = unsafe { (Host::read(host)?, pair::read(kv, n)?, place("session", s)?) };
        s.write(Box::into_raw(Box::new(S::open(&pairs, host)?)).cast());
        Ok(())
    })())
}

unsafe extern "C" fn create<S: Session>(
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
        // SAFETY: by the rules of the ABI `s` is open; the other pointers point to a string, `n` pairs and memory for
        // the result.
        let (s, topic, qos, ep) =
            unsafe { (session::<S>(s)?, text("topic", topic)?, pair::read(qos, n)?, place("ep", ep)?) };
        if kind != TB_WRITER && kind != TB_READER {
            return fail(TB_EINVAL, format!("kind {kind} is neither TB_WRITER nor TB_READER"));
        }
        if kind == TB_READER && !(TB_LISTENER..=TB_SPIN).contains(&mode) {
            return fail(TB_EUNSUPPORTED, format!("receive mode {mode} does not exist"));
        }
        if kind == TB_READER && mode == TB_LISTENER && !s.host().listens() {
            return fail(TB_EINVAL, "the receive mode listener needs the callback on_sample of the loading program");
        }
        let most = S::MAX_PAYLOAD_BYTES;
        if max_len > most {
            return fail(TB_ETOOBIG, format!("max_len {max_len} B is more than the driver's limit of {most} B"));
        }
        ep.write(s.create(&Wanted { kind, mode, topic, max_len, qos: &qos, tag })?);
        Ok(())
    })())
}

unsafe extern "C" fn wait_matched<S: Session>(s: *mut c_void, ep: u32, peers: u32, deadline_ns: i64) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session::<S>(s) }.and_then(|s| s.wait_matched(ep, peers, deadline_ns)))
}

/// Reads the options of a `send` call: when the message is to leave (0: at once), and whether it may wait in a batch.
///
/// # Safety
/// `opt` is null or points to options with `size` readable bytes.
#[inline]
unsafe fn options(opt: *const tb_send) -> Outcome<(i64, bool)> {
    if opt.is_null() {
        return Ok((0, false));
    }
    // SAFETY: every version of the ABI begins `tb_send` with its size.
    if (unsafe { (*opt).size } as usize) < size_of::<tb_send>() {
        return fail(TB_EINVAL, "the options of send are too short for ABI 1.0");
    }
    // SAFETY: the whole struct is readable, which was checked above.
    let tb_send { txtime_ns, flags, .. } = unsafe { *opt };
    Ok((txtime_ns, flags & TB_SEND_BATCH != 0))
}

unsafe extern "C" fn send<S: Session>(
    s: *mut c_void,
    ep: u32,
    seq: u64,
    data: *const u8,
    len: u64,
    opt: *const tb_send,
) -> c_int {
    code((|| {
        // This check comes before the slice is made: no slice may be longer than the address space.
        if len > S::MAX_PAYLOAD_BYTES {
            return Err(too_big(len, S::MAX_PAYLOAD_BYTES));
        }
        // SAFETY: by the rules of the ABI `s` is open, `data` points to `len` bytes, and `opt` is null or valid.
        let (s, payload, options) = unsafe { (session::<S>(s)?, many("data", data, len as usize)?, options(opt)?) };
        match options {
            (0, batch) => s.send(ep, seq, payload, batch),
            (txtime_ns, _) => s.send_at(ep, seq, payload, txtime_ns),
        }
    })())
}

#[cold]
fn too_big(len: u64, most: u64) -> Fail {
    Fail::new(TB_ETOOBIG, format!("{len} B of payload; the driver takes at most {most} B"))
}

unsafe extern "C" fn wait<S: Session>(
    s: *mut c_void,
    ep: *const u32,
    n: usize,
    deadline_ns: i64,
    ready: *mut u64,
) -> c_int {
    let mut woken = false;
    let outcome = (|| {
        // SAFETY: `ready` is writable by the rules of the ABI.
        let ready = unsafe { place("ready", ready) }?.write(0);
        if !(1..=MAX_READERS).contains(&n) {
            return fail(TB_EINVAL, "wait takes 1 to 64 readers");
        }
        // SAFETY: by the rules of the ABI `s` is open and `ep` points to `n` numbers.
        let (s, eps) = unsafe { (session::<S>(s)?, many("ep", ep, n)?) };
        match s.wait(eps, deadline_ns)? {
            Waited::Ready(bits) => *ready = bits,
            Waited::Woken => woken = true,
        }
        Ok(())
    })();
    // `TB_WOKEN` is not an error, so there is no text.
    if woken { TB_WOKEN } else { code(outcome) }
}

unsafe extern "C" fn take<S: Session>(s: *mut c_void, ep: u32, out: *mut tb_view, cap: u32, n: *mut u32) -> c_int {
    code((|| {
        // SAFETY: `n` is writable by the rules of the ABI.
        let n = unsafe { place("n", n) }?.write(0);
        // SAFETY: by the rules of the ABI `s` is open and `out` has room for `cap` views, which may be uninitialised.
        let (s, out) =
            unsafe { (session::<S>(s)?, many_mut("out", out.cast::<MaybeUninit<tb_view>>(), cap as usize)?) };
        *n = s.take(ep, out)? as u32;
        Ok(())
    })())
}

unsafe extern "C" fn release<S: Session>(s: *mut c_void, ep: u32, views: *mut tb_view, n: u32) -> c_int {
    code((|| {
        // SAFETY: by the rules of the ABI `s` is open and `views` points to `n` views that `take` filled.
        let (s, views) = unsafe { (session::<S>(s)?, many_mut("views", views, n as usize)?) };
        s.release(ep, views)
    })())
}

unsafe extern "C" fn wake<S: Session>(s: *mut c_void) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session::<S>(s) }.and_then(S::wake))
}

unsafe extern "C" fn flush<S: Session>(s: *mut c_void, ep: u32, deadline_ns: i64) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session::<S>(s) }.and_then(|s| s.flush(ep, deadline_ns)))
}

unsafe extern "C" fn wait_acked<S: Session>(s: *mut c_void, ep: u32, deadline_ns: i64) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session::<S>(s) }.and_then(|s| s.wait_acked(ep, deadline_ns)))
}

unsafe extern "C" fn query<S: Session>(
    s: *mut c_void,
    ep: u32,
    what: *const c_char,
    sink: tb_sink,
    ctx: *mut c_void,
) -> c_int {
    code((|| {
        // SAFETY: by the rules of the ABI `s` is open and `what` is a string.
        let (s, what) = unsafe { (session::<S>(s)?, text("what", what)?) };
        let Some(sink) = sink else { return fail(TB_EINVAL, "sink is null") };
        let answer = s.query(ep, what)?;
        // SAFETY: the sink is called with the context that belongs to it; the bytes live until the call returns.
        unsafe { sink(ctx, answer.as_ptr().cast(), answer.len()) };
        Ok(())
    })())
}

unsafe extern "C" fn destroy<S: Session>(s: *mut c_void, ep: u32) -> c_int {
    // SAFETY: `s` is an open session by the rules of the ABI.
    code(unsafe { session::<S>(s) }.and_then(|s| s.destroy(ep)))
}

unsafe extern "C" fn close<S: Session>(s: *mut c_void) {
    if !s.is_null() {
        // SAFETY: `s` came from `open`, and the host closes a session once, while no other call uses it.
        drop(unsafe { Box::from_raw(s.cast::<S>()) });
    }
}
