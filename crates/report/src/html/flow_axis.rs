//! The section of the HTML page with charts of flows over payload, number of subscribers or rate.

use crate::escape::escape;
use crate::picture::canvas::{Canvas, Medium};
use crate::picture::flow_axis::draw;
use crate::tables::flow_axis::axis;
use tailbound_document::Report;

pub(crate) fn section(report: &Report) -> String {
    let Some(axis) = axis(report) else { return String::new() };
    let panels: String = draw(&axis, Medium::Page).into_iter().map(Canvas::embed).collect();
    let factor = escape(&axis.factor);
    let growth = if axis.panels.iter().flat_map(|p| &p.lines).any(|l| l.growth.is_some()) {
        " N^b: b is the exponent of the power law through the points of a line, with its standard error."
    } else {
        ""
    };
    format!(
        "<section id=\"flow-axis\"><h2>Flow against {factor}</h2>\n<p class=\"lead\">Medians over the trials. Bars \
            extend from the lowest to the highest trial; for latencies they are the 95\u{202f}% \
            interval.{growth}</p>\n<figure><div class=\"picture\">\n\
         {panels}</div></figure></section>\n"
    )
}
