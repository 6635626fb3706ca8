//! Reads what other programs captured, for `tailbound watch --read`.

use super::watch_files::Files;
use crate::cli::Watch;
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use tailbound_report::WatchReport;
use tailbound_report::number::count;
use tailbound_watch::{CaptureFile, Watch as State, read_capture};

/// The report of a file with a capture.
pub fn read(args: &Watch, path: &Path) -> Result<WatchReport, Failure> {
    let refused = |what: &dyn std::fmt::Display| {
        Failure::bad_input(format!("{}: {what}", path.display()))
            .help("name a file that `tcpdump -w`, dumpcap or Wireshark has written")
    };
    let open = || File::open(path).map_err(|e| refused(&e));
    if !open()?.metadata().is_ok_and(|about| about.is_file()) {
        return Err(refused(&"it is read twice, and is no regular file"));
    }
    // When the capture began is known when the whole file was read.
    let found = read_capture(open()?, |_| ()).map_err(|e| refused(&e))?;
    let (begin_ns, end_ns) = found.span_ns;
    // Of the addresses of that host, only the loopback network is known.
    let mut state = State::new(format!("the file {}", path.display()), begin_ns, BTreeSet::new());
    if !args.chain.is_empty() {
        state.link(args.chain.clone());
    }
    let mut files = Files::create(args, &mut state)?;
    read_capture(open()?, |packet| {
        state.packet(packet);
        files.samples(&mut state);
    })
    .map_err(|e| refused(&e))?;
    let mut report = state.report(end_ns, 0, Default::default());
    report.from_file = true;
    report.warnings.extend(warnings(&found));
    files.metrics(&report);
    files.record(&report);
    match files.failed {
        Some(failed) => Err(failed),
        None => Ok(report),
    }
}

fn warnings(found: &CaptureFile) -> Vec<String> {
    let mut warnings = vec![
        "a file does not say how many packets the program that captured them missed: retransmissions, numbers not seen and losses hold \
         if it missed none"
            .to_owned(),
    ];
    if found.is_cut {
        warnings
            .push("the file ends within a packet, or has an impossible block: what follows was not read".to_owned());
    }
    if found.of_unknown_links > 0 {
        warnings.push(format!(
            "packets of links whose headers are not known here were left out: {}",
            count(found.of_unknown_links)
        ));
    }
    if found.of_any_interface > 0 {
        warnings.push(
            "the file does not say at which interface each packet passed: samples that passed several are counted as sent again; write it \
             with `tcpdump -y LINUX_SLL2`"
                .to_owned(),
        );
    }
    if found.without_time > 0 {
        warnings.push(format!("packets without a time were left out: {}", count(found.without_time)));
    }
    warnings
}
