//! What a report says about the clock of a host during the trials, and the messages inside and outside of its bad windows.

use tailbound_document::number::{count, time};
use tailbound_document::{BadClockWindow, ClockHistoryReport, ClockReadingsReport, MessagesOfClock};

/// Heads of the columns of the table of messages.
pub(crate) const HEADS: [&str; 6] = ["messages", "number", "answered", "p50", "p99", "max"];

/// Largest number of bad windows that are listed.
const MOST_WINDOWS: usize = 10;

/// Describes the history of a clock, in sentences.
pub(crate) fn sentences(of: &ClockHistoryReport) -> String {
    let ns = |ns: i64| time(ns as f64);
    let mut text = format!("Clock of {} in trial {}, by {}: ", of.host, of.trial, of.service);
    text.push_str(&match of.offset_ns {
        None => "no offset from its master was reported.".to_owned(),
        Some([least, median, most]) => format!(
            "{} offsets from its master, {} to {}, median {}; the bound is {}.",
            count(of.offsets),
            ns(least),
            ns(most),
            ns(median),
            ns(of.within_ns)
        ),
    });
    if let Some(error_ns) = of.stated_error_ns {
        text.push_str(&format!(" The largest error that {} states is {}.", of.service, ns(error_ns)));
    }
    if let Some(delay_ns) = of.path_delay_ns {
        text.push_str(&format!(" Path delay {}.", ns(delay_ns)));
    }
    if !of.grandmaster.is_empty() {
        text.push_str(&format!(" Master {}", of.grandmaster));
        if let Some(steps) = of.steps_removed {
            text.push_str(&format!(", {steps} step{} away", if steps == 1 { "" } else { "s" }));
        }
        if let Some(utc_s) = of.utc_offset_s {
            text.push_str(&format!(", TAI - UTC {utc_s} s"));
        }
        text.push('.');
    }
    for (number, state) in of.ports.iter().enumerate() {
        text.push_str(&format!(" Port {}: {state}.", number + 1));
    }
    if let Some(width_ns) = of.clock_width_ns {
        text.push_str(&format!(" Its times are converted into the clock of the ping, known to {}.", ns(width_ns)));
    }
    of.readings.iter().for_each(|readings| text.push_str(&reading(readings)));
    text
}

/// A sentence about the readings of a hardware clock, after a space; empty for CLOCK_REALTIME.
fn reading(of: &ClockReadingsReport) -> String {
    if let Some(why) = &of.not_read {
        return format!(" {} was not read, or not until the end: {why}.", of.clock);
    }
    let Some([first_ns, last_ns]) = of.offset_ns else { return String::new() };
    let moved = time((last_ns - first_ns) as f64);
    format!(
        " {} against CLOCK_REALTIME: moved by {moved} in {} readings by {}, each known to {}.",
        of.clock,
        count(of.readings),
        of.read_by,
        time(of.half_width_max_ns as f64)
    )
}

/// The bad windows, one line each: from when to when after the begin, and why.
pub(crate) fn windows(of: &ClockHistoryReport) -> Vec<String> {
    let after = |ns: i64| time((ns - of.from_ns) as f64);
    let line = |w: &BadClockWindow| {
        format!("Not known to be in step from {} to {}: {}.", after(w.from_ns), after(w.to_ns), w.why)
    };
    let mut lines: Vec<String> = of.windows.iter().take(MOST_WINDOWS).map(line).collect();
    if of.windows.len() > MOST_WINDOWS {
        lines.push(format!("{} more such times are in the JSON document.", of.windows.len() - MOST_WINDOWS));
    }
    lines
}

/// The rows of the table of messages; empty if no message was in a bad window.
pub(crate) fn rows(of: &ClockHistoryReport) -> Vec<[String; 6]> {
    let Some(messages) = of.messages.as_ref().filter(|_| !of.windows.is_empty()) else { return Vec::new() };
    let row = |name: &str, of: &MessagesOfClock| {
        let ns = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| time(ns as f64));
        [name.to_owned(), count(of.messages), count(of.answered), ns(of.p50_ns), ns(of.p99_ns), ns(of.max_ns)]
    };
    vec![row("all", &messages.all), row("outside", &messages.outside), row("inside", &messages.inside)]
}

/// The table of messages as lines of text, with columns of equal width.
pub(crate) fn lines(of: &ClockHistoryReport) -> Vec<String> {
    let rows = rows(of);
    if rows.is_empty() {
        return Vec::new();
    }
    let all: Vec<[String; 6]> = std::iter::once(HEADS.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(n, (cell, width))| match n {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tailbound_document::{BadClock, MessagesByWindow, OffsetPart};

    /// A history in which ptp4l was silent for a while.
    pub(crate) fn example() -> ClockHistoryReport {
        let some = |messages, p99_ns| MessagesOfClock {
            messages,
            answered: messages,
            p50_ns: Some(41_000),
            p99_ns,
            max_ns: Some(912_000),
        };
        let part = |n: i64| OffsetPart { at_ns: 1_000_000_000 + n * 100_000_000, min_ns: -300 - n, max_ns: 200 + n };
        ClockHistoryReport {
            trial: 2,
            condition: 0,
            host: "station".into(),
            service: "ptp4l at /var/run/ptp4l".into(),
            within_ns: 1_000,
            from_ns: 1_000_000_000,
            to_ns: 6_000_000_000,
            offsets: 80,
            offset_ns: Some([-330, 12, 230]),
            stated_error_ns: None,
            path_delay_ns: Some(2_325),
            grandmaster: "ea6fe7.fffe.84d4a2".into(),
            steps_removed: Some(1),
            utc_offset_s: Some(37),
            clock_width_ns: None,
            ports: vec!["SLAVE".into()],
            parts: (0..30).map(part).collect(),
            windows: vec![BadClockWindow {
                from_ns: 4_000_000_000,
                to_ns: 5_500_000_000,
                kind: BadClock::Silent,
                why: "ptp4l does not answer".into(),
            }],
            messages: Some(MessagesByWindow {
                metric: "from_intended".into(),
                all: some(5_000, Some(120_000)),
                outside: some(3_500, Some(110_000)),
                inside: some(150, None),
            }),
            readings: vec![
                ClockReadingsReport {
                    clock: "/dev/ptp0".into(),
                    interfaces: vec!["eth0".into()],
                    read_by: "PTP_SYS_OFFSET_EXTENDED".into(),
                    readings: 6,
                    offset_ns: Some([37_000_000_100, 37_000_000_950]),
                    half_width_max_ns: 286,
                    not_read: None,
                },
                ClockReadingsReport {
                    clock: "/dev/ptp1".into(),
                    interfaces: Vec::new(),
                    read_by: String::new(),
                    readings: 0,
                    offset_ns: None,
                    half_width_max_ns: 0,
                    not_read: Some("cannot open the PTP hardware clock /dev/ptp1: Permission denied".into()),
                },
            ],
        }
    }

    #[test]
    fn a_history_with_a_silent_service_is_described() {
        let of = example();
        let text = [vec![sentences(&of)], windows(&of), lines(&of)].concat().join("\n").replace('\u{2009}', " ");
        insta::assert_snapshot!(text);
        let other = ClockHistoryReport { clock_width_ns: Some(51_000), readings: Vec::new(), ..of.clone() };
        assert!(
            sentences(&other).contains("Its times are converted into the clock of the ping"),
            "{}",
            sentences(&other)
        );
        let by_chrony = ClockHistoryReport { service: "chrony".into(), stated_error_ns: Some(1_234_000), ..of.clone() };
        let says = sentences(&by_chrony);
        assert!(says.contains(" The largest error that chrony states is 1.23"), "{says}");
        let none = ClockHistoryReport { offset_ns: None, windows: Vec::new(), ..of };
        assert!(sentences(&none).contains("no offset from its master was reported."));
        assert_eq!((rows(&none).len(), lines(&none).len()), (0, 0));
    }
}
