//! The report on a terminal: what is wrong, one table, what it does not say, warnings with their mend.

use crate::against;
use crate::bins;
use crate::document::{Finding, FindingLevel, Report, WarningSeverity};
use crate::flow;
use crate::grid::{Column, Grid};
use crate::legs;
use crate::loops;
use crate::patterns;
use crate::plain::plain;
use crate::same_warnings::{self, Told};
use crate::spark::Axis;
use crate::summary::{Row, Summary, summary};

/// Columns of a spark line: as many as fit, within these.
const SPARK: std::ops::RangeInclusive<usize> = 6..=24;

/// Messages whose cause is told here.
const CAUSES: usize = 3;

/// Sets words in bold, dim or the colour of warnings, or leaves them alone.
pub(crate) struct Paint(bool);

impl Paint {
    pub fn new(colour: bool) -> Paint {
        Paint(colour)
    }
    fn with(&self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
    pub fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }
    pub fn dim(&self, text: &str) -> String {
        self.with("2", text)
    }
    pub fn alarm(&self, text: &str) -> String {
        self.with("33", text)
    }
}

/// The report as text for a terminal of `width` columns. Colour repeats what words say.
pub fn render_terminal(report: &Report, width: usize, colour: bool) -> String {
    let report = &plain(report);
    let paint = Paint(colour);
    let width = width.max(40);
    let mut text = String::new();
    let mut line = |l: String| {
        text.push_str(l.trim_end());
        text.push('\n');
    };
    line(paint.bold(&format!("{}: {}", report.study, report.question)));
    let worse = |f: &&Finding| f.level < FindingLevel::Result;
    for finding in report.findings.iter().filter(worse) {
        wrap(&format!("! {}", finding.text), width, 2).into_iter().for_each(|l| line(paint.alarm(&l)));
    }
    // What other programs printed has lines of its own below.
    let measured = |f: &&Finding| f.level == FindingLevel::Result && f.code != "tool";
    if let Some(finding) = report.findings.iter().find(measured) {
        wrap(&finding.text, width, 0).into_iter().for_each(&mut line);
    }
    line(String::new());
    let table = summary(report);
    if !report.conditions.is_empty() {
        table_lines(report, &table, width, &paint).into_iter().for_each(&mut line);
    }
    for l in flow_lines(report, &table, width, &paint) {
        line(l);
    }
    let grown = report.findings.iter().filter(|f| f.code == "growth");
    grown.flat_map(|f| wrap(&f.text, width, 2)).for_each(&mut line);
    against_lines(report, width, &paint).into_iter().for_each(&mut line);
    for l in leg_lines(report, &table, width, &paint) {
        line(l);
    }
    for (title, columns) in crate::chosen::tables(report) {
        column_lines((&title, columns), &table, width, &paint).into_iter().for_each(&mut line);
    }
    for l in loop_lines(report, &table, width, &paint) {
        line(l);
    }
    if let Some(patterns) = patterns::table(report, &table) {
        extra_lines(patterns, width, &paint).into_iter().for_each(&mut line);
    }
    patterns::said(report).iter().flat_map(|l| wrap(l, width, 2)).for_each(&mut line);
    if let Some(bins) = bins::table(report, &table) {
        extra_lines(bins, width, &paint).into_iter().for_each(&mut line);
    }
    for (which, way) in crate::proof::lines(report) {
        wrap(&format!("went by {way} ({which})"), width, 2).iter().for_each(|l| line(paint.dim(l)));
    }
    for (of, text) in crate::nodes::lines(report) {
        wrap(&format!("{of}: {text}"), width, 2).iter().for_each(|l| line(paint.dim(l)));
    }
    for tool in &report.tools {
        line(paint.bold(&format!("{}, not measured by Tailbound", tool.origin())));
        tool.lines().iter().flat_map(|l| wrap(l, width, 4)).for_each(&mut line);
        let notes = wrap(&tool.notes(), width, 4);
        notes.iter().for_each(|l| line(paint.dim(l)));
        line(String::new());
    }
    let beside = report.findings.iter().filter(|f| f.code == "side_by_side");
    beside.flat_map(|f| wrap(&f.text, width, 2)).for_each(&mut line);
    let rest: Vec<&Finding> = report.findings.iter().filter(|f| f.level > FindingLevel::Result).collect();
    if !rest.is_empty() {
        line(String::new());
    }
    for finding in rest {
        wrap(&format!("- {}", finding.text), width, 2).into_iter().for_each(&mut line);
    }
    let causes: Vec<&str> = crate::why::sentences(report).collect();
    for text in causes.iter().take(CAUSES) {
        wrap(&format!("  {text}."), width, 4).into_iter().for_each(&mut line);
    }
    if causes.len() > CAUSES {
        line(paint.dim(&format!("  ({} more on the page)", causes.len() - CAUSES)));
    }
    // What a finding says already, mend included, is not said twice.
    let found = |t: &Told<'_>| report.findings.iter().any(|f| f.text.contains(t.warning.text.trim_end_matches('.')));
    let warnings: Vec<_> = same_warnings::told(&report.warnings).into_iter().filter(|t| !found(t)).collect();
    if !warnings.is_empty() {
        line(String::new());
    }
    for warning in warnings {
        for (i, l) in wrap(&warning_text(&warning), width, 2).into_iter().enumerate() {
            line(if i == 0 && warning.warning.severity != WarningSeverity::Note { paint.alarm(&l) } else { l });
        }
    }
    text
}

/// `warning: text Mend.` with whom it is about.
pub(crate) fn warning_text(told: &Told<'_>) -> String {
    let warning = told.warning;
    let word = match warning.severity {
        WarningSeverity::Note => "note",
        WarningSeverity::Warning => "warning",
        WarningSeverity::Invalid => "invalid",
    };
    let whom = told.whom();
    let text = warning.text.trim_end_matches('.');
    let mend = if warning.mend.is_empty() { String::new() } else { format!(" {}", warning.mend) };
    format!("{word}{whom}: {text}.{mend}")
}

/// What was sent and what arrived, and how late.
fn flow_lines(report: &Report, table: &Summary, width: usize, paint: &Paint) -> Vec<String> {
    // Reasons once, under the first table.
    let set = |(nth, (title, columns)): (usize, (&str, Vec<flow::FlowColumn>))| {
        let mut lines: Vec<String> = wrap(title, width, 0).iter().map(|l| paint.dim(l)).collect();
        let grids = Grid::split(table, columns.into_iter().map(with_unit).collect(), width);
        for (part, grid) in grids.iter().enumerate() {
            let below = |i| if nth + part == 0 { reasons(report, i, width) } else { Vec::new() };
            lines.extend(grid.lines(paint, |_| String::new(), below));
            if part + 1 < grids.len() {
                lines.push(String::new());
            }
        }
        lines.push(String::new());
        lines
    };
    let mut lines: Vec<String> = flow::tables(report).into_iter().enumerate().flat_map(set).collect();
    let notes = flow::notes(report);
    if !notes.is_empty() {
        lines.extend(notes.iter().flat_map(|n| wrap(n, width, 2)).map(|l| paint.dim(&l)));
        lines.push(String::new());
    }
    lines
}

/// What each level costs against the study's baseline.
fn against_lines(report: &Report, width: usize, paint: &Paint) -> Vec<String> {
    let Some(of) = &report.against else { return Vec::new() };
    let mut lines = vec![String::new()];
    lines.extend(wrap(&against::title(of), width, 0).iter().map(|l| paint.dim(l)));
    let grids =
        Grid::split(&against::of_rows(report, of), against::columns(of).into_iter().map(with_unit).collect(), width);
    for (part, grid) in grids.iter().enumerate() {
        let wrapped =
            |note: String| wrap(&note, width - 2, 2).into_iter().map(|l| format!("  {l}")).collect::<Vec<_>>();
        let notes = |i: usize| against::notes(&of.rows[i]).into_iter().flat_map(wrapped).collect();
        // Reasons once, under the first table.
        lines.extend(grid.lines(paint, |_| String::new(), |i| if part == 0 { notes(i) } else { Vec::new() }));
        if part + 1 < grids.len() {
            lines.push(String::new());
        }
    }
    lines.extend(wrap(&of.lack(), width, 0).iter().map(|l| paint.dim(l)));
    lines
}

/// One way between two clocks.
fn leg_lines(report: &Report, table: &Summary, width: usize, paint: &Paint) -> Vec<String> {
    column_lines((legs::TITLE, legs::columns(report)), table, width, paint)
}

/// Columns with a title, broken where the terminal ends; nothing where there is no column.
fn column_lines(
    (title, columns): (&str, Vec<flow::FlowColumn>),
    table: &Summary,
    width: usize,
    paint: &Paint,
) -> Vec<String> {
    if columns.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(wrap(title, width, 0).iter().map(|l| paint.dim(l)));
    for grid in Grid::split(table, columns.into_iter().map(with_unit).collect(), width) {
        lines.extend(grid.lines(paint, |_| String::new(), |_| Vec::new()));
    }
    lines
}

/// A column with its unit in the head.
fn with_unit(column: flow::FlowColumn) -> Column {
    let head = format!("{} {}", column.head, column.unit).trim_end().to_owned();
    Column { head, cells: column.cells, right: true }
}

/// Why a condition has no figures.
fn reasons(report: &Report, i: usize, width: usize) -> Vec<String> {
    let condition = &report.conditions[i];
    let reason = condition.not_possible.as_ref().or(condition.finding.as_ref());
    reason.map_or(Vec::new(), |r| wrap(r, width - 2, 0).iter().map(|l| format!("  {l}")).collect())
}

fn table_lines(report: &Report, table: &Summary, width: usize, paint: &Paint) -> Vec<String> {
    if flow::is_all(report) {
        return Vec::new();
    }
    let mut grid = Grid::of_levels(table);
    for (i, head) in table.heads.iter().enumerate() {
        let cell =
            |r: &Row| r.cells.get(i).map_or((r.max.clone(), String::new()), |c| (c.value.clone(), c.interval.clone()));
        grid.columns.push(Column { head: head.clone(), cells: table.rows.iter().map(cell).collect(), right: true });
    }
    let plain = |head: &str, text: fn(&Row) -> String| Column {
        head: head.into(),
        cells: table.rows.iter().map(|r| (text(r), String::new())).collect(),
        right: true,
    };
    grid.columns.push(plain("lost", |r| r.lost.clone()));
    if table.some_not_sent {
        grid.columns.push(plain("not sent", |r| r.not_sent.clone()));
    }
    if table.rows.iter().any(|r| !r.mark.is_empty()) {
        grid.columns.push(plain("", |r| r.mark.to_owned()));
    }
    grid.fit(width.saturating_sub(*SPARK.start()));
    let left = width.saturating_sub(grid.width()).min(*SPARK.end());
    let axis = SPARK.contains(&left).then(|| Axis::over(&report.conditions, left)).flatten();

    let over = if table.shared.is_empty() { String::new() } else { format!(" ({})", table.shared) };
    let title = format!("round trip, with 95 % intervals{over}");
    let mut lines: Vec<String> = wrap(&title, width, 0).iter().map(|l| paint.dim(l)).collect();
    let behind = |i: usize| match (&axis, &report.conditions[i].round_trip) {
        (Some(axis), Some(figures)) => format!("  {}", axis.line(figures)),
        _ => String::new(),
    };
    lines.extend(grid.lines(paint, behind, |i| reasons(report, i, width)));
    if let Some(axis) = axis {
        lines.extend(
            wrap(&format!("The line shows each distribution {}.", axis.words()), width, 0).iter().map(|l| paint.dim(l)),
        );
    }
    lines
}

/// What each loop of the sender came to, beside its round trips.
fn loop_lines(report: &Report, table: &Summary, width: usize, paint: &Paint) -> Vec<String> {
    let columns = loops::columns(report);
    if columns.is_empty() {
        return Vec::new();
    }
    let mut grid = Grid::of_levels(table);
    grid.columns.extend(columns);
    grid.fit(width);
    let mut lines = vec![String::new()];
    lines.extend(wrap(loops::TITLE, width, 0).iter().map(|l| paint.dim(l)));
    lines.extend(grid.lines(paint, |_| String::new(), |_| Vec::new()));
    lines
}

/// A table that some studies have, with its title.
fn extra_lines((title, mut grid): (String, Grid), width: usize, paint: &Paint) -> Vec<String> {
    grid.fit(width);
    let mut lines = vec![String::new()];
    lines.extend(wrap(&title, width, 0).iter().map(|l| paint.dim(l)));
    lines.extend(grid.lines(paint, |_| String::new(), |_| Vec::new()));
    lines
}

/// Breaks a text at spaces; lines after the first are indented.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in text.split(' ') {
        let fits = current.chars().count() + 1 + word.chars().count() <= width;
        if !current.is_empty() && !fits {
            lines.push(std::mem::replace(&mut current, " ".repeat(indent)));
            current.push_str(word);
        } else {
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
    }
    lines.push(current);
    lines
}
