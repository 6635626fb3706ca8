//! Checks the windows for which late and lost messages are counted, in studies and in budgets.

use crate::error::Fault;
use crate::read::At;
use tailbound_model::MissWindow;

/// Checks the keys `m` and `k` of a window: at most `m` of `k` consecutive messages may be late or lost.
pub(crate) fn checked(m: &At<u64>, k: &At<u64>) -> Result<MissWindow, Fault> {
    let longest = MissWindow::LONGEST;
    let too_many = || {
        let reason = format!("a window cannot have {} messages", k.value);
        Fault::new(k.at, reason).help(format!("write 1 to {longest} messages"))
    };
    let messages = u32::try_from(k.value).ok().filter(|k| (1..=longest).contains(k)).ok_or_else(too_many)?;
    let Some(missed) = u32::try_from(m.value).ok().filter(|m| *m < messages) else {
        let reason = format!("no window of {} messages has more than {} late or lost ones", k.value, m.value);
        return Err(Fault::new(m.at, reason).help("`m` must be less than `k`, for example `{ m: 1, k: 10 }`"));
    };
    Ok(MissWindow { m: missed, k: messages })
}
