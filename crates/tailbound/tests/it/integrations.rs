//! The steps of `integrations/`, run as a CI system runs them: with bash, and with their inputs as environment variables.

use crate::support::Bench;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn file(name: &str) -> Value {
    let path = format!("{}/../../integrations/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The script of the action for GitHub.
fn of_github() -> String {
    file("github/action.yml")["runs"]["steps"][0]["run"].as_str().unwrap().to_owned()
}

/// The script of the template for GitLab, and its variables.
fn of_gitlab() -> (String, Vec<(String, String)>) {
    let job = &file("gitlab/tailbound.yml")[".tailbound"];
    let variables = job["variables"].as_object().unwrap().iter();
    let variables = variables.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
    (job["script"][0].as_str().unwrap().to_owned(), variables)
}

/// Runs a script in the directory of the test; returns its exit code and what it printed.
fn run(bench: &Bench, script: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_BIN_EXE_tailbound")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-e", "-c", script]).current_dir(bench.dir.path()).env("PATH", path).env("NO_COLOR", "1");
    command.env("TAILBOUND_STATE_DIR", bench.path("state")).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

/// A study whose round trips take 30 us, and a budget.
fn prepare(bench: &Bench, limit: &str) {
    let study = "study: scripted\nquestion: q\nmeasure: { ping-pong: { slots: 100, warm_up: 10 } }\nrate: 1 kHz\npayload: 64 B\n\
                 place: same-process\npath: loopback\nrepeat: 5\ndriver: { \"null\": { clock: scripted, script: '{ \"seed\": 5, \
                 \"links\": { \"out\": { \"delay\": { \"constant\": 20000 } }, \"back\": { \"delay\": { \"constant\": 10000 } } } }' } }\n";
    fs::write(bench.path("study.yaml"), study).unwrap();
    fs::write(bench.path("budget.yaml"), format!("budget: robot\nlimits:\n  - round_trip: {{ {limit} }}\n")).unwrap();
}

/// Test: the script measures with the settings, compares with the baseline if there is one, writes all files, and ends with the exit
/// code of the budget.
#[test]
fn the_action_measures_compares_and_checks() {
    let bench = Bench::new();
    prepare(&bench, "p50: 40 us");
    let summary = bench.path("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let variables = |record: &'static str| {
        [
            ("TAILBOUND_STUDY", "study.yaml"),
            ("TAILBOUND_BUDGET", "budget.yaml"),
            ("TAILBOUND_SETTINGS", "measure.slots=300\n\npayload=32 B\n"),
            ("TAILBOUND_BASELINE", "tailbound-baseline"),
            ("TAILBOUND_RECORD", record),
            ("TAILBOUND_UNDECIDED", "fail"),
            ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap().to_owned().leak()),
        ]
    };
    let (code, text) = run(&bench, &of_github(), &variables("tailbound-baseline"));
    assert_eq!(code, Some(0), "{text}");
    let first = fs::read_to_string(&summary).unwrap();
    assert!(first.starts_with("before\n") && first.contains("holds") && !first.contains("ratio"), "{first}");
    let report = bench.tailbound().args(["report", "tailbound-baseline", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["conditions"][0]["counts"]["scheduled"], 1500, "five trials of 300 slots");
    assert!(fs::read_to_string(bench.path("tailbound-budget.xml")).unwrap().contains("failures=\"0\""));

    prepare(&bench, "p50: 20 us");
    let (code, text) = run(&bench, &of_github(), &variables("tailbound-record"));
    assert_eq!(code, Some(5), "{text}");
    let second = fs::read_to_string(&summary).unwrap();
    assert!(second.contains("ratio") && second.contains("broken"), "{second}");
    assert!(fs::read_to_string(bench.path("tailbound-budget.xml")).unwrap().contains("failures=\"1\""));
    let metrics = fs::read_to_string(bench.path("tailbound-budget.prom")).unwrap();
    assert!(metrics.contains("outcome=\"broken\"} 1"), "{metrics}");
}

/// Test: the job of the template does the same with its variables, and its artefacts are the files that it writes.
#[test]
fn the_template_does_the_same() {
    let (script, variables) = of_gitlab();
    let inner = script.strip_prefix("bash <<'TAILBOUND'\n").and_then(|s| s.trim_end().strip_suffix("TAILBOUND"));
    assert_eq!(inner.expect("a script for bash"), of_github());
    let bench = Bench::new();
    prepare(&bench, "p50: 40 us");
    let own: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), if name == "TAILBOUND_STUDY" { "study.yaml" } else { value.as_str() }))
        .collect();
    let (code, text) = run(&bench, &script, &own);
    assert_eq!(code, Some(0), "{text}");
    let job = &file("gitlab/tailbound.yml")[".tailbound"]["artifacts"];
    let paths = job["paths"].as_array().unwrap().iter().chain([&job["reports"]["junit"]]);
    for path in paths.map(|path| path.as_str().unwrap()) {
        assert!(bench.path(path).exists(), "{path}: {text}");
    }
    let inputs = file("github/action.yml");
    let env = inputs["runs"]["steps"][0]["env"].as_object().unwrap();
    assert!(env.keys().eq(variables.iter().map(|(name, _)| name)), "{env:?} {variables:?}");
}
