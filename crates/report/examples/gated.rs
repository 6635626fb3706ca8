//! Writes an artificial record of a stream through gates, and its page, for manual checks.
//!
//! Usage: `cargo run -p tailbound-report --example gated -- DIR`

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::path::Path;

fn main() {
    let dir = std::env::args().nth(1).expect("a directory");
    let dir = Path::new(&dir);
    std::fs::create_dir_all(dir).expect("the directory is made");
    let record = dir.join("record");
    if record.exists() {
        std::fs::remove_dir_all(&record).expect("the old record is removed");
    }
    let report = tailbound_report::analyse(&support::gated::write(&record)).expect("the record is analysed");
    std::fs::write(dir.join("report.html"), tailbound_report::render_html(&report)).expect("the page is written");
    print!("{}", tailbound_report::render_terminal(&report, 80, false));
}
