//! One publisher or subscription of rcl.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_ETOOBIG, TB_WRITER};

use crate::entity::Entity;
use crate::listen::Listening;
use crate::message::Buffer;
use crate::reader::Reader;
use crate::set::Set;

/// A publisher with the memory of its message.
pub struct Writer {
    pub entity: Entity,
    buffer: Mutex<Box<Buffer>>,
}

impl Writer {
    pub fn new(entity: Entity, max_len: u64) -> Outcome<Writer> {
        let buffer = Mutex::new(Buffer::new(entity.ros, max_len)?);
        Ok(Writer { entity, buffer })
    }

    /// Publishes one message.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Outcome {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.write(seq, payload);
        let ros = self.entity.ros;
        let publish = ros.f.rcl_publish_serialized_message;
        // SAFETY: all pointers are valid during the call.
        let result = unsafe { publish(self.entity.pointer(), buffer.raw(), std::ptr::null_mut()) };
        ros.check("rcl_publish_serialized_message", result)
    }
}

/// A subscription with what its receive mode needs. The members are dropped in this order: first the callback ends, at last the
/// subscription, which nothing else uses then.
pub struct Subscribed {
    /// The callback of receive mode listener.
    pub listening: Option<Listening>,
    /// The wait set of this reader alone, in receive mode block.
    pub set: Option<Arc<Set>>,
    pub reader: Arc<Reader>,
}

/// What rcl has for an end point.
pub enum Made {
    Writer(Writer),
    Reader(Subscribed),
}

/// One end point of a session. The end point stays in memory after it is closed, until its session ends.
pub struct Endpoint {
    /// Number of the end point within the session, from 1.
    pub id: u32,
    /// Kind of the end point: `TB_WRITER` or `TB_READER`.
    pub kind: core::ffi::c_int,
    /// Receive mode of a reader.
    pub mode: core::ffi::c_int,
    /// Number with which callbacks name the end point.
    pub tag: u64,
    /// Largest payload in bytes.
    pub max_len: u64,
    /// Name of the topic in ROS 2.
    pub topic: CString,
    /// Whether the loading program has called `destroy`.
    pub closed: AtomicBool,
    /// Number of calls that wait on this end point now.
    pub waiting: AtomicU32,
    /// What rcl has for the end point, which `destroy` removes. A call that uses it holds the lock for reading.
    pub made: RwLock<Option<Made>>,
}

/// Guard: keeps what rcl has for an end point while a call uses it.
pub struct Held<'a>(RwLockReadGuard<'a, Option<Made>>, u32);

impl Held<'_> {
    #[inline]
    pub fn subscribed(&self) -> Outcome<&Subscribed> {
        match &*self.0 {
            Some(Made::Reader(subscribed)) => Ok(subscribed),
            Some(Made::Writer(_)) => fail(TB_EINVAL, format!("end point {} is a writer", self.1)),
            None => Err(Fail::closed(self.1)),
        }
    }

    #[inline]
    pub fn writer(&self) -> Outcome<&Writer> {
        match &*self.0 {
            Some(Made::Writer(writer)) => Ok(writer),
            Some(Made::Reader(_)) => fail(TB_EINVAL, format!("end point {} is a reader", self.1)),
            None => Err(Fail::closed(self.1)),
        }
    }

    /// The publisher or subscription.
    pub fn entity(&self) -> Outcome<&Entity> {
        match &*self.0 {
            Some(Made::Writer(writer)) => Ok(&writer.entity),
            Some(Made::Reader(subscribed)) => Ok(&subscribed.reader.entity),
            None => Err(Fail::closed(self.1)),
        }
    }
}

impl Endpoint {
    /// What rcl has for an end point that is not closed.
    #[inline]
    pub fn held(&self) -> Outcome<Held<'_>> {
        if self.closed.load(SeqCst) {
            return Err(Fail::closed(self.id));
        }
        Ok(Held(self.made.read().unwrap_or_else(PoisonError::into_inner), self.id))
    }

    /// Whether the end point is a writer.
    pub fn is_writer(&self) -> bool {
        self.kind == TB_WRITER
    }

    /// Publishes one message with a sequence number and a payload.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Outcome {
        if payload.len() as u64 > self.max_len {
            let (len, max) = (payload.len(), self.max_len);
            return fail(TB_ETOOBIG, format!("{len} B of payload; end point {} was made for {max} B", self.id));
        }
        self.held()?.writer()?.send(seq, payload)
    }

    /// Removes the end point from rcl; no other call uses it any more.
    pub fn remove(&self) {
        drop(self.made.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}
