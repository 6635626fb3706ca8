//! Tests of drivers that are shared objects: the skeletons in C and C++ are checked and measured through the command
//! line.

use crate::support::{Bench, exit_and_stderr, succeeded};
use std::path::Path;
use std::process::Command;

const SKELETONS: [&str; 2] = ["drivers/skeleton/skeleton.c", "drivers/skeleton/skeleton.cpp"];

/// Compiles a driver in C or C++ against the committed header, and returns the path of the shared object.
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
        assert_eq!(exit_and_stderr(&output).0, 0, "{source}: {out}{}", exit_and_stderr(&output).1);
        assert!(out.contains("keeps the rules") && !out.contains("FAIL"), "{source}: {out}");
        assert_eq!(out.matches("pass").count(), 24, "{source}: {out}");
        assert!(out.contains("n/a   flow"), "{source}: {out}");
    }
}

/// Test: a driver that crashes does not end the process that checks it.
#[test]
fn a_driver_that_crashes_fails_the_check() {
    let bench = Bench::new();
    let driver = compiled(&bench, "drivers/broken/broken.c", &["-DBREAK_CRASH", "-Wno-unused-function"]);
    let output = bench.tailbound().args(["driver", "check"]).arg(driver).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert!(String::from_utf8_lossy(&output.stdout).contains("pass"), "{output:?}");
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn linked_drivers_pass_the_check() {
    for name in ["null", "udp", "cyclonedds"] {
        let bench = Bench::new();
        let output = bench.tailbound().args(["driver", "check", name]).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert_eq!(exit_and_stderr(&output).0, 0, "{name}: {out}{}", exit_and_stderr(&output).1);
    }
}

/// Test: a driver that is not linked into the binary is measured through the same hot loop. Only one message at a time
/// is sent, because the queues of the skeletons have 16 entries, which a busy machine would fill.
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

/// Source of a driver with two more threads: one thread gets its role by its name, the other because `open` created it
/// as the second thread.
const TWO_THREADS: &str = r#"
#define SKELETON_WITHOUT_ENTRY
#include "skeleton.c"
#include <unistd.h>
static void *idle(void *name) { if (name) pthread_setname_np(pthread_self(), name); for (;;) pause(); return NULL; }
static const char *faceted(void) {
    return "{\"name\":\"threads\",\"versions\":{\"driver\":\"1\"},\"limits\":{\"max_payload_bytes\":64},"
           "\"receive_modes\":[\"listener\"],\"roles\":[{\"role\":\"receive\",\"name_glob\":\"rx-*\"},"
           "{\"role\":\"event\",\"born_in\":\"open\",\"index\":1}]}";
}
static int with_threads(const tb_kv *kv, size_t n, const tb_host *host, void **session) {
    pthread_t thread;
    (void)kv, (void)n;
    pthread_create(&thread, NULL, idle, "rx-1");
    pthread_create(&thread, NULL, idle, NULL);
    return open_session(NULL, 0, host, session);
}
const tb_driver *tailbound_driver_v1(void) {
    static tb_driver own;
    own = table;
    own.describe = faceted;
    own.open = with_threads;
    return &own;
}
"#;

/// Test of both kinds of rules for roles (by the name of a thread, and by the driver function that created it): the
/// threads have the scheduling that the study gives their roles, and the thread table shows the scheduling.
#[test]
fn threads_have_roles_by_name_and_by_birth() {
    let bench = Bench::new();
    let source = bench.path("threads.c");
    std::fs::write(&source, TWO_THREADS).unwrap();
    let skeleton = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drivers/skeleton");
    let library = compiled(&bench, source.to_str().unwrap(), &["-I", skeleton.to_str().unwrap()]);
    let study = format!(
        "study: threads\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 50, warm_up: 0 }} }}\nrate: 1 kHz\npayload: 8 B\n\
         driver: {}\nplace: same-process\npath: loopback\n\
         scheduling: {{ receive: {{ policy: batch, nice: 1 }}, event: {{ policy: idle }} }}\n",
        library.display()
    );
    succeeded(&bench.run(&study, &[]));
    let report = bench.report();
    let rows = report["threads"][0]["before"].as_array().expect("threads");
    for (role, policy, named) in [("receive", "batch", true), ("event", "idle", false)] {
        // Each role has two threads: there are two sessions, one for each end.
        let found: Vec<_> = rows.iter().filter(|r| r["role"] == role).collect();
        assert_eq!(found.len(), 2, "{role}: {rows:?}");
        for row in found {
            assert!(row["policy"].as_str().unwrap().starts_with(policy), "{row}");
            assert_eq!(row["name"] == "rx-1", named, "{row}");
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
