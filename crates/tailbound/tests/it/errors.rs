//! Tests of error messages: each message says what is wrong, where, and what to do; the exit code is right; and the
//! failed command leaves no changes on the host.

use crate::support::{Bench, exit_and_stderr};
use std::fs;

const GOOD: &str = "study: s\nquestion: q\nmeasure: { ping-pong: { slots: 200, warm_up: 0, timeout: 100 ms } }\n\
    rate: 1 kHz\ndriver: udp\npath: loopback\nplace: process\n";

/// Runs a study that must fail. Returns the exit code, and the message with `BENCH` in place of the path of the test's
/// directory. The run must leave no journal.
fn fails(study: &str, settings: &[&str]) -> (i32, String) {
    let bench = Bench::new();
    let output = bench.run(study, settings);
    let (code, text) = exit_and_stderr(&output);
    assert_ne!(code, 0, "{text}");
    let journals = fs::read_dir(bench.path("state/journal")).map(|d| d.count()).unwrap_or(0);
    assert_eq!(journals, 0, "a journal is left: {text}");
    (code, text.replace(bench.dir.path().to_str().unwrap(), "BENCH"))
}

#[test]
fn payload_beyond_the_driver() {
    let (code, text) = fails(GOOD, &["payload=100kB"]);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn unknown_driver() {
    // A copy of the binary in another directory, without the drivers that this build may have made.
    let bench = Bench::new();
    let binary = bench.path("tailbound");
    fs::hard_link(env!("CARGO_BIN_EXE_tailbound"), &binary)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_tailbound"), &binary).map(drop))
        .unwrap();
    let study = bench.study(&GOOD.replace("udp", "udq"));
    let mut command = std::process::Command::new(binary);
    command.arg("run").arg(study).current_dir(bench.dir.path()).env("TAILBOUND_STATE_DIR", bench.path("state"));
    let (code, text) =
        exit_and_stderr(&command.env("NO_COLOR", "1").env_remove("TAILBOUND_DRIVER_PATH").output().unwrap());
    let text = text.replace(bench.dir.path().to_str().unwrap(), "BENCH");
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn a_new_driver_where_a_file_is() {
    let bench = Bench::new();
    fs::create_dir(bench.path("mine")).unwrap();
    fs::write(bench.path("mine/tailbound_driver.h"), "my own").unwrap();
    let (code, text) = exit_and_stderr(&bench.tailbound().args(["driver", "new", "mine"]).output().unwrap());
    assert_eq!(fs::read_dir(bench.path("mine")).unwrap().count(), 1, "nothing is written beside it");
    assert_eq!(fs::read_to_string(bench.path("mine/tailbound_driver.h")).unwrap(), "my own");
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn a_new_driver_where_no_directory_can_be() {
    let bench = Bench::new();
    fs::write(bench.path("file"), "").unwrap();
    let (code, text) = exit_and_stderr(&bench.tailbound().args(["driver", "new", "file/mine"]).output().unwrap());
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn unknown_driver_option() {
    let (code, text) = fails(&GOOD.replace("driver: udp", "driver: { udp: { rcvbuff: 100000 } }"), &[]);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn a_driver_option_with_a_value_that_it_does_not_have() {
    let (code, text) = fails(&GOOD.replace("driver: udp", "driver: { udp: { timestamps: maybe } }"), &[]);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn a_qos_value_that_the_driver_does_not_have() {
    let study = format!("{}qos: {{ durability: persistent }}\n", GOOD.replace("udp", "cyclonedds"));
    let (code, text) = fails(&study, &[]);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn an_address_that_the_driver_cannot_bind() {
    let (code, text) = fails(&GOOD.replace("driver: udp", "driver: { udp: { address: 192.0.2.1 } }"), &[]);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

/// Test: the dry run refuses every plan that the run would refuse.
#[test]
fn a_dry_run_lists_what_the_machine_lacks() {
    let bench = Bench::new();
    let study = bench.study(GOOD);
    let mut command = bench.tailbound();
    command.arg("run").arg(study).args(["--dry-run", "--set", "measure.slots=2000000000"]);
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("sample memory"), "{text}");
}

/// Test: neither a full disk behind standard output nor a reader that has closed the pipe ends a run with a panic.
#[test]
fn output_that_nobody_reads() {
    let bench = Bench::new();
    for arguments in [&["driver", "list"][..], &["studies"], &["doctor"], &["lab", "list"], &["completions", "bash"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = bench.tailbound().args(arguments).stdout(full).output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert!(text.contains("cannot write") && !text.contains("panicked"), "{arguments:?}: {text}");
    }
    let study = bench.study(GOOD);
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = command.stdout(writer.try_clone().unwrap()).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(bench.report()["status"], "valid");
}

/// Test: a truncated shared object is refused; loading it would end the process by SIGBUS.
#[test]
fn a_driver_file_that_is_cut_off() {
    let bench = Bench::new();
    let whole = fs::read(env!("CARGO_BIN_EXE_tailbound")).unwrap();
    fs::write(bench.path("cut.so"), &whole[..3000]).unwrap();
    let output = bench.tailbound().args(["driver", "check", "./cut.so"]).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("not a loadable shared object: the file is cut off"), "{text}");
}

#[test]
fn qos_that_the_driver_does_not_have() {
    let (code, text) = fails(&format!("{GOOD}qos: {{ reliability: reliable }}\n"), &[]);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn cpu_that_does_not_exist() {
    let (code, text) = fails(&format!("{GOOD}ends: {{ ping: {{ cpus: \"999\" }} }}\n"), &[]);
    // The list of allowed CPUs, which depends on the machine, is removed.
    let text = text.lines().map(|l| l.split("allowed here:").next().unwrap()).collect::<Vec<_>>().join("\n");
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("CPU 999"), "{text}");
}

#[test]
fn interface_that_does_not_exist() {
    let study =
        GOOD.replace("path: loopback", "path: { existing: { ping: { interface: nosuch0 }, pong: { interface: lo } } }");
    let (code, text) = fails(&study, &[]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("nosuch0"), "{text}");
}

#[test]
fn live_collection_without_a_free_cpu() {
    let study = format!("{GOOD}ends: {{ ping: {{ cpus: any }}, pong: {{ cpus: any }} }}\n");
    let (code, text) = fails(&study, &["collect=live"]);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn a_trial_too_long_for_the_memory() {
    let (code, text) = fails(GOOD, &["measure.slots=2000000000"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("sample memory") && text.contains("fewer slots"), "{text}");
}

#[test]
fn the_record_exists() {
    let bench = Bench::new();
    fs::create_dir(bench.path("record")).unwrap();
    fs::write(bench.path("record/mine"), "precious").unwrap();
    let (code, text) = exit_and_stderr(&bench.run(GOOD, &[]));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("exists already\n  help: name another directory with --out"), "{text}");
    assert_eq!(fs::read_to_string(bench.path("record/mine")).unwrap(), "precious");
}

#[test]
fn quick_never_moves_what_it_did_not_make() {
    let bench = Bench::new();
    fs::create_dir(bench.path("tailbound-quick")).unwrap();
    let quick = ["quick", "--out", "tailbound-quick", "--force"];
    let (code, text) = exit_and_stderr(&bench.tailbound().args(quick).output().unwrap());
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("is not a record, and --force replaces only records"), "{text}");
    assert!(bench.path("tailbound-quick").exists());
}

#[test]
fn a_report_of_nothing() {
    let bench = Bench::new();
    let output = bench.tailbound().args(["report", "nowhere"]).output().unwrap();
    insta::assert_snapshot!(format!("exit {}\n{}", exit_and_stderr(&output).0, exit_and_stderr(&output).1));
}

#[test]
fn a_record_of_a_later_release() {
    let bench = Bench::new();
    fs::create_dir(bench.path("r")).unwrap();
    let manifest = r#"{"format":{"major":9,"minor":2},"readable_by":"4.5.0","something":"else"}"#;
    fs::write(bench.path("r/manifest.json"), manifest).unwrap();
    let output = bench.tailbound().args(["report", "r"]).output().unwrap();
    insta::assert_snapshot!(format!("exit {}\n{}", exit_and_stderr(&output).0, exit_and_stderr(&output).1));
}

/// Test: a trace that cannot be made is refused, and leaves the file of an earlier trace as it is.
#[test]
fn traces_that_are_not_possible() {
    let bench = Bench::new();
    crate::support::succeeded(&bench.run(GOOD, &[]));
    fs::write(bench.path("earlier"), "kept").unwrap();
    let mut all = String::new();
    for arguments in [
        &["--format", "perfeto"][..],
        &["--format", "perfetto", "--trial", "7", "--out", "earlier"],
        &["--format", "json", "--trial", "0"],
        &["--format", "perfetto", "--out", "missing/trace"],
    ] {
        let output = bench.tailbound().args(["report", "record"]).args(arguments).output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        all.push_str(&format!("{}\nexit {code}\n{text}\n", arguments.join(" ")));
    }
    assert_eq!(fs::read_to_string(bench.path("earlier")).unwrap(), "kept");
    insta::assert_snapshot!(all);
}

/// Test: every format of the report can be written for a record with a relative path.
#[test]
fn every_form_of_a_report() {
    let bench = Bench::new();
    crate::support::succeeded(&bench.run(GOOD, &[]));
    for (format, holds) in [
        ("terminal", "round trip"),
        ("json", "\"conditions\""),
        ("csv", "round_trip"),
        ("md", "udp"),
        ("html", "</html>"),
        ("svg", "</svg>"),
        ("png", "PNG"),
        ("perfetto", "turnaround of message"),
    ] {
        let output = bench.tailbound().args(["report", "record", "--format", format]).output().unwrap();
        crate::support::succeeded(&output);
        assert!(String::from_utf8_lossy(&output.stdout).contains(holds), "{format}");
    }
    assert!(fs::read_to_string(bench.path("record/report.html")).unwrap().contains("</html>"));
}

/// Test: without a terminal, a run prints a line before each trial and its figures after it; with --quiet it prints
/// nothing.
#[test]
fn a_run_prints_each_trial_when_it_ends() {
    let bench = Bench::new();
    let output = bench.run(&GOOD.replace("slots: 200", "slots: 400"), &[]);
    crate::support::succeeded(&output);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = bench.report();
    let figures = &report["conditions"][0]["round_trip"];
    assert_eq!(text.matches("trial 1/1: ").count(), 2, "{text}");
    assert!(text.contains("1 trial, about ") && text.contains(" left\n"), "{text}");
    let told = text.lines().find(|l| l.contains("p50 ")).unwrap();
    assert!(told.contains(&format!("all of {} answered", figures["scheduled"])), "{told}");
}

#[test]
fn serving_a_missing_folder_or_on_a_used_port_is_refused() {
    let bench = Bench::new();
    let serve = |args: &[&str]| exit_and_stderr(&bench.tailbound().arg("serve").args(args).output().unwrap());
    let (code, text) = serve(&["nowhere"]);
    assert!(
        code == 2 && text.contains("nowhere is not a folder\n  help: name a folder that contains records"),
        "{code} {text}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let (code, text) = serve(&[".", "--listen", &at]);
    let text = text.replace(&at, "AT");
    assert!(
        code == 2 && text.contains("cannot listen on AT: ") && text.contains("`--listen`; port 0 selects a free port"),
        "{code} {text}"
    );
}

#[test]
fn a_damaged_segment_is_named() {
    let bench = Bench::new();
    crate::support::succeeded(&bench.run(GOOD, &["repeat=2"]));
    let segment = bench.path("record/samples/0/ping-0.parquet");
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len() / 2]).unwrap();
    let output = bench.tailbound().args(["report", "record"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
    assert_eq!(exit_and_stderr(&output).0, 6, "{text}");
    assert!(text.contains("Not to be trusted: trial 0") && text.contains("samples/0/ping-0.parquet"), "{text}");
    assert!(text.contains("half of the messages return within"), "trial 1 is shown: {text}");
}

#[test]
fn a_driver_that_is_not_one() {
    let bench = Bench::new();
    fs::write(bench.path("x.so"), "not a library").unwrap();
    let output = bench.tailbound().args(["driver", "check", "./x.so"]).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("x.so"), "{text}");
}

#[test]
fn real_time_without_the_right() {
    let (code, text) = as_nobody("scheduling: { policy: fifo, priority: 80 }\n");
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("CAP_SYS_NICE"), "{text}");
}

/// Test: if a load needs a real-time right that the user lacks, the study is refused before anything is measured,
/// although the load would begin later.
#[test]
fn a_real_time_load_without_the_right() {
    let load = "load: [{ run: cpu, scheduling: { policy: fifo, priority: 8, cpus: \"0\" }, start: 1 min }]\n";
    let (code, text) = as_nobody(load);
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("load `cpu` cannot be started: policy fifo 8 was refused: CAP_SYS_NICE is missing"),
        "{text}"
    );
}

/// Runs a valid study with additional keys as the user nobody, without any privilege.
fn as_nobody(more: &str) -> (i32, String) {
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return fails(&format!("{GOOD}{more}"), &[]);
    }
    // If this user is root, a copy of the binary is run as the user nobody, in a directory that nobody can read.
    let bench = Bench::new();
    let dir = bench.dir.path().to_owned();
    let open = |path: &std::path::Path| {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    };
    open(&dir);
    fs::copy(env!("CARGO_BIN_EXE_tailbound"), bench.path("tailbound")).unwrap();
    open(&bench.path("tailbound"));
    fs::write(bench.path("s.yaml"), format!("{GOOD}{more}")).unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"])
        .arg(bench.path("tailbound"))
        .args(["run", "s.yaml", "--out", "record"])
        .current_dir(&dir)
        .env("TAILBOUND_STATE_DIR", dir.join("state"))
        .output()
        .expect("setpriv of util-linux");
    exit_and_stderr(&output)
}

#[test]
fn a_topic_beyond_the_driver() {
    let study = format!("{GOOD}load: [{{ run: {{ topic: {{ payload: 6 MB, rate: 30 Hz }} }} }}]\n");
    let (code, text) = fails(&study, &[]);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}
