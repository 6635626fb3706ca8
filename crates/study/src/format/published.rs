//! Keys of a study file for results that other people published.

use super::{Duration, HistogramMetric, Named, Word};
use crate::read::{At, custom};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use tailbound_model::{Problem, PublishedNumber};

/// A result that other people published: `name`, and at least one other key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedKeys {
    /// Name that the publication gives to the published row of results, or to the published case.
    pub name: String,
    /// Where the result was published, for example a paper with its figure or table.
    pub source: Option<String>,
    /// Statement of the publication about the published result, as text.
    pub text: Option<String>,
    /// Histogram of the published result: number of messages in each bin of `report.histogram`, in the same order. The
    /// last bin has no upper limit.
    pub histogram: Option<At<Vec<u64>>>,
    /// For each pattern of disturbed communication: number of published runs in which the pattern was found.
    pub patterns: Option<PatternKeys>,
    /// Mean, standard deviation and maximum of the published result: shown in the table of these figures that
    /// `report.against` asks for.
    pub figures: Option<At<FiguresKeys>>,
    /// Table of published numbers, beside which the report shows its own figures.
    pub table: Option<At<TableKeys>>,
    /// What differs between the published measurement and the one of this study: hardware, versions, definitions. The
    /// report lists these differences below the published numbers.
    pub differs: Option<Vec<String>>,
}

/// Published figures of one metric. Each is one time, or the smallest and the largest published time: `[7 us, 27 us]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FiguresKeys {
    /// Metric of the report that comes nearest to the published latency. Default: `round-trip`.
    pub metric: Option<HistogramMetric>,
    /// Published mean.
    pub mean: Option<At<Vec<Duration>>>,
    /// Published difference of the mean to the mean of the publication's baseline.
    pub mean_above: Option<At<Vec<Duration>>>,
    /// Published standard deviation.
    pub stddev: Option<At<Vec<Duration>>>,
    /// Published maximum.
    pub max: Option<At<Vec<Duration>>>,
}

/// Number of published runs in which a load had each effect (pattern) on communication.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternKeys {
    /// Number of published runs in which discovery did not complete while the load ran.
    pub discovery_starved: Option<u64>,
    /// Number of published runs in which a send call blocked.
    pub publish_blocked: Option<u64>,
    /// Number of published runs in which the publishing thread waited for a CPU.
    pub sender_starved: Option<u64>,
    /// Number of published runs in which the publishing thread stopped between its send calls and did not wait for a
    /// CPU.
    pub main_thread_blocked: Option<u64>,
    /// Number of published runs in which messages were lost or not sent.
    pub messages_lost: Option<u64>,
    /// Number of published runs in which answers took long, and none of the other effects was found.
    pub answers_late: Option<u64>,
    /// Number of published runs in which the trial took longer for another reason.
    pub total_time_longer: Option<u64>,
    /// Number of published runs in which the load had no effect on communication.
    pub no_effect: Option<u64>,
}

/// A table of published numbers. The report shows its own figures beside them, in the same unit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableKeys {
    /// What the rows of the table are, for example `payload`. Default: `row`.
    pub axis: Option<String>,
    /// Factors with their levels, such as `{ driver: fastdds }`: the conditions of this study whose figures stand in the
    /// table. Default: all conditions.
    pub levels: Option<ChosenKeys>,
    /// Columns of the table, without the column that has the names of the rows.
    pub columns: At<Vec<At<ColumnKeys>>>,
    /// Rows of the table.
    pub rows: At<Vec<At<RowKeys>>>,
}

/// A column of a table of published numbers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnKeys {
    /// Name of the column in the publication.
    pub name: String,
    /// Unit of all numbers of the column: `ns`, `us`, `ms`, `s`, `%`, `Mbit/s` or `1/s`.
    pub unit: At<String>,
    /// Factors with their levels: the conditions of this study whose figures stand in the column.
    pub levels: Option<ChosenKeys>,
    /// Figure of this study that the report shows beside the published numbers of the column. Default: none.
    pub here: Option<At<HereKeys>>,
}

/// A row of a table of published numbers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowKeys {
    /// Name of the row in the publication.
    pub name: String,
    /// Factors with their levels: the conditions of this study whose figures stand in the row. If several conditions
    /// have these levels, the report shows the smallest and the largest of their figures.
    pub levels: Option<ChosenKeys>,
    /// Number of one repetition, from 1, if the row is a single run. Default: all repetitions together.
    #[schemars(range(min = 1))]
    pub run: Option<At<u32>>,
    /// One number for each column, in its unit: a value such as `12.5`, a range such as `37 to 69`, a limit such as
    /// `< 3`, or `none` if the publication gives none.
    pub cells: At<Vec<CellText>>,
}

/// Figure of this study beside published numbers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HereKeys {
    /// What is measured.
    pub metric: At<HereMetric>,
    /// Statistic of the metric: `mean`, `sd` (standard deviation), `min`, `max` or a quantile such as `p99`. Default:
    /// `p50`.
    pub statistic: Option<At<String>>,
    /// Factors with their baseline levels, such as `{ place.network: host }`: the figure is compared with the one of the
    /// condition that has these levels and is otherwise equal.
    pub baseline: Option<At<Named<At<String>>>>,
    /// How the figure is compared with the baseline. Default: `change` if the unit is `%`, otherwise `difference`.
    pub compared: Option<At<ComparedWord>>,
}

/// What a figure of this study beside published numbers is about.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HereMetric {
    /// Round trip: time from the begin of the send call to the receipt of the answer.
    RoundTrip,
    /// Half of the round trip. Beyond the median, the report marks it as the definition of the publication: half of a
    /// round trip halves a stall on one way.
    HalfRoundTrip,
    /// Time from the begin of the send call at the ping end to the receipt at the pong end.
    Out,
    /// Time from the begin of the send call at the ping end until the kernel of the pong end's host has received the
    /// message.
    OutNetwork,
    /// Time from the end of the pong end's send call to the receipt of the answer at the ping end.
    Back,
    /// Time from the end of the pong end's send call until the kernel of the ping end's host has received the answer.
    BackNetwork,
    /// Time from the moment at which the message was due to the receipt of the answer.
    FromIntended,
    /// Time from the wake-up of the sender to the return of the send call (M2).
    WakeToSent,
    /// Time from one wake-up of the sender to the next (M4).
    WakePeriod,
    /// Received payload per second at the slowest subscriber; one value for each trial.
    Throughput,
    /// Time from the first slot to the last answer (M1); one value for each trial.
    TotalTime,
    /// Time from the opening of the ends until they had found each other, and then M1; one value for each trial.
    TotalWithDiscovery,
}

/// How a figure is compared with its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ComparedWord {
    /// Figure minus baseline.
    Difference,
    /// Change in %, above zero if the figure is larger than its baseline.
    Change,
    /// Overhead in %, above zero for a cost: later answers, or less throughput.
    Overhead,
}

/// Factors with one level or a list of levels each.
pub(crate) type ChosenKeys = At<Named<OneOrMore>>;

/// One level of a factor, or a list of levels, each with its position.
#[derive(Debug)]
pub(crate) struct OneOrMore(pub Vec<At<String>>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either(Result<Vec<At<Word>>, String>);
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = Either;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a level of the factor, or a list of levels")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Either, E> {
                Ok(Either(Err(word.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Either, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = access.next_element()? {
                    all.push(one);
                }
                Ok(Either(Ok(all)))
            }
        }
        impl<'de> Deserialize<'de> for Either {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Words)
            }
        }
        let At { at, value } = At::<Either>::deserialize(deserializer)?;
        let all = match value.0 {
            Ok(all) => all.into_iter().map(|one| At { at: one.at, value: one.value.0 }).collect(),
            Err(word) => vec![At { at, value: word }],
        };
        Ok(OneOrMore(all))
    }
}

impl JsonSchema for OneOrMore {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "OneOrMore".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let level = serde_json::json!({ "type": ["string", "number", "boolean"] });
        json_schema!({ "oneOf": [level, { "type": "array", "minItems": 1, "items": level }] })
    }
}

/// A cell of a table of published numbers; `None` if the publication gives no number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CellText(pub Option<PublishedNumber>);

impl<'de> Deserialize<'de> for CellText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = CellText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a published number")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CellText, E> {
                published_number(text).map(CellText).map_err(custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl JsonSchema for CellText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "CellText".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number"],
            "pattern": r"^(none|[<>] ?[-+]?[0-9.]+|[-+]?[0-9.]+( to [-+]?[0-9.]+)?)$",
            "examples": [12.5, "37 to 69", "< 3", "none"]
        })
    }
}

/// Reads a published number: `12.5`, `37 to 69`, `< 3`, `> 3` or `none`.
fn published_number(text: &str) -> Result<Option<PublishedNumber>, Problem> {
    let text = text.trim();
    if text == "none" {
        return Ok(None);
    }
    let help = "write a number such as `12.5`, a range such as `37 to 69`, a limit such as `< 3`, or `none`";
    let wrong = || Problem::new("study_value", format!("`{text}` is not a published number"), help);
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(wrong);
    let (low, high) = match (text.strip_prefix('<'), text.strip_prefix('>'), text.split_once(" to ")) {
        (Some(limit), ..) => (None, Some(number(limit)?)),
        (_, Some(limit), _) => (Some(number(limit)?), None),
        (_, _, Some((low, high))) => (Some(number(low)?), Some(number(high)?)),
        _ => (Some(number(text)?), Some(number(text)?)),
    };
    if low.zip(high).is_some_and(|(low, high)| low > high) {
        let reason = format!("the range `{text}` ends below its beginning");
        return Err(Problem::new("study_value", reason, "write the smaller number first"));
    }
    Ok(Some(PublishedNumber { low, high }))
}
