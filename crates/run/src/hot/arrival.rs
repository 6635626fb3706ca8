//! Type for a received sample that the driver passes to an end, and the id of the thread that received it.

use std::cell::Cell;

/// A sample that an end has received, with the times of its arrival.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Sequence number of the received sample.
    pub seq: u64,
    /// Receive timestamp of the sample from the kernel (CLOCK_REALTIME), ns; 0 = none.
    pub kernel_rx_ns: i64,
    /// Time at which the receiving thread had the sample, ns.
    pub received_ns: i64,
    /// Kernel id of the receiving thread.
    pub thread: u64,
    /// Payload bytes of the received sample.
    pub payload: &'a [u8],
}

/// Kernel id of the calling thread. Only the first call of a thread is a system call.
#[inline]
pub fn thread_id() -> u64 {
    thread_local! {
        static ID: Cell<u64> = const { Cell::new(0) };
    }
    match ID.get() {
        0 => {
            // Miri has no such system call.
            let id = if cfg!(miri) { 1 } else { nix::unistd::gettid().as_raw() as u64 };
            ID.set(id);
            id
        }
        id => id,
    }
}
