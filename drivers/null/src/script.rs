//! The script of the calibration network: it sets delays, losses and stalls, so that the true values are known in
//! advance.
//!
//! A script is the option `script` of `open`, in JSON; every member may be omitted:
//! ```json
//! { "seed": 1,
//!   "realtime_offset_ns": 1700000000000000000,
//!   "links": {
//!     "out":  { "delay": {"constant": 20000}, "send_cost_ns": 500, "after_kernel_ns": 6000,
//!               "loss": {"probability": 0.001}, "duplicate": {"counters": [7], "extra_ns": 3000},
//!               "reorder": {"probability": 0.01, "extra_ns": 50000} },
//!     "back": { "delay": {"lognormal": {"median_ns": 20000, "sigma": 0.5}} },
//!     "any":  { "delay": {"uniform": [1000, 2000]} } },
//!   "stalls": [ {"where": "out", "at_ns": 1000000, "for_ns": 250000} ],
//!   "clock_steps": [ {"at_ns": 5000000, "realtime_by_ns": 1000000} ],
//!   "pong_clock": { "offset_ns": -7000000000, "drift_ppm": 25.5,
//!                   "steps": [ {"at_ns": 5000000, "by_ns": 250000} ] } }
//! ```
//! - `out` applies to topics that begin with `tailbound_ping`, `back` to topics that begin with `tailbound_pong`, and
//!   `any` to all topics without their own entry. Delays: `constant` ns, `uniform` [low, high], `exponential`
//!   {shift_ns, mean_ns}, `lognormal` {median_ns, sigma}, `pareto` {scale_ns, shape}, `list` [ns, ...], of which a
//!   message takes the entry with the index counter modulo length.
//! - No time is longer than one hour; a longer drawn time is set to one hour.
//! - `loss`, `duplicate` and `reorder` choose messages by `probability` and by `counters` (the lower 48 bits of the
//!   sequence number). A duplicate arrives `extra_ns` after the first copy; a reordered message arrives `extra_ns`
//!   later than its delay.
//! - A send call takes `send_cost_ns`, and the message departs at the end of the call. The way out, counted from
//!   send-begin, therefore takes the cost plus the delay; the way back, counted from echo-end, takes the delay.
//! - The kernel's receive timestamp (`timestamps: on`) is `after_kernel_ns` before the arrival, or at the departure if
//!   the delay is shorter. `after_kernel_ns` is the part of the delay that passes inside the receiving host.
//! - `at_ns` counts from the first send-begin of the domain. A stall of `out`, `back` or `any` holds messages that
//!   would arrive in the window [at, at + for) and delivers them at the end of the window, in order of departure. If a
//!   send call begins in the window of a `send` stall, the call blocks until the end of the window, at either end. A
//!   `turnaround` stall applies to a listener of an `out` topic to which a message arrives in the window: the first
//!   reading of the clock returns the arrival, the second the end of the window.
//! - `pong_clock` is the clock of receiving ends, as if they were on another host: at the first send-begin it is
//!   `offset_ns` ahead of the domain's clock, it gains `drift_ppm` us in each second of the domain's clock, and it may
//!   have steps. Receiving ends take their timestamps from it; the times of events depend only on the domain's clock.
//!
//! Every draw depends on seed, direction, sequence number and purpose, never on the order of events: the functions of
//! this module are pure, and a test uses them to compute the values that a measurement must find.

use serde::Deserialize;
use tailbound_abi::TB_EINVAL;
use tailbound_abi::side::{Fail, Outcome, fail};

mod draw;

/// Longest delay in ns: one hour. Sums of delays stay far below the largest time of the clock, which has 64 bits.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Largest difference between the clocks in ns: about 285 years, which leaves seven years for the trial.
const FURTHEST_CLOCK_NS: u64 = 9_000_000_000_000_000_000;
/// Largest drift of a clock in us per s: one tenth.
const MOST_DRIFT_PPM: f64 = 1e5;

/// A whole script of the calibration network; the documentation of this module describes the format.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Seed of all random numbers that the script draws.
    pub seed: u64,
    /// Wall-clock time at virtual time 0, in ns since 1970.
    pub realtime_offset_ns: i64,
    /// Scripted delays and losses of messages, by direction.
    pub links: Links,
    /// Windows of time in which the script stalls messages, send calls or ends.
    pub stalls: Vec<Stall>,
    /// Scripted steps of the wall clock during the trial.
    pub clock_steps: Vec<ClockStep>,
    /// The clock of receiving ends, if they have another clock than the scripted domain of the `null` driver.
    pub pong_clock: Option<PongClock>,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            seed: 1,
            realtime_offset_ns: 1_700_000_000_000_000_000,
            links: Links::default(),
            stalls: Vec::new(),
            clock_steps: Vec::new(),
            pong_clock: None,
        }
    }
}

/// The scripted properties of messages, by direction.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Links {
    /// Properties of messages from ping to pong; if absent, `any` applies.
    pub out: Option<Link>,
    /// Properties of messages from pong to ping; if absent, `any` applies.
    pub back: Option<Link>,
    /// Properties of all other messages, and of the directions whose entry is absent.
    pub any: Link,
}

/// The scripted properties of the messages of one direction.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Scripted delay of a message between departure and arrival.
    pub delay: Delay,
    /// Choice of the messages that are lost, that is, that never arrive.
    pub loss: Pick,
    /// Choice of the messages that arrive twice.
    pub duplicate: Pick,
    /// Choice of the messages that are overtaken by later messages.
    pub reorder: Pick,
    /// Scripted duration of each send call, in ns.
    pub send_cost_ns: u64,
    /// How much of the scripted delay of a message lies after the kernel's receive timestamp, in ns.
    pub after_kernel_ns: u64,
}

/// A distribution of scripted message delays, in ns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Delay {
    /// The delay of a message is always this number of ns.
    Constant(u64),
    /// The delay is uniform between two values in ns, both included.
    Uniform(u64, u64),
    /// The delay of a message is `shift_ns` plus an exponentially distributed time.
    Exponential {
        /// Smallest delay of the exponential distribution, in ns.
        shift_ns: u64,
        /// Mean of the exponentially distributed time that is added to `shift_ns`, in ns.
        mean_ns: f64,
    },
    /// The delay of a message is log-normal: exp(normal(ln median, sigma)).
    Lognormal {
        /// Median of the log-normal distribution of delays, in ns.
        median_ns: f64,
        /// Standard deviation of the logarithm of a log-normal delay.
        sigma: f64,
    },
    /// The delay has a Pareto distribution of the first kind.
    Pareto {
        /// Smallest delay of the Pareto distribution of delays, in ns.
        scale_ns: f64,
        /// Tail index of the Pareto distribution of delays.
        shape: f64,
    },
    /// The delays in ns are taken from a list in turn, by the message's counter (lower 48 bits of the sequence number).
    List(Vec<u64>),
}

impl Default for Delay {
    fn default() -> Self {
        Delay::Constant(0)
    }
}

/// A choice among messages, by probability or by the counters (lower 48 bits) in their sequence numbers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pick {
    /// Probability with which the script chooses each message.
    pub probability: f64,
    /// Counters (lower 48 bits of the sequence numbers) of messages that are chosen in addition.
    pub counters: Vec<u64>,
    /// Time in ns by which a duplicate or an overtaken message is later.
    pub extra_ns: u64,
}

/// A window of time in which the script stalls messages, send calls or ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// The messages, send calls or ends that the stall holds.
    #[serde(rename = "where")]
    pub place: StallPlace,
    /// Begin of the window of time in which the stall holds, in ns from the first send.
    pub at_ns: i64,
    /// Length of the window of time in which the stall holds, in ns.
    pub for_ns: i64,
}

/// The messages, send calls or ends that a stall holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StallPlace {
    /// The stall holds messages from ping to pong.
    Out,
    /// The stall holds messages from pong to ping.
    Back,
    /// The stall holds messages of every direction.
    Any,
    /// The stall holds the pong end between receiving and sending.
    Turnaround,
    /// The stall holds the send call.
    Send,
}

/// A scripted step of the wall clock during the trial.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockStep {
    /// Time of the step, in ns from the first send.
    pub at_ns: i64,
    /// Time by which the wall clock steps forward, in ns.
    pub realtime_by_ns: i64,
}

/// The clock of receiving ends, if it differs from the virtual clock of the scripted domain.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PongClock {
    /// Time by which the receiving ends' clock is ahead at the first send, in ns.
    pub offset_ns: i64,
    /// Rate by which the receiving ends' clock is faster than the scripted domain's clock, in us per s.
    pub drift_ppm: f64,
    /// Scripted steps of the clock of the receiving ends.
    pub steps: Vec<PongClockStep>,
}

/// A scripted step of the clock of the receiving ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PongClockStep {
    /// Time of the step, in ns from the first send, by the scripted domain's clock.
    pub at_ns: i64,
    /// Time by which the receiving ends' clock steps forward, in ns.
    pub by_ns: i64,
}

impl PongClock {
    /// Time in ns by which the receiving ends' clock is ahead of the scripted domain's clock at `at_ns` (counted from
    /// the first send).
    pub fn ahead_ns(&self, at_ns: i64) -> i64 {
        let gained = (at_ns as f64 * self.drift_ppm / 1e6).round() as i64;
        let stepped = self.steps.iter().filter(|s| s.at_ns <= at_ns).fold(0i64, |sum, s| sum.wrapping_add(s.by_ns));
        self.offset_ns.wrapping_add(gained).wrapping_add(stepped)
    }
}

/// Direction of the messages of a topic: from ping to pong, from pong to ping, or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Messages from ping to pong: topics `tailbound_ping...`.
    Out,
    /// Messages from pong to ping: topics `tailbound_pong...`.
    Back,
    /// Messages of topics with any other name.
    Any,
}

impl Direction {
    /// Finds the direction of the messages of a topic by the topic's name.
    pub fn of_topic(name: &str) -> Direction {
        let name = name.strip_prefix("rt/").unwrap_or(name);
        if name.starts_with("tailbound_ping") {
            Direction::Out
        } else if name.starts_with("tailbound_pong") {
            Direction::Back
        } else {
            Direction::Any
        }
    }
}

/// What the script does to one message: loss, times and duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Whether the message is lost, so that it never arrives.
    pub lost: bool,
    /// Time between departure and arrival of the message in ns, before stalls; the `extra_ns` of a reordering is
    /// included.
    pub travel_ns: u64,
    /// Time in ns after which a second copy of the message arrives, if there is a second copy.
    pub duplicate_after_ns: Option<u64>,
}

/// Delay in ns that the distribution of a direction gives to one message, without loss, reordering and stalls.
pub fn delay_ns(script: &Script, direction: Direction, seq: u64) -> u64 {
    draw::delay(&script.link(direction).delay, script.seed, direction, seq)
}

fn within_an_hour(key: &str, ns: f64) -> Outcome {
    if ns <= LONGEST_NS as f64 {
        return Ok(());
    }
    fail(TB_EINVAL, format!("{key}: longer than an hour; give at most {LONGEST_NS} ns"))
}

impl Link {
    /// Returns the times that the script sets for this direction, each with its key; of the bounds of a uniform
    /// distribution and of a list of delays, only the largest time.
    fn longest(&self) -> Vec<(&'static str, f64)> {
        let mut all = match &self.delay {
            Delay::Constant(ns) => vec![("delay.constant", *ns as f64)],
            Delay::Uniform(_, high) => vec![("delay.uniform", *high as f64)],
            Delay::Exponential { shift_ns, mean_ns } => {
                vec![("delay.exponential.shift_ns", *shift_ns as f64), ("delay.exponential.mean_ns", *mean_ns)]
            }
            Delay::Lognormal { median_ns, .. } => vec![("delay.lognormal.median_ns", *median_ns)],
            Delay::Pareto { scale_ns, .. } => vec![("delay.pareto.scale_ns", *scale_ns)],
            Delay::List(list) => vec![("delay.list", list.iter().max().map_or(0.0, |ns| *ns as f64))],
        };
        all.push(("duplicate.extra_ns", self.duplicate.extra_ns as f64));
        all.push(("reorder.extra_ns", self.reorder.extra_ns as f64));
        all.push(("send_cost_ns", self.send_cost_ns as f64));
        all.push(("after_kernel_ns", self.after_kernel_ns as f64));
        all
    }
}

impl Script {
    /// Reads and checks a script.
    ///
    /// # Errors
    /// The script is not valid; the text of the failure says what is wrong, and the place in the script.
    pub fn parse(json: &str) -> Outcome<Script> {
        let script: Script = serde_json::from_str(json).map_err(|e| Fail::invalid(e.to_string()))?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Outcome {
        let links =
            [("out", self.links.out.as_ref()), ("back", self.links.back.as_ref()), ("any", Some(&self.links.any))];
        for (name, link) in links.into_iter().filter_map(|(name, link)| Some((name, link?))) {
            for (key, ns) in link.longest() {
                within_an_hour(&format!("links.{name}.{key}"), ns)?;
            }
            for (name, pick) in [("loss", &link.loss), ("duplicate", &link.duplicate), ("reorder", &link.reorder)] {
                if !(0.0..=1.0).contains(&pick.probability) {
                    return fail(
                        TB_EINVAL,
                        format!("{name}: a probability is between 0 and 1, not {}", pick.probability),
                    );
                }
            }
            match &link.delay {
                Delay::Uniform(low, high) if low > high => {
                    return fail(TB_EINVAL, "uniform: in [low, high], low must not be above high");
                }
                Delay::List(list) if list.is_empty() => return fail(TB_EINVAL, "list: at least one delay is needed"),
                Delay::Pareto { scale_ns, shape } if !(*scale_ns >= 0.0 && *shape > 0.0) => {
                    return fail(TB_EINVAL, "pareto: scale_ns must not be negative, and shape must be above 0");
                }
                Delay::Lognormal { median_ns, sigma } if !(*median_ns > 0.0 && *sigma >= 0.0) => {
                    return fail(TB_EINVAL, "lognormal: median_ns must be above 0, and sigma must not be negative");
                }
                Delay::Exponential { mean_ns, .. } if *mean_ns < 0.0 => {
                    return fail(TB_EINVAL, "exponential: mean_ns must not be negative");
                }
                _ => {}
            }
        }
        for (i, stall) in self.stalls.iter().enumerate() {
            if stall.for_ns < 0 {
                return fail(TB_EINVAL, "stalls: for_ns must not be negative");
            }
            within_an_hour(&format!("stalls[{i}].for_ns"), stall.for_ns as f64)?;
        }
        // Refuses clocks whose timestamps would not fit into 64 bits, and clocks that stand still or run backwards.
        let drift = self.pong_clock.as_ref().map_or(0.0, |clock| clock.drift_ppm);
        if drift.is_nan() || drift.abs() > MOST_DRIFT_PPM {
            return fail(
                TB_EINVAL,
                format!("pong_clock.drift_ppm: a clock drifts by at most {MOST_DRIFT_PPM} us per s, not {drift}"),
            );
        }
        let far = |ns: &i64| ns.unsigned_abs() > FURTHEST_CLOCK_NS;
        let times =
            self.pong_clock.iter().flat_map(|c| std::iter::once(c.offset_ns).chain(c.steps.iter().map(|s| s.by_ns)));
        if let Some(ns) = times.clone().find(far).or_else(|| Some(times.fold(0, i64::saturating_add)).filter(far)) {
            return fail(
                TB_EINVAL,
                format!(
                    "pong_clock: an offset, a step or the sum of all is {ns} ns; at most {FURTHEST_CLOCK_NS} ns ahead \
                     or behind are allowed"
                ),
            );
        }
        Ok(())
    }

    /// Largest difference between the clocks of the two ends in ns, without drift.
    pub fn clocks_apart_ns(&self) -> u64 {
        let clock = self.pong_clock.iter();
        let times = clock.flat_map(|c| std::iter::once(c.offset_ns).chain(c.steps.iter().map(|s| s.by_ns)));
        times.fold(0, |sum: u64, ns| sum.saturating_add(ns.unsigned_abs()))
    }

    /// Returns the scripted properties of the messages of a direction.
    pub fn link(&self, direction: Direction) -> &Link {
        match direction {
            Direction::Out => self.links.out.as_ref(),
            Direction::Back => self.links.back.as_ref(),
            Direction::Any => None,
        }
        .unwrap_or(&self.links.any)
    }

    /// Returns what happens to the message `seq` of a direction.
    pub fn fate(&self, direction: Direction, seq: u64) -> Fate {
        let link = self.link(direction);
        let picked = |pick: &Pick, purpose| draw::picked(pick, self.seed, direction, seq, purpose);
        let late = if picked(&link.reorder, draw::REORDER) { link.reorder.extra_ns } else { 0 };
        Fate {
            lost: picked(&link.loss, draw::LOSS),
            travel_ns: delay_ns(self, direction, seq).saturating_add(late),
            duplicate_after_ns: picked(&link.duplicate, draw::DUPLICATE).then_some(link.duplicate.extra_ns),
        }
    }

    /// Returns the time at which an arrival that is due at `at_ns` happens, after stalls; both in ns from the first
    /// send.
    pub fn held_until(&self, direction: Direction, at_ns: i64) -> i64 {
        self.end_of_stall(at_ns, |place| match place {
            StallPlace::Any => true,
            StallPlace::Out => direction == Direction::Out,
            StallPlace::Back => direction == Direction::Back,
            StallPlace::Turnaround | StallPlace::Send => false,
        })
    }

    /// Returns the time at which a send call that begins at `at_ns` continues after stalls; both in ns from the first
    /// send.
    pub fn send_held_until(&self, at_ns: i64) -> i64 {
        self.end_of_stall(at_ns, |place| place == StallPlace::Send)
    }

    /// Returns the time at which the pong end continues with a message that arrived at `at_ns`; both in ns from the
    /// first send.
    pub fn turnaround_held_until(&self, at_ns: i64) -> i64 {
        self.end_of_stall(at_ns, |place| place == StallPlace::Turnaround)
    }

    fn end_of_stall(&self, mut at_ns: i64, applies: impl Fn(StallPlace) -> bool) -> i64 {
        let holds = |s: &&Stall, at: i64| applies(s.place) && s.at_ns <= at && at < s.at_ns.saturating_add(s.for_ns);
        while let Some(stall) = self.stalls.iter().find(|s| holds(s, at_ns)) {
            at_ns = stall.at_ns.saturating_add(stall.for_ns);
        }
        at_ns
    }

    /// Sum of the wall clock's steps up to `at_ns`, in ns.
    pub fn stepped_by_ns(&self, at_ns: i64) -> i64 {
        self.clock_steps.iter().filter(|s| s.at_ns <= at_ns).map(|s| s.realtime_by_ns).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_an_hour_are_refused_by_their_key() {
        for (key, script) in [
            ("links.any.delay.constant", r#"{"links":{"any":{"delay":{"constant":18446744073709551615}}}}"#),
            ("links.out.delay.uniform", r#"{"links":{"out":{"delay":{"uniform":[0,3600000000001]}}}}"#),
            ("links.back.delay.list", r#"{"links":{"back":{"delay":{"list":[1,9223372036854775808]}}}}"#),
            (
                "links.any.delay.exponential.mean_ns",
                r#"{"links":{"any":{"delay":{"exponential":{"shift_ns":1,"mean_ns":1e30}}}}}"#,
            ),
            (
                "links.any.delay.lognormal.median_ns",
                r#"{"links":{"any":{"delay":{"lognormal":{"median_ns":1e300,"sigma":0}}}}}"#,
            ),
            (
                "links.any.delay.pareto.scale_ns",
                r#"{"links":{"any":{"delay":{"pareto":{"scale_ns":1e19,"shape":2}}}}}"#,
            ),
            ("links.any.reorder.extra_ns", r#"{"links":{"any":{"reorder":{"extra_ns":18446744073709551615}}}}"#),
            ("links.any.duplicate.extra_ns", r#"{"links":{"any":{"duplicate":{"extra_ns":18446744073709551615}}}}"#),
            ("links.any.send_cost_ns", r#"{"links":{"any":{"send_cost_ns":18446744073709551615}}}"#),
            ("stalls[0].for_ns", r#"{"stalls":[{"where":"out","at_ns":0,"for_ns":9223372036854775807}]}"#),
        ] {
            let error = Script::parse(script).unwrap_err();
            assert_eq!(error.text, format!("{key}: longer than an hour; give at most 3600000000000 ns"));
        }
        assert!(Script::parse(r#"{"links":{"any":{"delay":{"constant":3600000000000}}}}"#).is_ok());
    }

    #[test]
    fn what_is_drawn_is_an_hour_at_most() {
        for delay in [r#"{"pareto":{"scale_ns":1,"shape":0.001}}"#, r#"{"lognormal":{"median_ns":1,"sigma":1e6}}"#] {
            let script = Script::parse(&format!(r#"{{"links":{{"any":{{"delay":{delay}}}}}}}"#)).unwrap();
            let most = (0..1_000).map(|seq| delay_ns(&script, Direction::Out, seq)).max();
            assert_eq!(most, Some(LONGEST_NS), "{delay}");
        }
    }
}
