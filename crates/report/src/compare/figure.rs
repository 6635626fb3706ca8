//! Ratios with their intervals on a logarithmic axis around 1, the largest effect first.

use super::document::*;
use super::words;
use crate::number::three_digits;
use crate::picture::axis::Log;
use crate::picture::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue};

const WIDTH: f64 = 960.0;
const ROW: f64 = 24.0;
const TOP: f64 = 34.0;
const LEFT: f64 = 410.0;
const RIGHT: f64 = WIDTH - 190.0;

/// More rows are in the table.
pub(super) const MOST: usize = 40;

/// The drawing, and how many rows it has no room for; `None` where no ratio is known.
pub(super) fn ratios(comparison: &Comparison) -> Option<(String, usize)> {
    let known = |p: &'_ Pair, c: &'_ Compared| Some((p.name.clone(), c.clone(), c.ratio.filter(|r| *r > 0.0)?));
    let mut rows: Vec<(String, Compared, f64)> =
        comparison.pairs.iter().flat_map(|p| p.statistics.iter().filter_map(move |c| known(p, c))).collect();
    rows.sort_by(|a, b| b.2.ln().abs().total_cmp(&a.2.ln().abs()));
    let left = rows.len().saturating_sub(MOST);
    rows.truncate(MOST);
    let ends = |c: &Compared, ratio: f64| c.interval.map_or([ratio, ratio], |i| i.map(|e| e.clamp(1e-6, 1e6)));
    let far = rows.iter().flat_map(|(_, c, r)| ends(c, *r)).map(|e| e.ln().abs()).fold(0.05, f64::max).exp();
    rows.first()?;
    let bottom = TOP + ROW * rows.len() as f64;
    let mut canvas = Canvas::new(WIDTH, bottom + 8.0);
    let x = Log { low: 1.0 / far, high: far, from: LEFT, to: RIGHT };
    // Round ratios where there is room for them; otherwise what the axis spans.
    let round = x.ticks(9);
    for at in if round.len() > 2 { round } else { vec![1.0 / far, 1.0, far] } {
        canvas.line((x.at(at), TOP - 8.0), (x.at(at), bottom), if at == 1.0 { MUTED } else { HAIR }, "");
        let words = three_digits(at);
        // 0.1, not 0.100: a tick has no more digits than it needs.
        let words = if words.contains('.') { words.trim_end_matches('0') } else { &words };
        canvas.text((x.at(at), TOP - 14.0), words, Hold::Middle, MUTED);
    }
    for (i, (name, c, ratio)) in rows.iter().enumerate() {
        let y = TOP + ROW * (i as f64 + 0.5);
        let what = format!(", {} {}", c.metric.replace('_', " "), c.statistic);
        let room = 57_usize.saturating_sub(what.chars().count());
        let name: String = match name.chars().count() {
            long if long > room => name.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
            _ => name.clone(),
        };
        canvas.text((LEFT - 10.0, y + 4.0), &(name + &what), Hold::End, INK);
        let [low, high] = ends(c, *ratio);
        let colour = if matches!(c.verdict, VerdictWord::Faster | VerdictWord::Slower) { hue(0) } else { MUTED };
        let dashes = if c.within_runs { " stroke-width=\"2\" stroke-dasharray=\"4 3\"" } else { " stroke-width=\"2\"" };
        canvas.line((x.at(low), y), (x.at(high), y), colour, dashes);
        canvas.mark((x.at(*ratio), y), colour, *ratio);
        canvas.text((RIGHT + 12.0, y + 4.0), &words::verdict(c, comparison.margin), Hold::Start, colour);
    }
    Some((canvas.bare("Ratios of B to A"), left))
}
