//! The script of the calibration network: delays, losses and stalls that are known beforehand.
//!
//! Option `script` of `open`, JSON; every member may be left out:
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
//! - `out` is for topics that begin with `tailbound_ping`, `back` for `tailbound_pong`, `any` for all without their own
//!   entry. Delays: `constant` ns, `uniform` [low, high], `exponential` {shift_ns, mean_ns}, `lognormal` {median_ns, sigma},
//!   `pareto` {scale_ns, shape}, `list` [ns, ...] indexed by counter modulo its length.
//! - No time is longer than an hour; what is drawn beyond it is an hour.
//! - `loss`, `duplicate`, `reorder` pick messages by `probability` and by `counters` (the lower 48 bits of the sequence
//!   number). A duplicate arrives `extra_ns` after the first; a reordered message is `extra_ns` later than its delay.
//! - A send call takes `send_cost_ns`, and the message departs at its end: seen from send-begin the way out takes the cost
//!   plus the delay, seen from echo-end the way back takes the delay.
//! - The kernel's receive stamp (`timestamps: on`) lies `after_kernel_ns` before the arrival, or at the departure of a
//!   message that is faster: of the delay, what passes in the host that receives.
//! - `at_ns` counts from the first send-begin of the domain. A stall of `out`, `back` or `any` holds what would arrive in
//!   the window [at, at + for) and delivers it at its end, in order of departure. One of `send` blocks a send call that
//!   begins in the window until its end, at either end. One of `turnaround` acts on a listener of an `out` topic to which a message
//!   arrives in the window: the first reading of the clock gives the arrival, the second the window's end.
//! - `pong_clock` is the clock of ends that receive, as if they were on another host: at the first send-begin it is
//!   `offset_ns` ahead of the domain's, gains `drift_ppm` us in each second of it, and is stepped. Their stamps are told in
//!   it; what happens when is ruled by the domain's clock alone.
//!
//! Every draw depends on seed, direction, sequence number and purpose, never on the order of events: the functions here are
//! pure, and a test computes with them what the instrument must find.

use serde::Deserialize;

mod draw;

/// No delay is longer: an hour. Sums of delays stay far from the end of the clock.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Clocks are no further apart: about 285 years, which leaves seven for the trial.
const FURTHEST_CLOCK_NS: u64 = 9_000_000_000_000_000_000;
/// No clock drifts more: a tenth.
const MOST_DRIFT_PPM: f64 = 1e5;

/// A whole script. See the module for the format.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Seed of all draws.
    pub seed: u64,
    /// Wall-clock time at virtual time 0.
    pub realtime_offset_ns: i64,
    /// What happens on the way.
    pub links: Links,
    /// Windows in which things stand still.
    pub stalls: Vec<Stall>,
    /// Steps of the wall clock.
    pub clock_steps: Vec<ClockStep>,
    /// The clock of ends that receive, where it is not the domain's.
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

/// Links by direction.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Links {
    /// From ping to pong.
    pub out: Option<Link>,
    /// From pong to ping.
    pub back: Option<Link>,
    /// All others, and those left out.
    pub any: Link,
}

/// One direction.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Time on the way.
    pub delay: Delay,
    /// Messages that never arrive.
    pub loss: Pick,
    /// Messages that arrive twice.
    pub duplicate: Pick,
    /// Messages that are overtaken.
    pub reorder: Pick,
    /// Time that the send call takes.
    pub send_cost_ns: u64,
    /// Of the delay, time between the kernel's receive stamp and the arrival.
    pub after_kernel_ns: u64,
}

/// A distribution of delays.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Delay {
    /// Always this many ns.
    Constant(u64),
    /// Between the two, both included.
    Uniform(u64, u64),
    /// `shift_ns` plus an exponential time.
    Exponential {
        /// Least delay.
        shift_ns: u64,
        /// Mean of what comes on top.
        mean_ns: f64,
    },
    /// exp(normal(ln median, sigma)).
    Lognormal {
        /// Median.
        median_ns: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Pareto of the first kind.
    Pareto {
        /// Least delay.
        scale_ns: f64,
        /// Tail index.
        shape: f64,
    },
    /// By counter, in turn.
    List(Vec<u64>),
}

impl Default for Delay {
    fn default() -> Self {
        Delay::Constant(0)
    }
}

/// A choice among messages.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pick {
    /// Each message with this probability.
    pub probability: f64,
    /// And those with these counters.
    pub counters: Vec<u64>,
    /// By how much a duplicate or overtaken message is later.
    pub extra_ns: u64,
}

/// A window in which something stands still.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// What stands still.
    #[serde(rename = "where")]
    pub place: StallPlace,
    /// Begin, from the first send.
    pub at_ns: i64,
    /// Length.
    pub for_ns: i64,
}

/// What a stall holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StallPlace {
    /// Messages from ping to pong.
    Out,
    /// Messages from pong to ping.
    Back,
    /// Messages of every direction.
    Any,
    /// The pong between receiving and sending.
    Turnaround,
    /// The send call.
    Send,
}

/// A step of the wall clock.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockStep {
    /// When, from the first send.
    pub at_ns: i64,
    /// By how much.
    pub realtime_by_ns: i64,
}

/// A clock beside that of the domain.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PongClock {
    /// By how much it is ahead at the first send.
    pub offset_ns: i64,
    /// How much faster it runs, us per s.
    pub drift_ppm: f64,
    /// When it is set anew.
    pub steps: Vec<PongClockStep>,
}

/// A step of the clock of ends that receive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PongClockStep {
    /// When, from the first send, by the domain's clock.
    pub at_ns: i64,
    /// By how much.
    pub by_ns: i64,
}

impl PongClock {
    /// By how much it is ahead of the domain's clock at `at_ns` (from the first send).
    pub fn ahead_ns(&self, at_ns: i64) -> i64 {
        let gained = (at_ns as f64 * self.drift_ppm / 1e6).round() as i64;
        let stepped = self.steps.iter().filter(|s| s.at_ns <= at_ns).fold(0i64, |sum, s| sum.wrapping_add(s.by_ns));
        self.offset_ns.wrapping_add(gained).wrapping_add(stepped)
    }
}

/// Which way a topic goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `tailbound_ping...`
    Out,
    /// `tailbound_pong...`
    Back,
    /// Everything else.
    Any,
}

impl Direction {
    /// Direction of a topic by its name.
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

/// What the script does to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// It never arrives.
    pub lost: bool,
    /// Time on the way, before stalls; `extra_ns` of a reordering is in it.
    pub travel_ns: u64,
    /// A second copy arrives this much later.
    pub duplicate_after_ns: Option<u64>,
}

/// The delay that the distribution of a direction gives to one message: no loss, no reordering, no stall.
pub fn delay_ns(script: &Script, direction: Direction, seq: u64) -> u64 {
    draw::delay(&script.link(direction).delay, script.seed, direction, seq)
}

fn within_an_hour(key: &str, ns: f64) -> Result<(), String> {
    if ns <= LONGEST_NS as f64 {
        return Ok(());
    }
    Err(format!("{key}: longer than an hour; give at most {LONGEST_NS} ns"))
}

impl Link {
    /// Every time that is written in it, with its key.
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
    /// Reads a script.
    ///
    /// # Errors
    /// Says what is wrong and where.
    pub fn parse(json: &str) -> Result<Script, String> {
        let script: Script = serde_json::from_str(json).map_err(|e| e.to_string())?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<(), String> {
        let links =
            [("out", self.links.out.as_ref()), ("back", self.links.back.as_ref()), ("any", Some(&self.links.any))];
        for (name, link) in links.into_iter().filter_map(|(name, link)| Some((name, link?))) {
            for (key, ns) in link.longest() {
                within_an_hour(&format!("links.{name}.{key}"), ns)?;
            }
            for (name, pick) in [("loss", &link.loss), ("duplicate", &link.duplicate), ("reorder", &link.reorder)] {
                if !(0.0..=1.0).contains(&pick.probability) {
                    return Err(format!("{name}: a probability is between 0 and 1, not {}", pick.probability));
                }
            }
            match &link.delay {
                Delay::Uniform(low, high) if low > high => {
                    return Err("uniform: [low, high] is the wrong way round".into());
                }
                Delay::List(list) if list.is_empty() => return Err("list: at least one delay is needed".into()),
                Delay::Pareto { scale_ns, shape } if !(*scale_ns >= 0.0 && *shape > 0.0) => {
                    return Err("pareto: scale_ns must not be negative and shape must be above 0".into());
                }
                Delay::Lognormal { median_ns, sigma } if !(*median_ns > 0.0 && *sigma >= 0.0) => {
                    return Err("lognormal: median_ns must be above 0 and sigma not negative".into());
                }
                Delay::Exponential { mean_ns, .. } if *mean_ns < 0.0 => {
                    return Err("exponential: mean_ns must not be negative".into());
                }
                _ => {}
            }
        }
        for (i, stall) in self.stalls.iter().enumerate() {
            if stall.for_ns < 0 {
                return Err("stalls: for_ns must not be negative".into());
            }
            within_an_hour(&format!("stalls[{i}].for_ns"), stall.for_ns as f64)?;
        }
        // What the stamps would then not fit, or a clock that stands still or runs backwards.
        let drift = self.pong_clock.as_ref().map_or(0.0, |clock| clock.drift_ppm);
        if drift.is_nan() || drift.abs() > MOST_DRIFT_PPM {
            return Err(format!(
                "pong_clock.drift_ppm: a clock drifts by at most {MOST_DRIFT_PPM} us per s, not {drift}"
            ));
        }
        let far = |ns: &i64| ns.unsigned_abs() > FURTHEST_CLOCK_NS;
        let times =
            self.pong_clock.iter().flat_map(|c| std::iter::once(c.offset_ns).chain(c.steps.iter().map(|s| s.by_ns)));
        if let Some(ns) = times.clone().find(far).or_else(|| Some(times.fold(0, i64::saturating_add)).filter(far)) {
            return Err(format!("pong_clock: {ns} ns are too far ahead; at most {FURTHEST_CLOCK_NS} in all"));
        }
        Ok(())
    }

    /// By how much the clocks of the two ends are ever apart, at most, drift left out.
    pub fn clocks_apart_ns(&self) -> u64 {
        let clock = self.pong_clock.iter();
        let times = clock.flat_map(|c| std::iter::once(c.offset_ns).chain(c.steps.iter().map(|s| s.by_ns)));
        times.fold(0, |sum: u64, ns| sum.saturating_add(ns.unsigned_abs()))
    }

    /// The entry that applies to a direction.
    pub fn link(&self, direction: Direction) -> &Link {
        match direction {
            Direction::Out => self.links.out.as_ref(),
            Direction::Back => self.links.back.as_ref(),
            Direction::Any => None,
        }
        .unwrap_or(&self.links.any)
    }

    /// What happens to the message `seq` of a direction.
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

    /// When something that would happen at `at_ns` (from the first send) does happen.
    pub fn held_until(&self, direction: Direction, at_ns: i64) -> i64 {
        self.end_of_stall(at_ns, |place| match place {
            StallPlace::Any => true,
            StallPlace::Out => direction == Direction::Out,
            StallPlace::Back => direction == Direction::Back,
            StallPlace::Turnaround | StallPlace::Send => false,
        })
    }

    /// When a send call that begins at `at_ns` gets going.
    pub fn send_held_until(&self, at_ns: i64) -> i64 {
        self.end_of_stall(at_ns, |place| place == StallPlace::Send)
    }

    /// When the pong goes on with a message that arrived at `at_ns`.
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

    /// Sum of the clock steps up to `at_ns`.
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
            assert_eq!(error, format!("{key}: longer than an hour; give at most 3600000000000 ns"));
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
