//! Lines of `babeltrace2` with events of ROS 2.

use tailbound_watch::{NoTrace, Trace};

const CONTEXT: &str = "{ cpu_id = 0 }, { vpid = 10, vtid = 11, procname = \"talker\" }";
const OTHER: &str = "{ cpu_id = 1 }, { vpid = 20, vtid = 21, procname = \"listener, \\\"2\\\"\" }";

fn line(ns: i64, event: &str, context: &str, members: &str) -> String {
    let ns = 1_700_000_000_000_000_000 + ns;
    format!("[{}.{:09}] robot ros2:{event}: {context}, {{ {members} }}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn names() -> Vec<String> {
    vec![
        line(
            0,
            "rcl_publisher_init",
            CONTEXT,
            "publisher_handle = 0x1, node_handle = 0x9, rmw_publisher_handle = 0x2, topic_name = \"/chatter\", queue_depth = 10",
        ),
        line(
            1,
            "rcl_subscription_init",
            OTHER,
            "subscription_handle = 0x1, node_handle = 0x9, rmw_subscription_handle = 0x3, topic_name = \"/chatter\", queue_depth = 10",
        ),
        line(2, "rclcpp_subscription_init", OTHER, "subscription_handle = 0x1, subscription = 0x4"),
        line(3, "rclcpp_subscription_callback_added", OTHER, "subscription = 0x4, callback = 0x5"),
    ]
}

/// A message; `has_time`: the versions since Jazzy say which source timestamp it gets.
fn message(at: i64, has_time: bool) -> Vec<String> {
    let source = 1_700_000_000_000_000_000 + at + 3_000;
    let rmw = if has_time {
        format!("rmw_publisher_handle = 0x2, message = 0x7, timestamp = {source}")
    } else {
        "message = 0x7".to_owned()
    };
    let take = format!("rmw_subscription_handle = 0x3, message = 0x8, source_timestamp = {source}, taken = 1");
    vec![
        line(at, "rclcpp_publish", CONTEXT, "message = 0x7"),
        line(at + 1_000, "rcl_publish", CONTEXT, "publisher_handle = 0x1, message = 0x7"),
        line(at + 2_000, "rmw_publish", CONTEXT, &rmw),
        line(at + 100_000, "rmw_take", OTHER, &take),
        line(at + 101_000, "rcl_take", OTHER, "message = 0x8"),
        line(at + 110_000, "callback_start", OTHER, "callback = 0x5, is_intra_process = 0"),
        line(at + 150_000, "callback_end", OTHER, "callback = 0x5"),
        line(
            at + 160_000,
            "rmw_take",
            OTHER,
            "rmw_subscription_handle = 0x3, message = 0x8, source_timestamp = 0, taken = 0",
        ),
    ]
}

#[test]
fn times_between_events_are_found() {
    for has_time in [true, false] {
        let mut trace = Trace::default();
        let lines = names().into_iter().chain((1..=400).flat_map(|n| message(n * 1_000_000_000, has_time)));
        for line in lines {
            assert!(trace.line(&line).is_some(), "{line}");
        }
        let (calls, counts) = trace.end().unwrap();
        assert_eq!((counts.unread, counts.without_thread, counts.without_topic), (0, 0, 0));
        assert_eq!(counts.events, 4 + 400 * 8);
        let [topic] = &calls.topics[..] else { panic!("{calls:?}") };
        assert_eq!((topic.topic.as_str(), topic.published, topic.publish), ("/chatter", 400, None));
        let [taker] = &topic.takers[..] else { panic!("{topic:?}") };
        assert_eq!((taker.process.as_str(), taker.taken, taker.matched), ("listener, \"2\" (20)", 400, 400));
        let whole = taker.publish_to_take.unwrap();
        assert_eq!((whole.min_ns, whole.max_ns), (100_000, 100_000));
        assert_eq!(taker.callback.unwrap().max_ns, 40_000);
        let parts: Vec<(&str, i64)> =
            taker.latest[0].parts.iter().map(|part| (part.name.as_str(), part.time_ns)).collect();
        assert_eq!(parts, [("publish to take", 100_000), ("take to callback", 10_000), ("callback", 40_000)]);
    }
}

/// Messages within a process pass no middleware: only their callbacks are in the trace.
#[test]
fn callbacks_within_a_process_are_counted() {
    let mut trace = Trace::default();
    let lines = [
        line(10_000, "rclcpp_intra_publish", CONTEXT, "publisher_handle = 0x1, message = 0x7"),
        line(20_000, "callback_start", OTHER, "callback = 0x5, is_intra_process = 1"),
        line(90_000, "callback_end", OTHER, "callback = 0x5"),
    ];
    for line in names().iter().chain(&lines) {
        trace.line(line);
    }
    let (calls, _) = trace.end().unwrap();
    let taker = &calls.topics[0].takers[0];
    assert_eq!((taker.taken, taker.callback.unwrap().max_ns, taker.publish_to_take), (0, 70_000, None));
}

#[test]
fn what_cannot_be_used_is_counted() {
    let mut trace = Trace::default();
    assert_eq!(trace.line("[1.000000000] robot lttng_ust:enum: { }"), None);
    assert_eq!(Trace::default().end().unwrap_err(), NoTrace::Empty);
    for line in
        ["[x] robot ros2:rcl_publish: { }", "robot ros2:rcl_publish", "[99999999999999999.000000000] r ros2:a: { }"]
    {
        assert_eq!(trace.line(line), None, "{line}");
    }
    for line in message(0, true) {
        trace.line(&line);
    }
    trace.line(&line(5, "rcl_publish", "{ cpu_id = 0 }", "publisher_handle = 0x1, message = 0x7"));
    let (calls, counts) = trace.end().unwrap();
    assert_eq!((counts.unread, counts.without_thread, counts.without_topic), (3, 1, 2), "no names are known");
    assert!(calls.topics.is_empty());
    let mut without = Trace::default();
    without.line(&line(5, "rcl_publish", "{ cpu_id = 0 }", "publisher_handle = 0x1, message = 0x7"));
    assert_eq!(without.end().unwrap_err(), NoTrace::WithoutThreads);
}
