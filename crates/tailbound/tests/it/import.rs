//! Tests of `tailbound import`: outputs of other programs become records that name the program, or are refused with the
//! line of the error.

use crate::support::{Bench, exit_and_stderr};

/// Output that the benchmark program sockperf 3.7 really printed.
const SOCKPERF: &str = include_str!("../../../tools/tests/outputs/sockperf.txt");

fn import(bench: &Bench, arguments: &[&str]) -> (i32, String, String) {
    let out = bench.path("record");
    let mut command = bench.tailbound();
    command.arg("import").args(arguments).arg("--out").arg(&out).current_dir(bench.path(""));
    let output = command.output().unwrap();
    let (code, errors) = exit_and_stderr(&output);
    (
        code,
        errors,
        String::from_utf8_lossy(&output.stdout).replace(bench.path("").to_string_lossy().trim_end_matches('/'), "DIR"),
    )
}

#[test]
fn an_output_becomes_a_record_marked_as_imported() {
    let bench = Bench::new();
    std::fs::write(bench.path("night.txt"), SOCKPERF).unwrap();
    let (code, errors, out) =
        import(&bench, &["sockperf", "night.txt", "--known", "payload=64 B", "--known", "version=3.7"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    insta::assert_snapshot!(out);
    let report = bench.report();
    assert_eq!((&report["status"], report["conditions"].as_array().unwrap().len()), (&"valid".into(), 0));
    let tool = &report["tools"][0];
    assert_eq!(tool["imported"], true);
    assert_eq!((&tool["known"]["payload"], &tool["version"]), (&"64 B".into(), &"3.7".into()));
    assert_eq!(tool["unknown"].to_string(), r#"["rate","path","place","scheduling","host","date"]"#);
    let p99 = tool["figures"].as_array().unwrap().iter().find(|f| f["statistic"] == "p99").unwrap();
    assert_eq!((&p99["what"], &p99["values"][0]), (&"round_trip_ns".into(), &81_470.0.into()), "half, doubled");
    let page = std::fs::read_to_string(bench.path("record/report.html")).unwrap();
    assert!(page.contains("Lost messages are in no percentile") && page.contains("81.5"), "the page has it too");
    let markdown = bench.tailbound().args(["report", "--format", "md"]).arg(bench.path("record")).output().unwrap();
    assert!(String::from_utf8_lossy(&markdown.stdout).contains("| night.txt: sockperf 3.7, imported (payload 64 B) |"));
}

#[test]
fn impossible_imports_are_refused_and_leave_nothing() {
    let bench = Bench::new();
    let cut = SOCKPERF.split("percentile 99.900").next().unwrap();
    std::fs::write(bench.path("cut.txt"), cut).unwrap();
    std::fs::write(bench.path("odd.txt"), SOCKPERF.replace("2110.625", "2110.6.25")).unwrap();
    std::fs::write(bench.path("whole.txt"), SOCKPERF).unwrap();
    std::fs::write(bench.path("binary.txt"), [0xff, 0xfe, 0, 1]).unwrap();
    let mut all = Vec::new();
    for arguments in [
        &["sockperf", "cut.txt"][..],
        &["sockperf", "odd.txt"],
        &["sockperf", "binary.txt"],
        &["sockperf", "missing.txt"],
        &["ddsperf", "whole.txt"],
        &["sockpref", "whole.txt"],
        &["sockperf", "whole.txt", "--known", "weather=rain"],
        &["sockperf", "whole.txt", "--known", "payload"],
        &["sockperf", "whole.txt", "cut.txt"],
    ] {
        let (code, errors, _) = import(&bench, arguments);
        assert_eq!(code, 2, "{arguments:?}: {errors}");
        assert!(!bench.path("record").exists(), "{arguments:?}");
        all.push(errors);
    }
    let (code, _, _) = import(&bench, &["sockperf", "whole.txt"]);
    assert_eq!(code, 0);
    let (code, errors, _) = import(&bench, &["sockperf", "whole.txt"]);
    assert_eq!(code, 2, "it is there already");
    all.push(errors.replace(bench.path("").to_string_lossy().trim_end_matches('/'), "DIR"));
    insta::assert_snapshot!(all.join("--\n"));
}

/// Test: a tool file that the user has written is used for an import.
#[test]
fn a_tool_of_ones_own() {
    let bench = Bench::new();
    let tool = "tool: mine\nabout: a\nevidence: tried\nmeasures: ping-pong\nping: { command: [mine] }\n\
                definition: { latency: one-way, window: each-second, leaves_out: [It forgets Mondays.] }\n\
                figures:\n- { is: latency, statistic: p99, unit: ms, at: { column: late } }\n";
    std::fs::write(bench.path("mine.yaml"), tool).unwrap();
    std::fs::write(bench.path("out.csv"), "second,late\n1,0.25\n2,1.5\n").unwrap();
    let (code, errors, out) = import(&bench, &["mine.yaml", "out.csv"]);
    let out = out.replace(['\u{202f}', '\n'], " ");
    assert_eq!(code, 0, "{errors}");
    assert!(out.contains("one way: p99 250 us to 1.50 ms") && out.contains("It forgets Mondays. Not known:"), "{out}");
}
