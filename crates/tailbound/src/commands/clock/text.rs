//! What `tailbound clock` prints for people: the clocks, a line for each reading, and sentences about steps and rates.

use super::found::{ChangeFound, ClockFound, Found, ReadingFound};
use std::fmt::Write;
use std::io;

/// Largest number of changes of one clock that are printed; a servo changes the rate of its clock every second.
const MOST_CHANGES: usize = 20;

/// The TAI offset, the clocks, and the head of the table of readings.
pub fn head<'a>(tai_offset_s: &io::Result<i32>, clocks: impl Iterator<Item = &'a ClockFound>) -> String {
    let mut text = match tai_offset_s {
        Ok(seconds) => format!("CLOCK_TAI - CLOCK_REALTIME  {seconds} s"),
        Err(why) => format!("CLOCK_TAI - CLOCK_REALTIME  not known: the kernel does not report it (adjtimex: {why})"),
    };
    if matches!(tai_offset_s, Ok(0)) {
        text.push_str(
            ": no time service has set it. Launch times and gate schedules refer to CLOCK_TAI, so they\n\
             would be 37 s from a clock that keeps TAI. Services of PTP and NTP can set it.",
        );
    }
    text.push_str("\n\n");
    for clock in clocks {
        let of =
            if clock.interfaces.is_empty() { String::new() } else { format!(" of {}", clock.interfaces.join(" ")) };
        let read = if clock.read_by.is_empty() { "not read".into() } else { format!("read by {}", clock.read_by) };
        let _ = writeln!(text, "{:<16}{}{of}, {read}", clock.clock, clock.name);
    }
    let columns = ["time s", "clock", "clock - CLOCK_REALTIME ns", "+- ns", "rate since the reading before, ppb"];
    let [time, clock, offset, width, rate] = columns;
    let _ = writeln!(text, "\n{time:>8}  {clock:<16}{offset:>28} {width:>9}  {rate}");
    text
}

/// The line of one reading.
pub fn reading(clock: &str, reading: &ReadingFound) -> String {
    let offset = reading.offset_ns.map_or_else(|| "-".into(), |[low, _]| grouped(low + reading.half_width_ns));
    let rate =
        reading.rate_ppb.map_or_else(|| "-".into(), |[low, high]| range([low.floor() as i64, high.ceil() as i64]));
    let seconds = reading.at_ns as f64 / 1e9;
    format!("{seconds:>8.3}  {clock:<16}{offset:>28} {:>9}  {rate}", grouped(reading.half_width_ns))
}

/// The line of a reading that failed, after which the clock is not read any more.
pub fn not_read(at_ns: i64, clock: &str, why: &str) -> String {
    format!("{:>8.3}  {clock:<16}not read from here on: {why}", at_ns as f64 / 1e9)
}

/// What the readings prove about each clock.
pub fn findings(found: &Found) -> String {
    let mut text = String::new();
    for clock in &found.clocks {
        let _ = write!(text, "\n{}\n", clock.clock);
        let mut lines: Vec<(i64, String)> = Vec::new();
        for part in &clock.steady {
            let [low, high] = part.rate_ppb;
            let rate = range([low.floor() as i64, high.ceil() as i64]);
            lines.push((part.from_ns, format!("{}: steady, rate {rate} ppb", span(part.from_ns, part.to_ns))));
        }
        for change in clock.changes.iter().take(MOST_CHANGES) {
            lines.push((change.from_ns, format!("{}: {}", span(change.from_ns, change.to_ns), changed(change))));
        }
        lines.sort_by_key(|(from_ns, _)| *from_ns);
        for (_, line) in &lines {
            let _ = writeln!(text, "  {line}");
        }
        if let Some(problem) = &clock.not_read {
            let when = if clock.readings.is_empty() { "not read" } else { "not read until the end" };
            let _ = writeln!(text, "  {when}: {}", problem.paragraph().replace('\n', "\n  "));
        }
        if let Some(more) = clock.changes.len().checked_sub(MOST_CHANGES).filter(|more| *more > 0) {
            let _ = writeln!(text, "  {more} more changes, which --format json lists");
        }
    }
    let _ = writeln!(
        text,
        "\nRates are by CLOCK_MONOTONIC_RAW. A clock is steady if one line with a rate of at most {} ppm lies within the widths of\n\
         its readings. \"a to b\" are the smallest and the largest value that the widths permit.",
        grouped(found.most_rate_ppm as i64)
    );
    text
}

/// What happened at a change, as far as the bounds before and after it say.
fn changed(change: &ChangeFound) -> String {
    let (Some(step), Some(rate)) = (change.step_ns, change.rate_change_ppb) else {
        return "stepped, or its rate changed: too few readings before or afterwards".into();
    };
    let is_proved = |[low, high]: [i64; 2]| low > 0 || high < 0;
    let (stepped, of_rate) = (format!("by {} ns", range(step)), format!("by {} ppb", range(rate)));
    match (is_proved(step), is_proved(rate)) {
        (true, false) => format!("stepped {stepped}"),
        (false, true) => format!("rate changed {of_rate}"),
        (true, true) => format!("stepped {stepped}, and rate changed {of_rate}"),
        (false, false) => {
            format!("stepped {stepped}, or rate changed {of_rate}: the widths do not permit to say which")
        }
    }
}

fn span(from_ns: i64, to_ns: i64) -> String {
    format!("{:.1} to {:.1} s", from_ns as f64 / 1e9, to_ns as f64 / 1e9)
}

fn range([low, high]: [i64; 2]) -> String {
    format!("{} to {}", grouped(low), grouped(high))
}

/// A number with a comma before each three digits.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::clock::found::SteadyFound;
    use tailbound_host::PtpError;

    const S: i64 = 1_000_000_000;

    fn change(at: i64, step_ns: Option<[i64; 2]>, rate_change_ppb: Option<[i64; 2]>) -> ChangeFound {
        ChangeFound { from_ns: at * S, to_ns: (at + 2) * S, step_ns, rate_change_ppb }
    }

    #[test]
    fn clocks_and_what_their_readings_prove() {
        let changes = vec![
            change(3, Some([499_060, 500_896]), Some([-160, 166])),
            change(9, Some([-21_000, 20_500]), Some([19_817, 20_182])),
            change(15, Some([-9_000, -1]), Some([1, 40])),
            change(21, Some([-300, 400]), Some([-5, 300])),
            change(27, None, None),
        ];
        let steady = vec![SteadyFound { from_ns: 0, to_ns: 3 * S, rate_ppb: [-110.9, 118.2] }];
        let hardware = ClockFound {
            clock: "/dev/ptp1".into(),
            name: "Mock-up PTP clock".into(),
            interfaces: vec!["eth1".into(), "eth2".into()],
            read_by: "PTP_SYS_OFFSET".into(),
            changes,
            steady,
            ..ClockFound::default()
        };
        let often = (0..23).map(|at| change(at, Some([0, 1]), Some([2, 3]))).collect();
        let servo = ClockFound { clock: "/dev/ptp2".into(), changes: often, ..ClockFound::default() };
        let why = PtpError::NotOpened("/dev/ptp3".into(), io::Error::from_raw_os_error(libc::EACCES));
        let refused = ClockFound {
            clock: "/dev/ptp3".into(),
            name: "card".into(),
            not_read: Some(why.problem()),
            ..ClockFound::default()
        };
        let one = |at_ns, offset_ns, rate_ppb| ReadingFound { at_ns, offset_ns, half_width_ns: 160, rate_ppb };
        let readings = [
            one(1_000, None, None),
            one(1_004_000_000, Some([-1_795_811_640_204_075_552, -1_795_811_640_204_075_232]), Some([-1.2, 20_602.5])),
        ];
        let lines = readings.map(|line| reading("/dev/ptp1", &line)).join("\n");
        let found = Found { tai_offset_s: Some(0), most_rate_ppm: 1e3, clocks: vec![hardware, servo, refused] };
        let [unset, set] = [0, 37].map(|tai_offset_s| head(&Ok(tai_offset_s), found.clocks[..1].iter()));
        let unknown = head(&Err(io::Error::from_raw_os_error(libc::EPERM)), found.clocks[2..].iter());
        insta::assert_snapshot!([unset, lines, findings(&found), set, unknown].join("\n"));
    }
}
