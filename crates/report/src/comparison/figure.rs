//! Draws the ratios of a comparison of records with their intervals, on a logarithmic axis around 1. The largest effect
//! comes first.

use crate::compared;
use crate::picture::axis::Log;
use crate::picture::canvas::{Canvas, Hold, Mark, Medium, WIDTH};
use crate::picture::reading::cut;
use tailbound_document::number::three_digits;
use tailbound_document::{Compared, Comparison, Pair, VerdictWord};

/// Height of a row: the name of the condition, and the interval below it.
const ROW: f64 = 42.0;

const TOP: f64 = 34.0;

const LEFT: f64 = 170.0;

const RIGHT: f64 = WIDTH - 190.0;

/// Largest number of characters of the name of a condition: a narrow page has no room for more.
const NAME: usize = 46;

/// Largest number of ratios in the figure of a comparison; the table also has the further ratios.
pub(crate) const MOST: usize = 40;

/// Draws the ratios of a comparison, and returns the number of ratios that have no room in the figure; `None` if no
/// ratio is known.
pub(crate) fn ratios(comparison: &Comparison) -> Option<(String, usize)> {
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
    let mut canvas = Canvas::new(Medium::Page, bottom + 8.0, "Ratios of B to A").plot(LEFT, RIGHT);
    let x = Log { low: 1.0 / far, high: far, from: LEFT, to: RIGHT };
    // Ticks are at round ratios if they fit; otherwise at the ends of the axis.
    let round = x.ticks(9);
    for at in if round.len() > 2 { round } else { vec![1.0 / far, 1.0, far] } {
        canvas.line(if at == 1.0 { "axis" } else { "grid" }, (x.at(at), TOP - 8.0), (x.at(at), bottom));
        let words = three_digits(at);
        // 0.1, not 0.100: a tick has no more digits than it needs.
        let words = if words.contains('.') { words.trim_end_matches('0') } else { &words };
        canvas.text("tick", (x.at(at), TOP - 14.0), words, Hold::Middle);
    }
    for (i, (name, c, ratio)) in rows.iter().enumerate() {
        let y = TOP + ROW * (i as f64 + 0.75);
        canvas.text("strong", (0.0, y - 18.0), &cut(name, NAME), Hold::Start);
        let figure = match c.metric.as_str() {
            "round_trip" => c.statistic.clone(),
            metric => format!("{} {}", metric.replace('_', " "), c.statistic),
        };
        canvas.text("", (LEFT - 10.0, y + 4.0), &figure, Hold::End);
        let [low, high] = ends(c, *ratio);
        // A pair without a difference has no hue.
        let differs = matches!(c.verdict, VerdictWord::Faster | VerdictWord::Slower);
        let class = |kind: &str| if differs { kind.to_owned() } else { format!("{kind} none") };
        canvas.open("", 0, &[]);
        let interval = if c.within_runs { "interval within" } else { "interval" };
        canvas.line(&class(interval), (x.at(low), y), (x.at(high), y));
        let mark = Mark::default().with("ratio", ratio);
        canvas.plain_mark(&mark, |canvas| canvas.dot(if differs { "" } else { "none" }, (x.at(*ratio), y), 3.5));
        let verdict = compared::verdict(c, comparison.margin);
        canvas.text(&class("end"), (RIGHT + 12.0, y + 4.0), &verdict, Hold::Start);
        canvas.close();
    }
    Some((canvas.embed(), left))
}
