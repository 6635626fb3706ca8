//! The conformance checks, in the order in which they run.

mod answers;
mod exchange;
mod flow;
mod lifetime;
mod limits;
mod table;
mod waiting;

use std::time::Duration;

use super::{Check, MATCH};

const SHORT: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(120);

const fn check(
    name: &'static str,
    proves: &'static str,
    needs: &'static [&'static str],
    limit: Duration,
    run: fn(&super::Bench) -> super::Checked,
) -> Check {
    Check { name, proves, needs, limit, run }
}

/// All conformance checks except the check `silent`, which tests that the other checks print nothing.
pub static ALL: &[Check] = &[
    check("table", "a driver table of wrong version, size or content is refused", &[], SHORT, table::table),
    check("description", "the driver's description is complete and consistent", &[], SHORT, table::description),
    check("unknown-option", "open refuses an unknown option and names it", &[], SHORT, answers::unknown_option),
    check(MATCH, "two sessions in one process find each other", &[], SHORT, exchange::matching),
    check(
        "both-ways",
        "10,000 samples in each direction arrive once, in order and unchanged",
        &[MATCH],
        LONG,
        exchange::both_ways,
    ),
    check("mode-listener", "listeners are called with their tag", &[MATCH], SHORT, exchange::listener),
    check(
        "mode-block",
        "wait and take deliver samples; a view does not change until release",
        &[MATCH],
        SHORT,
        exchange::block,
    ),
    check(
        "mode-spin",
        "take alone delivers samples, and returns immediately if there is no sample",
        &[MATCH],
        SHORT,
        exchange::spin,
    ),
    check(
        "send-from-callback",
        "a listener may send from inside its callback",
        &[MATCH, "mode-listener"],
        SHORT,
        exchange::send_from_callback,
    ),
    check(
        "wait-deadline",
        "a wait ends at its deadline, and finds samples that have arrived also after it",
        &[MATCH],
        SHORT,
        waiting::deadline,
    ),
    check(
        "several-readers",
        "a wait on several readers reports which reader has a sample",
        &[MATCH],
        SHORT,
        waiting::several,
    ),
    check("wake", "wake ends a wait from another thread", &[MATCH], SHORT, waiting::wake),
    check("destroy-ends-wait", "destroy ends a wait on the end point", &[MATCH], SHORT, waiting::destroy),
    check(
        "send-after-destroy",
        "calls on a destroyed end point return TB_ECLOSED",
        &[MATCH],
        SHORT,
        lifetime::after_destroy,
    ),
    check(
        "largest-payload",
        "the largest payload arrives, and one byte more gives TB_ETOOBIG",
        &[MATCH],
        LONG,
        limits::largest_payload,
    ),
    check("batch", "flush sends the samples that wait in a batch", &[MATCH], SHORT, flow::batch),
    check(
        "several-subscribers",
        "one writer reaches four readers, and a reader that ends is no longer matched",
        &[MATCH],
        SHORT,
        flow::several_subscribers,
    ),
    check(
        "flow",
        "a writer reports batching, limits, multicast and retransmissions, or why it cannot",
        &[MATCH],
        SHORT,
        flow::flow,
    ),
    check("qos-read-back", "every declared QoS value reads back as it was set", &[], LONG, limits::qos_read_back),
    check("two-sessions", "sessions of one process do not disturb each other", &[MATCH], SHORT, lifetime::two_sessions),
    check("queries", "stats, peers, transport and threads answer in JSON", &[MATCH], SHORT, answers::queries),
    check("unmatched", "an end point without a peer reports the reason, in JSON", &[], SHORT, answers::unmatched),
    check("unknown-question", "query refuses an unknown question", &[], SHORT, answers::unknown_question),
    check(
        "open-close",
        "opening and closing 100 times leaves no descriptor, thread or memory behind",
        &[],
        LONG,
        lifetime::open_close,
    ),
];
