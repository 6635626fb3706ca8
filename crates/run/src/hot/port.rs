//! One end point of an open session, as the hot loops use it.

use tailbound_driver::{Code, Endpoint, Hot, Session};

/// A writer or reader. Sessions of a measuring process live until it ends.
#[derive(Clone, Copy)]
pub struct Port {
    hot: &'static Hot,
    ep: Endpoint,
}

impl Port {
    /// The end point `ep` of `session`.
    pub fn new(session: &'static Session, ep: Endpoint) -> Port {
        Port { hot: session, ep }
    }

    /// Sends one sample.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Result<(), Code> {
        self.hot.send(self.ep, seq, payload)
    }

    /// Sends one sample that may wait for others in the driver.
    #[inline]
    pub fn send_batched(&self, seq: u64, payload: &[u8]) -> Result<(), Code> {
        self.hot.send_with(self.ep, seq, payload, 0, true)
    }

    /// The calls of the session.
    #[inline]
    pub fn hot(&self) -> &'static Hot {
        self.hot
    }

    /// The end point.
    #[inline]
    pub fn endpoint(&self) -> Endpoint {
        self.ep
    }
}
