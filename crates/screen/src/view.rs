//! What the user looks at: the list of writers, or one of them.

use crate::history::History;
use crate::rows::{Order, Shown, rows};
use crate::{detail, list};
use ratatui::Frame;
use tailbound_document::WatchReport;

/// A key that the screen knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The row above.
    Up,
    /// The row below.
    Down,
    /// Opens the chosen row.
    Open,
    /// Back to the list.
    Back,
    /// The next order of rows.
    Sort,
}

/// The state of the screen.
#[derive(Debug, Default)]
pub struct View {
    history: History,
    order: Order,
    /// Identity of the chosen writer; `None` = the first row.
    chosen: Option<String>,
    is_open: bool,
    has_colour: bool,
}

impl View {
    /// A screen that shows the list, with or without colours.
    pub fn new(has_colour: bool) -> View {
        View { has_colour, ..View::default() }
    }

    /// Notes how many samples came since the last call, which is made once a second.
    pub fn second(&mut self, report: &WatchReport) {
        self.history.add(report);
    }

    /// Changes what is shown.
    pub fn press(&mut self, key: Key, report: &WatchReport) {
        let rows = rows(report, self.order);
        let at = self.at(&rows);
        let to = match key {
            Key::Up => at.saturating_sub(1),
            Key::Down => (at + 1).min(rows.len().saturating_sub(1)),
            _ => at,
        };
        match key {
            Key::Open => self.is_open = !rows.is_empty(),
            Key::Back => self.is_open = false,
            Key::Sort => self.order = self.order.next(),
            Key::Up | Key::Down => {}
        }
        self.chosen = rows.get(to).map(|row| row.writer.guid.clone());
    }

    /// Draws the list, or the chosen writer.
    pub fn draw(&self, frame: &mut Frame<'_>, report: &WatchReport) {
        let rows = rows(report, self.order);
        let at = self.at(&rows);
        match rows.get(at).filter(|_| self.is_open) {
            Some(row) => detail::draw(&self.history, frame, report, *row),
            None => list::draw((&self.history, self.order, self.has_colour), frame, report, (&rows, at)),
        }
    }

    /// The chosen row among these.
    fn at(&self, rows: &[Shown<'_>]) -> usize {
        let is_chosen = |row: &Shown<'_>| Some(&row.writer.guid) == self.chosen.as_ref();
        rows.iter().position(is_chosen).unwrap_or(0)
    }
}
