//! Receiving: the callback of zenoh puts messages into a queue, or gives them to the loading program (receive mode listener).

use core::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tailbound_abi::side::{Host, Outcome};
use tailbound_abi::tb_view;
use zenoh::pubsub::Subscriber;
use zenoh::sample::Sample;
use zenoh::{Session, Wait};

use crate::alive::{Gate, refused};
use crate::event::Events;
use crate::message::Message;
use crate::qos::Qos;
use crate::queue::Queue;

/// What the loading program has taken: messages by place, and the free places.
#[derive(Default)]
pub struct Lent(Mutex<(Vec<Option<Message>>, Vec<u32>)>);

impl Lent {
    /// Makes places: lending this number of messages allocates nothing.
    pub fn new(places: u32) -> Lent {
        Lent(Mutex::new(((0..places).map(|_| None).collect(), (0..places).rev().collect())))
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, (Vec<Option<Message>>, Vec<u32>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn lend(&self, message: Message) -> tb_view {
        let mut places = self.lock();
        let (messages, free) = &mut *places;
        let place = free.pop().unwrap_or_else(|| {
            messages.push(None);
            messages.len() as u32 - 1
        });
        let view = message.view(u64::from(place) + 1);
        messages[place as usize] = Some(message);
        view
    }

    /// Gives back the message that a view shows. Nothing happens if it was given back before.
    #[inline]
    pub fn give_back(&self, view: &mut tb_view) {
        let Some(place) = std::mem::take(&mut view.loan).checked_sub(1) else { return };
        let mut places = self.lock();
        let (messages, free) = &mut *places;
        if messages.get_mut(place as usize).and_then(Option::take).is_some() {
            free.push(place as u32);
        }
    }
}

/// A subscriber of zenoh.
pub struct Reader {
    subscriber: Option<Subscriber<()>>,
    pub queue: Arc<Queue>,
    pub received: Arc<AtomicU64>,
    /// Number of messages that were too short.
    pub malformed: Arc<AtomicU64>,
    qos: Qos,
}

/// Where the messages of a reader go.
pub enum To {
    /// To the loading program, on the thread of zenoh.
    Listener(Host, u64),
    /// Into the queue; the event wakes threads that wait.
    Queue(Arc<Events>),
}

impl Reader {
    pub fn new(session: &Session, key: &str, qos: Qos, to: To, gate: &Arc<Gate>) -> Outcome<Reader> {
        let queue = Arc::new(Queue::new(qos.depth, qos.keep_all));
        let (received, malformed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (gate, into, count, bad) = (gate.clone(), queue.clone(), received.clone(), malformed.clone());
        let arrived = move |sample: Sample| {
            gate.pass(|| {
                let Some(message) = Message::decode(sample.payload(), 0) else {
                    bad.fetch_add(1, Relaxed);
                    return;
                };
                count.fetch_add(1, Relaxed);
                match &to {
                    // SAFETY: the gate is closed before the session is closed, and the message lives during the call.
                    To::Listener(host, tag) => unsafe { host.on_sample(*tag, &message.view(0)) },
                    To::Queue(events) => {
                        into.push(message);
                        events.add();
                    }
                }
            });
        };
        let subscriber = session.declare_subscriber(key.to_owned()).callback(arrived).wait();
        let subscriber = Some(subscriber.map_err(refused("cannot create the subscriber"))?);
        Ok(Reader { subscriber, queue, received, malformed, qos })
    }

    /// Takes the messages that have arrived, without blocking.
    #[inline]
    pub fn take(&self, lent: &Lent, out: &mut [MaybeUninit<tb_view>]) -> usize {
        for (n, to) in out.iter_mut().enumerate() {
            let Some(message) = self.queue.pop() else { return n };
            to.write(lent.lend(message));
        }
        out.len()
    }

    /// The policies of the reader: its queue is the driver's own.
    pub fn qos(&self) -> Qos {
        self.qos
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A session that is closed has no subscribers any more.
        let _ = self.subscriber.take().map(|s| s.undeclare().wait());
    }
}
