//! What the live screen shows, drawn into memory.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tailbound_document::{
    WatchReport, WatchedLateness, WatchedProtocol, WatchedQos, WatchedRange, WatchedTopic, WatchedWriter,
};
use tailbound_screen::{Key, View};

const MS: i64 = 1_000_000;

fn range(p50_ns: i64, max_ns: i64) -> WatchedRange {
    WatchedRange { count: 400, min_ns: p50_ns / 2, p50_ns, p99_ns: Some(max_ns / 2), max_ns }
}

fn topic(name: Option<&str>, number: u8, rate_hz: f64, max_ns: i64) -> WatchedTopic {
    let writer = WatchedWriter {
        guid: format!("01100000.00000000.00000001.0000{number:02x}03"),
        vendor: "Cyclone DDS".into(),
        node: None,
        participant: None,
        address: Some("127.0.0.1".into()),
        is_here: true,
        qos: name.map(|_| WatchedQos {
            reliability: "reliable".into(),
            durability: "volatile".into(),
            deadline_ns: Some(100 * MS),
        }),
        samples: (rate_hz * 10.0) as u64,
        rate_hz: Some(rate_hz),
        interval: Some(range(10 * MS, 30 * MS)),
        bytes: Some((64, 8_204)),
        lateness: Some(WatchedLateness {
            range: range(40_000, max_ns),
            is_above_fastest: false,
            begins: "Cyclone DDS takes its source timestamp at the begin of the write: only what the program did before is unseen"
                .into(),
        }),
        without_time: 0,
        protocol: WatchedProtocol::default(),
    };
    WatchedTopic {
        topic: name.map(|name| format!("rt{name}")),
        ros_topic: name.map(str::to_owned),
        type_name: name.map(|_| "sensor_msgs::msg::dds_::LaserScan_".into()),
        readers_announced: 2,
        writers: vec![writer],
    }
}

fn report() -> WatchReport {
    let mut slow = topic(Some("/camera/image_raw"), 2, 30.0, 95 * MS);
    slow.writers[0].interval = Some(range(33 * MS, 400 * MS));
    slow.writers[0].protocol = WatchedProtocol { again: 1_234, lost: 2, ..Default::default() };
    let mut other_clock = topic(None, 3, 200.0, 2 * MS);
    other_clock.writers[0].lateness.as_mut().unwrap().is_above_fastest = true;
    let mut silent = topic(Some("/silent"), 4, 0.0, 0);
    silent.writers[0].samples = 0;
    WatchReport {
        begin_ns: 0,
        duration_ns: 10_000 * MS,
        place: "all interfaces of this network namespace".into(),
        packets: 12_345,
        copies: 12_345,
        left_within: None,
        from_file: false,
        is_partial: false,
        clock_step_ns: None,
        also: None,
        cost: None,
        cpu_ns: None,
        not_copied: 0,
        unread: Default::default(),
        zenoh_packets: 0,
        shared_memory: Default::default(),
        participants: 3,
        topics: vec![topic(Some("/scan"), 1, 40.0, 5 * MS), slow, other_clock, silent],
        chain: None,
        incidents: Vec::new(),
        calls: None,
        warnings: vec!["topics and types are not known of all writers (missing: 1)".into()],
    }
}

/// The screen as lines of text.
fn drawn(view: &View, report: &WatchReport, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame, report)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect::<Vec<_>>().join("\n")
}

/// Names of the topics in the order of the list.
fn order(view: &View, report: &WatchReport) -> Vec<String> {
    let text = drawn(view, report, 100, 12);
    let lines = text.lines().filter(|line| line.starts_with('/') || line.starts_with("unknown ("));
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn the_list_fits_into_terminals_of_each_width() {
    let (mut view, mut report) = (View::new(false), report());
    for second in 1..=5 {
        report.topics[0].writers[0].samples = second * second * 10;
        view.second(&report);
    }
    insta::assert_snapshot!(
        [(140, 9), (80, 9), (44, 12)].map(|(width, height)| drawn(&view, &report, width, height)).join("\n====\n")
    );
}

#[test]
fn the_latest_is_first_and_the_order_can_be_changed() {
    let (mut view, report) = (View::new(true), report());
    assert_eq!(order(&view, &report), ["/camera/image_raw", "/scan", "unknown"]);
    view.press(Key::Sort, &report);
    assert_eq!(order(&view, &report), ["unknown", "/scan", "/camera/image_raw"]);
    view.press(Key::Sort, &report);
    assert_eq!(order(&view, &report), ["/camera/image_raw", "/scan", "unknown"]);
}

/// Test: a writer that was chosen stays chosen when the order of the rows changes, and when new ones come.
#[test]
fn a_key_opens_one_topic() {
    let (mut view, mut report) = (View::new(false), report());
    view.second(&report);
    view.press(Key::Down, &report);
    report.topics[2].writers[0].lateness.as_mut().unwrap().range.max_ns = 200 * MS;
    view.press(Key::Open, &report);
    let opened = drawn(&view, &report, 76, 30);
    insta::assert_snapshot!(opened);
    view.press(Key::Up, &report);
    assert!(drawn(&view, &report, 76, 30).contains("/camera/image_raw"));
    view.press(Key::Back, &report);
    assert!(drawn(&view, &report, 76, 30).contains("late max"));
}

#[test]
fn nothing_is_shown_where_nothing_is() {
    let (mut view, mut empty) = (View::new(false), report());
    empty.topics.clear();
    empty.not_copied = 7;
    for key in [Key::Down, Key::Open, Key::Up, Key::Sort, Key::Back] {
        view.press(key, &empty);
    }
    let text = drawn(&view, &empty, 80, 6);
    assert!(text.contains("7 MISSED") && text.contains("topic"), "{text}");
    // A terminal of no height.
    drawn(&view, &report(), 20, 1);
}

/// Test: the name of a topic is a text of others, and writes nothing but letters.
#[test]
fn names_with_control_characters_are_shown_without_them() {
    let (mut view, mut report) = (View::new(false), report());
    report.topics[0].ros_topic = Some("/a\u{1b}[2Jb\n".into());
    view.press(Key::Sort, &report);
    let text = drawn(&view, &report, 100, 12);
    assert!(text.contains("/a?[2Jb?") && !text.contains('\u{1b}'), "{text}");
}
