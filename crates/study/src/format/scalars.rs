//! Single values of the study format: quantities with units, CPU lists, quantiles.
//!
//! Each of these types is read from the text of a value in the study file. In the JSON Schema, most of these types have
//! a `format` and a `pattern`.

use crate::read::custom;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;
use tailbound_model::{ByteSize, CpuList, LoadStart, Nanos, Problem, Quiet, Rate};

/// Declares a type of the study format that is read from the text of one value.
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
                        let parse: fn(&str) -> Result<$inner, Problem> = $parse;
                        parse(text).map($name).map_err(custom)
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
    /// A size in bytes, as written in a study.
    Size(ByteSize), "a size such as `60 kB`", size, {
        "type": "string", "format": "size",
        "pattern": r"^[0-9]+(\.[0-9]+)? ?(B|kB|MB|GB|KiB|MiB|GiB)$", "examples": ["64 B", "60 kB", "8 KiB"]
    }
}

written! {
    /// A duration, as written in a study.
    Duration(Nanos), "a duration such as `10 ms`", duration, {
        "type": "string", "format": "duration",
        "pattern": r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h)$", "examples": ["10 s", "200 ms", "100 us"]
    }
}

written! {
    /// A rate of messages, or `max` (stop-and-wait).
    Frequency(Rate), "`max` or a rate such as `1 kHz`", |text: &str| text.parse(), {
        "type": "string", "format": "rate",
        "pattern": r"^(max|[0-9]+(\.[0-9]+)? ?(Hz|kHz|MHz))$", "examples": ["1 kHz", "max"]
    }
}

written! {
    /// A list of CPUs, as written in a study; `any` means all CPUs.
    Cpus(Option<CpuList>), "a CPU list such as `0-1,3`, or `any`", cpus, {
        "type": ["string", "integer"], "format": "cpus", "pattern": "^(any|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$",
        "examples": ["0-1,3", "any"]
    }
}

written! {
    /// Length of the warm-up, as a number of slots or as a duration.
    WarmUp(WarmUpLength), "a number of slots or a duration such as `200 ms`", warm_up, {
        "type": ["string", "integer"], "format": "warm-up",
        "pattern": r"^[0-9]+(\.[0-9]+)?( ?(ns|us|ms|s|min|h))?$", "examples": [200, "200 ms"]
    }
}

written! {
    /// Largest number of messages that a writer may have sent and that are not acknowledged yet.
    UnackedLimit(Option<u32>), "`none` or a number of messages such as `20`", unacked_limit, {
        "type": ["string", "integer"], "format": "unacked-limit", "pattern": "^(none|[1-9][0-9]{0,6})$",
        "minimum": 1, "maximum": 1_000_000, "examples": ["none", 20]
    }
}

written! {
    /// A quantile, as the unchanged text of the study file.
    Quantile(String), "a quantile such as `0.999`", quantile, {
        "type": ["number", "string"], "format": "quantile", "exclusiveMinimum": 0, "exclusiveMaximum": 1,
        "pattern": r"^0\.[0-9]+$", "examples": [0.5, 0.999]
    }
}

written! {
    /// Time at which a load begins, as written in a study.
    LoadStartText(LoadStart), "`before-discovery`, `after-matching` or a time such as `2 s`", load_start, {
        "type": "string", "format": "load-start",
        "pattern": r"^(before-discovery|after-matching|[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h))$",
        "examples": ["before-discovery", "after-matching", "2 s"]
    }
}

written! {
    /// Length of the quiet interval (silence before the measurement), as written in a study.
    QuietText(Quiet), "`auto`, `same`, `off` or a duration such as `1 s`", quiet, {
        "type": "string", "format": "quiet",
        "pattern": r"^(auto|same|off|[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h))$",
        "examples": ["auto", "same", "off", "1 s"]
    }
}

written! {
    /// Any single value, as the unchanged text of the study file.
    Word(String), "a single value", |text| Ok(text.to_owned()), { "type": ["string", "number", "boolean"] }
}

/// Length of the warm-up of a trial: number of slots or duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarmUpLength {
    Slots(u64),
    Duration(Nanos),
}

fn wrong(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem::new("study_value", what, remedy)
}

fn size(text: &str) -> Result<ByteSize, Problem> {
    let bytes: ByteSize = text.parse()?;
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let unit: ByteSize = format!("1 {}", text[unit_at..].trim()).parse()?;
    let number: f64 = text[..unit_at].parse().unwrap_or(0.0);
    if (number * unit.0 as f64).fract() != 0.0 {
        return Err(wrong(format!("`{text}` is not a whole number of bytes"), ""));
    }
    Ok(bytes)
}

fn duration(text: &str) -> Result<Nanos, Problem> {
    text.parse()
}

fn cpus(text: &str) -> Result<Option<CpuList>, Problem> {
    match text.trim() {
        "any" => Ok(None),
        list => list.parse().map(Some).map_err(|p: Problem| Problem { what: format!("{} or `any`", p.what), ..p }),
    }
}

fn warm_up(text: &str) -> Result<WarmUpLength, Problem> {
    if let Ok(slots) = text.trim().parse() {
        return Ok(WarmUpLength::Slots(slots));
    }
    Nanos::parse_as(text, "a number of slots or a duration such as `10 ms`").map(WarmUpLength::Duration)
}

/// Largest limit of unacknowledged messages that a study may set; no driver accepts more.
const MOST_UNACKED: u32 = 1_000_000;
const UNACKED_VALUES: &str = "1 to 1000000, or `none`";

fn unacked_limit(text: &str) -> Result<Option<u32>, Problem> {
    match text.trim() {
        "none" => Ok(None),
        number => match number.parse() {
            Ok(n) if (1..=MOST_UNACKED).contains(&n) => Ok(Some(n)),
            Ok(_) => Err(wrong(format!("a limit of {number} unacknowledged messages is not possible"), UNACKED_VALUES)),
            Err(_) => Err(wrong(format!("`{number}` is not a number of messages"), UNACKED_VALUES)),
        },
    }
}

fn load_start(text: &str) -> Result<LoadStart, Problem> {
    match text.trim() {
        "before-discovery" => Ok(LoadStart::BeforeDiscovery),
        "after-matching" => Ok(LoadStart::AfterMatching),
        time => {
            let wanted = "`before-discovery`, `after-matching` or a duration such as `10 ms`";
            Nanos::parse_as(time, wanted).map(LoadStart::At)
        }
    }
}

/// Longest quiet interval; a longer interval probably has a wrong unit.
const LONGEST_QUIET: Nanos = Nanos::from_secs(3600);

fn quiet(text: &str) -> Result<Quiet, Problem> {
    let time = match text.trim() {
        "auto" => return Ok(Quiet::Auto),
        "same" => return Ok(Quiet::Same),
        "off" => return Ok(Quiet::Off),
        time => Nanos::parse_as(time, "`auto`, `same`, `off` or a duration such as `10 ms`"),
    }?;
    match time {
        Nanos(..=0) => Err(wrong("a quiet interval must be above 0", "write `off` for none")),
        time if time > LONGEST_QUIET => Err(wrong("a quiet interval must be at most 1 h", "is the unit right?")),
        time => Ok(Quiet::For(time)),
    }
}

/// Largest number of decimals of a quantile that statistics represent exactly.
const QUANTILE_DECIMALS: usize = 15;

fn quantile(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    let digits = text.strip_prefix("0.").unwrap_or("");
    let written = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if written && digits.trim_end_matches('0').len() > QUANTILE_DECIMALS {
        return Err(wrong(format!("`{text}` has more than {QUANTILE_DECIMALS} decimals"), "write fewer decimals"));
    }
    if !written || text.parse().is_ok_and(|q: f64| q <= 0.0 || q >= 1.0) {
        return Err(wrong(
            format!("`{text}` is not a quantile between 0 and 1"),
            "write for example `0.999` for 99.9 %",
        ));
    }
    Ok(text.to_owned())
}
