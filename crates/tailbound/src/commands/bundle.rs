//! Runs `tailbound bundle`: copies this program and all files that it needs to one directory.

use crate::cli::Bundle;
use crate::drivers;
use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use std::path::PathBuf;
use tailbound_model::ExitCode;

pub fn bundle(args: &Bundle) -> CommandResult {
    let program =
        tailbound_host::own_file().map_err(|e| Failure::unexpected(format!("cannot find this program: {e}")))?;
    let directory = args.out.clone().unwrap_or_else(|| PathBuf::from("tailbound-bundle"));
    if directory.exists() {
        let exists = tailbound_bundle::BundleError::Exists { path: directory, what: "directory" };
        return Err(Failure::of(ExitCode::BadInput, exists));
    }
    let files = driver_files(&args.drivers)?;
    let bundle = tailbound_bundle::pack(&program, env!("CARGO_PKG_VERSION"), &files, &directory)
        .map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let bytes: u64 = bundle.files.iter().map(|f| f.bytes).sum();
    let with = drivers_of(&bundle);
    outln!("{}: {} files, {} MB, with {with}", directory.display(), bundle.files.len(), bytes.div_ceil(1_000_000));
    outln!("  name   {}", bundle.name());
    let words: Vec<String> = bundle.words(&directory).iter().map(|w| w.display().to_string()).collect();
    outln!("  start  {}", words.join(" "));
    Ok(ExitCode::Done)
}

/// Names the drivers in Tailbound's bundle that are shared objects, in a phrase.
pub fn drivers_of(bundle: &tailbound_bundle::Bundle) -> String {
    match bundle.drivers.as_slice() {
        [] => "no driver files".to_owned(),
        [name] => format!("the driver {name}"),
        names => format!("the drivers {}", names.join(", ")),
    }
}

/// Finds drivers that are shared objects: the requested drivers, or all drivers if none is requested. Returns name and
/// path of each driver.
pub fn driver_files(requested: &[String]) -> Result<Vec<(String, PathBuf)>, Failure> {
    let all = requested.is_empty();
    let names = if all { drivers::known() } else { requested.to_vec() };
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for name in names {
        let driver = match drivers::find(&name) {
            Ok(driver) => driver,
            // A broken driver that was not requested is skipped; `tailbound driver` reports what is wrong with the driver.
            Err(_) if all => continue,
            Err(e) => return Err(Failure::of(ExitCode::BadInput, e)),
        };
        let Some(path) = driver.path() else { continue };
        if !files.iter().any(|(known, _)| known == driver.name()) {
            files.push((driver.name().to_owned(), path.to_owned()));
        }
    }
    Ok(files)
}
