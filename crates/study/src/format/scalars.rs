//! Single values of the study format: quantities with units, CPU lists, quantiles.
//!
//! Each is read from the text as written and describes itself in the JSON Schema by `format` and `pattern`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;
use tailbound_model::{CpuList, LoadStart, Nanos, Octets, Quiet, Rate};

/// Declares a type that is read from the text of one value.
macro_rules! written {
    ($(#[$doc:meta])* $name:ident($inner:ty), $expecting:literal, $parse:expr, $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        let parse: fn(&str) -> Result<$inner, String> = $parse;
                        parse(text).map($name).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

written! {
    /// A size in octets.
    Size(Octets), "a size such as `60 kB`", size, {
        "type": "string", "format": "size",
        "pattern": r"^[0-9]+(\.[0-9]+)? ?(B|kB|MB|GB|KiB|MiB|GiB)$", "examples": ["64 B", "60 kB", "8 KiB"]
    }
}

written! {
    /// A span of time.
    Duration(Nanos), "a duration such as `10 ms`", duration, {
        "type": "string", "format": "duration",
        "pattern": r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h)$", "examples": ["10 s", "200 ms", "100 us"]
    }
}

written! {
    /// A rate, or stop-and-wait.
    Frequency(Rate), "`max` or a rate such as `1 kHz`", |text| text.parse().map_err(say), {
        "type": "string", "format": "rate",
        "pattern": r"^(max|[0-9]+(\.[0-9]+)? ?(Hz|kHz|MHz))$", "examples": ["1 kHz", "max"]
    }
}

written! {
    /// A list of CPUs, or any of them.
    Cpus(Option<CpuList>), "a CPU list such as `0-1,3`, or `any`", cpus, {
        "type": ["string", "integer"], "format": "cpus", "pattern": "^(any|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$",
        "examples": ["0-1,3", "any"]
    }
}

written! {
    /// Slots before the measured ones.
    WarmUp(WarmUpLength), "a number of slots or a duration such as `200 ms`", warm_up, {
        "type": ["string", "integer"], "format": "warm-up",
        "pattern": r"^[0-9]+(\.[0-9]+)?( ?(ns|us|ms|s|min|h))?$", "examples": [200, "200 ms"]
    }
}

written! {
    /// Messages that may be unacknowledged.
    UnackedLimit(Option<u32>), "`none` or a number of messages such as `20`", unacked_limit, {
        "type": ["string", "integer"], "format": "unacked-limit", "pattern": "^(none|[1-9][0-9]{0,6})$",
        "minimum": 1, "maximum": 1_000_000, "examples": ["none", 20]
    }
}

written! {
    /// A quantile, kept as it is written.
    Quantile(String), "a quantile such as `0.999`", quantile, {
        "type": ["number", "string"], "format": "quantile", "exclusiveMinimum": 0, "exclusiveMaximum": 1,
        "pattern": r"^0\.[0-9]+$", "examples": [0.5, 0.999]
    }
}

written! {
    /// When a load begins.
    LoadStartText(LoadStart), "`before-discovery`, `after-matching` or a time such as `2 s`", load_start, {
        "type": "string", "format": "load-start",
        "pattern": r"^(before-discovery|after-matching|[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h))$",
        "examples": ["before-discovery", "after-matching", "2 s"]
    }
}

written! {
    /// How long the path is looked at without messages.
    QuietText(Quiet), "`auto`, `same`, `off` or a duration such as `1 s`", quiet, {
        "type": "string", "format": "quiet",
        "pattern": r"^(auto|same|off|[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h))$",
        "examples": ["auto", "same", "off", "1 s"]
    }
}

written! {
    /// Any single value, kept as it is written.
    Word(String), "a single value", |text| Ok(text.to_owned()), { "type": ["string", "number", "boolean"] }
}

/// How long the warm-up is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarmUpLength {
    Slots(u64),
    Duration(Nanos),
}

/// The reader splits reason and advice at `; `.
fn say(error: tailbound_model::UnitError) -> String {
    error.to_string()
}

fn size(text: &str) -> Result<Octets, String> {
    let octets: Octets = text.parse().map_err(say)?;
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let unit: Octets = format!("1 {}", text[unit_at..].trim()).parse().map_err(say)?;
    let number: f64 = text[..unit_at].parse().unwrap_or(0.0);
    if (number * unit.0 as f64).fract() != 0.0 {
        return Err(format!("`{text}` is not a whole number of octets"));
    }
    Ok(octets)
}

fn duration(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(say)
}

fn cpus(text: &str) -> Result<Option<CpuList>, String> {
    match text.trim() {
        "any" => Ok(None),
        list => list.parse().map(Some).map_err(|e: tailbound_model::UnitError| format!("{e} or `any`")),
    }
}

fn warm_up(text: &str) -> Result<WarmUpLength, String> {
    if let Ok(slots) = text.trim().parse() {
        return Ok(WarmUpLength::Slots(slots));
    }
    let wanted = |e: String| e.replacen("is not a duration", "is not a number of slots or a duration", 1);
    duration(text).map(WarmUpLength::Duration).map_err(wanted)
}

/// More than any driver takes.
const MOST_UNACKED: u32 = 1_000_000;

fn unacked_limit(text: &str) -> Result<Option<u32>, String> {
    match text.trim() {
        "none" => Ok(None),
        number => match number.parse() {
            Ok(n) if (1..=MOST_UNACKED).contains(&n) => Ok(Some(n)),
            Ok(_) => {
                Err(format!("a limit of {number} unacknowledged messages is not possible; 1 to 1000000, or `none`"))
            }
            Err(_) => Err(format!("`{number}` is not a number of messages; 1 to 1000000, or `none`")),
        },
    }
}

fn load_start(text: &str) -> Result<LoadStart, String> {
    match text.trim() {
        "before-discovery" => Ok(LoadStart::BeforeDiscovery),
        "after-matching" => Ok(LoadStart::AfterMatching),
        time => duration(time).map(LoadStart::At).map_err(|e| {
            e.replacen("is not a duration", "is not `before-discovery`, `after-matching` or a duration", 1)
        }),
    }
}

/// Longer than this, and a unit was mistaken.
const LONGEST_QUIET: Nanos = Nanos::from_secs(3600);

fn quiet(text: &str) -> Result<Quiet, String> {
    let time = match text.trim() {
        "auto" => return Ok(Quiet::Auto),
        "same" => return Ok(Quiet::Same),
        "off" => return Ok(Quiet::Off),
        time => {
            duration(time).map_err(|e| e.replacen("is not a duration", "is not `auto`, `same`, `off` or a duration", 1))
        }
    }?;
    match time {
        Nanos(..=0) => Err("a quiet interval must be above 0; write `off` for none".into()),
        time if time > LONGEST_QUIET => Err("a quiet interval of more than an hour; is the unit right?".into()),
        time => Ok(Quiet::For(time)),
    }
}

/// As many as the statistics keep exactly.
const QUANTILE_DECIMALS: usize = 15;

fn quantile(text: &str) -> Result<String, String> {
    let text = text.trim();
    let digits = text.strip_prefix("0.").unwrap_or("");
    let written = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if written && digits.trim_end_matches('0').len() > QUANTILE_DECIMALS {
        return Err(format!("`{text}` has more than {QUANTILE_DECIMALS} decimals; write fewer"));
    }
    if !written || text.parse().is_ok_and(|q: f64| q <= 0.0 || q >= 1.0) {
        return Err(format!("`{text}` is not a quantile between 0 and 1; write for example `0.999` for 99.9 %"));
    }
    Ok(text.to_owned())
}
