//! `tailbound serve`.

use crate::cli::Serve;
use crate::exit::{Failure, Outcome};
use crate::say::{errln, outln};
use std::path::Path;
use tailbound_model::{ExitCode, Metric};
use tailbound_record::Record;
use tailbound_report::{CompareOptions, compare_records, render_comparison_html};
use tailbound_serve::{Options, Server};

/// Two records, as `tailbound compare A B` compares them unless told otherwise.
fn compare(a: &Path, b: &Path) -> Result<String, String> {
    let open = |dir: &Path| Record::open(dir).map_err(|e| e.to_string());
    let options = CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let comparison = compare_records(&open(a)?, &open(b)?, &options).map_err(|e| e.to_string())?;
    Ok(render_comparison_html(&comparison))
}

pub fn serve(args: &Serve) -> Outcome {
    if !args.folder.is_dir() {
        let text = format!("{}: not a folder; give one that holds records", args.folder.display());
        return Err(Failure::new(ExitCode::BadInput, text));
    }
    let options = Options { folder: args.folder.clone(), names: args.names.clone(), compare: Some(compare) };
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
