//! Runs `tailbound serve`: shows the records of a folder as web pages on this machine.

use crate::cli::Serve;
use crate::failure::{CommandResult, Failure};
use crate::output::{errln, outln};
use std::path::Path;
use tailbound_model::{ExitCode, Metric, Problem};
use tailbound_record::Record;
use tailbound_report::{CompareOptions, compare_records, render_comparison_html};
use tailbound_serve::{Options, Server};

/// Compares two records with the default options of `tailbound compare A B`, and returns the comparison as an HTML
/// page.
fn compare(a: &Path, b: &Path) -> Result<String, Problem> {
    let options = CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let comparison = compare_records(&Record::open(a)?, &Record::open(b)?, &options)?;
    Ok(render_comparison_html(&comparison))
}

pub fn serve(args: &Serve) -> CommandResult {
    if !args.folder.is_dir() {
        let text = format!("{} is not a folder", args.folder.display());
        return Err(Failure::bad_input(text).help("name a folder that contains records"));
    }
    let options = Options { folder: args.folder.clone(), names: args.names.clone(), compare: Some(compare) };
    let server = Server::bind(args.listen, options).map_err(|e| {
        Failure::bad_input(format!("cannot listen on {}: {e}", args.listen))
            .help("name another address with `--listen`; port 0 selects a free port")
    })?;
    let unexpected = |e: std::io::Error| Failure::unexpected(format!("cannot serve: {e}"));
    let at = server.address().map_err(unexpected)?;
    if !at.ip().is_loopback() {
        errln!("warning: everyone who can reach {at} can read all records in {}", args.folder.display());
    }
    if !tailbound_serve::has_records(&args.folder) {
        errln!("there is no record in {} yet; `tailbound quick --out DIR` makes one there", args.folder.display());
    }
    outln!("http://{at}/ shows the records in {}; Ctrl-C ends the server", args.folder.display());
    server.run().map_err(unexpected)?;
    Ok(ExitCode::Done)
}
