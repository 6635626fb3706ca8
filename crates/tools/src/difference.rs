//! Statistics of the times of messages, of each of which a benchmark tool prints two times.

/// Number of digits behind the point of a time.
const DIGITS: usize = 9;
const UNIT: i128 = 1_000_000_000;
/// No time is as large as this, so that sums of as many times as a file can have are numbers too.
const LARGEST: u128 = 1 << 90;

/// The statistic of times in units of 10^-9, as a number with nine digits behind the point; `None` if there is no such statistic, or no
/// time.
pub(crate) fn statistic_of(mut all: Vec<i128>, statistic: &str) -> Option<String> {
    all.sort_unstable();
    let value = of_sorted(&all, statistic)?;
    let sign = if value < 0 { "-" } else { "" };
    let (whole, rest) = (value.unsigned_abs() / UNIT.unsigned_abs(), value.unsigned_abs() % UNIT.unsigned_abs());
    Some(format!("{sign}{whole}.{rest:09}"))
}

/// A number in units of 10^-9. The kernel's times have more digits than a floating-point number.
pub(crate) fn number(text: &str) -> Option<i128> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let whole: i128 = whole.parse().ok()?;
    let is_number = rest.len() <= DIGITS && rest.bytes().all(|digit| digit.is_ascii_digit());
    let rest: i128 = format!("{rest:0<DIGITS$}").parse().ok().filter(|_| is_number)?;
    let rest = if text.starts_with('-') { -rest } else { rest };
    whole.checked_mul(UNIT)?.checked_add(rest).filter(|number| number.unsigned_abs() < LARGEST)
}

/// The statistic of values in ascending order: `min`, `mean`, `max`, or `pN`, the smallest value that at least N percent of all values do
/// not exceed.
fn of_sorted(all: &[i128], statistic: &str) -> Option<i128> {
    let count = all.len() as f64;
    Some(match statistic {
        "min" => *all.first()?,
        "max" => *all.last()?,
        "mean" => all.iter().sum::<i128>().checked_div(all.len() as i128)?,
        other => {
            if all.is_empty() {
                return None;
            }
            let percent: f64 =
                other.strip_prefix('p')?.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
            // A product such as 99.9 x 10 can be a little above the whole number.
            let rank = (percent * count / 100.0 - 1e-6).ceil().clamp(1.0, count);
            *all.get(rank as usize - 1)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_exact_and_their_statistics_are_values_of_the_list() {
        let time = |text: &str| number(text).unwrap();
        let first = time("1790000004.999999999");
        let all: Vec<i128> = (0..1_000).map(|n| time(&format!("1790000005.{n:09}")) - first).collect();
        let expected = ["0.000000001", "0.000000500", "0.000000999", "0.000001000", "0.000000500"];
        let of = |name: &str| statistic_of(all.clone(), name).unwrap();
        assert_eq!(["min", "p50", "p99.9", "max", "mean"].map(of), expected);
        assert_eq!(["median", "p", "total"].map(|name| statistic_of(all.clone(), name)), [const { None }; 3]);
        assert_eq!(statistic_of(vec![time("3.25") - time("5.5")], "max").as_deref(), Some("-2.250000000"));
        assert_eq!(["min", "mean", "p50"].map(|name| statistic_of(Vec::new(), name)), [const { None }; 3]);
        assert_eq!(["pnan", "pinf", "p-1", "p101"].map(|name| statistic_of(all.clone(), name)), [const { None }; 4]);
        assert_eq!(["9".repeat(35), "9".repeat(30)].map(|text| number(&text)), [None; 2]);
        assert_eq!(["x", "5.0000000001", "-0.5"].map(number), [None, None, Some(-500_000_000)]);
    }
}
