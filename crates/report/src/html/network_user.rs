//! The section of the HTML page with the times of messages to the kernel and to the thread in one histogram.

use crate::picture::canvas::{Canvas, Medium};
use crate::picture::network_user::{draw, has_early, has_ranges, is_there as any};
use tailbound_document::Report;

/// Explains the figure.
const FIGURE: &str = "The times of messages in one direction, in one histogram for each condition. Network: from the begin of the send call \
                      (answers: from its end) to the receive stamp of the kernel. User: from the same time to the thread that receives. \
                      If the stages of messages were stamped, an outline has the time from the kernel to the thread, which is \
                      measured for each message. The number of messages in each bucket has a logarithmic scale.";

/// Explains what the figure has between two clocks.
const RANGES: &str = " If the ends have different clocks, each message has a shortest and a longest possible time: the area has the \
                      shortest ones, and the dashed line the longest ones.";

/// Explains negative times.
const EARLY: &str = " Within one kernel, the receive stamp of an answer can be earlier than the end of its send call, from which the \
                     time of an answer counts: such a time is negative, and the figure gives the number of such answers.";

/// The colours of the histograms. On a narrow screen, their names at the right edge are out of sight.
const KEYS: &str = "<span class=\"keys\"><span class=\"key s0\"></span>network<span class=\"key s2\"></span>user\
                    <span class=\"key s1\"></span>kernel to thread</span>";

pub(crate) fn is_there(report: &Report) -> bool {
    any(report)
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let ranges = if has_ranges(report) { RANGES } else { "" };
    let early = if has_early(report) { EARLY } else { "" };
    format!(
        "<section id=\"network-user\"><h2>Network and user</h2>\n<p class=\"lead\">{FIGURE}{ranges}{early}{KEYS}</p>\n\
         <figure><div class=\"picture\">{}</div></figure></section>\n",
        draw(report, Medium::Page).into_iter().map(Canvas::embed).collect::<String>()
    )
}
