//! Receiving: memory for messages, and the take of one message.

use core::mem::MaybeUninit;
use core::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use tailbound_abi::side::Outcome;
use tailbound_abi::tb_view;

use crate::entity::Entity;
use crate::guarded::Guarded;
use crate::message::Buffer;
use crate::types::{MessageInfo, RET_OK, RET_TAKE_FAILED};

/// Largest number of buffers that are made before the first message, and their largest total size in bytes.
const MOST_BUFFERS: usize = 64;
const MOST_BYTES: usize = 16 << 20;

/// A message with what the middleware says about it.
pub type Taken = (Box<Buffer>, MessageInfo);

/// A subscription, and the memory for its messages.
pub struct Reader {
    /// The subscription of rcl.
    pub entity: Entity,
    max_len: u64,
    /// Buffers that are not lent.
    #[expect(clippy::vec_box, reason = "a view keeps its buffer by the address, which must stay")]
    free: Mutex<Vec<Box<Buffer>>>,
}

impl Reader {
    /// Makes the memory for the messages of a subscription.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(entity: Entity, max_len: u64) -> Outcome<Reader> {
        let number = (MOST_BYTES / (max_len as usize + 64)).clamp(2, MOST_BUFFERS);
        let mut free = Vec::with_capacity(4 * MOST_BUFFERS);
        for _ in 0..number {
            free.push(Buffer::new(entity.ros, max_len)?);
        }
        Ok(Reader { entity, max_len, free: Mutex::new(free) })
    }

    #[inline]
    fn buffer(&self) -> Outcome<Box<Buffer>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // Without one, more messages are lent than buffers were made.
        free.map_or_else(|| Buffer::new(self.entity.ros, self.max_len), Ok)
    }

    /// Takes memory back that was lent.
    #[inline]
    pub fn give_back(&self, buffer: Box<Buffer>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < free.capacity() {
            free.push(buffer);
        }
    }

    /// Takes one message; `None` if there is none.
    #[inline]
    pub fn next(&self) -> Outcome<Option<Taken>> {
        let mut buffer = self.buffer()?;
        // Behind the known members is room for the ones of all distributions.
        let mut info = MaybeUninit::<[MessageInfo; 4]>::uninit();
        // SAFETY: all pointers are valid during the call.
        let result = unsafe {
            let (handle, info) = (self.entity.pointer(), info.as_mut_ptr().cast());
            (self.entity.ros.f.rcl_take_serialized_message)(handle, buffer.raw(), info, null_mut())
        };
        // SAFETY: with success, the members of the first element were written, in every distribution.
        self.taken(result, buffer, || Ok(unsafe { info.as_ptr().cast::<MessageInfo>().read() }))
    }

    /// Takes one message as [`Reader::next`], and verifies that the structure about it is not longer than known.
    pub fn verified_next(&self) -> Outcome<Option<Taken>> {
        let mut buffer = self.buffer()?;
        // 72 bytes in Humble, 64 since Iron.
        let info = Guarded::new([0_u64; 9]);
        // SAFETY: as in `next`.
        let result = unsafe {
            let (handle, info) = (self.entity.pointer(), info.pointer().cast());
            (self.entity.ros.f.rcl_take_serialized_message)(handle, buffer.raw(), info, null_mut())
        };
        self.taken(result, buffer, || {
            info.verify("rmw_message_info_t")?;
            // SAFETY: the members are at the beginning, and all bytes have a value.
            Ok(unsafe { info.pointer().cast::<MessageInfo>().read() })
        })
    }

    #[inline]
    fn taken(
        &self,
        result: core::ffi::c_int,
        buffer: Box<Buffer>,
        info: impl FnOnce() -> Outcome<MessageInfo>,
    ) -> Outcome<Option<Taken>> {
        match result {
            RET_OK => info().map(|info| Some((buffer, info))),
            RET_TAKE_FAILED => {
                self.give_back(buffer);
                Ok(None)
            }
            result => {
                self.give_back(buffer);
                Err(self.entity.ros.error("rcl_take_serialized_message", result))
            }
        }
    }

    /// Takes the messages that have arrived, without blocking. Each view keeps its buffer until the release.
    #[inline]
    pub fn take(&self, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        for (n, place) in out.iter_mut().enumerate() {
            let lent = self.next().and_then(|next| next.map(|(buffer, info)| self.lend(buffer, &info)).transpose());
            match lent {
                Ok(Some(view)) => drop(place.write(view)),
                Ok(None) => return Ok(n),
                Err(fail) if n == 0 => return Err(fail),
                Err(_) => return Ok(n),
            }
        }
        Ok(out.len())
    }

    /// Makes the view of a message; it keeps the buffer.
    #[inline]
    fn lend(&self, buffer: Box<Buffer>, info: &MessageInfo) -> Outcome<tb_view> {
        match buffer.view(info, &raw const *buffer as u64) {
            Ok(view) => {
                let _ = Box::into_raw(buffer);
                Ok(view)
            }
            Err(fail) => {
                self.give_back(buffer);
                Err(fail)
            }
        }
    }
}

/// The buffer that a view keeps; `None` if it was given back before.
///
/// # Safety
/// The view came from [`Reader::take`].
#[inline]
pub unsafe fn lent(view: &mut tb_view) -> Option<Box<Buffer>> {
    let loan = std::mem::take(&mut view.loan) as *mut Buffer;
    // SAFETY: `lend` made the number from a box, and it is used once.
    (!loan.is_null()).then(|| unsafe { Box::from_raw(loan) })
}
