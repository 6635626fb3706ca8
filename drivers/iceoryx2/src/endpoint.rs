//! One writer or reader of a session.

use core::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use iceoryx2::prelude::PortFactory;
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_ETOOBIG, tb_view};

use crate::qos::Qos;
use crate::reader::{Lent, Reader};
use crate::service::Messages;
use crate::writer::Writer;

/// What iceoryx2 has for an end point.
pub enum Ports {
    Writer(Writer),
    Reader(Reader),
}

impl Ports {
    /// The service for messages to which the ports belong.
    fn messages(&self) -> &Messages {
        match self {
            Ports::Writer(writer) => &writer.messages,
            Ports::Reader(reader) => &reader.messages,
        }
    }
}

/// One end point of a session. The end point stays in memory after it is closed, until its session ends.
pub struct Endpoint {
    /// Number of the end point within the session, from 1.
    pub id: u32,
    /// Whether the end point is a writer.
    pub writer: bool,
    /// Number with which callbacks name the end point.
    pub tag: u64,
    /// Name of the end point's topic.
    pub topic: String,
    /// Largest payload in bytes.
    pub max_len: u64,
    /// Whether the loading program has called `destroy` for the end point.
    pub closed: AtomicBool,
    /// The ports of the end point, which `destroy` removes. A call that uses the ports holds the lock for reading.
    pub ports: RwLock<Option<Ports>>,
    /// The messages that are lent; a lent message outlives the ports.
    pub lent: Lent,
}

/// Guard: keeps the ports of an end point alive while a call uses them.
pub struct Held<'a>(RwLockReadGuard<'a, Option<Ports>>, u32);

impl Held<'_> {
    #[inline]
    pub fn reader(&self) -> Outcome<&Reader> {
        match &*self.0 {
            Some(Ports::Reader(reader)) => Ok(reader),
            Some(Ports::Writer(_)) => fail(TB_EINVAL, format!("end point {} is a writer", self.1)),
            None => Err(Fail::closed(self.1)),
        }
    }

    #[inline]
    pub fn writer(&self) -> Outcome<&Writer> {
        match &*self.0 {
            Some(Ports::Writer(writer)) => Ok(writer),
            Some(Ports::Reader(_)) => fail(TB_EINVAL, format!("end point {} is a reader", self.1)),
            None => Err(Fail::closed(self.1)),
        }
    }

    fn ports(&self) -> Outcome<&Ports> {
        self.0.as_ref().ok_or_else(|| Fail::closed(self.1))
    }

    /// The service for messages of the end point.
    pub fn messages(&self) -> Outcome<&Messages> {
        self.ports().map(Ports::messages)
    }

    /// Number of readers of the topic for a writer, and of writers for a reader.
    pub fn matched(&self) -> Outcome<usize> {
        let ports = self.ports()?;
        let now = ports.messages().dynamic_config();
        Ok(match ports {
            Ports::Writer(_) => now.number_of_subscribers(),
            Ports::Reader(_) => now.number_of_publishers(),
        })
    }

    /// Connects the end point to the peers that exist now.
    pub fn connect(&self) -> Outcome {
        match self.ports()? {
            Ports::Writer(writer) => writer.connect(),
            Ports::Reader(reader) => reader.connect(),
        }
    }

    /// The policies in effect.
    pub fn qos(&self) -> Outcome<Qos> {
        Ok(match self.ports()? {
            Ports::Writer(writer) => writer.qos(),
            Ports::Reader(reader) => reader.qos(),
        })
    }
}

impl Endpoint {
    /// The ports of an end point that is not closed.
    #[inline]
    pub fn held(&self) -> Outcome<Held<'_>> {
        if self.closed.load(SeqCst) {
            return Err(Fail::closed(self.id));
        }
        Ok(Held(self.ports.read().unwrap_or_else(PoisonError::into_inner), self.id))
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

    /// Takes the messages that have arrived, without blocking.
    #[inline]
    pub fn take(&self, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        self.held()?.reader()?.take(&self.lent, out)
    }

    /// Removes the ports; no other call uses them any more.
    pub fn remove(&self) {
        drop(self.ports.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}
