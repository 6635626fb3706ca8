//! Tests of Tailbound's bundle, started in an empty root directory: without a shell, a C library or a distribution.

use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tailbound");

fn tailbound(args: &[&str], at: &Path) -> Output {
    Command::new(PROGRAM).args(args).current_dir(at).env("NO_COLOR", "1").output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_bundle_maps_no_library_of_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let made = tailbound(&["bundle", "--out", "b"], dir.path());
    assert!(made.status.success(), "{}", text(&made));
    let bundle = tailbound_bundle::Bundle::verify(&dir.path().join("b")).unwrap();
    assert!(text(&made).contains(&bundle.name()), "{}", text(&made));
    let mut start = bundle.start(&dir.path().join("b"));
    // An agent that waits for its controller has mapped all files that it needs.
    let mut agent =
        start.arg("agent").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    // The first byte from the agent shows that it has started.
    std::io::Read::read_exact(agent.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", agent.id())).unwrap();
    let name = std::fs::read_to_string(format!("/proc/{}/comm", agent.id())).unwrap();
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
    let foreign: Vec<&str> =
        maps.lines().filter(|l| l.contains(".so") && !l.contains(dir.path().to_str().unwrap())).collect();
    assert!(maps.contains("libc.so.6") && foreign.is_empty(), "{foreign:?}");
    assert_eq!(name.trim(), "tailbound");

    let again = tailbound(&["bundle", "--out", "b"], dir.path());
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    assert!(text(&again).starts_with("error: b already exists\n  help: name another directory with --out\n"));

    let libc = dir.path().join("b/lib/libc.so.6");
    let mut bytes = std::fs::read(&libc).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&libc, bytes).unwrap();
    let damaged = tailbound_bundle::Bundle::verify(&dir.path().join("b")).unwrap_err().to_string();
    assert!(damaged.contains("lib/libc.so.6 differs from bundle.json"), "{damaged}");
}

#[test]
fn a_bundle_contains_the_tracer_of_its_installation() {
    const TRACER: &str = "lib/tailbound/drivers/libtailbound_tracer.so";
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("bin/tailbound");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::create_dir_all(dir.path().join(TRACER).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(PROGRAM, &program).unwrap();
    let gather = || tailbound_bundle::Contents::gather(&program, "0", &[]).unwrap();
    let without = gather();
    assert!(without.files().all(|(file, _)| file.path != TRACER), "{without:?}");
    // The bundle only copies the file, so that any shared object can take its place.
    let (_, libc) = without.files().find(|(file, _)| file.path == "lib/libc.so.6").unwrap();
    std::os::unix::fs::symlink(libc, dir.path().join(TRACER)).unwrap();
    let with = gather();
    assert!(with.files().any(|(file, _)| file.path == TRACER), "{with:?}");
    assert_ne!(with.bundle.hash, without.bundle.hash);
}

/// Test: a run works in a root directory that contains only Tailbound's bundle, /proc, /dev, /sys and /tmp.
#[test]
#[cfg_attr(not(feature = "system-tests"), ignore = "changes its root directory: dev/test --all")]
fn a_run_needs_nothing_but_the_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for sub in ["proc", "dev", "tmp", "sys"] {
        std::fs::create_dir(root.join(sub)).unwrap();
    }
    let made = tailbound(&["bundle", "--out", "b"], root);
    assert!(made.status.success(), "{}", text(&made));
    let bundle = tailbound_bundle::Bundle::read(&root.join("b")).unwrap();
    let words: Vec<String> = bundle.words(Path::new("/b")).iter().map(|w| w.display().to_string()).collect();
    let study = "study: far\nquestion: does it run\nmeasure: { ping-pong: { slots: 2000 } }\nrate: 1 kHz\npath: loopback\n\
                 place: process\nfactors: { driver: [udp, cyclonedds] }\n";
    std::fs::write(root.join("tmp/far.yaml"), study).unwrap();
    let script = "mount -t proc proc proc && mount --bind /dev dev && mount --bind /sys sys && exec chroot . \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"])
        .args(words)
        .args(["run", "/tmp/far.yaml", "--out", "/tmp/record"])
        .current_dir(root)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let report = tailbound(&["report", "tmp/record", "--format", "json"], root);
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("\"status\": \"valid\"") && report.contains("\"cyclonedds\""), "{report}");
}
