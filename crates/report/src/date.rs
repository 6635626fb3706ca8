//! Formats a date for reports.

/// Formats a time in nanoseconds since 1970 as a date, for example `9 October 2025, 08:53 UTC`.
pub fn utc(unix_ns: i64) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let minutes = unix_ns.div_euclid(60_000_000_000);
    let (year, month, day) = date(minutes.div_euclid(24 * 60));
    let minute = minutes.rem_euclid(24 * 60);
    format!("{day} {} {year}, {:02}:{:02} UTC", MONTHS[month - 1], minute / 60, minute % 60)
}

/// Formats a time in nanoseconds since 1970 with the milliseconds of its day, for example `08:53:20.123 UTC`.
pub fn utc_ms(unix_ns: i64) -> String {
    let ms = unix_ns.div_euclid(1_000_000).rem_euclid(86_400_000);
    format!("{:02}:{:02}:{:02}.{:03} UTC", ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000)
}

/// Formats a time in nanoseconds since 1970 for the name of a file, for example `20251009-085320` (UTC).
pub fn of_name(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", second / 3_600, second / 60 % 60, second % 60)
}

/// Year, month and day for a number of days since 1970, in the Gregorian calendar: 400 years are 146,097 days, and
/// years are counted from March, so that the leap day is the last of its year.
fn date(days: i64) -> (i64, usize, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::{of_name, utc};

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1 January 1970, 00:00 UTC");
        assert_eq!(utc(1_760_000_000_000_000_000), "9 October 2025, 08:53 UTC");
        assert_eq!(of_name(1_760_000_000_000_000_000), "20251009-085320");
        assert_eq!(utc(951_782_400_000_000_000), "29 February 2000, 00:00 UTC");
        assert_eq!(utc(1_735_689_540_000_000_000), "31 December 2024, 23:59 UTC");
    }
}
