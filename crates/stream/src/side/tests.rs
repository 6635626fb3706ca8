//! Two sides and a connection that is cut wherever the case says.

use super::*;
use crate::frame::Frames;
use proptest::prelude::*;

/// A side, what it sent over all and what it handed on.
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

    fn give(&mut self, octets: usize) {
        let octets = octets.min(self.side.room());
        let data: Vec<u8> = (0..octets).map(|n| ((self.sent.len() + n) * 31 % 251) as u8).collect();
        self.side.take(&data);
        self.sent.extend(data);
    }

    /// Carries at most `octets` to the other side.
    fn carry(&mut self, to: &mut End, octets: usize) {
        if self.wire.is_empty() {
            self.side.say(&mut self.wire);
        }
        let octets = octets.min(self.wire.len());
        to.frames.push(&self.wire[..octets]);
        self.wire.drain(..octets);
        while let Some(frame) = to.frames.next().unwrap() {
            to.side.hear(frame).unwrap();
        }
    }

    fn hand_on(&mut self, octets: usize) {
        let octets = octets.min(self.side.inbox().len());
        self.got.extend(&self.side.inbox()[..octets]);
        self.side.handed_on(octets);
    }

    /// A new connection.
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

/// Carries until neither side has anything to say or to hand on.
fn settle(a: &mut End, b: &mut End) {
    loop {
        a.carry(b, usize::MAX);
        b.carry(a, usize::MAX);
        let quiet = a.wire.is_empty() && b.wire.is_empty() && a.side.inbox().is_empty() && b.side.inbox().is_empty();
        a.hand_on(usize::MAX);
        b.hand_on(usize::MAX);
        if quiet {
            let (mut more_a, mut more_b) = (Vec::new(), Vec::new());
            a.side.say(&mut more_a);
            b.side.say(&mut more_b);
            if more_a.is_empty() && more_b.is_empty() {
                return;
            }
            a.wire = more_a;
            b.wire = more_b;
        }
    }
}

#[test]
fn nothing_is_said_while_nothing_flows() {
    let (mut a, mut b) = pair();
    a.give(100);
    settle(&mut a, &mut b);
    let mut out = Vec::new();
    a.side.say(&mut out);
    b.side.say(&mut out);
    assert_eq!((out.len(), b.got.len()), (0, 100));
}

#[test]
fn a_ping_tells_what_was_received_and_is_answered_once() {
    let (mut a, mut b) = pair();
    a.give(100);
    b.give(7);
    settle(&mut a, &mut b);
    assert_eq!((a.side.room(), b.side.room()), (BOUND - 100, BOUND - 7));
    a.side.ping();
    a.side.say(&mut a.wire);
    assert_eq!(a.wire.len(), 13);
    a.carry(&mut b, 13);
    assert_eq!(b.side.room(), BOUND);
    b.side.say(&mut b.wire);
    assert_eq!(b.wire.len(), 13);
    settle(&mut a, &mut b);
    assert_eq!(a.side.room(), BOUND);
}

#[test]
fn no_more_is_taken_than_is_kept_until_it_was_handed_on() {
    let (mut a, mut b) = pair();
    a.give(usize::MAX);
    assert_eq!(a.side.room(), 0);
    for _ in 0..BOUND / MAX_BODY {
        a.carry(&mut b, usize::MAX);
    }
    assert_eq!(b.side.inbox.len(), BOUND);
    b.carry(&mut a, usize::MAX);
    assert_eq!(a.side.room(), 0, "it has come, and nobody has taken it");
    b.hand_on(300 << 10);
    b.carry(&mut a, usize::MAX);
    assert_eq!(a.side.room(), 300 << 10);
}

#[test]
fn what_was_not_handed_on_comes_once_more() {
    let (mut a, mut b) = pair();
    a.give(1000);
    a.carry(&mut b, 800);
    b.hand_on(10);
    a.resume(&mut b);
    assert!(b.side.inbox().is_empty());
    settle(&mut a, &mut b);
    assert_eq!(b.got, a.sent);
}

#[test]
fn the_end_and_the_last_word_are_said_again_after_a_cut() {
    let (mut a, mut b) = pair();
    b.give(10);
    b.side.close();
    b.side.conclude("exit status: 0".into());
    b.carry(&mut a, usize::MAX);
    assert_eq!(a.side.other_last(), None, "there is something to hand on before it");
    a.resume(&mut b);
    settle(&mut a, &mut b);
    assert_eq!((a.side.other_last(), a.got.len()), (Some("exit status: 0"), 10));
    assert!(a.side.is_through() && !b.side.is_through());
    a.side.conclude(String::new());
    settle(&mut a, &mut b);
    assert_eq!(b.side.other_last(), Some(""));
}

#[test]
fn counts_that_cannot_be_are_refused() {
    let (mut a, mut b) = pair();
    a.give(100);
    settle(&mut a, &mut b);
    a.side.ping();
    b.side.ping();
    settle(&mut a, &mut b);
    for (received, sentence) in [(101, "received 101 octets, of 100"), (99, "with those up to 100 gone")] {
        let refused = a.side.resume(received).unwrap_err().to_string();
        assert!(refused.contains(sentence), "{refused}");
    }
    assert!(a.side.hear(Frame::Acknowledged(101)).is_err());
    assert!(a.side.hear(Frame::Ping(99)).is_err());
    a.side.hear(Frame::End).unwrap();
    assert!(a.side.hear(Frame::Data(vec![0])).is_err());
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
    fn every_octet_comes_once_and_in_order(steps in prop::collection::vec(any_step(), 0..60)) {
        let (mut a, mut b) = pair();
        for step in steps {
            match step {
                Step::Give(true, n) => a.give(n),
                Step::Give(false, n) => b.give(n),
                Step::Carry(true, n) => a.carry(&mut b, n),
                Step::Carry(false, n) => b.carry(&mut a, n),
                Step::HandOn(true, n) => a.hand_on(n),
                Step::HandOn(false, n) => b.hand_on(n),
                Step::Ping => a.side.ping(),
                Step::Cut => a.resume(&mut b),
            }
            prop_assert!(a.side.kept.len() <= BOUND && b.side.inbox.len() <= BOUND);
        }
        a.side.close();
        settle(&mut a, &mut b);
        prop_assert!(b.side.is_through());
        prop_assert!(a.got == b.sent && b.got == a.sent);
    }
}
