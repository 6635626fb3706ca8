//! Converts QoS policies from strings to a profile of ROS 2, and back.
//!
//! Strings that are read back have the form of strings that are accepted, so requested and effective policies can be
//! compared.

use serde_json::{Map, Value, json};
use tailbound_abi::side::{Outcome, Pair, fail};
use tailbound_abi::{TB_EQOS, TB_EUNSUPPORTED};

use crate::library::Ros;
use crate::types::{EndOptions, Profile, Time};

/// Words by their numbers in `rmw_qos_history_policy_t`, from 1.
const HISTORY: [&str; 2] = ["keep-last", "keep-all"];
/// Words by their numbers in `rmw_qos_reliability_policy_t`, from 1.
const RELIABILITY: [&str; 2] = ["reliable", "best-effort"];
/// Words by their numbers in `rmw_qos_durability_policy_t`, from 1.
const DURABILITY: [&str; 2] = ["transient-local", "volatile"];

/// `RMW_DURATION_INFINITE`.
const INFINITE: Time = Time { s: 9_223_372_036, ns: 854_775_807 };
/// A duration that is not given: the middleware decides, which is infinite.
const UNSPECIFIED: Time = Time { s: 0, ns: 0 };
const SECOND_NS: u64 = 1_000_000_000;

/// The policies of an end point; numbers as in [`Profile`].
pub struct Policies {
    history: i32,
    depth: usize,
    reliability: i32,
    durability: i32,
    deadline: Time,
    lifespan: Time,
}

impl Policies {
    /// Writes the policies into a profile with the defaults of ROS 2.
    pub fn into_profile(self, profile: &mut Profile) {
        let Policies { history, depth, reliability, durability, deadline, lifespan } = self;
        *profile = Profile { history, depth, reliability, durability, deadline, lifespan, ..*profile };
    }
}

/// The default options of a publisher or subscription, whose profile shows whether the structure has the known layout.
///
/// # Errors
/// The profile does not have the values that it has in all known distributions.
pub fn default_options(ros: &Ros, is_writer: bool) -> Outcome<EndOptions> {
    // SAFETY: the functions have no argument; the options have more room than in every known distribution.
    let options = unsafe {
        match is_writer {
            true => (ros.f.rcl_publisher_get_default_options)(),
            false => (ros.f.rcl_subscription_get_default_options)(),
        }
    };
    let p = &options.profile;
    let known = (p.history, p.depth, p.reliability, p.durability, p.deadline, p.lifespan)
        == (1, 10, 1, 2, UNSPECIFIED, UNSPECIFIED);
    if !known {
        return fail(
            TB_EUNSUPPORTED,
            format!(
                "rmw_qos_profile_t: this ROS 2 has another layout or other defaults than the distributions from Humble to Lyrical \
                 ({p:?}); the driver cannot be used with it"
            ),
        );
    }
    Ok(options)
}

/// Whether a publisher with these policies may wait for acknowledgements.
pub fn may_wait(profile: &Profile) -> bool {
    profile.reliability != 2
}

/// Whether rclcpp can pass messages with these policies inside a process: keep-last and volatile.
pub fn is_for_one_process(profile: &Profile) -> bool {
    (profile.history, profile.durability) == (1, 2)
}

/// Reads the policies of a writer or reader; policies that are not given have their defaults: reliable, volatile, keep-last 1.
pub fn parse(pairs: &[Pair], is_writer: bool) -> Outcome<Policies> {
    let mut p =
        Policies { history: 1, depth: 1, reliability: 1, durability: 2, deadline: UNSPECIFIED, lifespan: UNSPECIFIED };
    let mut depth_given = None;
    for pair in pairs {
        let number = |words: &[&str]| pair.word(TB_EQOS, words).map(|at| at as i32 + 1);
        match pair.key {
            "reliability" => p.reliability = number(&RELIABILITY)?,
            "durability" => p.durability = number(&DURABILITY)?,
            "history" => p.history = number(&HISTORY)?,
            "history.depth" => {
                p.depth = pair.number(TB_EQOS, 1..=i32::MAX as usize)?;
                depth_given = Some(pair);
            }
            "deadline" => p.deadline = duration(pair)?,
            "lifespan" if is_writer => p.lifespan = duration(pair)?,
            "lifespan" => return Err(pair.bad(TB_EQOS, "a subscription of ROS 2 has no lifespan")),
            _ => return Err(pair.bad(TB_EQOS, "the driver has no such QoS policy")),
        }
    }
    if let Some(pair) = depth_given.filter(|_| p.history == 2) {
        return Err(pair.bad(TB_EQOS, "contradicts history=keep-all"));
    }
    Ok(p)
}

/// Reads a duration in ns. 0 would mean for ROS 2 that none is given.
fn duration(pair: &Pair) -> Outcome<Time> {
    if pair.value == "infinite" {
        return Ok(INFINITE);
    }
    let ns: u64 = pair.number(TB_EQOS, 1..=i32::MAX as u64 * SECOND_NS)?;
    Ok(Time { s: ns / SECOND_NS, ns: ns % SECOND_NS })
}

fn duration_text(time: Time) -> String {
    match time {
        INFINITE | UNSPECIFIED => "infinite".to_owned(),
        Time { s, ns } => (u128::from(s) * u128::from(SECOND_NS) + u128::from(ns)).to_string(),
    }
}

/// Reads the policies of the profile of a writer or reader as strings.
pub fn read(profile: &Profile, is_writer: bool) -> Map<String, Value> {
    let word = |words: &[&str], number: i32| {
        let word = usize::try_from(number - 1).ok().and_then(|at| words.get(at));
        word.map_or_else(|| format!("number {number} of ROS 2"), |word| (*word).to_owned())
    };
    let mut all = Map::new();
    all.insert("reliability".into(), json!(word(&RELIABILITY, profile.reliability)));
    all.insert("durability".into(), json!(word(&DURABILITY, profile.durability)));
    all.insert("history".into(), json!(word(&HISTORY, profile.history)));
    if profile.history == 1 {
        all.insert("history.depth".into(), json!(profile.depth.to_string()));
    }
    all.insert("deadline".into(), json!(duration_text(profile.deadline)));
    if is_writer {
        all.insert("lifespan".into(), json!(duration_text(profile.lifespan)));
    }
    all
}

/// Describes the QoS policies for `describe`: durations are ns or `infinite`.
pub fn described() -> Value {
    let words = |key: &str, values: &[&str]| json!({"policy": key, "values": values});
    let open = |key: &str, values: &[&str]| json!({"policy": key, "values": values, "open_ended": true});
    json!([
        words("reliability", &RELIABILITY),
        words("durability", &["volatile", "transient-local"]),
        words("history", &HISTORY),
        open("history.depth", &["1", "16"]),
        open("deadline", &["1000000000", "infinite"]),
        open("lifespan", &["1000000000", "infinite"]),
    ])
}

/// Name of a policy because of which a match was refused (`rmw_qos_policy_kind_t`).
pub fn policy_name(kind: i32) -> &'static str {
    match kind {
        2 => "durability",
        4 => "deadline",
        8 => "liveliness",
        16 => "reliability",
        32 => "history",
        64 => "lifespan",
        128 => "history.depth",
        256 => "liveliness.lease_duration",
        _ => "a policy that ROS 2 does not name",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(pairs: &[(&str, &str)]) -> Outcome<Profile> {
        let pairs: Vec<Pair> = pairs.iter().map(|&(key, value)| Pair { key, value }).collect();
        let mut profile = Profile {
            history: 1,
            depth: 10,
            reliability: 1,
            durability: 2,
            deadline: UNSPECIFIED,
            lifespan: UNSPECIFIED,
            liveliness: 0,
            lease: UNSPECIFIED,
            avoid_names: 0,
        };
        parse(&pairs, true)?.into_profile(&mut profile);
        Ok(profile)
    }

    #[test]
    fn what_is_set_reads_back_as_the_same_strings() {
        let given = [
            ("reliability", "best-effort"),
            ("durability", "transient-local"),
            ("history", "keep-last"),
            ("history.depth", "7"),
            ("deadline", "123456789"),
            ("lifespan", "2000000003"),
        ];
        let back = read(&profile(&given).unwrap(), true);
        for (key, value) in given {
            assert_eq!(back[key], json!(value), "{key}");
        }
        assert_eq!(back.len(), given.len());
        assert_eq!(read(&profile(&[]).unwrap(), false)["deadline"], json!("infinite"));
    }

    #[test]
    fn faults_name_their_policy() {
        for (key, value) in [("reliability", "maybe"), ("deadline", "0"), ("history.depth", "0"), ("batch", "on")] {
            let fail = profile(&[(key, value)]).unwrap_err();
            assert!(fail.code == TB_EQOS && fail.text.contains(key), "{}", fail.text);
        }
        let fail = profile(&[("history.depth", "4"), ("history", "keep-all")]).unwrap_err();
        assert!(fail.text.contains("contradicts"), "{}", fail.text);
    }

    /// Test: the structure has the size and the members of the headers of ROS 2.
    #[test]
    fn the_profile_has_the_layout_of_the_headers() {
        assert_eq!(size_of::<Profile>(), 88);
        assert_eq!(std::mem::offset_of!(Profile, deadline), 24);
        assert_eq!(std::mem::offset_of!(Profile, avoid_names), 80);
        assert_eq!(size_of::<crate::types::WaitSet>(), 104);
        assert_eq!(size_of::<crate::types::Serialized>(), 64);
        assert_eq!(std::mem::offset_of!(crate::types::MessageInfo, gid), 40);
    }
}
