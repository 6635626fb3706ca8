//! The conformance suite: over the linked table, with the domain instances that are the default and with shared ones,
//! and over the shared object if it has been built. One test: the suite redirects the outputs of the process.

mod common;

use common::driver;
use tailbound_driver::{Driver, Kv, conformance};

fn run(driver: &Driver, instance: &str) {
    let report = conformance::run_with(driver, &Kv::new().with("instance", instance), &mut |check| {
        println!("{instance} {:20} {:?} {} ({} ms)", check.name, check.outcome, check.detail, check.took_ms);
    });
    let failed: Vec<_> = report.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn the_driver_keeps_the_rules_of_the_abi() {
    run(&driver(), "own");
    run(&driver(), "shared");
    match Driver::find("cyclonedds") {
        Ok(loaded) => run(&loaded, "own"),
        Err(fault) => println!("skipped: the shared object: {fault}"),
    }
}
