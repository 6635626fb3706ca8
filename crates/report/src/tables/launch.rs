//! What a report says about launch times.

use tailbound_document::number::{count, time};
use tailbound_document::{ConditionReport, LaunchReport, Report};

/// The launch times of a report, each with its condition.
pub(crate) fn all(report: &Report) -> impl Iterator<Item = (&ConditionReport, &LaunchReport)> {
    report.conditions.iter().filter_map(|condition| Some((condition, condition.launch.as_ref()?)))
}

/// Describes when the messages of a condition arrived, measured from their launch times, in sentences.
pub(crate) fn sentences(condition: &ConditionReport, launch: &LaunchReport) -> String {
    let first = format!(
        "Launch times ({}): messages are due at the ping {} before their launch time, and the queue gives them to the device {} \
         before it.",
        condition.name,
        time(launch.lead_ns as f64),
        time(launch.ahead_ns as f64)
    );
    first + &arrivals(launch) + &refusals(launch)
}

/// Sentences about the messages that arrived, each after a space.
fn arrivals(launch: &LaunchReport) -> String {
    let ns = |ns: i64| time(ns as f64);
    let mut text = String::new();
    if let (Some(p50_ns), Some(p99_ns), Some(max_ns)) = (launch.after_p50_ns, launch.after_p99_ns, launch.after_max_ns)
    {
        let from_launch = |of: i64| match of < 0 {
            true => format!("at least {} before it", ns(-of)),
            false => format!("at most {} after it", ns(of)),
        };
        let latest = if max_ns < 0 { "before" } else { "after" };
        text.push_str(&format!(
            " {} messages arrived: half of them {}, 99 % {}, and the latest {} {latest} it.",
            count(launch.messages),
            from_launch(p50_ns),
            from_launch(p99_ns),
            ns(max_ns.abs())
        ));
    }
    if launch.early > 0 {
        let (early, most) = (count(launch.early), ns(launch.early_max_ns));
        text.push_str(&match launch.deadline {
            true => format!(" {early} arrived before their deadline, by at most {most}."),
            false => format!(
                " {early} arrived before their launch time, by at most {most}: without a network card that launches them, they leave \
                 when the queue gives them to the device."
            ),
        });
    }
    text
}

/// Sentences about the messages that the kernel did not send, each after a space.
fn refusals(launch: &LaunchReport) -> String {
    let all = [
        (launch.refused_invalid, "the launch time had already passed at the queue"),
        (launch.refused_missed, "the launch time passed in the queue"),
    ];
    let refused = all.into_iter().filter(|(refused, _)| *refused > 0);
    let messages = |n| if n == 1 { "1 message".to_owned() } else { format!("{} messages", count(n)) };
    let least = if launch.refused_incomplete { "at least " } else { "" };
    refused.map(|(n, why)| format!(" The kernel did not send {least}{}, because {why}.", messages(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(deadline: bool) -> LaunchReport {
        LaunchReport {
            lead_ns: 10_000_000,
            ahead_ns: 500_000,
            deadline,
            messages: 272,
            early: 32,
            early_max_ns: 165_000,
            after_p50_ns: Some(-105_000),
            after_p99_ns: Some(4_750_000),
            after_max_ns: Some(8_130_000),
            refused_invalid: 0,
            refused_missed: 31,
            refused_incomplete: false,
        }
    }

    /// What is said about launch times, behind the first sentence, with plain spaces.
    fn said(launch: &LaunchReport) -> String {
        let text = arrivals(launch) + &refusals(launch);
        text.replace(['\u{2009}', '\u{a0}', '\u{202f}'], " ").trim().to_owned()
    }

    #[test]
    fn early_and_refused_messages_are_named() {
        let strict = said(&launch(false));
        assert!(
            strict.starts_with(
                "272 messages arrived: half of them at least 105 us before it, 99 % at most 4.75 ms after it, and the latest 8.13 ms after it."
            ),
            "{strict}"
        );
        assert!(
            strict.contains("32 arrived before their launch time, by at most 165 us: without a network card"),
            "{strict}"
        );
        assert!(
            strict.ends_with("The kernel did not send 31 messages, because the launch time passed in the queue."),
            "{strict}"
        );
        assert!(said(&launch(true)).contains("32 arrived before their deadline, by at most 165 us."));
    }

    #[test]
    fn nothing_is_said_about_messages_that_did_not_arrive() {
        let none = LaunchReport {
            messages: 0,
            early: 0,
            after_p50_ns: None,
            after_p99_ns: None,
            after_max_ns: None,
            refused_missed: 0,
            refused_invalid: 7,
            ..launch(false)
        };
        let text = "The kernel did not send 7 messages, because the launch time had already passed at the queue.";
        assert_eq!(said(&none), text);
        let more = said(&LaunchReport { refused_incomplete: true, ..none });
        assert!(more.starts_with("The kernel did not send at least 7 messages"), "{more}");
    }
}
