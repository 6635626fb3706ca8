//! The section of the HTML page about gates (IEEE 802.1Q): predicted and measured waits.

use crate::escape::prose;
use crate::html::table::of_cells;
use crate::picture::canvas::{Canvas, Medium};
use crate::picture::{gate_timeline, phase};
use crate::tables::gates::{COLUMNS, HEADS, all, cells, not_placed, sentences};
use tailbound_document::{GateReport, Report};

/// Explains the figure of a gate.
const FIGURE: &str = "Measured ways (dots: the shortest and the longest of each part of the cycle) and the predicted wait (line). In \
                      the shaded times a frame may be sent.";

/// Explains the timeline of the gates of an interface.
const TIMELINE: &str = "The gate of each class over the cycle: a band where it is open, a thin line where it is closed";

/// Explains the messages of a timeline.
const MESSAGES: &str = "Below, the messages that waited longest from their due time until they left, and the ten worst messages of \
                        the condition (with their numbers). An open dot is the due time; the line is thick from the time at which \
                        the message was ready for its gate until it left. A vertical line is the first time at which the gate \
                        permitted the message by the schedule, and a short one its receipt";

/// Explains the lines of a timeline that end later than the figure.
const CUT: &str = " At the right edge, an arrow has the time at which a longer line would end.";

pub(crate) fn is_there(report: &Report) -> bool {
    all(report).next().is_some()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let of_gate = all(report).map(|(condition, gate)| {
        let has_waits = !gate.waits.is_empty();
        let table = if has_waits { of_cells(HEADS, gate.waits.iter().map(cells)) } else { String::new() };
        let waits = phase::draw(condition, gate, Medium::Page).map_or(String::new(), |canvas| figure(canvas, FIGURE));
        let timeline = gate_timeline::draw(condition, gate, Medium::Page);
        let timeline = timeline.map_or(String::new(), |canvas| figure(canvas, &about(gate)));
        format!("<p class=\"lead\">{}</p>\n{waits}{timeline}{table}", prose(&sentences(condition, gate)))
    });
    format!(
        "<section id=\"gates\"><h2>Gates</h2>\n<p class=\"lead\">Each message has a predicted wait, from the schedule that the \
         kernel reported and the begin of its send call. The rest of its way contains the send call, other frames of the class, \
         and the way behind the gate. Columns: {COLUMNS}.</p>\n{}</section>\n",
        of_gate.collect::<String>()
    )
}

/// A figure with its explanation below it.
fn figure(canvas: Canvas, words: &str) -> String {
    format!("<figure><div class=\"picture\">{}</div></figure>\n<p class=\"lead\">{words}</p>\n", canvas.embed())
}

/// Explains the timeline of this gate.
fn about(gate: &GateReport) -> String {
    let is_stamped = gate.messages.iter().any(|message| message.left_after_ns.is_some());
    let left = match (gate.messages.is_empty(), is_stamped) {
        (true, _) => return format!("{TIMELINE}.{}", prose(&not_placed(gate))),
        (false, true) => "a filled dot is the time at which the message left, by its stamp",
        (false, false) => "no stamp shows when these messages left, so that their lines are dashed",
    };
    let cut = if gate_timeline::has_cut_lines(gate) { CUT } else { "" };
    format!("{TIMELINE}. {MESSAGES}; {left}.{cut}{}", prose(&not_placed(gate)))
}
