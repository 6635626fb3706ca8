//! Runs `tailbound gates advise`: prints how early messages must be due so that a stated share of them reaches the kernel in time.

use crate::cli::{GatesAdvise, GatesFormat};
use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use serde_json::{Value, json};
use std::fmt::Write;
use tailbound_model::{ExitCode, Nanos};
use tailbound_record::Record;
use tailbound_report::number::count;
use tailbound_report::{LeadAdvice, NoLead, lead_times};
use tailbound_stats::{Quantile, needs};

const US: i64 = 1_000;

pub fn advise(args: &GatesAdvise) -> CommandResult {
    let record = Record::open(&args.record).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let q = args.miss_rate.0;
    let found = lead_times(&record, q).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let dir = args.record.display();
    if found.is_empty() {
        let what = format!("{dir}: no valid trial has messages with a rate and times of their send calls");
        return Err(Failure::bad_input(what).help("record a study with `measure: ping-pong`, a driver and a rate"));
    }
    if found.iter().all(|advice| advice.lead.is_err()) {
        let reasons: Vec<String> = found.iter().map(|advice| text(advice, q, "STUDY")).collect();
        let what = format!("{dir}: no lead time keeps the miss rate\n  {}", reasons.join("\n  "));
        let not_sent = found.iter().any(|advice| advice.lead == Err(NoLead::NotSent));
        let help = match not_sent {
            true => "find out why messages were not sent: see the findings of `tailbound report`",
            false => "measure for a longer time, or choose a higher `--miss-rate`",
        };
        return Err(Failure::new(ExitCode::Undecided, what).help(help));
    }
    let study = &record.manifest.plan.study;
    match args.format {
        GatesFormat::Json => {
            let all: Vec<Value> = found.iter().map(|advice| json_of(advice, q)).collect();
            let all = json!({ "miss_rate": miss_rate(q), "conditions": all });
            outln!("{}", serde_json::to_string_pretty(&all).map_err(Failure::unexpected)?);
        }
        GatesFormat::Text => found.iter().for_each(|advice| outln!("{}", text(advice, q, study))),
    }
    Ok(ExitCode::Done)
}

fn miss_rate(q: Quantile) -> f64 {
    // Without the digits of a difference of two binary fractions.
    ((1.0 - q.as_f64()) * 1e12).round() / 1e12
}

/// The lead time in whole microseconds, rounded up.
fn rounded(lead: Nanos) -> Nanos {
    Nanos((lead.0.max(0) + US - 1) / US * US)
}

/// Time before the launch time at which the queue gives a message to the device, if the record has none: the default of studies.
const USUAL_AHEAD: Nanos = Nanos(300_000);

/// The stream with which messages need this time until they are in the kernel, and are there when the queue may give them to the
/// device; its offset is the one of the record, or 0.
fn snippet(advice: &LeadAdvice, lead: Nanos) -> String {
    let offset = advice.stream.map_or(Nanos(0), |stream| stream.offset);
    let ahead = advice.stream.and_then(|stream| stream.launch).map_or(USUAL_AHEAD, |launch| launch.ahead);
    let whole = Nanos(rounded(lead).0 + ahead.0);
    format!("stream: {{ offset: {offset}, launch: {{ lead: {whole}, ahead: {ahead} }} }}")
}

/// Due times in the cycle with which the messages of a window wait for nothing and miss it with at most the miss rate, as offsets.
enum Offsets {
    /// First and last offset, ns after the begin of a cycle.
    Range(Nanos, Nanos),
    /// The window is too short by this time: the last offset with which no more messages miss it, with which some wait.
    TooShort(Nanos, Nanos),
}

fn offsets(advice: &LeadAdvice, (first, last): (Nanos, Nanos), lead: Nanos) -> Offsets {
    let in_cycle = |ns: i64| Nanos(ns.rem_euclid(advice.cycle.0.max(1)));
    let (from_ns, to_ns) = (first.0 - advice.least_ns, last.0 - rounded(lead).0);
    match from_ns <= to_ns {
        true => Offsets::Range(in_cycle(from_ns), in_cycle(to_ns)),
        false => Offsets::TooShort(Nanos(from_ns - to_ns), in_cycle(to_ns)),
    }
}

/// Time for which a window must be open so that messages that are due at one time of the cycle neither wait nor miss it, without the
/// time of their frame on the wire.
fn window(advice: &LeadAdvice, lead: Nanos) -> Nanos {
    Nanos(rounded(lead).0 - advice.least_ns)
}

fn text(advice: &LeadAdvice, q: Quantile, study: &str) -> String {
    let name = &advice.condition;
    let lead = match advice.lead {
        Ok(lead) => lead,
        Err(NoLead::Needs(needs)) => {
            return format!(
                "{name}: {} messages, worth {} independent ones; {} are needed",
                count(advice.messages),
                count(advice.effective),
                count(needs)
            );
        }
        Err(NoLead::NotSent) => {
            let (not_sent, messages) = (count(advice.not_sent), count(advice.messages));
            return format!("{name}: {not_sent} of {messages} messages were not sent, more than may miss");
        }
    };
    let mut text = format!(
        "{name}: of {} messages (worth {} independent ones), half are in the kernel {} after they are due, and all but a share of {} at \
         most {} after it (97.5 % confidence).\n",
        count(advice.messages),
        count(advice.effective),
        Nanos(advice.median_ns),
        miss_rate(q),
        rounded(lead),
    );
    let stream = snippet(advice, lead);
    let value = stream.trim_start_matches("stream: ");
    let _ = writeln!(text, "  launch times: {stream}");
    if let Some(launch) = advice.stream.and_then(|stream| stream.launch).filter(|_| advice.late_timers > 0) {
        let _ = writeln!(
            text,
            "  {} of these messages were refused although they were in the queue in time: it released them later than the {} of `ahead` permit \
             (a late timer, or a device queue that was stopped). No lead time prevents this; write a longer `ahead`.",
            count(advice.late_timers),
            launch.ahead
        );
    }
    let _ = writeln!(
        text,
        "  gates without launch times: a window of at least {} and the time of the frame",
        window(advice, lead)
    );
    let same_time = advice.cycle.0 > 0 && advice.period.0 % advice.cycle.0 == 0;
    for (nth, of) in advice.windows.iter().enumerate().filter(|_| same_time) {
        let nth = nth + 1;
        let said = match offsets(advice, *of, lead) {
            Offsets::Range(from, to) => format!("an offset of {from} to {to}: messages neither wait nor miss it"),
            Offsets::TooShort(by, to) => {
                format!("too short by {by}; with an offset of {to}, no more miss it, and others wait")
            }
        };
        let _ = writeln!(text, "  window {nth} of the ping's gate: {said}");
    }
    if advice.cycle.0 > 0 && !same_time {
        text.push_str(
            "  The period is no multiple of the cycle of the gate, so that no offset chooses a time in the cycle.\n",
        );
    }
    let _ = write!(
        text,
        "  proof: tailbound run {study} --set stream='{value}', with at least {} messages; then no more than this share may be \
         refused or not sent",
        count(needs(q))
    );
    text
}

fn json_of(advice: &LeadAdvice, q: Quantile) -> Value {
    let lead = advice.lead.ok();
    // A message that was not sent is later than every time.
    let sent = |ns: i64| Some(ns).filter(|ns| *ns != i64::MAX);
    let offsets = |lead: Nanos| -> Vec<Value> {
        let of = |window: &(Nanos, Nanos)| match offsets(advice, *window, lead) {
            Offsets::Range(from, to) => json!({ "from_ns": from.0, "to_ns": to.0 }),
            Offsets::TooShort(by, to) => json!({ "too_short_by_ns": by.0, "to_ns": to.0 }),
        };
        advice.windows.iter().map(of).collect()
    };
    let needs = match advice.lead {
        Err(NoLead::Needs(needs)) => Some(needs),
        _ => None,
    };
    json!({
        "condition": advice.condition,
        "messages": advice.messages,
        "effective_messages": advice.effective,
        "not_sent": advice.not_sent,
        "late_timers": advice.late_timers,
        "quantile": q.as_f64(),
        "least_ns": sent(advice.least_ns),
        "median_ns": sent(advice.median_ns),
        "lead_ns": lead.map(|lead| rounded(lead).0),
        "window_ns": lead.map(|lead| window(advice, lead).0),
        "offsets": lead.map(offsets),
        "needs": needs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{LaunchSpec, StreamSpec};

    fn advice(lead: Result<Nanos, NoLead>) -> LeadAdvice {
        let us = |us: i64| Nanos(us * US);
        LeadAdvice {
            condition: "udp, 64 B".into(),
            messages: 20_000,
            not_sent: 21,
            effective: 15_000,
            least_ns: 30 * US,
            median_ns: 61 * US,
            lead,
            windows: vec![(us(0), us(100)), (us(300), us(400))],
            cycle: us(503),
            period: us(1_006),
            stream: None,
            late_timers: 0,
        }
    }

    #[test]
    fn the_advice_has_a_lead_time_a_window_and_a_run_that_proves_it() {
        let long = text(&advice(Ok(Nanos(212_345))), Quantile::P99_9, "my-study");
        let short = LeadAdvice { period: Nanos(1_000_000), ..advice(Ok(Nanos(90_001))) };
        let few = text(&advice(Err(NoLead::Needs(36_887))), Quantile::P99_99, "my-study");
        let not_sent = text(&advice(Err(NoLead::NotSent)), Quantile::P99_9, "my-study");
        insta::assert_snapshot!([long, text(&short, Quantile::P99, "my-study"), few, not_sent].join("\n"));
        let launch =
            LaunchSpec { lead: Nanos(1_000 * US), ahead: Nanos(300 * US), priority: 3, ..LaunchSpec::default() };
        let stream = Some(StreamSpec { offset: Nanos(0), launch: Some(launch) });
        let late = LeadAdvice { stream, late_timers: 292, ..advice(Ok(Nanos(212_345))) };
        let said = "  292 of these messages were refused although they were in the queue in time: it released them later than the 300 us of `ahead` permit";
        let late = text(&late, Quantile::P99_9, "my-study");
        assert!(late.contains(said), "{late}");
    }
}
