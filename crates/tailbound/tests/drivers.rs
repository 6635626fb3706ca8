//! Drivers as files: the skeletons in C and C++ are checked and measured through the command line.

mod support;

use std::path::Path;
use std::process::Command;
use support::{Bench, succeeded, told};

const SKELETONS: [&str; 2] = ["drivers/skeleton/skeleton.c", "drivers/skeleton/skeleton.cpp"];

/// Compiles a driver in C or C++ against the committed header.
fn compiled(bench: &Bench, source: &str, flags: &[&str]) -> std::path::PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = bench.path("libtailbound_driver_skeleton.so");
    let compiler = if source.ends_with(".cpp") { "c++" } else { "cc" };
    let output = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(top.join("include"))
        .args(flags)
        .arg(top.join(source))
        .arg("-o")
        .arg(&library)
        .output()
        .expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

#[test]
fn the_skeletons_pass_the_check() {
    for source in SKELETONS {
        let bench = Bench::new();
        let output = bench.tailbound().args(["driver", "check"]).arg(compiled(&bench, source, &[])).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert_eq!(told(&output).0, 0, "{source}: {out}{}", told(&output).1);
        assert!(out.contains("keeps the rules") && !out.contains("FAIL"), "{source}: {out}");
        assert_eq!(out.matches("pass").count(), 22, "{source}: {out}");
    }
}

/// A driver that crashes does not take the tool along.
#[test]
fn a_driver_that_crashes_fails_the_check() {
    let bench = Bench::new();
    let driver = compiled(&bench, "drivers/broken/broken.c", &["-DBREAK_CRASH", "-Wno-unused-function"]);
    let output = bench.tailbound().args(["driver", "check"]).arg(driver).output().unwrap();
    let (code, text) = told(&output);
    assert!(String::from_utf8_lossy(&output.stdout).contains("pass"), "{output:?}");
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn linked_drivers_pass_the_check() {
    for name in ["null", "udp", "cyclonedds"] {
        let bench = Bench::new();
        let output = bench.tailbound().args(["driver", "check", name]).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert_eq!(told(&output).0, 0, "{name}: {out}{}", told(&output).1);
    }
}

/// A driver that is no part of the binary is measured through the same hot loop. One message at a time: the queues of
/// the skeletons hold 16, and fill where a busy machine stalls.
#[test]
fn a_study_runs_over_a_driver_file() {
    for source in SKELETONS {
        let bench = Bench::new();
        let library = compiled(&bench, source, &[]);
        let study = format!(
            "study: file\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 300, warm_up: 0, timeout: 2 s }} }}\n\
             rate: max\ndriver: {}\nplace: same-process\npath: loopback\nfactors:\n  \
             measure.receive: [listener, block, spin]\n",
            library.display()
        );
        succeeded(&bench.run(&study, &[]));
        let report = bench.report();
        for condition in 0..3 {
            let counts = &report["conditions"][condition]["counts"];
            assert_eq!(counts["answered"].as_u64(), Some(300), "{source}: {report}");
        }
    }
}

#[test]
fn the_list_names_what_can_be_used() {
    let bench = Bench::new();
    let output = bench.tailbound().args(["driver", "list"]).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    for word in ["cyclonedds", "null", "udp", "receive modes", "up to 65499 B", "11.0.1"] {
        assert!(out.contains(word), "{word} in {out}");
    }
}
