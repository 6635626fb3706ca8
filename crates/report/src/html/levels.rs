//! The section of the HTML page with the round trips over time of each level of a factor, side by side.

use crate::escape::{escape, prose};
use crate::picture::canvas::{Canvas, Medium};
use crate::picture::levels::{Group, draw, side_by_side};
use tailbound_document::Report;
use tailbound_document::number::count;

pub(crate) fn is_there(report: &Report) -> bool {
    side_by_side(report).is_some()
}

pub(crate) fn section(report: &Report) -> String {
    let Some(all) = side_by_side(report) else { return String::new() };
    let left_out = match all.left_out {
        0 => String::new(),
        n => format!(" {} further combinations of levels are not drawn.", count(n as u64)),
    };
    let of_group = |(group, drawn): (&Group, Vec<Canvas>)| {
        let head = if group.name.is_empty() { String::new() } else { format!("<h3>{}</h3>\n", escape(&group.name)) };
        let drawn: String = drawn.into_iter().map(Canvas::embed).collect();
        format!("{head}<figure><div class=\"picture multiples\">{drawn}</div></figure>\n")
    };
    let words = format!(
        "The round trips of one trial for each level of `{}`, all with the same axes: of each condition, the trial with its worst message. \
         Each column spans its lowest to its highest message, so that no maximum is left out; the darker line is the middle one of the \
         medians of shorter times. Grey: warm-up. Hatched: a clock was stepped, or was not known to be in step. Ticks above: lost or \
         not sent.{left_out}",
        all.factor
    );
    format!(
        "<section id=\"levels\"><h2>Over time, side by side</h2>\n<p class=\"lead\">{}</p>\n{}</section>\n",
        prose(&words),
        all.groups.iter().zip(draw(report, &all, Medium::Page)).map(of_group).collect::<String>()
    )
}
