//! The list of writers.

use crate::history::History;
use crate::rows::{Order, Shown};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use tailbound_document::WatchReport;
use tailbound_document::number::{count, time};

/// Width of the bars of samples per second, in characters.
const BARS: u16 = 20;

/// A column: its head, its width, the width of the terminal from which on it is shown, and its cell.
type Column = (&'static str, u16, u16, fn(&Shown<'_>) -> String);

const COLUMNS: [Column; 8] = [
    ("samples", 10, 100, |row| row.samples()),
    ("per second", 10, 0, |row| row.per_second()),
    ("late p50", 9, 90, |row| row.late(|late| Some(late.range.p50_ns))),
    ("late p99", 9, 70, |row| row.late(|late| late.range.p99_ns)),
    ("late max", 9, 0, |row| row.late(|late| Some(late.range.max_ns))),
    ("longest pause", 18, 110, |row| row.pause()),
    ("again", 8, 60, |row| Shown::number(row.writer.protocol.again)),
    ("lost", 6, 0, |row| Shown::number(row.writer.protocol.lost)),
];
/// Width of the terminal from which on the bars are shown.
const WITH_BARS: u16 = 130;

/// Draws the list of rows, one of which is chosen, with the samples of the last seconds, and with or without colours.
pub fn draw(
    (history, order, has_colour): (&History, Order, bool),
    frame: &mut Frame<'_>,
    report: &WatchReport,
    (rows, chosen): (&[Shown<'_>], usize),
) {
    let heads = head(report, rows.len(), usize::from(frame.area().width));
    // On a low terminal, at least one row stays.
    let tall = (heads.len() as u16).min(frame.area().height.saturating_sub(3));
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(tall), Constraint::Min(2), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(Paragraph::new(heads), top);
    let sorted = format!(" (now by {})", order.words());
    let keys = format!("q: end  up, down, enter: open  s: sort{}", if frame.area().width < 80 { "" } else { &sorted });
    frame.render_widget(Paragraph::new(keys).style(Style::new().add_modifier(Modifier::DIM)), bottom);

    let width = frame.area().width;
    let shown: Vec<&Column> = COLUMNS.iter().filter(|column| width >= column.2).collect();
    let has_bars = width >= WITH_BARS;
    let heads = shown.iter().map(|column| Cell::from(Text::from(column.0).alignment(Alignment::Right)));
    let names =
        std::iter::once(Cell::from("topic")).chain(heads).chain(has_bars.then(|| Cell::from("samples by second")));
    let lines = rows.iter().map(|row| {
        let cells = shown.iter().map(|column| Cell::from(Text::from(column.3(row)).alignment(Alignment::Right)));
        let bars = has_bars.then(|| Cell::from(history.bars(&row.writer.guid, usize::from(BARS))));
        let line = Row::new(std::iter::once(Cell::from(row.name())).chain(cells).chain(bars));
        if is_bad(row) && has_colour { line.style(Style::new().fg(Color::Red)) } else { line }
    });
    let widths = std::iter::once(Constraint::Min(12))
        .chain(shown.iter().map(|column| Constraint::Length(column.1)))
        .chain(has_bars.then_some(Constraint::Length(BARS)));
    let table = Table::new(lines, widths)
        .header(Row::new(names).style(Style::new().add_modifier(Modifier::BOLD)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(
        table,
        middle,
        &mut TableState::default().with_selected((!rows.is_empty()).then_some(chosen)),
    );
}

/// What the whole capture has seen, and what is to be known about it, in lines of this width.
fn head(report: &WatchReport, writers: usize, width: usize) -> Vec<Line<'static>> {
    let missed = match report.not_copied {
        0 => "none missed".to_owned(),
        missed => format!("{} MISSED: repetitions and losses may be wrong", count(missed)),
    };
    let first = format!(
        "{} for {}: {} packets, {missed}; {} writers with samples, {} participants",
        report.place,
        time(report.duration_ns as f64),
        count(report.packets),
        count(writers as u64),
        count(report.participants)
    );
    let warnings = report.warnings.iter().map(|warning| format!("warning: {}", warning.replace(char::is_control, "?")));
    std::iter::once(first).chain(warnings).flat_map(|text| wrapped(&text, width)).map(Line::from).collect()
}

/// The words of a text in lines of this width; a longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < width) {
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Whether something broke a promise: a sample was lost, or a pause was longer than the deadline.
fn is_bad(row: &Shown<'_>) -> bool {
    row.writer.protocol.lost > 0 || row.is_over_deadline()
}
