//! Standard output and standard error, written without a panic: a disk may be full, a reader may have gone.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Writes to standard output. A reader that went away is no fault; anything else ends the program with a word about it,
/// so it is not called while something has to be tidied up.
pub fn to_out(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            to_err(format_args!("tailbound: cannot write to standard output: {e}\n"));
            std::process::exit(tailbound_model::ExitCode::Unexpected as i32);
        }
        _ => {}
    }
}

/// Writes to standard error; where that is closed there is nobody to tell.
pub fn to_err(text: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

macro_rules! outln {
    ($($t:tt)*) => { $crate::say::to_out(format_args!("{}\n", format_args!($($t)*))) };
}
macro_rules! out {
    ($($t:tt)*) => { $crate::say::to_out(format_args!($($t)*)) };
}
macro_rules! errln {
    ($($t:tt)*) => { $crate::say::to_err(format_args!("{}\n", format_args!($($t)*))) };
}
pub(crate) use {errln, out, outln};
