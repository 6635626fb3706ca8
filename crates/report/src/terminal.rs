//! Formats the report for a terminal: problems, tables, limits of the figures, and warnings with their remedies.

use crate::plain::plain;
use crate::tables::grid::{Column, Grid};
use crate::tables::sparkline::Axis;
use crate::tables::summary::{Row, Summary, summary};
use crate::tables::value_column::ValueColumn;
use crate::tables::warnings::{WarningGroup, warning_text};
use crate::tables::{
    against, bins, clock_history, gates, launch, legs, loops, next_steps, patterns, published, spread, stages, usual,
    warnings,
};
use crate::tables::{flow, tools, writer};
use crate::text::{Paint, wrap};
use tailbound_document::{
    Finding, FindingLevel, PublishedCellReport, PublishedColumnReport, PublishedReport, PublishedRowReport, Report,
};
use tailbound_model::Severity;

/// Smallest and largest width of the line of text that shows a distribution, in characters.
const SPARK: std::ops::RangeInclusive<usize> = 6..=24;

/// Largest number of messages whose cause is printed on a terminal.
const CAUSES: usize = 3;

/// Largest number of conditions whose ordinary messages are described on a terminal.
const USUAL: usize = 6;

/// Formats the report as text for a terminal of `width` columns. Colours add no information that the words do not give.
pub fn render_terminal(report: &Report, width: usize, colour: bool) -> String {
    let report = &plain(report);
    let paint = Paint::new(colour);
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
    // Figures of other programs have separate lines below.
    let measured = |f: &&Finding| f.level == FindingLevel::Result && f.code != "tool";
    if let Some(finding) = report.findings.iter().find(measured) {
        wrap(&finding.text, width, 0).into_iter().for_each(&mut line);
    }
    step_lines(report, width, &paint).into_iter().for_each(&mut line);
    line(String::new());
    let table = summary(report);
    if !report.conditions.is_empty() {
        table_lines(report, &table, width, &paint, Shown::All).into_iter().for_each(&mut line);
    }
    for l in flow_lines(report, &table, width, &paint) {
        line(l);
    }
    let grown = report.findings.iter().filter(|f| f.code == "growth");
    grown.flat_map(|f| wrap(&f.text, width, 2)).for_each(&mut line);
    against_lines(report, width, &paint).into_iter().for_each(&mut line);
    if let Some(of) = spread::of(report) {
        column_lines((&of.title, of.columns), &of.levels, width, &paint).into_iter().for_each(&mut line);
    }
    for of in published::all(report) {
        published_lines(of, width, &paint).into_iter().for_each(&mut line);
    }
    for l in leg_lines(report, &table, width, &paint) {
        line(l);
    }
    for (title, columns) in crate::tables::range::tables(report) {
        column_lines((&title, columns), &table, width, &paint).into_iter().for_each(&mut line);
    }
    for l in loop_lines(report, &table, width, &paint) {
        line(l);
    }
    for (condition, gate) in gates::all(report) {
        line(String::new());
        wrap(&gates::sentences(condition, gate), width, 0).iter().for_each(|l| line(paint.dim(l)));
        gates::lines(gate).iter().flat_map(|text| wrap(text, width, 0)).for_each(&mut line);
    }
    for (condition, of) in launch::all(report) {
        line(String::new());
        wrap(&launch::sentences(condition, of), width, 0).into_iter().for_each(&mut line);
    }
    for (condition, of) in stages::all(report) {
        line(String::new());
        wrap(&stages::sentences(condition, of), width, 0).iter().for_each(|l| line(paint.dim(l)));
        stages::lines(of).into_iter().for_each(&mut line);
    }
    for of in &report.clock_history {
        line(String::new());
        wrap(&clock_history::sentences(of), width, 0).iter().for_each(|l| line(paint.dim(l)));
        let more = clock_history::windows(of).into_iter().chain(clock_history::lines(of));
        more.flat_map(|text| wrap(&text, width, 2)).for_each(&mut line);
    }
    if let Some(patterns) = patterns::table(report, &table) {
        extra_lines(patterns, width, &paint).into_iter().for_each(&mut line);
    }
    patterns::said(report).iter().flat_map(|l| wrap(l, width, 2)).for_each(&mut line);
    if let Some(bins) = bins::table(report, &table) {
        extra_lines(bins, width, &paint).into_iter().for_each(&mut line);
    }
    for (which, way) in crate::tables::path_proof::lines(report) {
        wrap(&format!("went by {way} ({which})"), width, 2).iter().for_each(|l| line(paint.dim(l)));
    }
    for (of, text) in crate::tables::nodes::lines(report) {
        wrap(&format!("{of}: {text}"), width, 2).iter().for_each(|l| line(paint.dim(l)));
    }
    for tool in &report.tools {
        line(paint.bold(&format!("{}, not measured by Tailbound", tools::origin(tool))));
        tools::lines(tool).iter().flat_map(|l| wrap(l, width, 4)).for_each(&mut line);
        let notes = wrap(&tools::notes(tool), width, 4);
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
    let causes: Vec<&str> = crate::tables::causes::sentences(report).collect();
    for text in causes.iter().take(CAUSES) {
        wrap(&format!("  {text}"), width, 4).into_iter().for_each(&mut line);
    }
    if causes.len() > CAUSES {
        line(paint.dim(&format!("  ({} more incidents on the page)", causes.len() - CAUSES)));
    }
    crate::tables::waterfall::lines(report).into_iter().for_each(&mut line);
    for (condition, usual) in usual::all(report).take(USUAL) {
        wrap(&format!("  {}", usual::sentence(&condition.name, usual)), width, 4).into_iter().for_each(&mut line);
    }
    let recorded = crate::tables::causes::worst_condition(report).into_iter();
    let of_incidents = recorded.flat_map(|condition| crate::tables::causes::recordings(report, condition));
    for text in of_incidents.chain(crate::tables::causes::recordings_of_flows(report)) {
        wrap(&format!("  {text}"), width, 4).into_iter().for_each(|text| line(paint.dim(&text)));
    }
    // A warning that a finding contains already, with its remedy, is not repeated.
    let found = |t: &WarningGroup<'_>| {
        report.findings.iter().any(|f| f.text.contains(t.warning.problem.what.trim_end_matches('.')))
    };
    let warnings: Vec<_> = warnings::grouped(&report.warnings).into_iter().filter(|t| !found(t)).collect();
    if !warnings.is_empty() {
        line(String::new());
    }
    for warning in warnings {
        for (i, l) in wrap(&warning_text(&warning), width, 2).into_iter().enumerate() {
            line(if i == 0 && warning.warning.severity != Severity::Note { paint.alarm(&l) } else { l });
        }
    }
    text
}

/// Formats the next steps with their commands as lines for the terminal; no lines if there are no steps.
fn step_lines(report: &Report, width: usize, paint: &Paint) -> Vec<String> {
    let steps = next_steps::steps(report);
    let mut lines = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let head = if i == 0 { "Next step" } else { "Or" };
        let text = wrap(&format!("{head}: {}", next_steps::sentences(step)), width, 2);
        lines.extend(text.into_iter().map(|l| if i == 0 { l.replacen(head, &paint.bold(head), 1) } else { l }));
        lines.extend(next_steps::commands(step).flat_map(|command| next_steps::command_lines(command, width)));
    }
    if let Some(tune) = next_steps::tune(steps) {
        lines.extend(wrap("To try these and other changes one by one, and keep only what is shown to help:", width, 2));
        lines.extend(next_steps::command_lines(tune, width));
    }
    lines
}

/// Formats the tables about flows as lines for the terminal.
pub(crate) fn flow_lines(report: &Report, table: &Summary, width: usize, paint: &Paint) -> Vec<String> {
    // The reasons are printed once, under the first table.
    let set = |(nth, (title, columns)): (usize, (&str, Vec<ValueColumn>))| {
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
    let notes = writer::notes(report);
    if !notes.is_empty() {
        lines.extend(notes.iter().flat_map(|n| wrap(n, width, 2)).map(|l| paint.dim(&l)));
        lines.push(String::new());
    }
    lines
}

/// Prints the tables of the overhead of each level relative to the study's baseline.
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
        // The reasons are printed once, below the first table.
        lines.extend(grid.lines(paint, |_| String::new(), |i| if part == 0 { notes(i) } else { Vec::new() }));
        if part + 1 < grids.len() {
            lines.push(String::new());
        }
    }
    lines.extend(wrap(&against::lack(of), width, 0).iter().map(|l| paint.dim(l)));
    lines
}

/// Formats a published result with the figures of this report below its numbers, and what differs from the original.
fn published_lines(of: &PublishedReport, width: usize, paint: &Paint) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(wrap(&published::title(of), width, 0).iter().map(|l| paint.dim(l)));
    if let Some(table) = &of.table {
        // A row without a published number has one line, for the figures of this report.
        let own = published::is_measured(table);
        let rows: Vec<&PublishedRowReport> = published::rows(table).collect();
        let name = |row: &&PublishedRowReport| match (published::gives_row(row), own) {
            (true, true) => (format!("* {}", row.name), "  here".to_owned()),
            (true, false) => (format!("* {}", row.name), String::new()),
            (false, _) => (row.name.clone(), String::new()),
        };
        let first = Column { head: table.axis.clone(), cells: rows.iter().map(name).collect(), right: false };
        let cell = |row: &PublishedRowReport, cell: &PublishedCellReport| {
            let here = if own { published::here(cell) } else { String::new() };
            match published::gives_row(row) {
                true => (published::number(cell.published), here),
                false => (here, String::new()),
            }
        };
        let column = |(nth, of): (usize, &PublishedColumnReport)| Column {
            head: format!("{} {}", of.name, of.unit),
            cells: rows.iter().map(|row| cell(row, &row.cells[nth])).collect(),
            right: true,
        };
        let columns = table.columns.iter().enumerate().map(column).collect();
        for grid in Grid::of_columns(&first, columns, width).into_iter().filter(|_| !rows.is_empty()) {
            lines.extend(grid.lines(paint, |_| String::new(), |_| Vec::new()));
        }
        let notes = published::row_notes(table).into_iter().chain(published::notes(table));
        lines.extend(notes.flat_map(|note| wrap(&note, width, 2)).map(|l| paint.dim(&l)));
    }
    let about = published::about(of);
    if !about.is_empty() {
        lines.extend(wrap(&about, width, 2));
    }
    if !of.differs.is_empty() {
        lines.push("Differs from the original:".to_owned());
    }
    lines.extend(of.differs.iter().flat_map(|difference| wrap(&format!("- {difference}"), width, 2)));
    lines
}

/// Formats the tables of legs whose two timestamps come from different clocks as lines for the terminal.
fn leg_lines(report: &Report, table: &Summary, width: usize, paint: &Paint) -> Vec<String> {
    column_lines((legs::TITLE, legs::columns(report)), table, width, paint)
}

/// Prints columns with a title, split into several tables if the terminal is too narrow; prints nothing if there are no
/// columns.
fn column_lines(
    (title, columns): (&str, Vec<ValueColumn>),
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

/// Makes a column of a terminal table with its unit in the head.
fn with_unit(column: ValueColumn) -> Column {
    let head = format!("{} {}", column.head, column.unit).trim_end().to_owned();
    Column { head, cells: column.cells, right: true }
}

/// Lines for the terminal with the reason why a condition has no figures.
fn reasons(report: &Report, i: usize, width: usize) -> Vec<String> {
    let condition = &report.conditions[i];
    let reason = condition.not_possible.as_ref().or(condition.finding.as_ref());
    reason.map_or(Vec::new(), |r| wrap(r, width - 2, 0).iter().map(|l| format!("  {l}")).collect())
}

/// How much of the table of round trips is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything.
    All,
    /// No distributions beside the figures.
    Short,
}

/// Formats the table of round trips as lines for the terminal.
pub(crate) fn table_lines(report: &Report, table: &Summary, width: usize, paint: &Paint, shown: Shown) -> Vec<String> {
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
    let axis = (SPARK.contains(&left) && shown == Shown::All).then(|| Axis::over(&report.conditions, left)).flatten();

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

/// Formats the table of the sender's loop as lines for the terminal.
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

/// Prints a table that only some studies have, with its title.
fn extra_lines((title, mut grid): (String, Grid), width: usize, paint: &Paint) -> Vec<String> {
    grid.fit(width);
    let mut lines = vec![String::new()];
    lines.extend(wrap(&title, width, 0).iter().map(|l| paint.dim(l)));
    lines.extend(grid.lines(paint, |_| String::new(), |_| Vec::new()));
    lines
}
