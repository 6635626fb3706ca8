//! `tailbound serve`.

use crate::cli::Serve;
use crate::exit::{Failure, Outcome};
use crate::say::{errln, outln};
use tailbound_model::ExitCode;
use tailbound_serve::{Compare, Options, Server};

/// How two records are compared: where the list of records offers it. `None` = it does not.
const COMPARE: Option<Compare> = None;

pub fn serve(args: &Serve) -> Outcome {
    if !args.folder.is_dir() {
        let text = format!("{}: not a folder; give one that holds records", args.folder.display());
        return Err(Failure::new(ExitCode::BadInput, text));
    }
    let options = Options { folder: args.folder.clone(), names: args.names.clone(), compare: COMPARE };
    let server = Server::bind(args.listen, options).map_err(|e| {
        let text =
            format!("cannot listen on {}: {e}; give another address with `--listen`, port 0 is any", args.listen);
        Failure::new(ExitCode::BadInput, text)
    })?;
    let unexpected = |e: std::io::Error| Failure::new(ExitCode::Unexpected, format!("cannot serve: {e}"));
    let at = server.address().map_err(unexpected)?;
    if !at.ip().is_loopback() {
        errln!("tailbound: whoever reaches {at} can read all records in {}", args.folder.display());
    }
    outln!("http://{at}/ shows the records in {}; Ctrl-C ends it", args.folder.display());
    server.run().map_err(unexpected)?;
    Ok(ExitCode::Done)
}
