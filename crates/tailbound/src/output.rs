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
    columns(libc::STDOUT_FILENO).unwrap_or(80)
}

/// Number of columns of the terminal behind a file descriptor; `None` if it is not a terminal.
fn columns(descriptor: libc::c_int) -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills a winsize, or fails.
    let known = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size) } == 0 && size.ws_col > 0;
    known.then(|| usize::from(size.ws_col))
}

/// Breaks the lines of a message for standard error at spaces, if it is a terminal. A file or a pipe gets whole lines, so that
/// programs can search them.
pub fn wrapped_for_errors(text: &str) -> String {
    let Some(width) = columns(libc::STDERR_FILENO) else { return text.to_owned() };
    wrapped(text, width)
}

/// Breaks lines that are longer than `width` at spaces. The lines of a picture of the input stay as they are.
fn wrapped(text: &str, width: usize) -> String {
    let is_picture = text.contains('\u{256d}');
    let of_line = |line: &str| match line.chars().count() {
        long if long > width && !is_picture => {
            let indent = line.len() - line.trim_start().len();
            let space = " ".repeat(indent);
            let lines = tailbound_report::wrap(line.trim_start(), width - indent.min(width / 2), 2);
            lines.iter().map(|l| format!("{space}{l}")).collect::<Vec<_>>().join("\n")
        }
        _ => line.to_owned(),
    };
    text.split('\n').map(of_line).collect::<Vec<_>>().join("\n")
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

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_lines_are_broken_at_words_and_pictures_stay() {
        let message = "error: nosuch does not exist\n  help: records here: one, two, three, four";
        let expected = "error: nosuch does not exist\n  help: records here:\n    one, two, three, four";
        assert_eq!(wrapped(message, 28), expected);
        let picture = "error: x\n   \u{256d}\u{2500}[a.yaml:1:1] and a line that is long\n";
        assert_eq!(wrapped(picture, 20), picture);
    }
}
