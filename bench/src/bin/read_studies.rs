//! Reads every built-in study, so that `bench/counted` can count the CPU instructions that reading takes.

use std::path::Path;

fn main() {
    for (name, text) in tailbound_study::embedded() {
        if let Err(problem) = tailbound_study::load_str(name, text, Path::new("."), &[]) {
            panic!("{name}: {problem}");
        }
    }
}
