//! Checks durations that a study gives.

use crate::error::Fault;
use crate::format::Duration;
use crate::read::At;
use tailbound_model::Nanos;

/// Longest duration of a trial; a longer duration probably has a wrong unit.
pub(super) const LONGEST: Nanos = Nanos::from_secs(30 * 24 * 3600);

/// Checks that a duration is above zero and at most the longest duration of a trial.
pub(super) fn positive(keys: Option<&At<Duration>>, what: &str) -> Result<Option<Nanos>, Fault> {
    let Some(keys) = keys else { return Ok(None) };
    match keys.value.0 {
        time if time.0 <= 0 => Err(Fault::new(keys.at, format!("{what} must be above 0")).help("for example `1 s`")),
        time if time > LONGEST => {
            Err(Fault::new(keys.at, format!("{what} must be at most 30 days")).help("is the unit right?"))
        }
        time => Ok(Some(time)),
    }
}
