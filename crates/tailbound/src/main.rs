//! The command line. One file per command; what they share is the flag table (`cli`) and the drivers that are linked in.

mod cli;
mod commands;
mod drivers;
mod exit;
mod progress;
mod say;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The kernel of a guest starts it so, without arguments.
    if std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == "/init") {
        tailbound_guest::init();
    }
    let cli = cli::Cli::parse();
    if cli.command.only_prints() {
        // A reader that goes away (`| head`) ends the program quietly, as it does other tools. A run must outlive the pipe
        // of an agent that was killed.
        // SAFETY: before any thread; restores the default that the Rust runtime replaced.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    match commands::dispatch(cli) {
        Ok(code) => ExitCode::from(code as u8),
        Err(failure) => failure.tell(),
    }
}
