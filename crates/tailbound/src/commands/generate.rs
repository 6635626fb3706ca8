//! Files that come from the flag table and from the types.

use crate::cli::Cli;
use crate::exit::{Failure, Outcome};
use crate::say::{out, outln};
use clap::CommandFactory;
use std::path::Path;
use tailbound_model::ExitCode;

pub fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tailbound", &mut text);
    out!("{}", String::from_utf8_lossy(&text));
    Ok(ExitCode::Done)
}

pub fn man(directory: &Path) -> Outcome {
    let failed = |e: std::io::Error| Failure::new(ExitCode::BadInput, format!("{}: {e}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    outln!("{}", directory.display());
    Ok(ExitCode::Done)
}
