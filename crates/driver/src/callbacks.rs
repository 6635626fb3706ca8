//! Functions of the program that loads a driver, which the driver calls (callbacks).

use std::ffi::{CStr, c_char, c_int, c_void};

use tailbound_abi::{tb_host, tb_view};

use crate::hot::Hot;
use crate::view::View;

/// Severity of a log message of the middleware, from its number in the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Log level of an error message (level 0 in the ABI).
    Error,
    /// Log level of a warning (level 1 in the ABI).
    Warning,
    /// Log level of an informative message (level 2 in the ABI).
    Info,
    /// Log level of debugging output of the middleware (level 3 and above in the ABI).
    Debug,
}

/// The functions of the loading program that a session calls. They run on threads of the middleware, several at the
/// same time; a panic in such a function ends the process.
pub trait Callbacks: Send + Sync + 'static {
    /// Receives a sample that arrived at the reader made with `tag` (listener mode). The function may send and take
    /// samples through `hot`, and call nothing else.
    fn on_sample(&self, hot: &Hot, tag: u64, view: &View);

    /// Receives a new number of matched peers: `now` is the number of matched peers of the end point that was made with
    /// `tag`.
    fn on_match(&self, tag: u64, now: i32) {
        let _ = (tag, now);
    }

    /// Receives a log message that the middleware wrote.
    fn log(&self, level: LogLevel, text: &str) {
        let _ = (level, text);
    }
}

/// A loading program that ignores all callbacks, for sessions without a listener.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Callbacks for Silent {
    fn on_sample(&self, _: &Hot, _: u64, _: &View) {}
}

/// The data that a session's callbacks use (type `C`); the pointer `tb_host.ctx` points to these data.
pub(crate) struct Shared<C> {
    pub(crate) hot: Hot,
    pub(crate) callbacks: std::sync::Arc<C>,
}

/// Makes the C table of the loading program for `Shared<C>`. Each type `C` has its own set of functions, so that calls
/// into `C` can be inlined.
pub(crate) fn host<C: Callbacks>(shared: *const Shared<C>) -> tb_host {
    tb_host {
        size: size_of::<tb_host>() as u32,
        reserved: 0,
        ctx: shared.cast_mut().cast(),
        on_sample: Some(on_sample::<C>),
        on_match: Some(on_match::<C>),
        log: Some(log::<C>),
    }
}

unsafe extern "C" fn on_sample<C: Callbacks>(ctx: *mut c_void, tag: u64, view: *const tb_view) {
    // SAFETY: `ctx` is the `Shared<C>` that was passed to `open`, which outlives the session; the view is valid during
    // this call.
    let (shared, view) = unsafe { (&*ctx.cast::<Shared<C>>(), View::from_raw(view)) };
    shared.callbacks.on_sample(&shared.hot, tag, view);
}

unsafe extern "C" fn on_match<C: Callbacks>(ctx: *mut c_void, tag: u64, now: i32) {
    // SAFETY: `ctx` is the `Shared<C>` that was passed to `open`.
    unsafe { &*ctx.cast::<Shared<C>>() }.callbacks.on_match(tag, now);
}

unsafe extern "C" fn log<C: Callbacks>(ctx: *mut c_void, level: c_int, text: *const c_char) {
    if text.is_null() {
        return;
    }
    // SAFETY: `ctx` is the `Shared<C>` that was passed to `open`; by the rules of the ABI `text` ends with a NUL byte.
    let (shared, text) = unsafe { (&*ctx.cast::<Shared<C>>(), CStr::from_ptr(text)) };
    let level = match level {
        ..=0 => LogLevel::Error,
        1 => LogLevel::Warning,
        2 => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    shared.callbacks.log(level, &text.to_string_lossy());
}
