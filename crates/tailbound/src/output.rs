//! Writes to standard output and standard error without a panic if a disk is full or the reader has closed the pipe.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

/// Writes to standard output. It is not an error if the reader has closed the pipe. Any other error ends the program
/// with a message, so this function must not be called while changes to the host still have to be undone.
pub fn to_out(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            to_err(format_args!("error: cannot write to standard output: {e}\n"));
            std::process::exit(tailbound_model::ExitCode::Unexpected as i32);
        }
        _ => {}
    }
}

/// Writes to standard error. Errors are ignored, because there is no other place to report them.
pub fn to_err(text: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// Number of columns of the terminal; 80 if standard output is not a terminal.
pub fn width() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills a winsize, or fails.
    let known = unsafe { libc::ioctl(1, libc::TIOCGWINSZ, &mut size) } == 0 && size.ws_col > 0;
    if known { usize::from(size.ws_col) } else { 80 }
}

/// When output has colours: the value of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always, also in a pipe or a file
    Always,
    /// Never
    Never,
}

static COLOR: OnceLock<Color> = OnceLock::new();

/// Sets when output has colours. Later calls change nothing.
pub fn set_color(color: Color) {
    let _ = COLOR.set(color);
}

/// Whether standard output has colours.
pub fn colour() -> bool {
    has_colour(std::io::stdout().is_terminal())
}

/// Whether standard error has colours.
pub fn colour_of_errors() -> bool {
    has_colour(std::io::stderr().is_terminal())
}

fn has_colour(is_terminal: bool) -> bool {
    match COLOR.get() {
        Some(Color::Always) => true,
        Some(Color::Never) => false,
        Some(Color::Auto) | None => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
    }
}

macro_rules! outln {
    ($($t:tt)*) => { $crate::output::to_out(format_args!("{}\n", format_args!($($t)*))) };
}
macro_rules! out {
    ($($t:tt)*) => { $crate::output::to_out(format_args!($($t)*)) };
}
macro_rules! errln {
    ($($t:tt)*) => { $crate::output::to_err(format_args!("{}\n", format_args!($($t)*))) };
}
pub(crate) use {errln, out, outln};
