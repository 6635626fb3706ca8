//! One publisher or subscription of ROS 2.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use ros2_client::dds::rustdds::mio1::{Interest, Poll, Token};
use ros2_client::dds::rustdds::{GUID, QosPolicies};
use ros2_client::{Publisher, Subscription, WriteError};
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_EIO, TB_ETIMEDOUT, TB_ETOOBIG, TB_EWOULDBLOCK, tb_view};

use crate::error::io;
use crate::sample::{self, Incoming, Outgoing};

/// The ROS 2 entity (publisher or subscription) that belongs to an end point.
#[expect(
    clippy::large_enum_variant,
    reason = "a process has only a few such values, and an allocation of their own would cost one memory access for \
        each message"
)]
pub enum Entity {
    Writer(Publisher<Outgoing>),
    Reader(Reader),
}

/// A subscription of ROS 2, with the data that are needed to wait for samples.
pub struct Reader {
    subscription: Subscription<Incoming>,
    /// Descriptor that is readable if the subscription has a notification that was not read. The descriptor is checked
    /// by `poll(2)`, never by `epoll_wait`, so it shows the state and not only changes of the state.
    events: Poll,
    /// A sample that `wait` took, because a subscription can be checked only by taking a sample.
    found: Mutex<Option<tb_view>>,
}

// SAFETY: the pointer in `found` points to memory that the view owns.
unsafe impl Send for Reader {}
// SAFETY: the view owns its memory, see `Send`; everything else is behind locks.
unsafe impl Sync for Reader {}

impl Reader {
    pub fn new(mut subscription: Subscription<Incoming>) -> Outcome<Reader> {
        let events = Poll::new().map_err(io("cannot make an epoll"))?;
        events
            .registry()
            .register(&mut subscription, Token(0), Interest::READABLE)
            .map_err(io("cannot watch a subscription"))?;
        Ok(Reader { subscription, events, found: Mutex::new(None) })
    }

    pub fn event_fd(&self) -> RawFd {
        self.events.as_raw_fd()
    }

    #[inline]
    fn next(&self) -> Outcome<Option<tb_view>> {
        match self.subscription.take() {
            Ok(taken) => Ok(taken.map(sample::lend)),
            Err(e) => fail(TB_EIO, format!("ros2-client: {e}")),
        }
    }

    /// Whether the reader has a sample that `take` would return.
    #[inline]
    pub fn has_sample(&self) -> Outcome<bool> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_none() {
            *found = self.next()?;
        }
        Ok(found.is_some())
    }

    /// Takes the samples that have arrived at the reader, without blocking.
    #[inline]
    pub fn take(&self, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, place) in out.iter_mut().enumerate() {
            let view = match found.take() {
                Some(view) => view,
                None => match self.next() {
                    Ok(Some(view)) => view,
                    Err(fail) if n == 0 => return Err(fail),
                    _ => return Ok(n),
                },
            };
            place.write(view);
        }
        Ok(out.len())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(mut view) = self.found.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // SAFETY: the view was never given out.
            unsafe { sample::give_back(&mut view) };
        }
    }
}

/// One end point of a session. The end point stays in memory after it is closed, until its session ends.
pub struct Endpoint {
    /// Number of the end point within the session, from 1.
    pub id: u32,
    /// Identity (GUID) of the end point on the network.
    pub guid: GUID,
    /// Whether the end point is a writer.
    pub writer: bool,
    /// Name of the end point's topic in DDS.
    pub topic: String,
    /// QoS policies of the topic, which the end point inherits.
    pub qos: QosPolicies,
    /// Largest payload that the end point sends or receives, in bytes.
    pub max_len: u64,
    /// Whether the loading program has called `destroy` for the end point.
    pub closed: AtomicBool,
    /// The ROS 2 entity of the end point, which `destroy` removes. A call that uses the entity holds the lock for
    /// reading.
    pub entity: RwLock<Option<Entity>>,
}

/// Guard: keeps the entity of an end point alive while a call uses it.
pub struct Held<'a>(RwLockReadGuard<'a, Option<Entity>>, u32);

impl Held<'_> {
    #[inline]
    pub fn reader(&self) -> Outcome<&Reader> {
        match &*self.0 {
            Some(Entity::Reader(reader)) => Ok(reader),
            Some(Entity::Writer(_)) => fail(TB_EINVAL, format!("end point {} is a writer", self.1)),
            None => Err(Fail::closed(self.1)),
        }
    }

    #[inline]
    fn publisher(&self) -> Outcome<&Publisher<Outgoing>> {
        match &*self.0 {
            Some(Entity::Writer(publisher)) => Ok(publisher),
            Some(Entity::Reader(_)) => fail(TB_EINVAL, format!("end point {} is a reader", self.1)),
            None => Err(Fail::closed(self.1)),
        }
    }
}

impl Endpoint {
    /// Returns the entity of an end point that is not closed.
    #[inline]
    pub fn entity(&self) -> Outcome<Held<'_>> {
        if self.closed.load(SeqCst) {
            return Err(Fail::closed(self.id));
        }
        Ok(Held(self.entity.read().unwrap_or_else(PoisonError::into_inner), self.id))
    }

    /// Publishes one message with a sequence number and a payload.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Outcome {
        if payload.len() as u64 > self.max_len {
            let (len, max) = (payload.len(), self.max_len);
            return fail(TB_ETOOBIG, format!("{len} B of payload; end point {} was made for {max} B", self.id));
        }
        let held = self.entity()?;
        // SAFETY: `publish` serialises the message before it returns, and returns or drops it.
        let payload = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(payload) };
        match held.publisher()?.publish(Outgoing { seq, payload }) {
            Ok(()) => Ok(()),
            Err(WriteError::WouldBlock { .. }) if self.never_blocks() => {
                fail(TB_EWOULDBLOCK, "the send window of RustDDS is full")
            }
            Err(WriteError::WouldBlock { .. }) => {
                fail(TB_ETIMEDOUT, "the send window of RustDDS stayed full for reliability.max_blocking_time")
            }
            Err(e) => fail(TB_EIO, format!("ros2-client: {e}")),
        }
    }

    #[cold]
    fn never_blocks(&self) -> bool {
        self.qos.reliable_max_blocking_time().is_some_and(|t| t.to_nanoseconds() == 0)
    }
}
