//! The terminal, and its keys.

use crate::view::{Key, View};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, crossterm};
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tailbound_document::WatchReport;

/// How often the screen is drawn without a key.
const SECOND: Duration = Duration::from_secs(1);

/// The terminal while it shows the screen. If it is dropped, the terminal is as before.
pub struct Screen {
    terminal: DefaultTerminal,
    view: View,
    drawn: Option<Instant>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard output is no terminal, or cannot be set.
    pub fn open(has_colour: bool) -> io::Result<Screen> {
        Ok(Screen { terminal: ratatui::try_init()?, view: View::new(has_colour), drawn: None })
    }

    /// Reads the keys that were pressed, and draws once a second or after a key. Returns whether the user wants to end. `report` makes
    /// the document of this moment.
    ///
    /// # Errors
    /// The terminal cannot be read or written.
    pub fn turn(&mut self, report: impl FnOnce() -> WatchReport) -> io::Result<bool> {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= SECOND);
        if !is_due && !event::poll(Duration::ZERO)? {
            return Ok(false);
        }
        let report = report();
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match known(key) {
                    Known::End => return Ok(true),
                    Known::Is(key) => self.view.press(key, &report),
                    Known::Other => {}
                },
                _ => {}
            }
        }
        if is_due {
            self.view.second(&report);
            self.drawn = Some(Instant::now());
        }
        self.terminal.draw(|frame| self.view.draw(frame, &report))?;
        Ok(false)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
        // The report is printed below what was there before.
        let _ = crossterm::execute!(io::stdout(), crossterm::cursor::Show);
        let _ = io::stdout().flush();
    }
}

/// What a key means.
enum Known {
    End,
    Is(Key),
    Other,
}

fn known(key: KeyEvent) -> Known {
    match key.code {
        // A terminal that gives each key sends no signal for Ctrl-C.
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Known::End,
        KeyCode::Char('q') => Known::End,
        KeyCode::Char('s') => Known::Is(Key::Sort),
        KeyCode::Up | KeyCode::Char('k') => Known::Is(Key::Up),
        KeyCode::Down | KeyCode::Char('j') => Known::Is(Key::Down),
        KeyCode::Enter => Known::Is(Key::Open),
        KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => Known::Is(Key::Back),
        _ => Known::Other,
    }
}
