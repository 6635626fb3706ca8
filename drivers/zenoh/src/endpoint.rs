//! One writer or reader of a session.

use core::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_ETOOBIG, tb_view};

use crate::alive::{Gate, Peers, Presence};
use crate::qos::Qos;
use crate::reader::{Lent, Reader};
use crate::writer::Writer;

/// What zenoh has for an end point.
pub enum Entity {
    Writer(Writer),
    Reader(Reader),
}

/// What belongs to an open end point. The members are dropped in this order: first the token, so that peers learn of the end.
pub struct Made {
    pub _presence: Presence,
    pub entity: Entity,
}

/// One end point of a session. The end point stays in memory after it is closed, until its session ends.
pub struct Endpoint {
    /// Number of the end point within the session, from 1.
    pub id: u32,
    /// Whether the end point is a writer.
    pub writer: bool,
    /// Whether the end point is a reader with receive mode block.
    pub blocks: bool,
    /// Name of the end point's topic.
    pub topic: String,
    /// Largest payload in bytes.
    pub max_len: u64,
    /// Whether the loading program has called `destroy` for the end point.
    pub closed: AtomicBool,
    /// The present peers of the end point.
    pub peers: Arc<Peers>,
    /// Guard of the callbacks of the end point.
    pub gate: Arc<Gate>,
    /// What `destroy` removes. A call that uses it holds the lock for reading.
    pub made: RwLock<Option<Made>>,
    /// The messages that are lent; a lent message outlives its reader.
    pub lent: Lent,
}

/// Guard: keeps the entity of an end point alive while a call uses it.
pub struct Held<'a>(RwLockReadGuard<'a, Option<Made>>, u32);

impl Held<'_> {
    #[inline]
    fn entity(&self) -> Outcome<&Entity> {
        match &*self.0 {
            Some(made) => Ok(&made.entity),
            None => Err(Fail::closed(self.1)),
        }
    }

    #[inline]
    pub fn reader(&self) -> Outcome<&Reader> {
        match self.entity()? {
            Entity::Reader(reader) => Ok(reader),
            Entity::Writer(_) => fail(TB_EINVAL, format!("end point {} is a writer", self.1)),
        }
    }

    #[inline]
    pub fn writer(&self) -> Outcome<&Writer> {
        match self.entity()? {
            Entity::Writer(writer) => Ok(writer),
            Entity::Reader(_) => fail(TB_EINVAL, format!("end point {} is a reader", self.1)),
        }
    }

    /// The policies in effect.
    pub fn qos(&self) -> Outcome<Qos> {
        Ok(match self.entity()? {
            Entity::Writer(writer) => writer.qos(),
            Entity::Reader(reader) => reader.qos(),
        })
    }
}

impl Endpoint {
    /// The entity of an end point that is not closed.
    #[inline]
    pub fn held(&self) -> Outcome<Held<'_>> {
        if self.closed.load(SeqCst) {
            return Err(Fail::closed(self.id));
        }
        Ok(Held(self.made.read().unwrap_or_else(PoisonError::into_inner), self.id))
    }

    /// Puts one message with a sequence number and a payload.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Outcome {
        if payload.len() as u64 > self.max_len {
            let (len, max) = (payload.len(), self.max_len);
            return fail(TB_ETOOBIG, format!("{len} B of payload; end point {} was made for {max} B", self.id));
        }
        self.held()?.writer()?.send(seq, payload)
    }

    /// Takes the messages that have arrived, without blocking.
    #[inline]
    pub fn take(&self, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        Ok(self.held()?.reader()?.take(&self.lent, out))
    }

    /// Ends the callbacks of the end point, and removes it from the network.
    pub fn remove(&self) {
        // A callback may wait for room in the queue, with the gate open.
        if let Some(Made { entity: Entity::Reader(reader), .. }) =
            &*self.made.read().unwrap_or_else(PoisonError::into_inner)
        {
            reader.queue.close();
        }
        self.gate.close();
        drop(self.made.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}
