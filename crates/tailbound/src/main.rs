//! The program `tailbound`: one file per command. The commands share the table of flags (`cli`) and the built-in
//! drivers.

mod cli;
mod commands;
mod drivers;
mod failure;
mod output;
mod progress;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The kernel of a guest starts this program as /init, without arguments.
    if std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == "/init") {
        tailbound_guest::init();
    }
    let cli = cli::Cli::parse();
    if cli.command.only_prints() {
        // If the reader goes away (`| head`), a command that only prints ends quietly, as other tools do. A run must
        // continue when the pipe of a killed agent breaks.
        // SAFETY: before any thread; restores the default that the Rust runtime replaced.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    match commands::dispatch(cli) {
        Ok(code) => ExitCode::from(code as u8),
        Err(failure) => failure.print(),
    }
}
