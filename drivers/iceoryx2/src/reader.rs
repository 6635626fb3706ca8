//! Receiving: messages stay in the memory of their writer until they are released.

use core::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use iceoryx2::port::ReceiveError;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use iceoryx2::sample::Sample;
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EIO, TB_ENOMEM, tb_view};

use crate::node::Ipc;
use crate::qos::Qos;
use crate::service::{Messages, Wakeups};

/// A message that a reader has received.
type Message = Sample<Ipc, [u8], u64>;

/// Messages that are lent to the loading program: a place for each message that a reader may lend at a time.
pub struct Lent(Mutex<Places>);

struct Places {
    messages: Box<[Option<Message>]>,
    /// Indices of the free places.
    free: Vec<u32>,
}

impl Lent {
    pub fn new(places: usize) -> Lent {
        let free = (0..places as u32).rev().collect();
        Lent(Mutex::new(Places { messages: (0..places).map(|_| None).collect(), free }))
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back the message that a view shows. Nothing happens if it was given back before.
    #[inline]
    pub fn give_back(&self, view: &mut tb_view) {
        let Some(place) = std::mem::take(&mut view.loan).checked_sub(1) else { return };
        let mut places = self.lock();
        if places.messages.get_mut(place as usize).and_then(Option::take).is_some() {
            places.free.push(place as u32);
        }
    }

    /// Takes messages of a subscriber, until there is none, or none may be lent any more.
    #[inline]
    fn fill(&self, subscriber: &Subscriber<Ipc, [u8], u64>, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        let mut places = self.lock();
        for (n, to) in out.iter_mut().enumerate() {
            let Some(place) = places.free.last().copied() else {
                return if n > 0 { Ok(n) } else { fail(TB_ENOMEM, "all messages that a reader may lend are lent") };
            };
            let message = match subscriber.receive() {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(n),
                Err(_) if n > 0 => return Ok(n),
                Err(e) => return Err(cannot_receive(e)),
            };
            let payload = message.payload();
            to.write(tb_view {
                seq: *message.user_header(),
                data: payload.as_ptr(),
                len: payload.len() as u64,
                writer: message.header().publisher_id().value() as u64,
                loan: u64::from(place) + 1,
                ..tb_view::default()
            });
            places.free.pop();
            places.messages[place as usize] = Some(message);
        }
        Ok(out.len())
    }
}

#[cold]
fn cannot_receive(e: ReceiveError) -> Fail {
    Fail::new(TB_EIO, format!("iceoryx2: {e:?}"))
}

/// A subscriber and, in receive mode block, the listener of its events. The members are dropped in this order.
pub struct Reader {
    subscriber: Subscriber<Ipc, [u8], u64>,
    listener: Option<Listener<Ipc>>,
    /// The services, which exist as long as their ports.
    pub messages: Messages,
    _wakeups: Wakeups,
    qos: Qos,
}

impl Reader {
    pub fn new(messages: Messages, wakeups: Wakeups, qos: Qos, blocks: bool) -> Outcome<Reader> {
        let failed = |what: &str, e: &dyn std::fmt::Debug| {
            Fail::new(TB_EIO, format!("the {what} cannot be created: iceoryx2: {e:?}"))
        };
        // The listener comes first: who finds the subscriber can wake it.
        let listener = blocks.then(|| wakeups.listener_builder().create()).transpose();
        let listener = listener.map_err(|e| failed("listener", &e))?;
        let builder = messages.subscriber_builder().buffer_size(qos.buffer).history_request(qos.history);
        let subscriber = builder.create().map_err(|e| failed("subscriber", &e))?;
        Ok(Reader { subscriber, listener, messages, _wakeups: wakeups, qos })
    }

    /// Descriptor that is readable if an event has arrived; `None` if the reader does not block.
    pub fn event_fd(&self) -> Option<RawFd> {
        // SAFETY: the listener keeps the descriptor open as long as the reader exists.
        self.listener.as_ref().map(|l| unsafe { l.file_descriptor().native_handle() })
    }

    /// Forgets the events that have arrived.
    #[inline]
    pub fn forget_events(&self) -> Outcome {
        let Some(listener) = &self.listener else { return Ok(()) };
        match listener.try_wait(|_| {}) {
            Ok(_) => Ok(()),
            Err(e) => fail(TB_EIO, format!("the events cannot be read: iceoryx2: {e:?}")),
        }
    }

    /// Whether `take` would return a message.
    #[inline]
    pub fn has_sample(&self) -> Outcome<bool> {
        match self.subscriber.has_samples() {
            Ok(has) => Ok(has),
            Err(e) => fail(TB_EIO, format!("iceoryx2: {e:?}")),
        }
    }

    /// Takes the messages that have arrived, without blocking.
    #[inline]
    pub fn take(&self, lent: &Lent, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        lent.fill(&self.subscriber, out)
    }

    /// Connects the reader to writers that exist now, so that their buffers have this reader from the first message on.
    pub fn connect(&self) -> Outcome {
        self.subscriber
            .update_connections()
            .map_err(|e| Fail::new(TB_EIO, format!("a writer cannot be reached: iceoryx2: {e:?}")))
    }

    /// The policies in effect, as iceoryx2 has them. Reliability is a property of writers: a reader has what was asked for.
    pub fn qos(&self) -> Qos {
        let service = self.messages.static_config();
        Qos { keep_all: !service.has_safe_overflow(), buffer: self.subscriber.buffer_size(), ..self.qos }
    }

    /// Identity of the subscriber.
    pub fn id(&self) -> u128 {
        self.subscriber.id().value()
    }
}
