//! Tests of what a new user meets first: messages about wrong input, each with a snapshot, and the lists, checks and directories
//! of the command line.

use crate::support::{Bench, exit_and_stderr, succeeded};
use std::fs;

const STUDY: &str = "study: s\nquestion: q\nmeasure: { ping-pong: { slots: 200, warm_up: 0, timeout: 100 ms } }\n\
    rate: 1 kHz\ndriver: udp\npath: loopback\nplace: process\nattribution: off\nquiet: off\n";

/// A directory with a study, two records without samples, one of which has a damaged manifest, and other files.
fn bench() -> Bench {
    let bench = Bench::new();
    let write = |name: &str, text: &str| fs::write(bench.path(name), text).unwrap();
    write("study.yaml", STUDY);
    write("no-unit.yaml", &STUDY.replace("rate: 1 kHz", "rate: 1000"));
    write("qos.yaml", &format!("{STUDY}qos: {{ reliability: reliable }}\n"));
    write("deep.yaml", &format!("study: s\nload: {}\n", "[".repeat(3_000)));
    write("direction.yaml", &STUDY.replace("question: q", "question: \"a\u{202e}b\""));
    write("budget.yaml", "limits:\n  - round_trip: { p99: 5 hours }\n");
    let path = "path: { existing: { ping: { address: \"::1\" }, pong: { address: \"::1\" } } }";
    write("ipv6.yaml", &STUDY.replace("path: loopback", path));
    for name in ["good", "cut/samples/0"] {
        fs::create_dir_all(bench.path(name)).unwrap();
    }
    write("good/manifest.json", r#"{"format":{"major":9,"minor":2},"readable_by":"4.5.0"}"#);
    write("good/report.html", "a page");
    write("cut/manifest.json", r#"{"format":{"major":2,"min"#);
    write("mine", "not a study");
    bench
}

/// The exit code and the message of a command that is refused.
fn refused(bench: &Bench, line: &[&str]) -> String {
    let output = bench.tailbound().args(line).env("COLUMNS", "100").output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert!(matches!(code, 2 | 3), "{line:?}: exit {code}: {text}");
    assert!(text.starts_with("error: "), "{line:?}: {text}");
    let text = text.replace(bench.dir.path().to_str().unwrap(), "DIR");
    format!("$ tailbound {}\nexit {code}\n{text}", line.join(" "))
}

/// Test: each wrong input of a new user says what is wrong and what to write in its place.
#[test]
fn wrong_input_says_what_to_write() {
    let bench = bench();
    for (name, line) in [
        ("report_missing", &["report", "nosuch"][..]),
        ("report_page", &["report", "good/report.html"]),
        ("report_study", &["report", "study.yaml"]),
        ("report_cut_off", &["report", "cut"]),
        ("report_folder", &["report", "."]),
        ("report_latest_missing", &["report", "latest"]),
        ("compare_missing", &["compare", "nosuch", "good"]),
        ("budget_missing", &["budget", "nosuch", "budget.yaml"]),
        ("budget_no_file", &["budget", "good", "nosuch.yaml"]),
        ("budget_directory", &["budget", "good", "cut"]),
        ("run_address", &["run", "ipv6.yaml", "--dry-run"]),
        ("run_missing", &["run", "nosuch"]),
        ("run_directory", &["run", "cut/samples"]),
        ("run_record", &["run", "good"]),
        ("run_json", &["run", "study.yaml", "--json"]),
        ("run_format", &["run", "study.yaml", "--format", "json"]),
        ("studies_show", &["studies", "show", "pingpong"]),
        ("set_list", &["run", "study.yaml", "--set", "payload=64B,1KiB"]),
        ("no_unit", &["run", "no-unit.yaml"]),
        ("qos", &["run", "qos.yaml"]),
        ("deep", &["run", "deep.yaml"]),
        ("out_parent", &["run", "study.yaml", "--out", "/nonexistent/x/y"]),
        ("out_below_file", &["run", "study.yaml", "--out", "mine/record"]),
        ("out_exists", &["run", "study.yaml", "--out", "cut"]),
        ("out_not_a_record", &["run", "study.yaml", "--out", "mine", "--force"]),
        ("force_alone", &["run", "study.yaml", "--force"]),
        ("quick_out_parent", &["quick", "--out", "/nonexistent/x/y"]),
        ("import_missing", &["import", "ddsperf", "nosuch.txt"]),
    ] {
        insta::assert_snapshot!(name, refused(&bench, line));
    }
    assert!(!bench.path("state/journal").exists(), "nothing was begun");
}

/// Test: wrong input of the commands without a study file.
#[test]
fn wrong_input_of_short_commands_says_what_to_write() {
    let bench = bench();
    for (name, line) in [
        ("ping_driver", &["ping", "udq"][..]),
        ("ping_driver_file", &["ping", "./nosuch.so"]),
        ("ping_size", &["ping", "--size", "abc"]),
        ("ping_size_no_unit", &["ping", "--size", "64"]),
        ("ping_size_large", &["ping", "--size", "100kB"]),
        ("ping_size_case", &["ping", "--size", "64kb"]),
        ("ping_rate_zero", &["ping", "--rate", "0"]),
        ("ping_rate_zero_hertz", &["ping", "--rate", "0Hz"]),
        ("ping_rate_high", &["ping", "--rate", "5000MHz"]),
        ("ping_for_zero", &["ping", "--for", "0s"]),
        ("ping_for_no_unit", &["ping", "--for", "10"]),
        ("ping_rate_unit", &["ping", "--rate", "1khz"]),
        ("ping_to_option", &["ping", "--to=-oProxyCommand=x"]),
        ("ping_to_empty", &["ping", "--to", ""]),
        ("ping_to_ipv6", &["ping", "--to", "::1"]),
        ("ping_to_ipv6_user", &["ping", "--to", "me@fe80::1"]),
        ("ping_save_study", &["ping", "--save-study", "study.yaml"]),
        ("ping_save_study_parent", &["ping", "--save-study", "nosuch/s.yaml"]),
        ("ping_out_exists", &["ping", "--out", "cut"]),
        ("ping_flag", &["ping", "--payload", "64B"]),
        ("validate_missing", &["validate", "nosuch.yaml"]),
        ("validate_budget", &["validate", "budget.yaml"]),
        ("validate_record", &["validate", "good"]),
        ("schema_of_what", &["schema", "reports"]),
        ("ls_missing", &["ls", "nosuch"]),
        ("serve_missing", &["serve", "nosuch"]),
        ("color", &["--color", "red", "ls"]),
        ("list_format", &["studies", "list", "--format", "yaml"]),
        ("command", &["pin"]),
        ("open_and_format", &["report", "good", "--open", "--format", "json"]),
    ] {
        insta::assert_snapshot!(name, refused(&bench, line));
    }
    assert!(!bench.path("state/journal").exists(), "nothing was begun");
    for line in [&["--size", "100kB"][..], &["--out", "cut"], &["--rate", "5000MHz"], &["--to", "::1"]] {
        refused(&bench, &[&["ping", "--save-study", "new.yaml"], line].concat());
        assert!(!bench.path("new.yaml").exists(), "{line:?}: the study of a refused ping is written");
    }
}

/// Test: an unknown host is refused before anything is made; the text of the resolver depends on the machine.
#[test]
fn an_unknown_host_is_named() {
    let text = refused(&bench(), &["ping", "--to", "no-such-host.invalid"]);
    assert!(text.contains("--to no-such-host.invalid: "), "{text}");
    assert!(text.contains("the address of no-such-host.invalid cannot be found") || text.contains("ssh"), "{text}");
}

/// Test: characters that change the direction of writing do not reach the terminal.
#[test]
fn a_question_cannot_change_the_direction_of_writing() {
    let bench = bench();
    let output = bench.tailbound().args(["run", "direction.yaml", "--dry-run"]).output().unwrap();
    succeeded(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("study s: a\u{fffd}b"), "{text}");
}

/// Test: each list has a JSON form by the same flag, and by the flag of earlier releases.
#[test]
fn each_list_has_a_json_form() {
    let bench = bench();
    for (line, member) in [
        (&["studies", "list"][..], "studies"),
        (&["driver", "list"], "drivers"),
        (&["lab", "list"], "runs"),
        (&["doctor"], "findings"),
        (&["ls", "good"], "records"),
        (&["run", "study.yaml", "--dry-run"], "plan"),
    ] {
        for flag in [&["--format", "json"][..], &["--json"]] {
            let output = bench.tailbound().args(line).args(flag).output().unwrap();
            succeeded(&output);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let value: serde_json::Value =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("{line:?}: {e}: {text}"));
            assert!(value.get(member).is_some(), "{line:?}: {text}");
        }
    }
}

#[test]
fn files_are_validated_and_schemas_printed() {
    let bench = bench();
    fs::write(bench.path("limits.yaml"), "limits:\n  - round_trip: { p99: 5 ms }\n").unwrap();
    let printed = |line: &[&str]| {
        let output = bench.tailbound().args(line).output().unwrap();
        succeeded(&output);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = printed(&["validate", "study.yaml", "--set", "payload=[64 B, 1 KiB]"]);
    assert!(text.starts_with("study.yaml: a study with 2 conditions and 2 trials, about "), "{text}");
    assert!(printed(&["validate", "ping-pong"]).starts_with("ping-pong: a study with 2 conditions and 6 trials"));
    assert_eq!(printed(&["validate", "limits.yaml"]), "limits.yaml: a budget with 1 set of limits\n");
    for (of, file) in [("study", "study"), ("budget", "budget"), ("report", "report"), ("compare", "compare")] {
        let schema: serde_json::Value = serde_json::from_str(&printed(&["schema", of])).unwrap();
        let committed = format!("{}/../../schema/{file}.json", env!("CARGO_MANIFEST_DIR"));
        let committed: serde_json::Value = serde_json::from_str(&fs::read_to_string(committed).unwrap()).unwrap();
        assert_eq!(schema, committed, "{of}");
    }
}

/// Test: of a study with a driver that is not installed, the conditions with other drivers can be run.
#[test]
fn the_conditions_of_an_installed_driver_can_be_run() {
    let bench = Bench::new();
    // A copy of the binary in another directory, without the drivers that this build may have made.
    let binary = bench.path("tailbound");
    fs::hard_link(env!("CARGO_BIN_EXE_tailbound"), &binary)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_tailbound"), &binary).map(drop))
        .unwrap();
    let run = |study: &str, more: &[&str]| {
        fs::write(bench.path("study.yaml"), study).unwrap();
        let mut command = std::process::Command::new(&binary);
        command.args(["run", "study.yaml"]).args(more).current_dir(bench.dir.path()).env("NO_COLOR", "1");
        command.env("TAILBOUND_STATE_DIR", bench.path("state")).env_remove("TAILBOUND_DRIVER_PATH");
        command.output().unwrap()
    };
    let both = STUDY.replace("driver: udp", "factors: { driver: [udp, fastdds] }");
    succeeded(&run(&both, &["--out", "record"]));
    let report = bench.report();
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 2, "{report}");
    let why = conditions[1]["not_possible"].as_str().unwrap();
    assert_eq!(why, "driver `fastdds` is not installed; `dev/fastdds` in the sources of Tailbound builds it");
    assert!(conditions[0]["counts"]["answered"].as_u64().unwrap() > 150, "{report}");
    let (code, text) = exit_and_stderr(&run(&both, &["--strict", "--out", "strict"]));
    assert!(code == 2 && text.contains("fastdds"), "{code} {text}");
    // Without another driver, the study is refused at the place of the driver.
    let (code, text) = exit_and_stderr(&run(&STUDY.replace("driver: udp", "driver: fastdds"), &["--out", "alone"]));
    assert!(code == 2 && text.contains("there is no driver `fastdds`") && text.contains("study.yaml:5:9"), "{text}");
}

/// Test: of a study with a tool that is not installed, the other conditions can be run.
#[test]
fn the_conditions_of_an_installed_tool_can_be_run() {
    let bench = Bench::new();
    let tool = "tool: mine\nmeasures: ping-pong\nping: { command: [no-such-program] }\n";
    fs::write(bench.path("mine.yaml"), tool).unwrap();
    let study = STUDY.replace("driver: udp", "factors: { driver: [udp, mine.yaml] }");
    fs::write(bench.path("study.yaml"), study).unwrap();
    let output = bench.tailbound().args(["run", "study.yaml", "--dry-run"]).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("not possible: "), "{text}");
}

/// Test: a run names its directory after the study and the time, and `latest` is the newest record. What `--force` replaces, and
/// what is left of a run that was refused.
#[test]
fn records_get_names_and_latest_is_the_newest() {
    let bench = Bench::new();
    fs::write(bench.path("study.yaml"), STUDY).unwrap();
    let run = |more: &[&str]| bench.tailbound().args(["run", "study.yaml", "-q"]).args(more).output().unwrap();
    for _ in 0..2 {
        succeeded(&run(&[]));
    }
    let entries = fs::read_dir(bench.dir.path()).unwrap().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.retain(|name| name.starts_with("tailbound-s-2"));
    names.sort();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(fs::read_link(bench.path("latest")).unwrap().to_str(), Some(names[1].as_str()));
    for line in [&["report", "latest", "--short"][..], &["compare", "latest", &names[0]], &["ls", "latest"]] {
        succeeded(&bench.tailbound().args(line).output().unwrap());
    }
    // A record is replaced only on request, and a refused run puts the old one back.
    succeeded(&run(&["--out", "record"]));
    let first = bench.manifest()["run_id"].clone();
    assert_eq!(exit_and_stderr(&run(&["--out", "record"])).0, 2);
    let (code, text) = exit_and_stderr(&run(&["--out", "record", "--force", "--set", "measure.slots=2000000000"]));
    assert_eq!((code, &bench.manifest()["run_id"]), (3, &first), "{text}");
    succeeded(&run(&["--out", "record", "--force"]));
    assert_ne!(bench.manifest()["run_id"], first);
    // A run that measured nothing leaves nothing.
    assert_eq!(exit_and_stderr(&run(&["--out", "refused", "--set", "measure.slots=2000000000"])).0, 3);
    assert!(!bench.path("refused").exists());
    let left = fs::read_dir(bench.dir.path()).unwrap().flatten();
    let left: Vec<_> = left.map(|e| e.file_name()).filter(|n| n.to_string_lossy().contains("replaced")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Test: the page shows limits of a budget as lines; a budget that cannot be used is refused before anything is written.
#[test]
fn a_report_shows_the_limits_of_a_budget() {
    let bench = Bench::new();
    succeeded(&bench.run(STUDY, &[]));
    let budgets = [
        ("limits.yaml", "budget: loop\nlimits:\n  - round_trip: { p50: 100 us }\n"),
        ("level.yaml", "limits:\n  - where: { payload: 1 MiB }\n    round_trip: { p50: 100 us }\n"),
    ];
    budgets.iter().for_each(|(name, text)| fs::write(bench.path(name), text).unwrap());
    let with = |budget: &str| {
        ["report", "record", "--format", "html", "--out", "page.html", "--budget", budget].map(str::to_owned)
    };
    for (name, budget) in [("report_budget_no_file", "nosuch.yaml"), ("report_budget_level", "level.yaml")] {
        let line = with(budget);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        insta::assert_snapshot!(name, refused(&bench, &line));
        assert!(!bench.path("page.html").exists());
    }
    succeeded(&bench.tailbound().args(with("limits.yaml")).output().unwrap());
    let page = fs::read_to_string(bench.path("page.html")).unwrap().replace('\u{202f}', " ");
    assert!(page.contains("<section id=\"budget\"><h2>Budget loop <span class=\"status"), "the outcome is stated");
    assert!(page.contains("limits of the budget loop, as far as they lie on an axis: round trip p50 at most 100 us."));
}

/// Test: the page is written again, and its path is printed where no display is.
#[test]
fn without_a_display_the_path_of_the_page_is_printed() {
    let bench = Bench::new();
    succeeded(&bench.run(STUDY, &[]));
    fs::remove_file(bench.path("record/report.html")).unwrap();
    let mut command = bench.tailbound();
    command.args(["report", "record", "--open"]).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let output = command.output().unwrap();
    succeeded(&output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "record/report.html\n");
    assert!(bench.path("record/report.html").exists());
    let colour = bench.tailbound().args(["report", "record", "--color", "always"]).output().unwrap();
    assert!(String::from_utf8_lossy(&colour.stdout).contains("\x1b["));
    let listed = bench.tailbound().args(["ls"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(text.starts_with("./record ") && text.contains(" p99 ") && text.contains(" lost  valid"), "{text}");
}
