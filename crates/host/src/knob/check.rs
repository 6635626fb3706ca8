//! Whether settings could be made here, and what they are now; nothing is changed.

use super::{KnobError, Place, Setting, find};
use tailbound_model::KnobSpec;

/// Why a knob cannot be set; `ends` are the places that exist already, and `made` says that others will be made for the
/// ends: what is theirs is only looked for here then.
///
/// # Errors
/// It does not exist, may not be read or not be set.
pub fn check(spec: &KnobSpec, ends: &[Place], made: bool) -> Result<(), KnobError> {
    let key = spec.key();
    for place in find::places(spec, ends) {
        let elsewhere = made && spec.is_of_network();
        for setting in find::find(spec, &place)? {
            let failed = |deed| {
                let (key, what) = (&key, setting.what());
                move |e: std::io::Error| KnobError::of(key, what, deed, &spec.wanted(), &e)
            };
            place.inside(|| setting.read()).map_err(failed("read"))?;
            if !elsewhere {
                place.inside(|| setting.may_write()).map_err(failed("set"))?;
            }
        }
    }
    Ok(())
}

/// What a knob is now, for people: the thing and its value, one for each that it means.
pub fn now(spec: &KnobSpec, ends: &[Place]) -> Vec<(String, String)> {
    let of = |place: &Place, setting: Box<dyn Setting>| {
        let value = place.inside(|| setting.read()).unwrap_or_else(|e| format!("not readable: {e}"));
        (setting.what(), value)
    };
    let places = find::places(spec, ends);
    let found = places.iter().flat_map(|p| find::find(spec, p).unwrap_or_default().into_iter().map(move |s| of(p, s)));
    found.collect()
}
