//! Test of an end in a libvirt domain that boots its own system: libvirt starts and stops the domain, the agent is
//! reached over channels of virtio-serial, and messages pass a bridge that existed before.

use crate::support::host::{cannot, no_journal};
use crate::support::libvirt::{Libvirt, with_libvirt};
use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tailbound_host::allowed_cpus;

const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guests/rt.deb");

fn tailbound(bench: &Bench) -> Command {
    let mut command = bench.tailbound();
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"));
    command
}

/// Rate of the host's time stamp counter in kHz, which an emulated kernel does not measure well on a busy host.
fn khz() -> u32 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap();
    let mhz =
        text.lines().find_map(|l| l.strip_prefix("cpu MHz")).and_then(|l| l.split_once(':')).expect("its speed").1;
    (mhz.trim().parse::<f64>().unwrap() * 1000.0) as u32
}

/// Description of a libvirt domain whose kernel is started by libvirt, and whose only program is Tailbound, which
/// serves the channels with Tailbound's names.
fn description(bench: &Bench, channels: u32) -> String {
    let boot = bench.path("boot");
    succeeded(&tailbound(bench).args(["guest", "build", "--kernel", KERNEL, "--out"]).arg(&boot).output().unwrap());
    let line = format!(
        "console=ttyS0 quiet panic=-1 rootfstype=ramfs tsc=reliable no_timer_check tsc_early_khz={} tailbound.name=booted \
         tailbound.ports=named tailbound.nic=52:54:00:aa:00:02,10.9.0.2/24,1500",
        khz()
    );
    let channel = |n| format!("<channel type='unix'><target type='virtio' name='org.tailbound.agent.{n}'/></channel>");
    let channels: String = (0..channels).map(channel).collect();
    let at = boot.display();
    format!(
        "<domain type='qemu'><name>tb-booted</name><memory unit='MiB'>512</memory><vcpu>1</vcpu>\
         <os><type arch='x86_64' machine='q35'>hvm</type><kernel>{at}/kernel</kernel><initrd>{at}/initramfs</initrd>\
         <cmdline>{line}</cmdline></os><features><acpi/><apic/></features><cpu mode='maximum'/><devices>\
         <interface type='bridge'><mac address='52:54:00:aa:00:02'/><source bridge='br0'/><model type='virtio'/></interface>\
         {channels}<serial type='file'><source path='{at}/console.log'/></serial><memballoon model='none'/></devices></domain>"
    )
}

fn ip(words: &str) {
    assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
}

const STUDY: &str = "study: booted\nquestion: q\nmeasure: { ping-pong: { duration: 1 s } }\nrate: 200 Hz\ndriver: udp\nends:\n  \
                     ping: { cpus: \"1\" }\n  pong: { cpus: \"0\", place: { domain: { name: tb-booted, vcpu_threads: [{ policy: fifo, \
                     priority: 1, cpus: \"0\" }], emulator: { cpus: \"1\" } } } }\n\
                     path: { existing: { ping: { interface: br0 }, pong: { interface: eth0 } } }\n";

fn run(bench: &Bench) -> (i32, String) {
    exit_and_stderr(&bench.to_run(tailbound(bench), "record", STUDY).output().unwrap())
}

#[test]
fn a_domain_with_a_system_of_its_own_is_measured_over_its_channels() {
    if cannot() || allowed_cpus().len() < 2 {
        return println!("skipped: needs root and two CPUs");
    }
    let bench = Bench::new();
    with_libvirt(bench.dir.path(), |libvirt| {
        ip("link set lo up");
        ip("link add br0 type bridge");
        ip("address add 10.9.0.1/24 dev br0");
        ip("link set br0 up");
        too_few(libvirt, &bench);
        libvirt.define(&description(&bench, 8));
        libvirt.virsh(&["start", "tb-booted"]);
        let (code, printed) = run(&bench);
        let console = || fs::read_to_string(bench.path("boot/console.log")).unwrap_or_default();
        assert_eq!(code, 0, "{printed}\n{}", console());
        let (report, manifest) = (bench.report(), bench.manifest());
        assert_eq!(report["status"], "valid", "{}", report["warnings"]);
        assert_eq!(report["conditions"][0]["counts"]["answered"], 200);
        assert_eq!(manifest["functional_only"], "the virtual CPUs of domain tb-booted are emulated");
        // The record has the domain's real-time kernel, and the policy that this host gave its thread.
        let files = fs::read_dir(bench.path("record/facts")).unwrap().flatten();
        let texts: Vec<String> = files.map(|file| fs::read_to_string(file.path()).unwrap()).collect();
        let of_domain = texts.iter().find(|t| t.contains("domain.vcpu.0.thread")).expect("its facts");
        assert!(of_domain.contains("fifo 1, CPU 0") && of_domain.contains("PREEMPT_RT"), "{of_domain}");
        // The domain ran before and still runs, with the scheduling of its threads as before.
        assert_eq!(libvirt.virsh(&["domstate", "tb-booted"]), "running");
        let vcpu = libvirt.virsh(&["vcpupin", "tb-booted"]);
        assert!(vcpu.ends_with(&everywhere()), "{vcpu}");
        no_journal(&bench);
        stops_are_named(&bench);
        ends_in_mid_run(libvirt, &bench);
    });
}

/// All online CPUs, as `virsh vcpupin` shows them for a thread that is not pinned.
fn everywhere() -> String {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    text.trim().to_owned()
}

fn too_few(libvirt: &Libvirt, bench: &Bench) {
    libvirt.define(&description(bench, 2));
    libvirt.virsh(&["start", "tb-booted"]);
    let (code, printed) = run(bench);
    libvirt.virsh(&["destroy", "tb-booted"]);
    libvirt.virsh(&["undefine", "tb-booted"]);
    assert_eq!(code, 3, "{printed}");
    assert!(
        printed.contains("domain tb-booted: the domain has 2 virtio-serial channels named org.tailbound.agent.*"),
        "{printed}"
    );
    bench.remove_record();
    no_journal(bench);
}

/// Process id of the QEMU that runs the libvirt domain.
fn qemu() -> i32 {
    let is = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains("qemu-system") && words.contains("guest=tb-booted,")
    };
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(is).expect("the process of the domain")
}

/// Tests that the report names stops of the process that runs the libvirt domain, which nothing inside of it can show.
fn stops_are_named(bench: &Bench) {
    bench.remove_record();
    let study = STUDY.replace("duration: 1 s", "duration: 4 s") + "attribution: machine\n";
    let child = bench.measuring(bench.to_run(tailbound(bench), "record", &study));
    let qemu = qemu();
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(500));
        // SAFETY: a process that this test started.
        unsafe { libc::kill(qemu, libc::SIGSTOP) };
        std::thread::sleep(Duration::from_millis(60));
        // SAFETY: as above.
        unsafe { libc::kill(qemu, libc::SIGCONT) };
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", bench.stderr());
    let report = bench.report();
    let incidents = report["conditions"][0]["incidents"].as_array().unwrap();
    let is_named = |incident: &&Value| {
        let entries = incident["ledger"].as_array().into_iter().flatten();
        let stops =
            entries.filter(|e| e["cause"] == "stopped" && e["by"]["name"] == "the hypervisor of guest tb-booted");
        let ns: i64 = stops.map(|e| e["ns_low"].as_i64().unwrap()).sum();
        // Limit: the stop was 60 ms long.
        ns > 40_000_000 && ns * 2 > incident["excess_ns"].as_i64().unwrap()
    };
    assert!(incidents.iter().filter(is_named).count() >= 4, "{}", serde_json::to_string_pretty(incidents).unwrap());
    no_journal(bench);
}

/// Tests that, if the libvirt domain ends during a run, the error message gives the reason, and the journal has no
/// entry left.
fn ends_in_mid_run(libvirt: &Libvirt, bench: &Bench) {
    bench.remove_record();
    let study = STUDY.replace("duration: 1 s", "duration: 8 s");
    let child = bench.measuring(bench.to_run(tailbound(bench), "record", &study));
    libvirt.virsh(&["destroy", "tb-booted"]);
    let output = child.wait_with_output().unwrap();
    let manifest: Value = bench.manifest();
    assert_ne!(output.status.code(), Some(0));
    let printed = bench.stderr();
    assert!(printed.contains("libvirt reports that the domain is shut off"), "{printed}\n{manifest}");
    no_journal(bench);
}
