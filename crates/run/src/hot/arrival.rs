//! Type for a received sample that the driver passes to an end.

/// A sample that an end has received, with the times of its arrival.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Sequence number of the received sample.
    pub seq: u64,
    /// Receive timestamp of the sample from the kernel (CLOCK_REALTIME), ns; 0 = none.
    pub kernel_rx_ns: i64,
    /// Time at which the receiving thread had the sample, ns.
    pub received_ns: i64,
    /// Payload bytes of the received sample.
    pub payload: &'a [u8],
}
