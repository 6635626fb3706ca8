//! Tests of `tailbound tune apply`: the settings of a receipt are in force during a lease, kept by a confirmation, and put back
//! otherwise. The settings are read from /proc, and as found after each test.

use crate::support::daemons::{Daemon, unpacked};
use crate::support::host::{AsFound, cannot, no_journal, read, study};
use crate::support::ssh::TwoHosts;
use crate::support::{Bench, exit_and_stderr, output_of, succeeded};
use crate::tune_export::{exported, receipt};
use std::time::{Duration, Instant};

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const BUSY_READ: &str = "/proc/sys/net/core/busy_read";

/// Exit code, and standard output and error.
fn tune(bench: &Bench, arguments: &[&str]) -> (i32, String) {
    let output = bench.tailbound().arg("tune").args(arguments).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    (code, String::from_utf8(output.stdout).unwrap() + &text)
}

fn apply(bench: &Bench, lease: &str) -> String {
    let (code, text) = tune(bench, &["apply", "receipt.json", "--lease", lease, "--yes", "--beside"]);
    assert_eq!(code, 0, "{text}");
    text
}

/// Process id of the process that holds the lease, from its journal.
fn holder(bench: &Bench) -> i32 {
    let mut journals = std::fs::read_dir(bench.path("state/journal")).unwrap();
    let text = std::fs::read_to_string(journals.next().unwrap().unwrap().path()).unwrap();
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    i32::try_from(header["pid"].as_i64().unwrap()).unwrap()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A receipt that sets swappiness to a value that it does not have, and the other settings: bench, swappiness as found, this value.
/// `None` if this machine forbids it.
fn ready(others: &[&str]) -> Option<(Bench, AsFound, String)> {
    if cannot() {
        return None;
    }
    let (bench, found) = (Bench::new(), AsFound::keep(SWAPPINESS));
    let wanted = found.other(if found.value == "0" { 1 } else { -1 });
    receipt(&bench, "receipt.json", &[&[format!("host.sysctl.vm.swappiness={wanted}").as_str()], others].concat());
    Some((bench, found, wanted))
}

#[test]
fn a_confirmed_setting_stays_until_it_is_reverted() {
    let Some((bench, found, wanted)) = ready(&["ends.pong.cpus=0"]) else { return };
    let text = apply(&bench, "10min");
    assert_eq!(read(SWAPPINESS), wanted);
    let export = "ends.pong.cpus=0  (`tailbound tune export receipt.json --format systemd`)";
    assert!(text.contains(export) && text.contains(&format!("was {}", found.value)), "{text}");
    // A run beside an open lease is no run beside another run.
    succeeded(&bench.run(&study(60, ""), &[]));
    let (code, text) = tune(&bench, &["apply", "receipt.json", "--yes", "--beside"]);
    insta::assert_snapshot!("second_lease", format!("exit code {code}\n{text}"));
    assert!(bench.lab("list").1.contains("until its lease ends"), "{:?}", bench.lab("list"));

    let (code, text) = tune(&bench, &["confirm"]);
    assert!(code == 0 && text.contains(&format!("write `{}` back to {SWAPPINESS}", found.value)), "{code} {text}");
    assert_eq!(bench.lab("cleanup"), (0, "nothing to undo\n".to_owned()));
    assert_eq!(read(SWAPPINESS), wanted, "a cleanup keeps what is confirmed");
    assert!(bench.lab("list").1.contains("confirmed settings"), "{:?}", bench.lab("list"));

    let (code, text) = tune(&bench, &["revert"]);
    assert!(code == 0 && text.contains(&format!("wrote `{}` back", found.value)), "{code} {text}");
    assert_eq!(read(SWAPPINESS), found.value);
    no_journal(&bench);
}

#[test]
fn a_setting_is_put_back_when_its_lease_ends() {
    let Some((bench, found, wanted)) = ready(&[]) else { return };
    apply(&bench, "1s");
    wait_until("the lease ends", || read(SWAPPINESS) == found.value);
    wait_until("the journal is removed", || std::fs::read_dir(bench.path("state/journal")).unwrap().count() == 0);
    let (code, text) = tune(&bench, &["confirm"]);
    insta::assert_snapshot!("no_lease", format!("exit code {code}\n{text}"));
    // A lease that is not confirmed can be ended early.
    apply(&bench, "10min");
    assert_eq!(read(SWAPPINESS), wanted);
    let (code, text) = tune(&bench, &["revert"]);
    assert!(code == 0 && text.contains("ended the lease"), "{code} {text}");
    assert_eq!(read(SWAPPINESS), found.value);
    no_journal(&bench);
}

#[test]
fn a_cleanup_puts_back_what_a_killed_holder_had_set() {
    let Some((bench, found, wanted)) = ready(&[]) else { return };
    apply(&bench, "10min");
    let pid = holder(&bench);
    // SAFETY: the process of the lease, which this test has started.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    wait_until("the process ends", || {
        !std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    });
    assert_eq!(read(SWAPPINESS), wanted, "the killed process has not put it back");
    let (code, text) = tune(&bench, &["confirm"]);
    insta::assert_snapshot!("killed_lease", format!("exit code {code}\n{text}"));
    let (code, text) = bench.lab("cleanup");
    assert!(code == 0 && text.contains(&format!("wrote `{}` back", found.value)), "{code} {text}");
    assert_eq!(read(SWAPPINESS), found.value);
    no_journal(&bench);
}

#[test]
fn a_refused_setting_takes_the_others_back() {
    if cannot() {
        return;
    }
    let (bench, found) = (Bench::new(), AsFound::keep(BUSY_READ));
    let _swappiness = AsFound::keep(SWAPPINESS);
    let first = format!("host.sysctl.net.core.busy_read={}", found.other(1));
    receipt(&bench, "receipt.json", &[&first, "host.sysctl.vm.swappiness=999999"]);
    let (code, text) = tune(&bench, &["apply", "receipt.json", "--yes", "--beside"]);
    insta::assert_snapshot!("refused_setting", format!("exit code {code}\n{text}"));
    assert_eq!(read(BUSY_READ), found.value);
    no_journal(&bench);
}

#[test]
fn what_cannot_be_applied_is_said() {
    if cannot() {
        return;
    }
    let (bench, found) = (Bench::new(), AsFound::keep(SWAPPINESS));
    receipt(&bench, "program.json", &["ends.pong.cpus=0", "host.cpu_dma_latency=0 us", "measure.receive=block"]);
    receipt(&bench, "none.json", &[]);
    receipt(&bench, "absent.json", &["host.sysctl.vm.no_such_setting=1"]);
    receipt(&bench, "host.json", &["host.sysctl.vm.swappiness=1", "ends.pong.cpus=0"]);
    let cases: [&[&str]; 7] = [
        &["apply", "program.json", "--yes"],
        &["apply", "none.json", "--yes"],
        &["apply", "absent.json", "--yes"],
        &["apply", "host.json", "--beside"],
        &["apply", "host.json", "--lease", "soon"],
        &["apply", "host.json", "--dry-run"],
        &["revert"],
    ];
    let said = cases.map(|case| {
        let (code, text) = tune(&bench, case);
        format!("tailbound tune {}\nexit code {code}\n{text}", case.join(" "))
    });
    let text = said.join("\n").replace(&format!("now {}", found.value), "now VALUE");
    insta::assert_snapshot!("refusals", text);
    assert_eq!(read(SWAPPINESS), found.value);
    no_journal(&bench);
}

/// Policy and real-time priority of kswapd0, as in fields 41 and 40 of its stat file.
fn kswapd() -> (u64, u64) {
    let pid = output_of("pgrep", &["-x", "kswapd0"]);
    let stat = tailbound_host::process::Stat::read(&format!("/proc/{pid}/stat")).unwrap();
    (stat.field(41).unwrap(), stat.field(40).unwrap())
}

/// Wake-up time that the kernel permits, us.
fn wake_up_us() -> String {
    output_of("od", &["-An", "-N4", "-t", "d4", "/dev/cpu_dma_latency"])
}

/// Test: TuneD itself sets each value of the exported profile, and nothing else. `tune apply` refuses to run beside it.
#[test]
fn tuned_sets_what_is_exported_and_is_no_neighbour() {
    const MEMORY: &str = "/proc/sys/net/ipv4/tcp_rmem";
    let Some((bench, _found, wanted)) = ready(&[]) else { return };
    let Some(unpacked) = unpacked() else { return };
    let (memory, before) = (AsFound::keep(MEMORY), (kswapd(), wake_up_us()));
    let kept = [
        "host.sysctl.net.ipv4.tcp_rmem=4096 131071 6291455",
        "host.kernel_threads.kswapd0={ policy: fifo, priority: 3 }",
    ];
    // Without a wake-up time among the kept settings, TuneD must set none: with a governor alone it would, by itself.
    for (more, wake_up) in [("host.governor=performance", before.1.as_str()), ("host.cpu_dma_latency=7 us", "7")] {
        receipt(&bench, "tuned.json", &[&kept[..], &[more]].concat());
        let profile = exported(&bench, &["tuned.json", "--format", "tuned"]);
        let tuned = Daemon::tuned(&bench, &unpacked, &profile);
        assert_eq!(read(MEMORY), "4096\t131071\t6291455", "{}", tuned.log());
        assert_eq!((kswapd(), wake_up_us().as_str()), ((1, 3), wake_up), "{}", tuned.log());
        // On Intel CPUs, TuneD looks for a tool that it does not need here.
        let is_complaint = |line: &&str| !line.contains("x86_energy_perf_policy");
        let is_complaint = |line: &&str| is_complaint(line) && (line.contains("ERROR") || line.contains("WARNING"));
        assert_eq!(tuned.log().lines().find(is_complaint), None, "{profile}{}", tuned.log());
        if more.starts_with("host.governor") {
            let (code, text) = tune(&bench, &["apply", "receipt.json", "--yes"]);
            insta::assert_snapshot!("beside_tuned", format!("exit code {code}\n{text}"));
            apply(&bench, "10min");
            assert_eq!(read(SWAPPINESS), wanted);
            assert_eq!(tune(&bench, &["revert"]).0, 0);
        }
        tuned.end();
        std::fs::remove_dir(bench.path("tuned")).unwrap();
        assert_eq!((read(MEMORY), (kswapd(), wake_up_us())), (memory.value.clone(), before.clone()));
    }
    no_journal(&bench);
}

#[test]
fn a_running_irqbalance_is_named() {
    let Some((bench, found, wanted)) = ready(&[]) else { return };
    let Some(unpacked) = unpacked() else { return };
    let irqbalance = Daemon::irqbalance(&bench, &unpacked);
    let (code, text) = tune(&bench, &["apply", "receipt.json", "--yes"]);
    insta::assert_snapshot!("beside_irqbalance", format!("exit code {code}\n{text}"));
    assert_eq!(read(SWAPPINESS), found.value);
    apply(&bench, "10min");
    assert_eq!(read(SWAPPINESS), wanted);
    irqbalance.end();
    assert_eq!(tune(&bench, &["revert"]).0, 0);
    no_journal(&bench);
}

/// Test: on a host that is reached by ssh, settings of the interface that carries the connection are refused, also if `sudo` has
/// removed the variables of ssh, and below a bridge that has the address.
#[test]
fn the_interface_of_an_ssh_connection_is_left_alone() {
    if cannot() {
        return;
    }
    let hosts = TwoHosts::new(0);
    let of_x0 = ["host.nic.x0={ channels_rx: 1 }", "host.sysctl.net.ipv4.conf.x0.rp_filter=1"];
    for (name, setting) in ["nic", "sysctl"].into_iter().zip(of_x0) {
        receipt(&hosts.bench, &format!("{name}.json"), &[setting]);
    }
    let there = |prefix: &str, file: &str| {
        let (directory, program) = (hosts.bench.path("").display().to_string(), env!("CARGO_BIN_EXE_tailbound"));
        let state = hosts.bench.path("state").display().to_string();
        let words = format!("tune apply {file} --yes --beside");
        let output =
            hosts.shell(&format!("cd {directory}; TAILBOUND_STATE_DIR={state} {prefix} {program} {words} 2>&1"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    let by_ssh = ["nic.json", "sysctl.json"].map(|file| there("", file));
    let said = by_ssh.iter().map(|(code, text)| format!("exit code {}\n{text}", code.unwrap_or(-1)));
    insta::assert_snapshot!("by_ssh", said.collect::<Vec<_>>().join("\n"));
    // The environment of a command that `sudo` starts.
    let without = "env --unset=SSH_CONNECTION --unset=SSH_CLIENT";
    assert_eq!(["nic.json", "sysctl.json"].map(|file| there(without, file)), by_ssh);
    // The address moves to a bridge that has the interface.
    let bridge = "ip link add br0 type bridge; ip link set br0 up; ip link set x0 master br0; ip address flush dev x0; \
                  ip address add 10.97.0.2/24 dev br0";
    succeeded(&hosts.shell(bridge));
    let (code, text) = there("", "nic.json");
    assert!(code == Some(3) && text.contains("your ssh connection leads over br0, which uses it"), "{text}");
    no_journal(&hosts.bench);
}
