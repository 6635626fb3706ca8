//! The program `tailbound`: one file per command. The commands share the table of flags (`cli`) and the built-in
//! drivers.

mod cli;
mod commands;
mod drivers;
mod failure;
mod output;
mod progress;

use clap::FromArgMatches;
use std::process::ExitCode;

/// The arguments of the command line. If they are wrong, the process ends with the message and exit code 2.
fn arguments() -> cli::Cli {
    let parsed = cli::command().try_get_matches().and_then(|matches| cli::Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        // All messages of this program have the same words before a remedy.
        output::errln!("{}", error.render().to_string().trim_end().replace("\n  tip: ", "\n  help: "));
        std::process::exit(tailbound_model::ExitCode::BadInput as i32)
    })
}

fn main() -> ExitCode {
    // The kernel of a guest starts this program as /init, without arguments.
    if std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == "/init") {
        tailbound_guest::init();
    }
    let cli = arguments();
    output::set_color(cli.color);
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
