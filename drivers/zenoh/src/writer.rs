//! Sending: the payload is copied once, into the bytes that zenoh gets.

use tailbound_abi::TB_EIO;
use tailbound_abi::side::{Outcome, fail};
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::{Session, Wait};

use crate::alive::refused;
use crate::message::encode;
use crate::options::Congestion;
use crate::qos::Qos;

/// A publisher of zenoh.
pub struct Writer {
    publisher: Publisher<'static>,
    qos: Qos,
}

impl Writer {
    pub fn new(session: &Session, key: &str, qos: Qos, express: bool) -> Outcome<Writer> {
        let congestion = match qos.congestion {
            Congestion::Block => CongestionControl::Block,
            Congestion::Drop => CongestionControl::Drop,
        };
        let reliability = if qos.reliable { Reliability::Reliable } else { Reliability::BestEffort };
        let builder = session.declare_publisher(key.to_owned()).congestion_control(congestion);
        let publisher = builder.express(express).reliability(reliability).wait();
        Ok(Writer { publisher: publisher.map_err(refused("cannot create the publisher"))?, qos })
    }

    /// Puts one message.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Outcome {
        match self.publisher.put(encode(seq, payload)).wait() {
            Ok(()) => Ok(()),
            Err(e) => fail(TB_EIO, format!("zenoh: {e}")),
        }
    }

    /// The policies in effect, as zenoh has them.
    pub fn qos(&self) -> Qos {
        let congestion = match self.publisher.congestion_control() {
            CongestionControl::Drop => Congestion::Drop,
            _ => Congestion::Block,
        };
        Qos { reliable: self.publisher.reliability() == Reliability::Reliable, congestion, ..self.qos }
    }
}
