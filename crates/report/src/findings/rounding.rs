//! Rounds numbers up for the advice that findings of a report give.

/// Rounds up to the next number with one non-zero digit, or with two non-zero digits if one digit would be much too
/// large.
pub(crate) fn round_up(n: u64) -> u64 {
    let digits = n.checked_ilog10().unwrap_or(0);
    let to = |kept: u32| n.next_multiple_of(10u64.pow(digits.saturating_sub(kept - 1)));
    if to(1) <= n + n / 8 { to(1) } else { to(2) }
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn advice_is_a_round_number() {
        for (n, up) in [(368, 400), (3_688, 4_000), (36_887, 40_000), (12_296, 13_000), (1, 1), (99, 100)] {
            assert_eq!(round_up(n), up, "{n}");
        }
    }
}
