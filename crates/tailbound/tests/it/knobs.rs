//! Tests of host knobs, read by programs other than Tailbound: the knobs are in effect while a trial measures, and
//! restored afterwards.

use crate::support::host::{AsFound, cannot, is_root, no_journal, read, signal, study};
use crate::support::output_of;
use crate::support::{Bench, exit_and_stderr};
use serde_json::Value;

/// Paths of two settings whose values affect no program of this machine.
const LEASE: &str = "/proc/sys/fs/lease-break-time";
const BURST: &str = "/proc/sys/kernel/printk_ratelimit_burst";

fn warning<'a>(report: &'a Value, code: &str) -> &'a str {
    let all = report["warnings"].as_array().unwrap();
    all.iter().find(|w| w["code"] == code).unwrap_or_else(|| panic!("no {code}: {all:?}"))["text"].as_str().unwrap()
}

#[test]
fn a_setting_is_in_force_while_it_measures_and_as_found_afterwards() {
    if cannot() {
        return;
    }
    let (lease, throttling) = (AsFound::keep(LEASE), AsFound::keep("/proc/sys/kernel/sched_rt_runtime_us"));
    let bench = Bench::new();
    let wanted = lease.other(1);
    let rest = format!("host: {{ real_time_throttling: off, sysctl: {{ fs.lease-break-time: {wanted} }} }}");
    let child = bench.begin(&study(800, &rest));
    let seen = [output_of("sysctl", &["-n", "fs.lease-break-time"]), output_of("cat", &[throttling.path])];
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{text}");
    assert_eq!(seen, [wanted.clone(), "-1".into()]);
    assert_eq!([read(LEASE), read(throttling.path)], [lease.value.clone(), throttling.value.clone()]);
    no_journal(&bench);
    let report = bench.report();
    let block = &report["host_settings"][0];
    assert_eq!(block["trials"], serde_json::json!([0]));
    let setting = &block["settings"][0];
    assert_eq!(setting["key"], "host.sysctl.fs.lease-break-time");
    assert_eq!((setting["before"].as_str(), setting["found"].as_str()), (Some(&*lease.value), Some(&*wanted)));
    assert_eq!(setting["put_back"], format!("restored to `{}`", lease.value));
    let sentence = report["findings"].to_string();
    let told = format!("host.sysctl.fs.lease-break-time {wanted} (found {})", lease.value);
    assert!(sentence.contains(&told), "{sentence}");
    let page = std::fs::read_to_string(bench.path("record/report.html")).unwrap();
    assert!(page.contains("Settings of the host"));
}

#[test]
fn a_setting_is_a_factor_like_any_other() {
    if cannot() {
        return;
    }
    let lease = AsFound::keep(LEASE);
    let bench = Bench::new();
    let (one, two) = (lease.other(1), lease.other(2));
    let rest =
        format!("repeat: 2\nfactors:\n  host.sysctl.fs.lease-break-time: [{one}, {two}]\n  payload: [64 B, 1 KiB]");
    let (code, text) = exit_and_stderr(&bench.run(&study(60, &rest), &[]));
    assert_eq!(code, 0, "{text}");
    let report = bench.report();
    let mut seen = 0;
    for block in report["host_settings"].as_array().unwrap() {
        for trial in block["trials"].as_array().unwrap() {
            let condition = &report["trials"][trial.as_u64().unwrap() as usize]["condition"];
            let levels = &report["conditions"][condition.as_u64().unwrap() as usize]["levels"];
            assert_eq!(block["settings"][0]["found"], levels["host.sysctl.fs.lease-break-time"]);
            seen += 1;
        }
    }
    assert_eq!(seen, 8, "{}", report["host_settings"]);
    assert_eq!(read(LEASE), lease.value);
}

#[test]
fn ctrl_c_puts_it_back() {
    if cannot() {
        return;
    }
    let lease = AsFound::keep(LEASE);
    let bench = Bench::new();
    let rest = format!("host: {{ sysctl: {{ fs.lease-break-time: {} }} }}", lease.other(1));
    let child = bench.begin(&study(5000, &rest));
    assert_eq!(read(LEASE), lease.other(1));
    // Some messages are sent in this time: a run that measured nothing leaves no record.
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(&child, libc::SIGINT);
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!((code, read(LEASE)), (6, lease.value.clone()), "{text}");
    assert!(bench.report()["host_settings"][0]["settings"][0]["put_back"].is_string());
    no_journal(&bench);
}

#[test]
fn after_a_kill_lab_cleanup_puts_it_back() {
    if cannot() {
        return;
    }
    let lease = AsFound::keep(LEASE);
    let bench = Bench::new();
    let rest = format!("host: {{ sysctl: {{ fs.lease-break-time: {} }} }}", lease.other(1));
    let mut child = bench.begin(&study(5000, &rest));
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    assert_eq!(read(LEASE), lease.other(1));
    let undo = format!("write `{}` back to {LEASE}", lease.value);
    assert!(bench.lab("list").1.contains(&undo), "{}", bench.lab("list").1);
    let (code, text) = bench.lab("cleanup");
    assert_eq!((code, read(LEASE)), (0, lease.value.clone()), "{text}");
    assert!(text.contains(&format!("wrote `{}` back to {LEASE}", lease.value)), "{text}");
    assert!(bench.lab("list").1.starts_with("nothing"));
}

#[test]
fn values_that_another_program_changed_after_a_kill_are_left_and_reported() {
    if cannot() {
        return;
    }
    let lease = AsFound::keep(LEASE);
    let bench = Bench::new();
    let rest = format!("host: {{ sysctl: {{ fs.lease-break-time: {} }} }}", lease.other(1));
    let mut child = bench.begin(&study(5000, &rest));
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    std::fs::write(LEASE, lease.other(5)).unwrap();
    let (_, text) = bench.lab("cleanup");
    assert!(text.contains("somebody else changed it, so it stays"), "{text}");
    assert_eq!(read(LEASE), lease.other(5));
    no_journal(&bench);
}

/// Test of a knob whose file can be read but no longer written: the messages and the record contain the failure to
/// restore the knob, and the journal keeps its entry for `lab cleanup`.
#[test]
fn values_that_cannot_be_restored_are_reported_and_stay_in_the_journal() {
    if cannot() || output_of("unshare", &["-m", "echo", "may"]) != "may" {
        return println!("skipped: no mount namespace can be made here");
    }
    let lease = AsFound::keep(LEASE);
    let bench = Bench::new();
    let wanted = lease.other(1);
    let text = study(800, &format!("host: {{ sysctl: {{ fs.lease-break-time: {wanted} }} }}"));
    let mut command = std::process::Command::new("unshare");
    command.arg("-m").arg(bench.tailbound().get_program()).envs([("TAILBOUND_STATE_DIR", bench.path("state"))]);
    command.arg("run").arg(bench.study(&text)).arg("--out").arg(bench.path("record"));
    let child = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let pid = child.id();
    crate::support::processes::wait_for_measuring(pid as i32, "ping");
    let shut = format!("mount --bind {LEASE} {LEASE} && mount -o remount,bind,ro {LEASE} && echo shut");
    assert_eq!(output_of("nsenter", &["-t", &pid.to_string(), "-m", "sh", "-c", &shut]), "shut");
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!((code, read(LEASE)), (4, wanted), "{text}");
    assert!(text.contains("a setting of the host could NOT be restored"), "{text}");
    assert!(text.contains("tailbound lab cleanup") && text.contains(&format!("back to {LEASE}: Read-only")), "{text}");
    let report = bench.report();
    assert!(warning(&report, "host_setting_not_put_back").contains(LEASE));
    assert!(report["host_settings"][0]["settings"][0]["put_back"].as_str().unwrap().starts_with("NOT restored"));
    assert!(bench.lab("list").1.contains(LEASE));
    let (code, text) = bench.lab("cleanup");
    assert_eq!((code, read(LEASE)), (0, lease.value.clone()), "{text}");
    no_journal(&bench);
}

/// Test: if another program changes a knob during a trial, the trial is invalid, because the host was not as the study
/// requests.
#[test]
fn what_somebody_else_changes_in_mid_run_makes_the_trial_invalid() {
    if cannot() {
        return;
    }
    let lease = AsFound::keep(LEASE);
    let bench = Bench::new();
    let rest = format!("host: {{ sysctl: {{ fs.lease-break-time: {} }} }}", lease.other(1));
    let child = bench.begin(&study(500, &rest));
    std::fs::write(LEASE, lease.other(5)).unwrap();
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!((code, read(LEASE)), (6, lease.other(5)), "{text}");
    let report = bench.report();
    let (wanted, now) = (lease.other(1), lease.other(5));
    let changed = format!("host.sysctl.fs.lease-break-time: {LEASE} was set to `{wanted}`, and is `{now}` now");
    assert_eq!(warning(&report, "host_setting_changed"), changed);
    assert!(warning(&report, "host_setting_left").contains("so it stays"));
    assert_eq!(report["trials"][0]["status"], "invalid");
    no_journal(&bench);
}

#[test]
fn settings_that_fail_are_refused_and_leave_the_host_unchanged() {
    if cannot() {
        return;
    }
    let (lease, burst) = (AsFound::keep(LEASE), AsFound::keep(BURST));
    let mut texts = String::new();
    for sysctl in ["kernel.no_such_setting: 1", "kernel.ostype: BSD", "fs.lease-break-time: soon"] {
        let bench = Bench::new();
        // The first knob is set before the kernel refuses the value of the second knob.
        let rest = format!("host: {{ sysctl: {{ kernel.printk_ratelimit_burst: {}, {sysctl} }} }}", burst.other(1));
        let (code, text) = exit_and_stderr(&bench.run(&study(60, &rest), &[]));
        texts.push_str(&format!("exit {code}\n{text}\n"));
        assert_eq!([read(LEASE), read(BURST)], [lease.value.clone(), burst.value.clone()], "{sysctl}");
        no_journal(&bench);
    }
    insta::assert_snapshot!(texts);
}

#[test]
fn missing_rights_are_reported_before_anything_is_changed() {
    let bench = Bench::new();
    let study = bench.study(&study(60, "host: { sysctl: { fs.lease-break-time: 46 } }"));
    if is_root() && output_of("setpriv", &["--version"]).is_empty() {
        return println!("skipped: no setpriv to leave root with");
    }
    let binary = bench.tailbound();
    let mut command = if is_root() {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(binary.get_program());
        command
    } else {
        bench.tailbound()
    };
    // A dry run, because this user cannot write a record into the directory of the test.
    std::fs::set_permissions(bench.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = command.current_dir(bench.dir.path()).arg("run").arg(study).arg("--dry-run").output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("host.sysctl.fs.lease-break-time: /proc/sys/fs/lease-break-time may not be set by this user"),
        "{text}"
    );
}

#[test]
fn a_dry_run_lists_what_would_be_set_and_sets_nothing() {
    if cannot() {
        return;
    }
    let lease = AsFound::keep(LEASE);
    let bench = Bench::new();
    let of = |rest: &str| {
        let study = bench.study(&study(60, rest));
        let output = bench.tailbound().arg("run").arg(study).arg("--dry-run").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = of("host: { sysctl: { fs.lease-break-time: 99 } }");
    let line = format!(
        "  host.sysctl.fs.lease-break-time: 99; now {LEASE} is `{}`; restored afterwards  [root]\n",
        lease.value
    );
    assert!(text.contains(&line) && !text.contains("no host setting is changed"), "{text}");
    assert_eq!(read(LEASE), lease.value);
    assert!(of("").contains("  no host setting is changed\n"));
}

#[test]
fn settings_of_the_network_are_made_where_the_ends_are() {
    if cannot() {
        return;
    }
    let thresh = AsFound::keep("/proc/sys/net/ipv4/ipfrag_high_thresh");
    let bench = Bench::new();
    let wanted = thresh.other(4096);
    let text = study(600, &format!("host: {{ sysctl: {{ net.ipv4.ipfrag_high_thresh: {wanted} }} }}"));
    let child = bench.begin(&text.replace("path: loopback\nplace: process", "path: veth"));
    let ends = crate::support::processes::descendants(child.id() as i32);
    let inside: std::collections::BTreeSet<String> =
        ends.iter().map(|pid| output_of("nsenter", &["-t", &pid.to_string(), "-n", "cat", thresh.path])).collect();
    assert_eq!(read(thresh.path), thresh.value, "here it stays");
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{text}");
    assert_eq!(inside.into_iter().collect::<Vec<_>>(), [wanted]);
    let report = bench.report();
    let settings = report["host_settings"][0]["settings"].as_array().unwrap();
    assert_eq!(settings.iter().map(|s| s["at"].as_str().unwrap()).collect::<Vec<_>>(), ["ping", "pong"]);
}

/// Test with a network namespace that the user made and that exists after the run: knobs that were set in it are
/// restored in it.
#[test]
fn a_namespace_of_the_user_is_restored_after_a_kill() {
    let name = format!("tb-knobs-{}", std::process::id());
    let ip = |args: &[&str]| std::process::Command::new("ip").args(args).status().is_ok_and(|s| s.success());
    if cannot() || !ip(&["netns", "add", &name]) {
        return println!("skipped: no network namespace can be made here");
    }
    let inside = |args: &[&str]| output_of("ip", &[&["netns", "exec", name.as_str()], args].concat());
    inside(&["ip", "link", "set", "lo", "up"]);
    let before = inside(&["sysctl", "-n", "net.core.somaxconn"]);
    let bench = Bench::new();
    let text = study(5000, "host: { sysctl: { net.core.somaxconn: 77 } }").replace(
        "path: loopback\nplace: process",
        &format!("path: {{ existing: {{ ping: {{ interface: lo }}, pong: {{ interface: lo }} }} }}\nplace: {{ existing-netns: {name} }}"),
    );
    let mut child = bench.begin(&text);
    let seen = inside(&["sysctl", "-n", "net.core.somaxconn"]);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let (code, cleaned) = bench.lab("cleanup");
    let after = inside(&["sysctl", "-n", "net.core.somaxconn"]);
    ip(&["netns", "del", &name]);
    assert_eq!((code, seen.as_str(), after), (0, "77", before), "{cleaned}");
    no_journal(&bench);
}

/// Test: every key that `doctor` proposes for a study can be written into a study.
#[test]
fn studies_that_doctor_proposes_can_be_read() {
    let advice = tailbound_doctor::advice();
    assert!(advice.len() >= 9, "{advice:?}");
    let bench = Bench::new();
    for (key, host) in advice {
        let study = bench.study(&study(60, &format!("host: {{ {host} }}")));
        let output = bench.tailbound().arg("run").arg(study).arg("--dry-run").output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        assert!(code == 0 || code == 3, "{key}: {text}");
    }
}
