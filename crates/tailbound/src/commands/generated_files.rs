//! Runs `tailbound completions` and `tailbound man`: writes files that are generated from the table of commands and
//! flags.

use crate::cli;
use crate::failure::{CommandResult, Failure};
use crate::output::{out, outln};
use std::path::Path;
use tailbound_model::ExitCode;

pub fn completions(shell: clap_complete::Shell) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "tailbound", &mut text);
    out!("{}", String::from_utf8_lossy(&text));
    Ok(ExitCode::Done)
}

pub fn man(directory: &Path) -> CommandResult {
    let failed = |e: std::io::Error| Failure::bad_input(format!("{}: {e}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    // Pages are committed, and belong to every build.
    let command = cli::command().long_version(env!("CARGO_PKG_VERSION"));
    clap_mangen::generate_to(command, directory).map_err(failed)?;
    outln!("{}", directory.display());
    Ok(ExitCode::Done)
}
