//! A writer or reader of an open driver session, as the hot loops use it.

use tailbound_driver::{Code, Endpoint, Hot, Session};

/// A writer or reader of a driver session. A session in a measuring process stays open until the process ends.
#[derive(Clone, Copy)]
pub struct Port {
    hot: &'static Hot,
    ep: Endpoint,
}

impl Port {
    /// Makes a [`Port`] for the end point `ep` (a writer or a reader) of `session`.
    pub fn new(session: &'static Session, ep: Endpoint) -> Port {
        Port { hot: session, ep }
    }

    /// Sends one sample through this writer of the driver.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Result<(), Code> {
        self.hot.send(self.ep, seq, payload)
    }

    /// Sends one sample through this writer. The driver may keep the sample until it sends several together.
    #[inline]
    pub fn send_batched(&self, seq: u64, payload: &[u8]) -> Result<(), Code> {
        self.hot.send_with(self.ep, seq, payload, 0, true)
    }

    /// Sends one sample through this writer, which leaves at `launch_ns` of CLOCK_TAI.
    #[inline]
    pub fn send_at(&self, seq: u64, payload: &[u8], launch_ns: i64) -> Result<(), Code> {
        self.hot.send_with(self.ep, seq, payload, launch_ns, false)
    }

    /// Functions of the driver session that the hot loops call.
    #[inline]
    pub fn hot(&self) -> &'static Hot {
        self.hot
    }

    /// End point of the driver session: a writer or a reader.
    #[inline]
    pub fn endpoint(&self) -> Endpoint {
        self.ep
    }
}
