//! Formats a comparison for a terminal: sentences, then one line per statistic with its interval on a logarithmic axis
//! around 1.

use crate::compared;
use crate::comparison::words::trials_text;
use crate::text::{Paint, wrap};
use tailbound_document::number::{Unit, count, three_digits, time};
use tailbound_document::{Change, Compared, Comparison, Pair, VerdictWord};

/// Width in characters of the axis on which a comparison shows ratios in a terminal.
const AXIS: usize = 11;

/// Smallest width of a terminal in which the axis has room beside the numbers and the verdict.
const WITH_AXIS: usize = 76;

/// Largest number of changed circumstances that a terminal shows; the comparison document contains all of them.
const CHANGES: usize = 12;

/// Formats a comparison as text for a terminal of `width` columns. Colours add no information that the words do not
/// give.
pub fn render_comparison_terminal(comparison: &Comparison, width: usize, colour: bool) -> String {
    let comparison = &crate::plain::plain(comparison);
    let paint = Paint::new(colour);
    let width = width.max(60);
    let mut lines: Vec<String> = Vec::new();
    let times = comparison.pairs.iter().flat_map(|p| &p.statistics).all(|c| c.unit == "ns");
    let direction = if times { ", below 1 where B is faster" } else { "" };
    let title = format!("A {}, B {}: ratios B to A{direction}", comparison.a.name, comparison.b.name);
    lines.extend(wrap(&title, width, 2).iter().map(|l| paint.bold(l)));
    if let Some(caution) = &comparison.caution {
        lines.extend(wrap(&format!("! {caution}"), width, 2));
        lines.extend(changes(&comparison.changed, width));
    }
    lines.extend(comparison.findings.iter().flat_map(|f| wrap(f, width, 2)));
    // A narrow terminal has the numbers and the verdict only.
    let reach = (width >= WITH_AXIS).then(|| reach(comparison));
    for pair in &comparison.pairs {
        lines.push(String::new());
        lines.extend(wrap(&format!("{} ({})", pair.name, trials_text(pair)), width, 2).iter().map(|l| paint.bold(l)));
        lines.extend(rows(pair, comparison, reach, &paint));
        lines.extend(below(pair).iter().flat_map(|l| wrap(l, width - 2, 2)).map(|l| format!("  {l}")));
    }
    lines.push(String::new());
    for left in &comparison.not_compared {
        lines.extend(wrap(&format!("- not compared: {}: {}", left.condition, left.why), width, 2));
    }
    let holds = "The intervals are simultaneous: in 95 % of such tables, every interval contains the true ratio.";
    let axis = reach.map_or(String::new(), |reach| {
        let (low, high) = (three_digits(1.0 / reach), three_digits(reach));
        format!(" The axis goes from {low} to {high}, with 1 in the middle.")
    });
    lines.extend(wrap(&format!("{holds}{axis}"), width, 0).iter().map(|l| paint.dim(l)));
    if comparison.pairs.iter().flat_map(|p| &p.statistics).any(|c| c.within_runs) {
        let only = "* This interval describes only these runs: one trial does not show how trials differ.";
        lines.extend(wrap(only, width, 2).iter().map(|l| paint.dim(l)));
    }
    lines.iter().map(|l| format!("{}\n", l.trim_end())).collect()
}

fn changes(changed: &[Change], width: usize) -> Vec<String> {
    let line = |c: &Change| {
        let short = |text: &str| match text.char_indices().nth(60) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.to_owned(),
        };
        let text = format!("{}: {} -> {}", c.what, short(&c.a), short(&c.b));
        wrap(&text, width - 2, 4).iter().map(|l| format!("  {l}")).collect::<Vec<_>>()
    };
    let mut lines: Vec<String> = changed.iter().take(CHANGES).flat_map(line).collect();
    match changed.len() {
        0 => lines.push("  no circumstance in the records has changed".into()),
        n if n > CHANGES => lines.push(format!("  and {} more: --format json", n - CHANGES)),
        _ => {}
    }
    lines
}

/// Upper end of the axis for ratios: a round number that is at least as large as the upper end of every interval.
fn reach(comparison: &Comparison) -> f64 {
    let ends = comparison.pairs.iter().flat_map(|p| &p.statistics).flat_map(|c| {
        let [low, high] = c.interval.unwrap_or([1.0, 1.0]);
        [low, high, c.ratio.unwrap_or(1.0)]
    });
    let far = ends.map(|e| e.ln().abs()).fold(0.0, f64::max).exp();
    [1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0].into_iter().find(|r| far <= *r).unwrap_or(1_000.0)
}

fn rows(pair: &Pair, comparison: &Comparison, reach: Option<f64>, paint: &Paint) -> Vec<String> {
    let twice = |c: &Compared| pair.statistics.iter().filter(|o| o.statistic == c.statistic).count() > 1;
    let unit =
        Unit::of_all(pair.statistics.iter().filter(|c| c.unit == "ns").filter_map(|c| c.a.or(c.b)).map(|ns| ns as i64));
    let unit = unit.unwrap_or(Unit::Us);
    let name = |c: &Compared| match twice(c) {
        true => format!("{} {}", c.metric, c.statistic),
        false => c.statistic.clone(),
    };
    // The head of a column contains the unit if all values are times; if there are rates too, each time has its own
    // unit.
    let all_times = pair.statistics.iter().all(|c| c.unit == "ns");
    let head = |side: &str| if all_times { format!("{side} {}", unit.name()) } else { side.to_owned() };
    let wide = pair.statistics.iter().map(|c| name(c).chars().count()).max().unwrap_or(0);
    let number = |value: Option<f64>, c: &Compared| match value {
        None => "-".into(),
        Some(value) if c.unit == "ns" && all_times => unit.number(value),
        Some(value) if c.unit == "ns" => time(value),
        Some(value) => three_digits(value),
    };
    let ones = reach.map_or(String::new(), |_| format!("  {:^AXIS$}", "1"));
    let heads = format!("{:<wide$} {:>7} {:>7} {:>6} {:>12}{ones}", "", head("A"), head("B"), "ratio", "95 %");
    let row = |c: &Compared| {
        let interval = c.interval.map_or(String::new(), |[low, high]| {
            let mark = if c.within_runs { "*" } else { "" };
            format!("{}-{}{mark}", three_digits(low), three_digits(high))
        });
        let ratio = c.ratio.map_or("-".into(), three_digits);
        let verdict = compared::verdict(c, comparison.margin);
        let verdict = match c.verdict {
            VerdictWord::Slower => paint.alarm(&verdict),
            _ => verdict,
        };
        format!(
            "{:<wide$} {:>7} {:>7} {:>6} {:>12}{}  {verdict}",
            name(c),
            number(c.a, c),
            number(c.b, c),
            ratio,
            interval,
            reach.map_or(String::new(), |reach| format!("  {}", axis(c, reach)))
        )
    };
    [paint.dim(&heads)].into_iter().chain(pair.statistics.iter().map(row)).collect()
}

/// Draws the interval and the ratio on a text axis such as `·····│··━●━·····`.
fn axis(c: &Compared, reach: f64) -> String {
    let place = |r: f64| {
        let at = (r.ln() / reach.ln() + 1.0) / 2.0 * (AXIS - 1) as f64;
        (at.round().max(0.0) as usize).min(AXIS - 1)
    };
    let mut cells = ['·'; AXIS];
    cells[AXIS / 2] = '│';
    if let Some([low, high]) = c.interval {
        cells[place(low)..=place(high)].fill('━');
    }
    if let Some(ratio) = c.ratio {
        cells[place(ratio)] = '●';
    }
    cells.iter().collect()
}

/// Lines of text that follow a pair of compared conditions, for text that does not fit into the columns of the table.
fn below(pair: &Pair) -> Vec<String> {
    let mut lines = Vec::new();
    for c in &pair.statistics {
        if let Some(why) = &c.why {
            lines.push(format!("{} of {}: {why}", c.statistic, c.metric));
        }
        if let Some(trials) = c.trials_for_margin {
            let about = count(trials as u64);
            lines.push(format!(
                "{} of {}: about {about} trials a side would tell it within the margin",
                c.statistic, c.metric
            ));
        }
    }
    for (name, side) in [("A", &pair.a), ("B", &pair.b)] {
        if side.lost + side.not_sent > 0 {
            let (lost, not_sent, all) = (count(side.lost), count(side.not_sent), count(side.scheduled));
            lines.push(format!("{name}: of {all} messages {lost} lost, {not_sent} not sent"));
        }
    }
    lines
}
