//! Checks whether knobs can be set on this host, and reads their present values; nothing is changed.

use super::error::KnobError;
use super::find;
use super::place::Place;
use super::setting::Setting;
use tailbound_model::KnobSpec;

/// Checks whether a knob can be set. `ends` are the places of ends that exist already. If `made` is true, network
/// namespaces will be made for the ends later, so this function only reads network settings and does not check whether
/// they can be set.
///
/// # Errors
/// A setting of the knob does not exist, or this user may not read or set it.
pub fn check(spec: &KnobSpec, ends: &[Place], made: bool) -> Result<(), KnobError> {
    let key = spec.key();
    for place in find::places(spec, ends) {
        let elsewhere = made && spec.is_of_network();
        for setting in find::find(spec, &place)? {
            let failed = |action| {
                let (key, what) = (&key, setting.what());
                move |e: std::io::Error| KnobError::of(key, what, action, &spec.wanted(), &e)
            };
            place.inside(|| setting.read()).map_err(failed("read"))?;
            if !elsewhere {
                place.inside(|| setting.may_write()).map_err(failed("set"))?;
            }
        }
    }
    Ok(())
}

/// Present values of a knob as text for the user: the name and the value of each of its host settings.
pub fn now(spec: &KnobSpec, ends: &[Place]) -> Vec<(String, String)> {
    let of = |place: &Place, setting: Box<dyn Setting>| {
        let value = place.inside(|| setting.read()).unwrap_or_else(|e| format!("not readable: {e}"));
        (setting.what(), value)
    };
    let places = find::places(spec, ends);
    let found = places.iter().flat_map(|p| find::find(spec, p).unwrap_or_default().into_iter().map(move |s| of(p, s)));
    found.collect()
}
