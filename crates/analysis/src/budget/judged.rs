//! Checks a limit for the share of lost messages, and formats shares in per cent.

use tailbound_document::BudgetOutcome;
use tailbound_document::number::{count, three_digits};
use tailbound_stats::share_interval;

pub(crate) type Judged = (BudgetOutcome, String, String);

/// Checks a limit for the share of lost messages: `lost` of `all` messages. Without a limit, no message may be lost.
pub(crate) fn lost((lost, all): (u64, u64), limit: Option<f64>) -> Judged {
    use BudgetOutcome::*;
    let (low, high) = share_interval(lost, all);
    let found = format!("{} of {} (95 %: {} to {})", count(lost), count(all), per_cent(low), per_cent(high));
    let outcome = match limit {
        None if lost == 0 => Holds,
        None => Broken,
        Some(limit) if high <= limit => Holds,
        Some(limit) if low > limit => Broken,
        Some(_) => Undecided,
    };
    let why = match (outcome, limit) {
        (Undecided, _) => "the limit lies inside the 95 % interval: a decision needs more messages",
        (Holds, None) => "for these messages",
        _ => "",
    };
    (outcome, found, why.into())
}

pub(crate) fn per_cent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}
