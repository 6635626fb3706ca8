//! Tests of the two sides of a session, over a connection that is cut at points that each test case chooses.

use super::*;
use crate::frame::Frames;
use proptest::prelude::*;

/// A side of a session for tests. It keeps all bytes that the side sent, and all bytes that the side delivered.
struct End {
    side: Side,
    wire: Vec<u8>,
    frames: Frames,
    sent: Vec<u8>,
    got: Vec<u8>,
}

impl End {
    fn new(part: Part) -> End {
        let (side, frames) = (Side::new(part), Frames::default());
        End { side, wire: Vec::new(), frames, sent: Vec::new(), got: Vec::new() }
    }

    fn give(&mut self, bytes: usize) {
        let bytes = bytes.min(self.side.room());
        let data: Vec<u8> = (0..bytes).map(|n| ((self.sent.len() + n) * 31 % 251) as u8).collect();
        self.side.take(&data);
        self.sent.extend(data);
    }

    /// Carries at most `bytes` bytes of one side of a test session to the other side.
    fn carry(&mut self, to: &mut End, bytes: usize) {
        if self.wire.is_empty() {
            self.side.write_frames(&mut self.wire);
        }
        let bytes = bytes.min(self.wire.len());
        to.frames.push(&self.wire[..bytes]);
        self.wire.drain(..bytes);
        while let Some(frame) = to.frames.next().unwrap() {
            to.side.handle(frame).unwrap();
        }
    }

    fn deliver(&mut self, bytes: usize) {
        let bytes = bytes.min(self.side.inbox().len());
        self.got.extend(&self.side.inbox()[..bytes]);
        self.side.delivered(bytes);
    }

    /// Starts a new connection between the two sides of a test session.
    fn resume(&mut self, other: &mut End) {
        for end in [&mut *self, &mut *other] {
            end.wire.clear();
            end.frames = Frames::default();
        }
        let (here, there) = (self.side.received(), other.side.received());
        self.side.resume(there).unwrap();
        other.side.resume(here).unwrap();
    }
}

fn pair() -> (End, End) {
    (End::new(Part::Client), End::new(Part::Holder))
}

/// Carries bytes until neither side has anything to send or to deliver.
fn settle(a: &mut End, b: &mut End) {
    loop {
        a.carry(b, usize::MAX);
        b.carry(a, usize::MAX);
        let quiet = a.wire.is_empty() && b.wire.is_empty() && a.side.inbox().is_empty() && b.side.inbox().is_empty();
        a.deliver(usize::MAX);
        b.deliver(usize::MAX);
        if quiet {
            let (mut more_a, mut more_b) = (Vec::new(), Vec::new());
            a.side.write_frames(&mut more_a);
            b.side.write_frames(&mut more_b);
            if more_a.is_empty() && more_b.is_empty() {
                return;
            }
            a.wire = more_a;
            b.wire = more_b;
        }
    }
}

#[test]
fn nothing_is_sent_while_nothing_flows() {
    let (mut a, mut b) = pair();
    a.give(100);
    settle(&mut a, &mut b);
    let mut out = Vec::new();
    a.side.write_frames(&mut out);
    b.side.write_frames(&mut out);
    assert_eq!((out.len(), b.got.len()), (0, 100));
}

#[test]
fn a_ping_reports_what_was_received_and_is_answered_once() {
    let (mut a, mut b) = pair();
    a.give(100);
    b.give(7);
    settle(&mut a, &mut b);
    assert_eq!((a.side.room(), b.side.room()), (BOUND - 100, BOUND - 7));
    a.side.ping();
    a.side.write_frames(&mut a.wire);
    assert_eq!(a.wire.len(), 13);
    a.carry(&mut b, 13);
    assert_eq!(b.side.room(), BOUND);
    b.side.write_frames(&mut b.wire);
    assert_eq!(b.wire.len(), 13);
    settle(&mut a, &mut b);
    assert_eq!(a.side.room(), BOUND);
}

#[test]
fn no_more_is_taken_than_is_kept_until_delivery() {
    let (mut a, mut b) = pair();
    a.give(usize::MAX);
    assert_eq!(a.side.room(), 0);
    for _ in 0..BOUND / MAX_BODY {
        a.carry(&mut b, usize::MAX);
    }
    assert_eq!(b.side.inbox.len(), BOUND);
    b.carry(&mut a, usize::MAX);
    assert_eq!(a.side.room(), 0, "the bytes have come and are not delivered");
    b.deliver(300 << 10);
    b.carry(&mut a, usize::MAX);
    assert_eq!(a.side.room(), 300 << 10);
}

#[test]
fn bytes_that_were_not_delivered_come_again() {
    let (mut a, mut b) = pair();
    a.give(1000);
    a.carry(&mut b, 800);
    b.deliver(10);
    a.resume(&mut b);
    assert!(b.side.inbox().is_empty());
    settle(&mut a, &mut b);
    assert_eq!(b.got, a.sent);
}

#[test]
fn the_end_and_the_last_frame_are_sent_again_after_a_cut() {
    let (mut a, mut b) = pair();
    b.give(10);
    b.side.close();
    b.side.conclude(Some(0));
    b.carry(&mut a, usize::MAX);
    assert_eq!(a.side.other_last(), None, "there is something to hand on before it");
    a.resume(&mut b);
    settle(&mut a, &mut b);
    assert_eq!((a.side.other_last(), a.got.len()), (Some(Some(0)), 10));
    assert!(a.side.is_finished() && !b.side.is_finished());
    a.side.conclude(None);
    settle(&mut a, &mut b);
    assert_eq!(b.side.other_last(), Some(None));
}

#[test]
fn counts_that_cannot_be_are_refused() {
    let (mut a, mut b) = pair();
    a.give(100);
    settle(&mut a, &mut b);
    a.side.ping();
    b.side.ping();
    settle(&mut a, &mut b);
    for (received, sentence) in [(101, "received 101 bytes of 100"), (99, "bytes before byte 100 are no longer stored")]
    {
        let refused = a.side.resume(received).unwrap_err().to_string();
        assert!(refused.contains(sentence), "{refused}");
    }
    assert!(a.side.handle(Frame::Acknowledged(101)).is_err());
    assert!(a.side.handle(Frame::Ping(99)).is_err());
    a.side.handle(Frame::End).unwrap();
    assert!(a.side.handle(Frame::Data(vec![0])).is_err());
}

#[derive(Debug, Clone)]
enum Step {
    Give(bool, usize),
    Carry(bool, usize),
    HandOn(bool, usize),
    Ping,
    Cut,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), 0usize..700_000).prop_map(|(a, n)| Step::Give(a, n)),
        8 => (any::<bool>(), 0usize..90_000).prop_map(|(a, n)| Step::Carry(a, n)),
        4 => (any::<bool>(), 0usize..400_000).prop_map(|(a, n)| Step::HandOn(a, n)),
        1 => Just(Step::Ping),
        1 => Just(Step::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_byte_comes_once_and_in_order(steps in prop::collection::vec(any_step(), 0..60)) {
        let (mut a, mut b) = pair();
        for step in steps {
            match step {
                Step::Give(true, n) => a.give(n),
                Step::Give(false, n) => b.give(n),
                Step::Carry(true, n) => a.carry(&mut b, n),
                Step::Carry(false, n) => b.carry(&mut a, n),
                Step::HandOn(true, n) => a.deliver(n),
                Step::HandOn(false, n) => b.deliver(n),
                Step::Ping => a.side.ping(),
                Step::Cut => a.resume(&mut b),
            }
            prop_assert!(a.side.kept.len() <= BOUND && b.side.inbox.len() <= BOUND);
        }
        a.side.close();
        settle(&mut a, &mut b);
        prop_assert!(b.side.is_finished());
        prop_assert!(a.got == b.sent && b.got == a.sent);
    }
}
