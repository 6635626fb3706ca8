//! The options of the function `open` of the `null` driver.

use tailbound_abi::TB_EINVAL;
use tailbound_abi::side::{Outcome, Pair, fail};

use crate::script::Script;

/// Options that other drivers have too, and that have no meaning inside one process.
const WITHOUT_EFFECT: &[&str] = &["interface", "address", "peers", "multicast", "naming", "transport"];

/// Largest difference between the clocks of two ends, in ns, that a script may set if messages also get wall-clock
/// timestamps: with a larger difference, the timestamp of the other end may not fit into 64 bits.
const FURTHEST_STAMPED_NS: u64 = 1_000_000_000_000_000_000;

/// The options of the function `open` of the `null` driver, parsed.
#[derive(Debug)]
pub struct Options {
    pub domain: u32,
    pub scripted: bool,
    pub script: Option<Script>,
    pub timestamps: bool,
}

impl Options {
    /// Reads the options of `open`; the text of every failure names the key of the option.
    pub fn parse(pairs: &[Pair]) -> Outcome<Options> {
        let mut options = Options { domain: 77, scripted: false, script: None, timestamps: false };
        for pair in pairs {
            match pair.key {
                "domain" => options.domain = pair.number(TB_EINVAL, 0..=u32::MAX)?,
                "clock" => options.scripted = pair.word(TB_EINVAL, &["real", "scripted"])? == 1,
                "timestamps" => options.timestamps = pair.word(TB_EINVAL, &["off", "on"])? == 1,
                "script" => match Script::parse(pair.value) {
                    Ok(script) => options.script = Some(script),
                    Err(e) => return fail(e.code, format!("script: {}", e.text)),
                },
                key if WITHOUT_EFFECT.contains(&key) => {}
                _ => return Err(pair.bad(TB_EINVAL, "the null driver has no such option")),
            }
        }
        let apart_ns = options.script.as_ref().map_or(0, Script::clocks_apart_ns);
        if options.timestamps && apart_ns > FURTHEST_STAMPED_NS {
            return fail(
                TB_EINVAL,
                format!(
                    "timestamps: wall-clock timestamps do not fit into 64 bits with a pong_clock that is {apart_ns} ns ahead or \
                     behind; use at most {FURTHEST_STAMPED_NS} ns, or switch timestamps off"
                ),
            );
        }
        if options.script.is_some() && !options.scripted {
            return fail(TB_EINVAL, "script: delays need virtual time; add clock=scripted");
        }
        Ok(options)
    }
}
