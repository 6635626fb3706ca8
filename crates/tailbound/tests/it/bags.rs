//! Tests of `tailbound import --bag`: recordings of both forms with known topics, and the studies that are made of them.

use crate::support::{Bench, exit_and_stderr, succeeded};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Policies as rosbag2 writes them: reliable and volatile, in numbers.
const RELIABLE: &str =
    "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 2\n  deadline:\n    sec: 9223372036\n";

/// A recorded topic: name, type, time between two messages in ns, length of a message with the header of its encoding, and the number of
/// messages.
type Topic = (&'static str, &'static str, i64, usize, i64);
const TOPICS: [Topic; 2] = [
    ("/camera/image", "sensor_msgs/msg/Image", 33_333_333, 6_016, 300),
    ("/scan", "sensor_msgs/msg/LaserScan", 100_000_000, 1_216, 100),
];
/// When the recording begins, ns since 1970.
const BEGIN: i64 = 1_796_000_000_000_000_000;

/// The messages of all topics in the order of time: topic, time, length.
fn messages(begin_ns: i64) -> Vec<(usize, i64, usize)> {
    let of = |(index, topic): (usize, &Topic)| {
        let (_, _, period_ns, bytes, count) = *topic;
        (0..count).map(move |n| (index, begin_ns + n * period_ns * i64::from(begin_ns > 0), bytes))
    };
    let mut all: Vec<_> = TOPICS.iter().enumerate().flat_map(of).collect();
    all.sort_by_key(|(_, at_ns, _)| *at_ns);
    all
}

fn mcap(path: &Path, begin_ns: i64) {
    let mut writer = mcap::Writer::new(std::io::BufWriter::new(std::fs::File::create(path).unwrap())).unwrap();
    let metadata = BTreeMap::from([("offered_qos_profiles".to_owned(), RELIABLE.to_owned())]);
    let channel = |(name, kind, ..): &Topic, writer: &mut mcap::Writer<_>| {
        let schema = writer.add_schema(kind, "ros2msg", b"").unwrap();
        writer.add_channel(schema, name, "cdr", &metadata).unwrap()
    };
    let channels: Vec<u16> = TOPICS.iter().map(|topic| channel(topic, &mut writer)).collect();
    for (sequence, (topic, at_ns, bytes)) in messages(begin_ns).into_iter().enumerate() {
        let header = mcap::records::MessageHeader {
            channel_id: channels[topic],
            sequence: sequence as u32,
            log_time: at_ns as u64,
            publish_time: at_ns as u64,
        };
        writer.write_to_known_channel(&header, &vec![sequence as u8; bytes]).unwrap();
    }
    writer.finish().unwrap();
}

/// The tables of rosbag2 as Humble writes them.
fn sqlite(path: &Path, begin_ns: i64) {
    let mut script = "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL, \
        offered_qos_profiles TEXT NOT NULL);\nCREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, \
        data BLOB NOT NULL);\nBEGIN;\n"
        .to_owned();
    for (index, (name, kind, ..)) in TOPICS.iter().enumerate() {
        script += &format!("INSERT INTO topics VALUES({}, '{name}', '{kind}', 'cdr', '{RELIABLE}');\n", index + 1);
    }
    for (topic, at_ns, bytes) in messages(begin_ns) {
        let topic = topic + 1;
        script +=
            &format!("INSERT INTO messages(topic_id, timestamp, data) VALUES({topic}, {at_ns}, zeroblob({bytes}));\n");
    }
    std::fs::write(path.with_extension("sql"), script + "COMMIT;\n").unwrap();
    let input = std::fs::File::open(path.with_extension("sql")).unwrap();
    let output =
        Command::new("sqlite3").arg(path).stdin(input).output().expect("sqlite3, which dev/setup test installs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Test: both forms give the same topics, rates and sizes, and the same study, which runs.
#[test]
fn recordings_of_both_forms_become_the_same_study() {
    let bench = Bench::new();
    let directory = bench.path("night_1");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("metadata.yaml"), "").unwrap();
    mcap(&directory.join("x_0.mcap"), BEGIN);
    sqlite(&bench.path("old.db3"), BEGIN);
    let import = |path: &str, study: &str| {
        let output = bench.tailbound().args(["import", "--bag", path, "--save-study", study]).output().unwrap();
        succeeded(&output);
        let text = std::fs::read_to_string(bench.path(study)).unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), text)
    };
    let (listed, from_mcap) = import("night_1", "mcap.yaml");
    let (_, from_sqlite) = import("old.db3", "sqlite.yaml");
    assert_eq!(from_mcap.replace("night_1", "old.db3"), from_sqlite);
    insta::assert_snapshot!(format!("{listed}\n{from_mcap}"));
    let one = ["import", "--bag", "night_1", "--save-study", "scan.yaml", "--topic", "/scan"];
    succeeded(&bench.tailbound().args(one).output().unwrap());
    let run = bench.tailbound().args(["run", "scan.yaml", "--set", "measure.duration=1s", "--out", "record"]).output();
    succeeded(&run.unwrap());
    let flow = bench.report()["conditions"][0]["flow"].clone();
    let rate = flow["samples_per_s"]["median"].as_f64().unwrap();
    assert!((rate - 10.0).abs() < 1.0, "{flow}");
}

#[test]
fn recordings_that_cannot_be_used_are_refused() {
    let bench = Bench::new();
    for directory in ["empty", "compressed", "each"] {
        std::fs::create_dir(bench.path(directory)).unwrap();
    }
    std::fs::write(bench.path("compressed/a.db3.zstd"), "").unwrap();
    std::fs::write(bench.path("each/metadata.yaml"), "  compression_mode: MESSAGE\n").unwrap();
    mcap(&bench.path("each/each_0.mcap"), BEGIN);
    for file in ["text.mcap", "text.db3"] {
        std::fs::write(bench.path(file), "no recording, but long enough for a header of any kind\n").unwrap();
    }
    mcap(&bench.path("timeless.mcap"), 0);
    mcap(&bench.path("whole.mcap"), BEGIN);
    let whole = std::fs::read(bench.path("whole.mcap")).unwrap();
    std::fs::write(bench.path("cut.mcap"), &whole[..whole.len() / 2]).unwrap();
    let refused = |args: &[&str]| {
        let output = bench.tailbound().args(["import", "--bag"]).args(args).output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        assert_ne!(code, 0, "{args:?}");
        format!("import --bag {}\nexit {code}\n{text}", args.join(" "))
    };
    let mut all = vec![
        refused(&["gone.mcap"]),
        refused(&["gone.db3"]),
        refused(&["empty"]),
        refused(&["compressed"]),
        refused(&["each"]),
        refused(&["text.mcap"]),
        refused(&["text.db3"]),
        refused(&["timeless.mcap"]),
        refused(&["whole.mcap", "--save-study", "new.yaml", "--topic", "/none"]),
        refused(&["whole.mcap", "--save-study", "text.db3"]),
    ];
    let (code, text) = exit_and_stderr(&bench.tailbound().arg("import").output().unwrap());
    all.push(format!("import\nexit {code}\n{text}"));
    // A recorder that was killed leaves a file without its end: what is there is read.
    let output = bench.tailbound().args(["import", "--bag", "cut.mcap"]).output().unwrap();
    succeeded(&output);
    all.push(format!(
        "import --bag cut.mcap\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        exit_and_stderr(&output).1
    ));
    insta::assert_snapshot!(all.join("\n"));
}
