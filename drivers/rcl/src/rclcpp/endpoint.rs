//! A publisher or subscription of rclcpp, and the callback that gives messages to the loading program.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tailbound_abi::side::{Fail, Host, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_ETOOBIG, TB_EWOULDBLOCK, TB_WRITER, tb_view};

use super::shim::{FULL, OK, RawMessage, Shim, Status, TIMED_OUT};
use super::taken::Taken;
use crate::facts::Known;
use crate::types::{IncompatibleQos, Profile};

/// Name of the message type in the graph of ROS 2.
const TYPE: &str = "tailbound_msgs/msg/Sample";

/// Receiver of the messages of a subscription.
pub struct Target {
    pub host: Host,
    pub tag: u64,
    /// Times at which the executor took messages; of the whole session.
    pub taken: Arc<Taken>,
    closed: AtomicBool,
    /// Number of callbacks that run now.
    inside: AtomicU32,
}

impl Target {
    pub fn new(host: Host, tag: u64, taken: Arc<Taken>) -> Arc<Target> {
        Arc::new(Target { host, tag, taken, closed: AtomicBool::new(false), inside: AtomicU32::new(0) })
    }

    /// Ends the delivery; no callback runs afterwards.
    fn close(&self) {
        self.closed.store(true, SeqCst);
        while self.inside.load(SeqCst) > 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// `tbr_on_message`: gives a message to the loading program.
pub unsafe extern "C" fn on_message(target: *mut c_void, message: *const RawMessage) {
    // SAFETY: the target lives until `drop_target` was called for it; the message lives during the call.
    let (target, message) = unsafe { (&*target.cast::<Target>().cast_const(), &*message) };
    target.inside.fetch_add(1, SeqCst);
    if !target.closed.load(SeqCst) {
        let RawMessage { seq, data, len, writer, source_ns, taken_ns } = *message;
        let view = tb_view { seq, data, len, writer, source_ns, ..tb_view::default() };
        // SAFETY: the session is not closed before `close` of its targets returned.
        unsafe { target.host.on_sample(target.tag, &view) };
        target.taken.add(seq, taken_ns);
    }
    target.inside.fetch_sub(1, SeqCst);
}

/// `tbr_drop`: rclcpp does not use the target any more.
pub unsafe extern "C" fn drop_target(target: *mut c_void) {
    // SAFETY: the pointer comes from `Arc::into_raw`, and this is called once.
    drop(unsafe { Arc::from_raw(target.cast::<Target>().cast_const()) });
}

/// What rclcpp has for an end point. It ends when this value is dropped, which must be before its session ends.
pub struct End {
    pub shim: &'static Shim,
    /// The `End` of shim.cpp.
    pub raw: *mut c_void,
    /// Of a subscription.
    pub target: Option<Arc<Target>>,
}

// SAFETY: functions of the library may be called from any thread.
unsafe impl Send for End {}
// SAFETY: see `Send`.
unsafe impl Sync for End {}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(target) = &self.target {
            target.close();
        }
        // SAFETY: the pointer is valid, and nobody else has it.
        unsafe { (self.shim.f.destroy)(self.raw) };
    }
}

/// An end point. It stays in memory until its session ends, so that late calls find it closed.
pub struct Endpoint {
    pub id: u32,
    pub kind: c_int,
    pub tag: u64,
    /// Largest payload in bytes.
    pub max_len: u64,
    /// Name of the topic in ROS 2.
    pub topic: CString,
    pub closed: AtomicBool,
    pub end: RwLock<Option<End>>,
}

/// Guard: keeps what rclcpp has for an end point while a call uses it.
struct Held<'a>(RwLockReadGuard<'a, Option<End>>, u32);

impl Held<'_> {
    #[inline]
    fn end(&self) -> Outcome<&End> {
        self.0.as_ref().ok_or_else(|| Fail::closed(self.1))
    }
}

impl Endpoint {
    #[inline]
    fn held(&self) -> Outcome<Held<'_>> {
        match self.closed.load(SeqCst) {
            true => Err(Fail::closed(self.id)),
            false => Ok(Held(self.end.read().unwrap_or_else(PoisonError::into_inner), self.id)),
        }
    }

    /// Fails if the end point is closed, or if it is not a writer and has to be one.
    pub fn verify(&self, must_write: bool) -> Outcome {
        self.held()?;
        match must_write && self.kind != TB_WRITER {
            true => fail(TB_EINVAL, format!("end point {} is a reader", self.id)),
            false => Ok(()),
        }
    }

    /// Publishes one message with a sequence number and a payload.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Outcome {
        if payload.len() as u64 > self.max_len {
            let (len, max) = (payload.len(), self.max_len);
            return fail(TB_ETOOBIG, format!("{len} B of payload; end point {} was made for {max} B", self.id));
        }
        let held = self.held()?;
        let end = held.end()?;
        if self.kind != TB_WRITER {
            return fail(TB_EINVAL, format!("end point {} is a reader", self.id));
        }
        // SAFETY: the publisher is valid while it is held.
        match unsafe { (end.shim.f.send)(end.raw, seq, payload.as_ptr(), payload.len() as u64) } {
            OK => Ok(()),
            FULL => fail(TB_EWOULDBLOCK, "64 messages wait for the timer that publishes them"),
            _ => Err(end.shim.error("publish")),
        }
    }

    /// Waits for acknowledgements for at most this time. Returns whether all samples are acknowledged.
    pub fn acked(&self, step: Duration) -> Outcome<bool> {
        let held = self.held()?;
        let end = held.end()?;
        // SAFETY: the publisher is valid while it is held.
        match unsafe { (end.shim.f.acked)(end.raw, step.as_nanos() as i64) } {
            OK => Ok(true),
            TIMED_OUT => Ok(false),
            _ => Err(end.shim.error("wait_for_all_acked")),
        }
    }

    /// What rclcpp knows about the end point now.
    pub fn status(&self) -> Outcome<Status> {
        let held = self.held()?;
        let end = held.end()?;
        let mut status = core::mem::MaybeUninit::<Status>::uninit();
        // SAFETY: the end is valid while it is held; the function fills in the status if it does not fail.
        unsafe {
            match (end.shim.f.status)(end.raw, status.as_mut_ptr()) {
                OK => Ok(status.assume_init()),
                _ => Err(end.shim.error("status")),
            }
        }
    }

    /// Removes the end point from rclcpp; no other call uses it any more.
    pub fn remove(&self) {
        drop(self.end.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Known for Endpoint {
    fn is_writer(&self) -> bool {
        self.kind == TB_WRITER
    }

    fn topic(&self) -> &CStr {
        &self.topic
    }

    fn type_name(&self) -> &str {
        TYPE
    }

    fn matched(&self) -> Outcome<usize> {
        Ok(self.status()?.matched as usize)
    }

    fn profile(&self) -> Outcome<Profile> {
        Ok(self.status()?.qos)
    }

    fn incompatible(&self) -> Outcome<Option<IncompatibleQos>> {
        let Status { incompatible, policy, .. } = self.status()?;
        Ok((incompatible >= 0).then_some(IncompatibleQos { total: incompatible, change: 0, policy }))
    }

    fn discovered(&self) -> Outcome<usize> {
        Ok(self.status()?.discovered as usize)
    }
}
