//! Memory for structures of ROS 2, with bytes behind it that show whether a library wrote beyond the structure.

use std::cell::UnsafeCell;

use tailbound_abi::TB_EUNSUPPORTED;
use tailbound_abi::side::{Outcome, fail};

/// Value of each byte behind the structure.
const CANARY: u8 = 0xa5;
/// Number of bytes behind the structure.
const ROOM: usize = 256;

/// A structure, and behind it bytes that no library may change.
#[repr(C)]
pub struct Guarded<T> {
    value: UnsafeCell<T>,
    room: UnsafeCell<[u8; ROOM]>,
}

// SAFETY: only the libraries of ROS 2 write, and their functions may be called from any thread that has the handle.
unsafe impl<T> Send for Guarded<T> {}
// SAFETY: see `Send`.
unsafe impl<T> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// Makes a structure at an address of its own, which stays the same.
    pub fn new(value: T) -> Box<Guarded<T>> {
        Box::new(Guarded { value: UnsafeCell::new(value), room: UnsafeCell::new([CANARY; ROOM]) })
    }

    /// Pointer to the structure, for a library.
    pub fn pointer(&self) -> *mut T {
        self.value.get()
    }

    /// Verifies that nothing was written behind the structure; `what` is its name in ROS 2.
    ///
    /// # Errors
    /// A library wrote there: it has another layout than the ones that the driver knows.
    pub fn verify(&self, what: &str) -> Outcome {
        // SAFETY: the bytes are readable, and no call that could write them runs.
        let room = unsafe { std::ptr::read_volatile(self.room.get()) };
        match room.iter().position(|byte| *byte != CANARY) {
            None => Ok(()),
            Some(at) => {
                let beyond = size_of::<T>() + at;
                fail(
                    TB_EUNSUPPORTED,
                    format!(
                        "{what}: this ROS 2 writes at byte {beyond} of a structure that has {} bytes in the distributions \
                     from Humble to Lyrical; the driver cannot be used with it",
                        size_of::<T>()
                    ),
                )
            }
        }
    }
}
