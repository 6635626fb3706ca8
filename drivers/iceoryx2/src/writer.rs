//! Sending: one copy of the payload into shared memory, and an event for the readers that block.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::port::{BackpressureAction, SendError};
use iceoryx2::prelude::*;
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EIO, TB_ENOMEM, TB_ETIMEDOUT, TB_ETOOBIG, TB_EWOULDBLOCK};

use crate::node::Ipc;
use crate::qos::Qos;
use crate::service::{Messages, Wakeups, lent};

/// How often a writer found the buffer of a reader full.
#[derive(Default)]
pub struct Waits {
    pub times: AtomicU64,
}

/// A publisher, and the notifier of its events. The members are dropped in this order.
pub struct Writer {
    publisher: Publisher<Ipc, [u8], u64>,
    notifier: Notifier<Ipc>,
    /// The services, which exist as long as their ports.
    pub messages: Messages,
    _wakeups: Wakeups,
    pub waits: Arc<Waits>,
    qos: Qos,
}

impl Writer {
    pub fn new(messages: Messages, wakeups: Wakeups, qos: Qos, max_len: u64) -> Outcome<Writer> {
        let waits = Arc::new(Waits::default());
        let (limit, counted) = (qos.max_blocking_time, waits.clone());
        // Only called if the buffer of a reader is full and its oldest message may not be replaced.
        let full = move |info: &iceoryx2::port::BackpressureInfo| {
            if info.retries == 0 {
                counted.times.fetch_add(1, Relaxed);
            }
            match (qos.reliable, limit) {
                (false, _) => BackpressureAction::DiscardData,
                (true, Some(limit)) if info.elapsed_time >= limit => BackpressureAction::DiscardDataAndFail,
                (true, _) => BackpressureAction::Retry,
            }
        };
        let strategy = match qos.reliable {
            true => BackpressureStrategy::RetryUntilDelivered,
            false => BackpressureStrategy::DiscardData,
        };
        let created = messages
            .publisher_builder()
            .initial_max_slice_len(max_len.max(1) as usize)
            .allocation_strategy(AllocationStrategy::Static)
            .max_loaned_samples(2)
            .backpressure_strategy(strategy)
            .set_backpressure_handler(full)
            .create();
        let publisher = created.map_err(|e| not_created(&messages, max_len, &format!("{e:?}")))?;
        let notifier = wakeups.notifier_builder().create();
        let notifier =
            notifier.map_err(|e| Fail::new(TB_EIO, format!("the notifier cannot be created: iceoryx2: {e:?}")))?;
        Ok(Writer { publisher, notifier, messages, _wakeups: wakeups, waits, qos })
    }

    /// Publishes one message.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Outcome {
        let mut loan = self.publisher.loan_slice_uninit(payload.len()).map_err(|e| cannot_loan(&format!("{e:?}")))?;
        *loan.user_header_mut() = seq;
        let room = loan.payload_mut();
        debug_assert_eq!(room.len(), payload.len());
        // SAFETY: both have the length of the payload, and the loan is memory of its own.
        let message = unsafe {
            room.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(payload.as_ptr(), payload.len());
            loan.assume_init()
        };
        let sent = message.send();
        // Readers that have room have the message also if another reader had none.
        let woken = self.notifier.notify();
        match sent {
            Ok(_) => {}
            Err(SendError::UnableToDeliver) => return self.buffer_full(),
            Err(e) => return fail(TB_EIO, format!("iceoryx2: {e:?}")),
        }
        match woken {
            Ok(_) => Ok(()),
            Err(e) => fail(TB_EIO, format!("the readers cannot be woken: iceoryx2: {e:?}")),
        }
    }

    #[cold]
    fn buffer_full(&self) -> Outcome {
        match self.qos.max_blocking_time {
            Some(time) if time.is_zero() => fail(TB_EWOULDBLOCK, "the buffer of a reader is full"),
            _ => fail(TB_ETIMEDOUT, "the buffer of a reader stayed full for reliability.max_blocking_time"),
        }
    }

    /// Connects the writer to readers that exist now, so that the first message finds them.
    pub fn connect(&self) -> Outcome {
        self.publisher
            .update_connections()
            .map_err(|e| Fail::new(TB_EIO, format!("a reader cannot be reached: iceoryx2: {e:?}")))
    }

    /// The policies in effect, as iceoryx2 has them.
    pub fn qos(&self) -> Qos {
        let service = self.messages.static_config();
        Qos {
            reliable: self.publisher.backpressure_strategy() == BackpressureStrategy::RetryUntilDelivered,
            keep_all: !service.has_safe_overflow(),
            buffer: service.subscriber_max_buffer_size(),
            history: service.history_size(),
            ..self.qos
        }
    }

    /// Identity of the publisher.
    pub fn id(&self) -> u128 {
        self.publisher.id().value()
    }
}

#[cold]
fn cannot_loan(e: &str) -> Fail {
    let code = if e.contains("ExceedsMaxLoanSize") { TB_ETOOBIG } else { TB_ENOMEM };
    Fail::new(code, format!("no memory for a message can be had: iceoryx2: {e}"))
}

/// Explains that the memory for the messages of a writer could not be made: it follows from policies and options.
fn not_created(messages: &Messages, max_len: u64, e: &str) -> Fail {
    let s = messages.static_config();
    let number = s.max_subscribers() * (s.subscriber_max_buffer_size() + lent(max_len)) + s.history_size() + 2;
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let free = free_bytes().map_or_else(String::new, |free| format!(", and /dev/shm has {} MiB free", mib(free)));
    let text = format!(
        "the writer cannot be created: iceoryx2: {e}; it needs shared memory for {number} messages of {max_len} B, {} MiB{free}: \
         use a smaller max_peers, buffer_size, history.depth or payload",
        mib(number as u64 * max_len)
    );
    Fail::new(TB_ENOMEM, text)
}

fn free_bytes() -> Option<u64> {
    // SAFETY: a struct of numbers, for which zero is a value.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a NUL byte, and the struct is writable.
    let result = unsafe { libc::statvfs(c"/dev/shm".as_ptr(), &raw mut found) };
    (result == 0).then(|| found.f_bavail as u64 * found.f_frsize as u64)
}
