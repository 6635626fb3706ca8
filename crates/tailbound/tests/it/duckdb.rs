//! Tests: DuckDB, and the notebook with polars, read the samples of a record, and compute the same figures as the report.

use crate::support::{Bench, quantile, succeeded};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Path of a Python interpreter that has DuckDB; `dev/test` installs this interpreter.
fn python() -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    std::env::var_os("TAILBOUND_PYTHON").map_or(made, PathBuf::from)
}

/// Number of scheduled slots and p99.9 of the round trip in ns (lost messages are the latest), computed by DuckDB.
fn ask_duckdb(record: &Path) -> (u64, Option<i64>) {
    let script = "import duckdb, sys, math\n\
        rows = f\"(SELECT CASE WHEN outcome IN ('lost','not_sent') THEN NULL ELSE receive_ns - send_begin_ns END AS x \
        FROM read_parquet('{sys.argv[1]}/samples/*/ping-*.parquet') WHERE NOT warm_up)\"\n\
        n = duckdb.connect().execute(f'SELECT count(*) FROM {rows}').fetchall()[0][0]\n\
        x = duckdb.connect().execute(f'SELECT x FROM {rows} ORDER BY x ASC NULLS LAST LIMIT 1 OFFSET {(999 * n + 999) // 1000 - 1}').fetchall()[0][0]\n\
        print(n, x)\n";
    let output = Command::new(python())
        .arg("-c")
        .arg(script)
        .arg(record)
        .output()
        .expect("python with duckdb: run dev/setup test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let (n, x) = text.trim().split_once(' ').unwrap();
    (n.parse().unwrap(), x.parse().ok())
}

const STUDY: &str = "study: duckdb\nquestion: q\n\
    measure: { ping-pong: { slots: 8000, warm_up: 100, timeout: 200 ms } }\nrate: 2 kHz\ndriver: udp\n\
    path: loopback\nplace: process\nreport: { quantiles: [0.5, 0.999] }\n";

#[test]
fn duckdb_agrees_on_a_finished_record() {
    let bench = Bench::new();
    succeeded(&bench.run(STUDY, &[]));
    let report = bench.report();
    let (n, x) = ask_duckdb(&bench.path("record"));
    assert_eq!(n, 8000);
    assert_eq!(quantile(&report, "round_trip", 0.999)["value_ns"].as_i64(), x);
    assert!(x.is_some());
}

#[test]
fn duckdb_agrees_on_the_record_of_a_killed_controller() {
    let bench = Bench::new();
    let study = bench.study(STUDY);
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(3500));
    child.kill().unwrap();
    child.wait().unwrap();
    let cleanup = bench.tailbound().args(["lab", "cleanup"]).status().unwrap();
    assert!(cleanup.success());
    let report = bench.report();
    assert_eq!(report["status"], "incomplete");
    let (n, x) = ask_duckdb(&bench.path("record"));
    assert!((3688..8000).contains(&n), "{n} slots up to the kill");
    assert_eq!(report["conditions"][0]["counts"]["scheduled"].as_u64(), Some(n));
    assert_eq!(quantile(&report, "round_trip", 0.999)["value_ns"].as_i64(), x);
}

/// Test: the cells of the notebook run one after another, and their table has the figures of the report.
#[test]
fn the_notebook_agrees_with_the_report() {
    let bench = Bench::new();
    succeeded(&bench.run(&format!("{STUDY}factors: {{ payload: [64 B, 1 KiB] }}\n"), &[]));
    let script = "import json, sys\nspace = {}\n\
        for cell in json.load(open(sys.argv[1]))['cells']:\n\
        \x20 if cell['cell_type'] == 'code': exec(compile(''.join(cell['source']), cell['id'], 'exec'), space)\n\
        print(json.dumps(space['figures'].to_dicts()))\nassert len(space['latest']) == 10, space['latest']\n";
    let notebook = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations/notebook/record.ipynb");
    let folder = Path::new(env!("CARGO_BIN_EXE_tailbound")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(python());
    command.args(["-c", script, notebook]).env("PATH", path).env("TAILBOUND_RECORD", bench.path("record"));
    let output = command.output().expect("python with polars: run dev/setup test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let report = bench.report();
    for (number, condition) in report["conditions"].as_array().unwrap().iter().enumerate() {
        let (row, counts) = (&figures[number], &condition["counts"]);
        assert_eq!((&row["messages"], &row["lost"]), (&counts["scheduled"], &counts["lost"]), "{row} {counts}");
        let quantiles = condition["round_trip"]["quantiles"].as_array().unwrap();
        let median = quantiles.iter().find(|q| q["q"] == 0.5).unwrap();
        assert_eq!(row["p50_ns"], median["value_ns"], "{row} {median}");
        assert!(row["levels"].as_str().unwrap().starts_with("payload "), "{row}");
    }
    assert_eq!(figures.as_array().unwrap().len(), 2);
}
