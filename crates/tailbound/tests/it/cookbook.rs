//! Test of the page "Cookbook by deployment": each recipe is a part of a valid study.

use crate::support::{Bench, exit_and_stderr};

const PAGE: &str = include_str!("../../../../docs/src/cookbook.md");
const BASE: &str = "```yaml\n";

/// The parts `key: value` of a recipe, in backquotes; of two alternatives for a key, the first one.
fn parts(recipe: &str) -> Vec<(&str, &str)> {
    let quoted = recipe.split('`').skip(1).step_by(2);
    let mut parts: Vec<(&str, &str)> = Vec::new();
    for (key, part) in quoted.filter_map(|part| Some((part.split_once(": ")?.0, part))) {
        if key.chars().all(|c| c.is_ascii_lowercase()) && !parts.iter().any(|(k, _)| *k == key) {
            parts.push((key, part));
        }
    }
    parts
}

#[test]
fn each_recipe_is_a_part_of_a_study() {
    let bench = Bench::new();
    std::fs::write(bench.path("cyclonedds.xml"), "<CycloneDDS/>").unwrap();
    let base = PAGE.split_once(BASE).unwrap().1.split_once("```").unwrap().0;
    let mut tried = 0;
    for row in PAGE.lines().filter(|line| line.starts_with("| ")) {
        let parts = parts(row.split(" | ").nth(1).unwrap());
        // A recipe with `…` shows the keys only.
        if parts.is_empty() || parts.iter().any(|(_, part)| part.contains('…')) {
            continue;
        }
        let kept = base.lines().filter(|line| !parts.iter().any(|(key, _)| line.split(':').next() == Some(key)));
        let text: Vec<&str> = kept.chain(parts.iter().map(|(_, part)| *part)).collect();
        let study = bench.study(&text.join("\n"));
        let output = bench.tailbound().arg("run").arg(study).arg("--dry-run").output().unwrap();
        // 3: this machine lacks something, such as a kernel for a guest. 2 would be a recipe that is wrong.
        let (code, printed) = exit_and_stderr(&output);
        assert!(code == 0 || code == 3, "{row}\n{printed}");
        tried += 1;
    }
    assert!(tried >= 12, "{tried}");
}
