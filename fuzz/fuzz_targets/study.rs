//! Fuzzes a study file with arbitrary text: the result is an error or a plan, never a panic; a plan can be written and
//! read again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    if let Ok(plan) = tailbound_study::load_str("fuzz.yaml", text, Path::new("/nonexistent"), &[]) {
        assert!(plan.trials.iter().all(|t| t.condition < plan.conditions.len()));
    }
});
