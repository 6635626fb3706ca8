//! Tests of `tailbound compare` with records of the scripted driver `null`: the ratios equal the planted ratios.

use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Output, Stdio};

/// Makes a script of the driver `null` with the given delays of the leg out and of the leg back.
fn script(out: Value, back: Value) -> Value {
    json!({ "seed": 3, "links": { "out": { "delay": out }, "back": { "delay": back } } })
}

fn constant(ns: u64) -> Value {
    script(json!({ "constant": ns - 10_000 }), json!({ "constant": 10_000 }))
}

fn study(script: &Value, more: &str) -> String {
    format!(
        "study: compared\nquestion: Which is faster?\n\
         measure: {{ ping-pong: {{ slots: 4000, warm_up: 10, timeout: 1 s }} }}\n\
         rate: 1 kHz\nplace: same-process\npath: loopback\n\
         driver: {{ \"null\": {{ clock: scripted, script: '{script}' }} }}\n{more}"
    )
}

fn compare(bench: &Bench, args: &[&str]) -> Output {
    bench.tailbound().arg("compare").args(args).output().unwrap()
}

fn document(bench: &Bench, args: &[&str]) -> Value {
    let output = compare(bench, &[args, &["--format", "json"]].concat());
    succeeded(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn statistic<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["pairs"][0]["statistics"].as_array().unwrap();
    all.iter().find(|s| s["statistic"] == name).unwrap()
}

fn close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("no number where {expected} was planted"));
    assert!((found - expected).abs() < 1e-9, "{found} where {expected} was planted");
}

const FIVE: &str = "repeat=5";

#[test]
fn the_page_shows_what_the_document_has() {
    let bench = Bench::new();
    bench.record("before", &study(&constant(30_000), "payload: 64 B\n"), &[FIVE]);
    bench.record("after <b>", &study(&constant(33_000), "payload: 64 B\n"), &[FIVE]);
    let document = document(&bench, &["before", "after <b>"]);
    succeeded(&compare(&bench, &["before", "after <b>", "--format", "html", "--out", "page.html"]));
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<title>after &lt;b&gt; against before</title>"));
    assert!(!page.contains("<b>") && page.matches("<script").count() == 1, "nothing of the user's runs");
    for name in ["p50", "p99", "p99.9", "mean"] {
        let ratio = statistic(&document, name)["ratio"].as_f64().unwrap();
        assert!(page.contains(&format!("data-ratio=\"{ratio}\"")), "the figure has a dot at {ratio}");
    }
    // `slower` is in one finding, in four rows of the chart and in four rows of the table.
    assert_eq!(page.matches("slower").count(), 1 + 4 + 4, "{page}");
    let changed = document["changed"].as_array().unwrap();
    assert!(page.contains("What else changed") || changed.is_empty());
}

#[test]
fn two_records_with_a_planted_ratio() {
    let bench = Bench::new();
    bench.record("before", &study(&constant(30_000), "payload: 64 B\n"), &[FIVE]);
    bench.record("after", &study(&constant(33_000), "payload: 64 B\n"), &[FIVE]);
    let document = document(&bench, &["before", "after"]);
    for name in ["p50", "p99", "p99.9", "mean"] {
        let found = statistic(&document, name);
        assert_eq!(found["verdict"], "slower", "{name}: {found}");
        close(&found["ratio"], 1.1);
        close(&found["interval"][0], 1.1);
        close(&found["interval"][1], 1.1);
    }
    assert!(document["caution"].as_str().unwrap().starts_with("separate runs: "), "{document}");
    let changed = document["changed"].as_array().unwrap();
    let scripts: Vec<_> = changed.iter().filter(|c| c["what"] == "driver.options.script").collect();
    assert_eq!(scripts.len(), 1, "{changed:?}");
    assert!(scripts[0]["a"].as_str().unwrap().contains("20000") && scripts[0]["b"].as_str().unwrap().contains("23000"));

    // The same comparison with the two records exchanged.
    let document = self::document(&bench, &["after", "before"]);
    assert_eq!(statistic(&document, "p50")["verdict"], "faster");
    close(&statistic(&document, "p50")["ratio"], 1.0 / 1.1);

    let output = compare(&bench, &["before", "after"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("terminal", text);
    let text = String::from_utf8(compare(&bench, &["before", "after", "--format", "md"]).stdout).unwrap();
    assert!(text.contains("| p99.9 | 30.0\u{202f}us | 33.0\u{202f}us | 1.10 | 1.10 to 1.10 | slower |"), "{text}");

    // `serve` shows the same charts and texts.
    let page = served(&bench, "/compare?a=before&b=after");
    let known = document["pairs"][0]["statistics"].as_array().unwrap();
    let drawn: Vec<&str> = page.split("data-ratio=\"").skip(1).filter_map(|r| Some(r.split_once('"')?.0)).collect();
    assert_eq!(drawn.len(), known.iter().filter(|s| s["ratio"].is_number()).count());
    assert!(drawn.iter().all(|r| (r.parse::<f64>().unwrap() - 1.1).abs() < 1e-9), "{drawn:?}");
    assert!(page.contains("<td data-label=\"95 %\">1.10 to 1.10</td>"), "{page}");
    assert!(page.contains("separate runs: ") && page.contains("driver.options.script"), "{page}");
    assert!(served(&bench, "/").contains("Compare A with B"));
    assert!(served(&bench, "/compare?a=before&b=nowhere").contains("choose exactly two records"));
}

/// Fetches a page of `tailbound serve`, which serves the records in the directory of the test.
fn served(bench: &Bench, target: &str) -> String {
    let mut server =
        bench.tailbound().args(["serve", ".", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let at = line.strip_prefix("http://").and_then(|l| l.split_once('/')).unwrap().0.to_owned();
    let mut stream = TcpStream::connect(&at).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    page
}

#[test]
fn the_same_twice_is_equal_within_a_margin() {
    let bench = Bench::new();
    let wide = script(json!({ "lognormal": { "median_ns": 20000.0, "sigma": 0.8 } }), json!({ "constant": 10_000 }));
    for name in ["one", "two"] {
        bench.record(name, &study(&wide, "payload: 64 B\n"), &[FIVE]);
    }
    let verdict = |args: &[&str]| statistic(&document(&bench, args), "p99")["verdict"].clone();
    assert_eq!(verdict(&["one", "two"]), "no_difference_found");
    assert_eq!(verdict(&["one", "two", "--margin", "5%"]), "equal");
}

#[test]
fn the_middle_and_the_tail_can_point_different_ways() {
    let bench = Bench::new();
    let spread = |median: f64, sigma: f64| {
        script(json!({ "lognormal": { "median_ns": median, "sigma": sigma } }), json!({ "constant": 10_000 }))
    };
    bench.record("steady", &study(&spread(30_000.0, 0.1), "payload: 64 B\n"), &[FIVE]);
    bench.record("wild", &study(&spread(20_000.0, 1.0), "payload: 64 B\n"), &[FIVE]);
    let document = document(&bench, &["steady", "wild"]);
    assert_eq!(statistic(&document, "p50")["verdict"], "faster");
    assert_eq!(statistic(&document, "p99.9")["verdict"], "slower");
    let printed = document["findings"].to_string();
    assert!(
        printed.contains("wild is faster at p50 (ratio 0.7") && printed.contains("and slower at p99.9 (ratio"),
        "{printed}"
    );
}

#[test]
fn two_levels_inside_one_record() {
    let bench = Bench::new();
    let varied = "factors: { payload: [64 B, 1 KiB, 8 KiB], rate: [1 kHz, 2 kHz] }\n";
    let without_rate = study(&constant(30_000), varied).replace("rate: 1 kHz\n", "");
    bench.record("record", &without_rate, &[FIVE]);
    let document = document(&bench, &["record", "--factor", "payload", "--levels", "64B", "1 KiB", "--margin", "5%"]);
    let pairs = document["pairs"].as_array().unwrap();
    let names: Vec<&str> = pairs.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rate 1 kHz", "rate 2 kHz"]);
    assert!(document.get("caution").is_none(), "one run: {document}");
    for name in ["p50", "p99", "p99.9", "mean"] {
        close(&statistic(&document, name)["ratio"], 1.0);
        assert_eq!(statistic(&document, name)["verdict"], "equal");
    }
}

/// Test of `report.against`: a delay of 9 us added to 30 us is reported as an overhead of 30 %, with the same interval
/// as in `compare`.
#[test]
fn a_planted_delay_is_an_overhead_of_the_report() {
    let bench = Bench::new();
    let (host, slow) = (constant(30_000), constant(39_000));
    let more = format!(
        "payload: 64 B\nfactors: {{ driver.script: ['{host}', '{slow}'] }}\n\
         report: {{ against: {{ driver.script: '{host}' }} }}\n"
    );
    let text = study(&host, &more).replace(&format!(", script: '{host}' }} }}\n"), " } }\n");
    bench.record("record", &text, &[FIVE, "measure.slots=400"]);
    let output = bench.tailbound().args(["report", "record", "--format", "json"]).output().unwrap();
    succeeded(&output);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let compared = document(&bench, &["record"]);
    let overheads = report["against"]["rows"][0]["overheads"].as_array().unwrap();
    assert_eq!(overheads.len(), 3, "median, p99 and mean: {report}");
    for told in overheads {
        assert!((told["per_cent"].as_f64().unwrap() - 30.0).abs() < 1e-6, "{told}");
        let interval = &statistic(&compared, told["statistic"].as_str().unwrap())["interval"];
        for end in [0, 1] {
            let ratio = interval[end].as_f64().unwrap();
            close(&told["interval"][end], (ratio - 1.0) * 100.0);
        }
    }
}

#[test]
fn few_trials_speak_of_these_runs_only() {
    let bench = Bench::new();
    let wide = |median: f64| {
        script(json!({ "lognormal": { "median_ns": median, "sigma": 0.3 } }), json!({ "constant": 10_000 }))
    };
    bench.record("one", &study(&wide(20_000.0), "payload: 64 B\n"), &["repeat=2"]);
    bench.record("two", &study(&wide(30_000.0), "payload: 64 B\n"), &["repeat=1"]);
    let document = document(&bench, &["one", "two"]);
    let median = statistic(&document, "p50");
    assert_eq!((&median["verdict"], &median["within_runs"]), (&json!("not_enough_data"), &json!(true)));
    assert_eq!(median["more_trials"], 4);
    let [low, high] = [0, 1].map(|i| median["interval"][i].as_f64().unwrap());
    assert!(low < 4.0 / 3.0 && 4.0 / 3.0 < high && high < 1.5, "{median}");
    assert!(document["findings"].to_string().contains("A verdict takes 4 more trials a side: `--set repeat=5`"));
}

#[test]
fn four_trials_a_side_are_decided_exactly() {
    let bench = Bench::new();
    bench.record("one", &study(&constant(30_000), "payload: 64 B\n"), &["repeat=4"]);
    bench.record("two", &study(&constant(60_000), "payload: 64 B\n"), &["repeat=4"]);
    let document = document(&bench, &["one", "two"]);
    assert_eq!(statistic(&document, "p99")["verdict"], "slower");
    close(&statistic(&document, "p99")["ratio"], 2.0);
}

#[test]
fn what_is_lost_is_later_than_everything() {
    let bench = Bench::new();
    let mut losing = constant(30_000);
    losing["links"]["out"]["loss"] = json!({ "probability": 0.02 });
    bench.record("whole", &study(&constant(30_000), "payload: 64 B\n"), &["repeat=6"]);
    bench.record("losing", &study(&losing, "payload: 64 B\n"), &["repeat=6"]);
    let document = document(&bench, &["whole", "losing"]);
    assert_eq!(statistic(&document, "p50")["verdict"], "no_difference_found");
    let tail = statistic(&document, "p99");
    assert_eq!(tail["verdict"], "slower");
    assert!(tail.get("ratio").is_none() && tail["why"].as_str().unwrap().contains("not answered"), "{tail}");
    assert!(document["pairs"][0]["b"]["lost"].as_u64().unwrap() > 200, "{document}");
}

#[test]
fn too_few_messages_in_a_trial() {
    let bench = Bench::new();
    for name in ["one", "two"] {
        bench.record(name, &study(&constant(30_000), "payload: 64 B\n"), &[FIVE, "measure.slots=400"]);
    }
    let document = document(&bench, &["one", "two"]);
    assert_eq!(statistic(&document, "p99")["verdict"], "no_difference_found");
    let tail = statistic(&document, "p99.9");
    assert_eq!(tail["verdict"], "not_enough_data");
    assert_eq!(tail["why"], "the statistic needs 3,688 messages in every trial; there are about 400");
}

#[test]
fn an_incomplete_record_sets_the_exit_code() {
    let bench = Bench::new();
    bench.record("one", &study(&constant(30_000), "payload: 64 B\n"), &[FIVE]);
    bench.record("two", &study(&constant(30_000), "payload: 64 B\n"), &[FIVE]);
    std::fs::remove_dir_all(bench.path("two/samples/3")).unwrap();
    let output = compare(&bench, &["one", "two"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(exit_and_stderr(&output).0, 6, "{text}");
    assert!(text.contains("1 trial is left out: invalid, or not ended."), "{text}");
    assert!(text.contains("5 and 4 trials"), "{text}");
}

#[test]
fn what_is_not_the_same_thing_is_refused() {
    let bench = Bench::new();
    bench.record("base", &study(&constant(30_000), "payload: 64 B\n"), &["measure.slots=400"]);
    bench.record("payload", &study(&constant(30_000), "payload: 1 KiB\n"), &["measure.slots=400"]);
    bench.record("max", &study(&constant(30_000), "payload: 64 B\n"), &["measure.slots=400", "rate=max"]);
    let real = study(&json!({}), "payload: 64 B\n").replace("clock: scripted, script: '{}'", "clock: real");
    bench.record("real", &real, &["measure.slots=400"]);
    let varied = "factors: { payload: [64 B, 1 KiB, 8 KiB] }\n";
    bench.record("varied", &study(&constant(30_000), varied), &["measure.slots=400"]);
    let mut all = String::new();
    for args in [
        &["base", "payload"][..],
        &["base", "max"],
        &["base", "max", "--metric", "from_intended"],
        &["base", "real"],
        &["base", "none"],
        &["base", "base", "--metric", "round-trap"],
        &["base", "base", "--metric", "half_round_trip"],
        &["base"],
        &["varied"],
        &["varied", "--factor", "rate"],
        &["varied", "--factor", "payload", "--levels", "64 B", "2 KiB"],
        &["varied", "--factor", "payload", "--levels", "64 B", "64B"],
        &["base", "base", "--margin", "5"],
    ] {
        let (code, text) = exit_and_stderr(&compare(&bench, args));
        assert_eq!(code, 2, "{args:?}: {text}");
        all.push_str(&format!("compare {}\n{text}\n", args.join(" ")));
    }
    insta::assert_snapshot!(all);
}

/// Test with real flows at two rates, 1 kHz and 2 kHz: on every machine, the verdict on the throughput is `faster`.
#[cfg(feature = "system-tests")]
#[test]
fn throughput_of_flows() {
    let bench = Bench::new();
    let text = "study: flows\nquestion: q\nmeasure: { throughput: { duration: 300 ms, ramp_up: 50 ms } }\nquiet: off\n\
                driver: udp\nplace: process\npath: loopback\npayload: 64 B\nfactors: { rate: [1 kHz, 2 kHz] }\n";
    bench.record("record", text, &[FIVE]);
    let document = document(&bench, &["record"]);
    let found = statistic(&document, "samples/s");
    assert_eq!(
        (&found["metric"], &found["unit"], &found["verdict"]),
        (&json!("throughput"), &json!("1/s"), &json!("faster"))
    );
    let ratio = found["ratio"].as_f64().unwrap();
    assert!((1.5..2.7).contains(&ratio), "{found}");
    let text = String::from_utf8(compare(&bench, &["record"]).stdout).unwrap();
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(text.contains("\nsamples/s "), "{text}");
}
