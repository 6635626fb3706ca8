//! Runs the conformance suite for the driver that is linked into this program, with separate and with shared domain
//! instances, and for the driver as a shared object (.so) if it was built. This is one test, because the suite redirects
//! the outputs of the process.

use crate::common::driver;
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
