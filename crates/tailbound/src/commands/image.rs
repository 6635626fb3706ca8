//! Runs `tailbound image`: writes Tailbound's bundle (program and files that it needs) as a container image.

use crate::cli::Image;
use crate::commands::bundle::{driver_files, drivers_of};
use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use std::path::PathBuf;
use tailbound_bundle::{BundleError, Contents, ImageName};
use tailbound_model::ExitCode;

pub fn image(args: &Image) -> CommandResult {
    let failed = |e: BundleError| {
        let input = matches!(e, BundleError::Exists { .. } | BundleError::NotABundle { .. });
        Failure::of(if input { ExitCode::BadInput } else { ExitCode::RunFailed }, e)
    };
    let file = args.out.clone().unwrap_or_else(|| PathBuf::from("tailbound-image.tar"));
    let contents = match &args.bundle {
        Some(directory) => Contents::within(directory).map_err(failed)?,
        None => {
            let program = tailbound_host::own_file()
                .map_err(|e| Failure::unexpected(format!("cannot find this program: {e}")))?;
            let drivers = driver_files(&args.drivers)?;
            Contents::gather(&program, env!("CARGO_PKG_VERSION"), &drivers).map_err(failed)?
        }
    };
    let name = args.name.as_deref().unwrap_or("localhost/tailbound");
    let name = ImageName::parse(name, &contents.bundle.tailbound).map_err(Failure::bad_input)?;
    let image = tailbound_bundle::image(&contents, &name, &file).map_err(failed)?;
    let megabytes = image.bytes.div_ceil(1_000_000);
    outln!("{}: {megabytes} MB for {}, with {}", file.display(), image.architecture, drivers_of(&contents.bundle));
    outln!("  name    {name}");
    outln!("  digest  {}", image.digest);
    Ok(ExitCode::Done)
}
