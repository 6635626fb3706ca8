//! Studies that are made from what was seen.

use tailbound_document::{WatchReport, WatchedQos, WatchedTopic, WatchedWriter};
use tailbound_watch::{NoStudy, study};

fn writer(rate_hz: f64, bytes: (u32, u32)) -> WatchedWriter {
    WatchedWriter {
        guid: "01100000.00000000.00000001.00000103".into(),
        vendor: "Cyclone DDS".into(),
        node: None,
        participant: None,
        address: Some("127.0.0.1".into()),
        is_here: true,
        qos: Some(WatchedQos {
            reliability: "reliable".into(),
            durability: "transient-local".into(),
            deadline_ns: Some(200_000_000),
        }),
        samples: (rate_hz * 10.0) as u64,
        rate_hz: Some(rate_hz),
        interval: None,
        bytes: Some(bytes),
        lateness: None,
        without_time: 0,
        protocol: Default::default(),
    }
}

fn topic(name: &str, readers_announced: u64, writers: Vec<WatchedWriter>) -> WatchedTopic {
    let ros_topic = name.strip_prefix("rt/").map(|name| format!("/{name}"));
    WatchedTopic { topic: Some(name.into()), ros_topic, type_name: Some("T".into()), readers_announced, writers }
}

fn report(topics: Vec<WatchedTopic>) -> WatchReport {
    WatchReport {
        begin_ns: 0,
        duration_ns: 10_000_000_000,
        place: "all interfaces of this network namespace".into(),
        packets: 0,
        copies: 0,
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
        participants: 1,
        topics,
        chain: None,
        incidents: Vec::new(),
        calls: None,
        warnings: Vec::new(),
    }
}

/// Test: the topic with the latest message is measured, unless another one is named; the others are loads.
#[test]
fn one_topic_is_measured_and_the_others_are_loads() {
    let mut unknown = topic("x", 0, vec![writer(5.0, (64, 64))]);
    (unknown.topic, unknown.ros_topic, unknown.type_name) = (None, None, None);
    let seen = report(vec![
        topic("rt/scan", 2, vec![writer(39.98, (8_204, 8_204)), writer(1.0, (8_204, 8_204))]),
        topic("image", 1, vec![writer(30.25, (1_000, 6_220_812))]),
        unknown,
        topic("rt/once", 1, vec![WatchedWriter { rate_hz: None, ..writer(0.1, (20, 20)) }]),
    ]);
    let saved = study(&seen, None).unwrap();
    assert_eq!((saved.topic.as_str(), saved.loads), ("/scan", 3));
    insta::assert_snapshot!(saved.text);
    assert_eq!(study(&seen, Some("rt/scan")), Ok(saved.clone()));
    assert_eq!(study(&seen, Some("/scan")), Ok(saved));
    let image = study(&seen, Some("image")).unwrap();
    assert!(image.text.contains("\npayload: 6220800 B\nrate: 30.25 Hz\n"), "{}", image.text);
    assert!(image.text.contains("The samples had 1,000 to 6,220,812 bytes; the study sends the largest."));
    assert_eq!(image.loads, 3);
}

#[test]
fn what_cannot_be_a_study_is_said() {
    assert_eq!(study(&report(Vec::new()), None), Err(NoStudy::NothingSeen));
    let seen = report(vec![topic("rt/scan", 1, vec![writer(10.0, (64, 64))])]);
    assert_eq!(study(&seen, Some("/sacn")), Err(NoStudy::NoSuchTopic(vec!["/scan".into()])));
}

/// Test: a writer of another host, of a vendor without a driver, whose announcement was not seen; and more writers than loads.
#[test]
fn what_a_study_lacks_is_in_its_comments() {
    let far = WatchedWriter {
        vendor: "RustDDS".into(),
        is_here: false,
        address: Some("10.0.0.7".into()),
        qos: None,
        ..writer(10.0, (64, 64))
    };
    let mut topics = vec![topic("a: b # \"c\n- d", 0, vec![far])];
    topics.extend((0..20).map(|n| topic(&format!("t{n}"), 1, vec![writer(100.0, (100 + n, 100 + n))])));
    let saved = study(&report(topics), None).unwrap();
    assert_eq!(saved.loads, 16);
    insta::assert_snapshot!(saved.text);
}
