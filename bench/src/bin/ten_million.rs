//! Measures the time of `analyse` and of the HTML page on trials of many slots, and of `compare` of the record with
//! itself; also measures peak memory and CPU time.
//!
//! Usage: `cargo run --release -p tailbound-bench --bin ten_million -- DIR [SLOTS] [CONDITIONS]`. Each condition has
//! one trial; the default is one condition of ten million slots. If DIR does not exist, the program first writes the
//! record to DIR; it writes the page to DIR.html.

#[path = "../../../crates/report/tests/it/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::path::Path;
use std::process::Command;
use std::time::Instant;
use support::{Given, T0};
use tailbound_model::*;
use tailbound_record::*;

const PERIOD: i64 = 20_000;

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().expect("a directory");
    let slots: u64 = args.next().map_or(10_000_000, |n| n.parse().expect("a number of slots"));
    let conditions: usize = args.next().map_or(1, |n| n.parse().expect("a number of conditions"));
    let dir = Path::new(&dir);
    if std::env::var_os("WRITE_ONLY").is_some() {
        return write(dir, slots, conditions);
    }
    if !dir.exists() {
        // The record is written in its own process, so that the memory for writing is not counted for the report.
        let me = std::env::current_exe().expect("this program has a path");
        let mut writer = Command::new(me);
        writer.arg(dir).args([slots.to_string(), conditions.to_string()]).env("WRITE_ONLY", "1");
        assert!(writer.status().expect("this program runs").success());
    }
    let record = Record::open(dir).expect("the record opens");
    let begin = Instant::now();
    let report = tailbound_report::analyse(&record).expect("the record is analysed");
    let analysed = begin.elapsed();
    let json = serde_json::to_string(&report).expect("the report is written");
    println!("analyse {analysed:.2?}, with JSON {:.2?}, {} bytes of JSON", begin.elapsed(), json.len());
    let drawing = Instant::now();
    let page = tailbound_report::render_html(&report);
    let drawn = drawing.elapsed();
    println!("analyse, with JSON and HTML {:.2?}, {} bytes of HTML", begin.elapsed(), page.len());
    println!("the page alone {} ns", drawn.as_nanos());
    std::fs::write(dir.with_extension("html"), page).expect("the page is written");
    spent();
    let begin = Instant::now();
    let options = tailbound_report::CompareOptions { metrics: vec![Metric::RoundTrip], margin: Some(0.05) };
    let compared = tailbound_report::compare_records(&record, &record, &options).expect("the record is compared");
    println!("compare, both sides {slots} slots: {:.2?}", begin.elapsed());
    spent();
    println!("{}", tailbound_report::render_comparison_terminal(&compared, 80, false));
    for finding in &report.findings {
        println!("{}", finding.text);
    }
}

/// Prints peak memory and CPU time so far. On a busy machine, CPU time says more than elapsed time.
fn spent() {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    // After the name, the fields begin with the third one; utime and stime are fields 14 and 15, in hundredths of a
    // second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).map(|n| n.parse::<f64>().expect("a number")).sum();
    let peak = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("VmHWM unknown");
    println!("{peak}, CPU time so far {:.2} s", ticks / 100.0);
}

fn write(dir: &Path, slots: u64, conditions: usize) {
    let rate = Rate::Period(Nanos(PERIOD));
    let given = |i: usize| {
        let driver = ["null", "udp", "cyclonedds", "fastdds"][i % 4];
        Given { driver, payload: 64 << (i / 4), rate, trials: vec![trial()] }
    };
    drop(support::write(dir, &(0..conditions).map(given).collect::<Vec<_>>(), |_| ()));
    (0..conditions).for_each(|i| samples(dir, i, slots));
}

/// Writes samples whose latencies have a log-normal body and bursts of stalls; one message in 100,000 is lost.
fn samples(dir: &Path, condition: usize, slots: u64) {
    let mut random = support::Random(7 + condition as u64);
    let mut stall = 0;
    let mut echoes = Vec::with_capacity(slots as usize);
    let rows = (0..slots).map(|seq| {
        let scale = 4_000.0 * (1.0 + condition as f64 / 5.0);
        let leg = |random: &mut support::Random| (scale * (random.unit() + random.unit()).exp2().powi(2)) as i64;
        if random.next().is_multiple_of(50_000) {
            stall = 1_000_000;
        }
        stall = (stall - PERIOD).max(0);
        let legs = [leg(&mut random), leg(&mut random), leg(&mut random) + stall];
        let (mut row, echo) = support::slot(seq, PERIOD, 300 + leg(&mut random) / 8, legs);
        if random.next().is_multiple_of(100_000) {
            support::lose(&mut row);
        } else {
            echoes.push(echo);
        }
        row.warm_up = seq < 1_000;
        row
    });
    assert!(slots > 0 && T0 > 0);
    write_slots(&RecordWriter::segment_path(dir, condition, "ping", 0), condition, rows).expect("slots are written");
    write_echoes(&RecordWriter::segment_path(dir, condition, "pong", 0), condition, &echoes)
        .expect("echoes are written");
}

fn trial() -> support::GivenTrial {
    support::GivenTrial { status: TrialStatus::Valid, slots: Vec::new(), echoes: Vec::new(), finding: None }
}
