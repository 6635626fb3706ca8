//! Limits the length of a message about causes, because agents are almost silent while messages are measured.

use crate::{Causes, Frame, Message, encode};

/// Largest number of causes in a message.
const MOST: usize = 3;
/// Largest number of bytes of a message on the stream, as of a heartbeat.
const MOST_BYTES: usize = 100;

/// The same, with as many causes as a message may have: at most three, and 100 bytes. The others are summed up.
#[must_use]
pub fn shortened(mut all: Causes) -> Causes {
    loop {
        let length = encode(&Frame::Message(Box::new(Message::Causes(all.clone())))).len();
        let (Causes::Sender { causes, others_us, .. } | Causes::Receiver { causes, others_us, .. }) = &mut all else {
            return all;
        };
        let fits = length <= MOST_BYTES && causes.len() <= MOST;
        match causes.as_mut_slice() {
            _ if fits => return all,
            [.., (_, _, us)] => {
                *others_us += *us;
                causes.pop();
            }
            [] => return all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Absence, Cause};

    fn bytes(message: Message) -> usize {
        encode(&Frame::Message(Box::new(message))).len()
    }

    fn of_sender(causes: Vec<Cause>) -> Causes {
        // A year at 100,000 messages per second, and an incident of an hour.
        let (seq, after_ms, us) = (3_153_600_000_000, 31_536_000_000, 3_600_000_000);
        Causes::Sender { seq, after_ms, excess_us: us, elsewhere_us: us, causes, others_us: 0 }
    }

    #[test]
    fn messages_about_causes_have_at_most_a_hundred_bytes() {
        let begin_ns = 315_360_000_000_000_000;
        let end_ns = begin_ns + 3_600_000_000_000;
        let absence = Absence { seq: 3_153_600_000_000, begin_ns, end_ns, usual_ns: 1_000_000_000 };
        assert!(bytes(Message::Absence(absence)) <= 100);
        assert_eq!(Absence::from(<(u64, i64, i64, i64)>::from(absence)), absence);
        let longest: Cause = (255, "a-thread-name15".into(), 3_600_000_000);
        for causes in [Vec::new(), vec![longest.clone()], vec![longest.clone(); 5]] {
            let us: i64 = causes.iter().map(|(.., us)| us).sum();
            let sent = shortened(of_sender(causes));
            assert!(bytes(Message::Causes(sent.clone())) <= 100);
            let Causes::Sender { causes, others_us, .. } = sent else { panic!() };
            assert_eq!(causes.iter().map(|(.., us)| us).sum::<i64>() + others_us, us, "no time is left out");
        }
    }

    #[test]
    fn as_many_causes_as_fit_are_sent() {
        // An hour at 1,000 messages per second.
        let (seq, after_ms, excess_us) = (3_600_000, 3_600_000, 219_000);
        let of = |causes: &[Cause]| {
            let causes = causes.to_vec();
            Causes::Sender { seq, after_ms, excess_us, elsewhere_us: 8_000, causes, others_us: 0 }
        };
        let cause = |number, name: &str, us| (number, name.to_owned(), us);
        let (waited, stopped) = (cause(1, "stress-ng", 201_000), cause(22, "", 8_000));
        let two = of(&[waited.clone(), stopped.clone()]);
        assert_eq!(shortened(two.clone()), two);
        let small = cause(8, "NET_RX", 900);
        let Causes::Sender { causes, others_us, .. } = shortened(of(&[stopped, waited, small.clone(), small])) else {
            panic!()
        };
        assert_eq!((causes.len(), others_us), (2, 1_800));
        for causes in [Causes::NoCpu, Causes::Receiver { seq, causes: vec![cause(23, "", 5)], others_us: 3 }] {
            let json = serde_json::to_string(&causes).unwrap();
            assert_eq!(serde_json::from_str::<Causes>(&json).unwrap(), causes);
        }
    }
}
