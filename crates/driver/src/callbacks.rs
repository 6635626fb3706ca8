//! What the host does when a driver calls.

use std::ffi::{CStr, c_char, c_int, c_void};

use tailbound_abi::{tb_host, tb_view};

use crate::hot::Hot;
use crate::view::View;

/// Importance of a message of the middleware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// 0
    Error,
    /// 1
    Warning,
    /// 2
    Info,
    /// 3 and above
    Debug,
}

/// The host's side of a session. Everything runs on threads of the middleware, several at once; a panic ends the process.
pub trait Callbacks: Send + Sync + 'static {
    /// A sample arrived at the reader made with `tag` (listener mode). May send and take by `hot`, nothing else.
    fn on_sample(&self, hot: &Hot, tag: u64, view: &View);

    /// The number of matched peers of the end point made with `tag` is now `now`.
    fn on_match(&self, tag: u64, now: i32) {
        let _ = (tag, now);
    }

    /// A message of the middleware.
    fn log(&self, level: LogLevel, text: &str) {
        let _ = (level, text);
    }
}

/// A host that ignores everything: for sessions without a listener.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Callbacks for Silent {
    fn on_sample(&self, _: &Hot, _: u64, _: &View) {}
}

/// What `tb_host.ctx` points to, for callbacks of type `C`.
pub(crate) struct Shared<C> {
    pub(crate) hot: Hot,
    pub(crate) callbacks: std::sync::Arc<C>,
}

/// The C table over `Shared<C>`: one set of functions per type, so that the call into `C` can be inlined.
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
    // SAFETY: `ctx` is the `Shared<C>` given to `open`, which outlives the session; the view is valid during this call.
    let (shared, view) = unsafe { (&*ctx.cast::<Shared<C>>(), View::from_raw(view)) };
    shared.callbacks.on_sample(&shared.hot, tag, view);
}

unsafe extern "C" fn on_match<C: Callbacks>(ctx: *mut c_void, tag: u64, now: i32) {
    // SAFETY: as in `on_sample`.
    unsafe { &*ctx.cast::<Shared<C>>() }.callbacks.on_match(tag, now);
}

unsafe extern "C" fn log<C: Callbacks>(ctx: *mut c_void, level: c_int, text: *const c_char) {
    if text.is_null() {
        return;
    }
    // SAFETY: as in `on_sample`; `text` is a NUL-terminated string by the rules of the ABI.
    let (shared, text) = unsafe { (&*ctx.cast::<Shared<C>>(), CStr::from_ptr(text)) };
    let level = match level {
        ..=0 => LogLevel::Error,
        1 => LogLevel::Warning,
        2 => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    shared.callbacks.log(level, &text.to_string_lossy());
}
