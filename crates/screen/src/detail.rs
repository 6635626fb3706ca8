//! One writer with all its figures.

use crate::history::History;
use crate::rows::{NONE, Shown};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline, Wrap};
use tailbound_document::WatchReport;
use tailbound_document::number::{count, time};

/// Draws a writer.
pub fn draw(history: &History, frame: &mut Frame<'_>, report: &WatchReport, row: Shown<'_>) {
    let [middle, bars, bottom] =
        Layout::vertical([Constraint::Min(8), Constraint::Length(7), Constraint::Length(1)]).areas(frame.area());
    let lines: Vec<Line<'_>> = facts(report, row)
        .into_iter()
        .map(|(what, value)| {
            Line::from(vec![
                Span::styled(format!("{what:<22}"), Style::new().add_modifier(Modifier::BOLD)),
                Span::raw(value),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), middle);
    let newest = history.newest(&row.writer.guid, usize::from(bars.width));
    let title = format!("samples by second, {} at most", count(newest.iter().copied().max().unwrap_or(0)));
    frame.render_widget(Sparkline::default().block(Block::bordered().title(title)).data(&newest), bars);
    let keys = Paragraph::new("q: end   esc: all topics   up, down: another topic");
    frame.render_widget(keys.style(Style::new().add_modifier(Modifier::DIM)), bottom);
}

/// Names of figures, with their values.
fn facts(report: &WatchReport, row: Shown<'_>) -> Vec<(&'static str, String)> {
    let Shown { topic, writer } = row;
    let text =
        |text: &Option<String>| text.as_ref().map_or("unknown".to_owned(), |text| text.replace(char::is_control, "?"));
    let mut facts = vec![
        ("topic", row.name()),
        ("on the wire", text(&topic.topic)),
        ("type", text(&topic.type_name)),
        ("readers announced", count(topic.readers_announced)),
        ("writer", format!("{} ({})", writer.guid, writer.vendor)),
        ("from", writer.address.clone().unwrap_or_else(|| NONE.to_owned())),
    ];
    let policies =
        writer.qos.as_ref().map_or("unknown".to_owned(), |qos| format!("{}, {}", qos.reliability, qos.durability));
    facts.push(("policies", policies));
    facts.push(("samples", format!("{}, {} per second", row.samples(), row.per_second())));
    let bytes = writer.bytes.map(|(least, most)| format!("{} to {}", count(u64::from(least)), count(u64::from(most))));
    facts.push(("bytes", bytes.unwrap_or_else(|| NONE.to_owned())));
    let pause = if row.is_over_deadline() { " (longer than its deadline)" } else { "" };
    facts.push(("longest pause", format!("{}{pause}", row.pause())));
    if let Some(late) = &writer.lateness {
        let above = if late.is_above_fastest { ", above the fastest sample seen" } else { "" };
        facts.push((
            "late p50, p99, max",
            format!(
                "{}, {}, {}{above}",
                row.late(|late| Some(late.range.p50_ns)),
                row.late(|late| late.range.p99_ns),
                row.late(|late| Some(late.range.max_ns))
            ),
        ));
        facts.push(("late begins", late.begins.clone()));
    }
    facts.push(("without a time", Shown::number(writer.without_time)));
    let protocol = writer.protocol;
    for (what, value) in [
        ("sent again", protocol.again),
        ("replayed", protocol.replayed),
        ("not seen", protocol.numbers_not_seen),
        ("first not seen", protocol.first_not_seen),
        ("requested", protocol.requested),
        ("given up", protocol.given_up),
        ("lost", protocol.lost),
        ("unfinished", protocol.unfinished),
    ] {
        if value > 0 {
            facts.push((what, count(value)));
        }
    }
    facts.push(("seen for", time(report.duration_ns as f64)));
    facts
}
