//! `tailbound bundle`: this program with all it needs, in one directory.

use crate::cli::Bundle;
use crate::drivers;
use crate::exit::{Failure, Outcome};
use crate::say::outln;
use std::path::PathBuf;
use tailbound_model::ExitCode;

pub fn bundle(args: &Bundle) -> Outcome {
    let failed = |e: tailbound_bundle::BundleError| Failure::new(ExitCode::RunFailed, e);
    let program = tailbound_host::own_file()
        .map_err(|e| Failure::new(ExitCode::Unexpected, format!("cannot find this program: {e}")))?;
    let directory = args.out.clone().unwrap_or_else(|| PathBuf::from("tailbound-bundle"));
    if directory.exists() {
        let exists = tailbound_bundle::BundleError::Exists { path: directory, what: "directory" };
        return Err(Failure::new(ExitCode::BadInput, exists));
    }
    let files = files(&args.drivers)?;
    let bundle = tailbound_bundle::pack(&program, env!("CARGO_PKG_VERSION"), &files, &directory).map_err(failed)?;
    let octets: u64 = bundle.files.iter().map(|f| f.octets).sum();
    let with = drivers_of(&bundle);
    outln!("{}: {} files, {} MB, with {with}", directory.display(), bundle.files.len(), octets.div_ceil(1_000_000));
    outln!("  name   {}", bundle.name());
    let words: Vec<String> = bundle.words(&directory).iter().map(|w| w.display().to_string()).collect();
    outln!("  start  {}", words.join(" "));
    Ok(ExitCode::Done)
}

/// The drivers of a bundle that are files, in words.
pub fn drivers_of(bundle: &tailbound_bundle::Bundle) -> String {
    match bundle.drivers.as_slice() {
        [] => "no driver files".to_owned(),
        [name] => format!("the driver {name}"),
        names => format!("the drivers {}", names.join(", ")),
    }
}

/// The drivers that are files: those that were asked for, or all that are found.
pub fn files(asked_for: &[String]) -> Result<Vec<(String, PathBuf)>, Failure> {
    let asked = !asked_for.is_empty();
    let names = if asked { asked_for.to_vec() } else { drivers::known() };
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for name in names {
        let driver = match drivers::find(&name) {
            Ok(driver) => driver,
            // A broken file that nobody asked for is left out, and `tailbound driver` tells what is wrong with it.
            Err(_) if !asked => continue,
            Err(e) => return Err(Failure::new(ExitCode::BadInput, e)),
        };
        let Some(path) = driver.path() else { continue };
        if !files.iter().any(|(known, _)| known == driver.name()) {
            files.push((driver.name().to_owned(), path.to_owned()));
        }
    }
    Ok(files)
}
