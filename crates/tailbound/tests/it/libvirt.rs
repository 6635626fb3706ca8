//! Tests of a libvirt domain, with a libvirtd for each test: it is read, pinned, given real-time policies, and restored
//! after a kill.

use crate::support::Bench;
use crate::support::host::{cannot, no_journal};
use crate::support::libvirt::{Libvirt, with_libvirt};
use crate::support::ssh::TwoHosts;
use crate::tune_export::{exported, receipt_of};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tailbound_host::libvirt::Domain;
use tailbound_host::process::Stat;
use tailbound_host::{Journal, allowed_cpus};
use tailbound_model::{FactValue, Policy, RoleScheduling};

const NAME: &str = "tb-pinned";
/// Description of a libvirt domain with firmware and no disk, which is enough for its threads to run.
const DESCRIPTION: &str = "<domain type='qemu'><name>tb-pinned</name><memory unit='MiB'>64</memory><vcpu>2</vcpu>\
    <iothreads>1</iothreads><os><type arch='x86_64' machine='q35'>hvm</type></os>\
    <devices><memballoon model='none'/></devices></domain>";

fn real_time(cpu: u32) -> RoleScheduling {
    RoleScheduling { policy: Some(Policy::Fifo { priority: 1 }), cpus: Some(tailbound_model::CpuList::one(cpu)) }
}

fn on(cpu: u32) -> RoleScheduling {
    RoleScheduling { policy: None, cpus: Some(tailbound_model::CpuList::one(cpu)) }
}

/// Name, policy with priority, and CPUs of all threads of a process, from /proc.
fn threads(pid: i32) -> Vec<(String, String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().map(|e| e.path());
    let one = |task: std::path::PathBuf| {
        let name = fs::read_to_string(task.join("comm")).ok()?.trim().to_owned();
        let stat = Stat::read(task.join("stat").to_str()?).ok()?;
        let status = fs::read_to_string(task.join("status")).ok()?;
        let cpus = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned();
        // Fields 40 and 41: 1 is SCHED_FIFO, 0 SCHED_OTHER.
        Some((name, format!("{}/{}", stat.field(41)?, stat.field(40)?), cpus))
    };
    tasks.filter_map(one).collect()
}

/// Child process of [`killed`], which kills it: starts the libvirt domain if the domain does not run, and sets the
/// scheduling of the domain's threads.
#[test]
#[ignore = "a process of another test"]
fn controller() {
    let Ok(directory) = std::env::var("TAILBOUND_TEST_JOURNAL") else { return };
    let journal = Journal::create_in(Path::new(&directory), "pinned").unwrap();
    let domain = Domain::find(None, NAME).unwrap();
    domain.start(Duration::from_secs(1), &journal).unwrap();
    domain.apply(&[real_time(0)], &on(1), &journal).unwrap();
    println!("\nready");
    std::thread::sleep(Duration::from_secs(600));
}

/// Starts [`controller`] in a child process, calls `look` when the libvirt domain is scheduled, kills the child
/// process, and runs `tailbound lab cleanup`. Returns the output of `lab cleanup`.
fn killed(bench: &Bench, look: impl FnOnce()) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "libvirt::controller", "--ignored", "--nocapture"]);
    command.env("TAILBOUND_TEST_JOURNAL", bench.path("state/journal"));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line == "ready");
    if ready {
        look();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready, "the controller failed");
    let (code, printed) = bench.lab("cleanup");
    assert_eq!(code, 0, "{printed}");
    no_journal(bench);
    printed
}

#[test]
fn a_domain_is_pinned_and_restored_after_a_kill() {
    if cannot() || allowed_cpus().len() < 2 {
        return println!("skipped: needs root and two CPUs");
    }
    let bench = Bench::new();
    with_libvirt(bench.dir.path(), |libvirt| {
        libvirt.define(DESCRIPTION);
        libvirt.virsh(&["start", NAME]);
        let pid = libvirt.process(NAME).unwrap();
        let before = threads(pid);
        assert!(before.iter().all(|(_, policy, _)| policy == "0/0"), "{before:?}");
        let printed = killed(&bench, || {
            let during = threads(pid);
            for (name, policy, cpus) in &during {
                let asked = if name.starts_with("CPU ") { ("1/1", "0") } else { ("0/0", "1") };
                assert_eq!((policy.as_str(), cpus.as_str()), asked, "{name}: {during:?}");
            }
            let vcpus = during.iter().filter(|(name, ..)| name.starts_with("CPU "));
            assert_eq!(vcpus.count(), 2, "{during:?}");
            known_by_its_facts();
            // Another program changes a pin.
            libvirt.virsh(&["vcpupin", NAME, "1", "1", "--live"]);
        });
        assert!(printed.contains("vCPU 1 of domain tb-pinned is pinned to CPU 1 now, not to CPU 0"), "{printed}");
        libvirt.virsh(&["vcpupin", NAME, "1", &before[0].2, "--live"]);
        assert_eq!(threads(pid), before, "{printed}");

        cannot_be(libvirt, &bench);

        libvirt.virsh(&["destroy", NAME]);
        let printed = killed(&bench, || assert!(libvirt.process(NAME).is_some()));
        assert!(printed.contains("domain tb-pinned was ended, because it did not shut down within 1 s"), "{printed}");
        assert_eq!(libvirt.virsh(&["domstate", NAME]), "shut off");
    });
}

/// Checks that the facts of the libvirt domain have the requested and the actual scheduling.
fn known_by_its_facts() {
    let facts = Domain::find(None, NAME).unwrap().facts().unwrap();
    let text = |key: &str| match facts.iter().find(|f| f.key == format!("domain.{key}")).map(|f| &f.value) {
        Some(FactValue::Text(text)) => text.clone(),
        other => format!("{other:?}"),
    };
    assert_eq!(text("vcpu.0.thread"), "fifo 1, CPU 0");
    assert_eq!([text("vcpu.1.pin"), text("emulator.pin"), text("iothread.1.pin")], ["0", "1", "1"]);
    assert_eq!([text("type"), text("balloon")], ["qemu", "none"]);
    assert!(text("machine").starts_with("pc-q35"), "{facts:?}");
}

/// Checks that impossible requests are refused with the reason, and leave nothing in the journal.
fn cannot_be(libvirt: &Libvirt, bench: &Bench) {
    let journal = Journal::create_in(&bench.path("refused"), "refused").unwrap();
    let no_daemon = Domain::find(Some("qemu+unix:///system?socket=/nowhere"), NAME).unwrap_err();
    assert!(no_daemon.to_string().starts_with("libvirt does not answer at qemu+unix:///"), "{no_daemon}");
    let near = Domain::find(None, "tb-pined").unwrap_err();
    assert_eq!(
        near.to_string(),
        "libvirt at qemu:///system has no domain tb-pined (did you mean tb-pinned?); the domains are tb-pinned"
    );
    let domain = Domain::find(None, NAME).unwrap();
    let refused = |vcpus: &[RoleScheduling]| domain.apply(vcpus, &RoleScheduling::default(), &journal).unwrap_err();
    assert!(refused(&[on(4000)]).to_string().contains("vcpupin"));
    assert!(refused(&[on(0), on(0), on(0)]).to_string().contains("has 2 vCPUs, but the study gives a scheduling to 3"));
    without_runtime(&domain, &journal);
    libvirt.virsh(&["suspend", NAME]);
    let paused = refused(&[on(0)]).to_string();
    assert!(paused.starts_with("domain tb-pinned is paused (user): `virsh resume tb-pinned`"), "{paused}");
    libvirt.virsh(&["resume", NAME]);
    assert!(journal.open_entries().is_empty());
}

/// Checks the error for a thread in a control group without real-time runtime, as libvirt would make it with the
/// controller `cpu`.
fn without_runtime(domain: &Domain, journal: &Journal) {
    let top = Path::new("/sys/fs/cgroup/cpu");
    if !top.join("cpu.rt_runtime_us").exists() {
        return println!("skipped: the kernel has no RT_GROUP_SCHED");
    }
    let group = top.join(format!("tailbound-test-{}", std::process::id()));
    fs::create_dir(&group).unwrap();
    let thread = domain.threads().unwrap().vcpus[0];
    fs::write(group.join("tasks"), thread.to_string()).unwrap();
    let wanted = RoleScheduling { cpus: None, ..real_time(0) };
    let error = domain.apply(&[wanted], &RoleScheduling::default(), journal).unwrap_err().to_string();
    fs::write(top.join("tasks"), thread.to_string()).unwrap();
    fs::remove_dir(&group).unwrap();
    assert!(error.contains(group.to_str().unwrap()) && error.contains("`cgroup_controllers`"), "{error}");
}

/// A study with a guest that has all the tuning that emulation and two CPUs allow.
const STUDY: &str = "study: exported\nquestion: q\nmeasure: { ping-pong: { duration: 1 s } }\nrate: 100 Hz\ndriver: udp\npath: bridge\n\
    place: { vm: { accelerator: emulated, vcpus: 2, memory: 256 MiB, vcpu_threads: [{ policy: rr, priority: 1, cpus: 1 }], \
    emulator: { cpus: 0 } } }\n";

#[test]
fn libvirt_accepts_the_export_with_the_pins_of_the_study() {
    if cannot() || allowed_cpus().len() < 2 {
        return println!("skipped: needs root and two CPUs");
    }
    let bench = Bench::new();
    let export = |out: &str| {
        let mut command = bench.tailbound();
        command.args(["lab", "export", "--format", "libvirt", "--out", out]).arg(bench.study(STUDY));
        command.output().unwrap()
    };
    crate::support::succeeded(&export("out"));
    // Existing files are not overwritten.
    let again = export("out");
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    let host = fs::read_to_string(bench.path("out/realtime-virtual-host-variables.conf")).unwrap();
    assert!(host.contains("\nisolated_cores=1\n"), "{host}");
    with_libvirt(bench.dir.path(), |libvirt| {
        let bridge = Command::new("ip").args(["link", "add", "br0", "type", "bridge"]).status().unwrap();
        assert!(bridge.success());
        libvirt.define(&fs::read_to_string(bench.path("out/ping.xml")).unwrap());
        // The guest runs only while its facts are read, because its vCPUs leave hardly any time of their CPU to other tests.
        // Their policy is SCHED_RR: with SCHED_FIFO a vCPU that waits for the other in a loop never lets it run, and then
        // QEMU answers no more.
        libvirt.virsh(&["start", "ping", "--paused"]);
        libvirt.virsh(&["resume", "ping"]);
        let facts = Domain::find(None, "ping").unwrap().facts().unwrap();
        let has = |key: &str, value: &str| {
            let fact = facts.iter().find(|f| f.key == format!("domain.{key}")).unwrap_or_else(|| panic!("no {key}"));
            assert_eq!(fact.value, FactValue::Text(value.into()), "{key}");
        };
        has("vcpu.0.thread", "rr 1, CPU 1");
        has("vcpu.1.thread", "rr 1, CPU 1");
        has("emulator.pin", "0");
        has("interface.0.kind", "bridge br0");
        has("balloon", "none");
        libvirt.virsh(&["destroy", "ping"]);
        exported_by_tune(libvirt, &bench);
    });
}

/// Checks that libvirt accepts what `tune export` prints for the threads of a guest, and applies it.
fn exported_by_tune(libvirt: &Libvirt, bench: &Bench) {
    let kept = [
        "place.vm.vcpu_threads=[[{ policy: rr, priority: 2, cpus: 1 }, { policy: batch, cpus: 0 }]]",
        "place.vm.emulator={ policy: rr, priority: 1, cpus: 0 }",
    ];
    receipt_of(bench, "receipt.json", STUDY, &kept);
    let lines = exported(bench, &["receipt.json", "--format", "libvirt", "--end", "pong"]);
    libvirt.define(&DESCRIPTION.replace("</domain>", &format!("{lines}</domain>")));
    let stored = libvirt.virsh(&["dumpxml", "--inactive", NAME]);
    let elements: Vec<&str> = lines.lines().filter_map(|l| l.trim().strip_suffix("/>")).collect();
    assert_eq!(elements.len(), 6, "{lines}");
    for element in elements {
        assert!(stored.contains(element), "{element} is in {stored}");
    }
    libvirt.virsh(&["start", NAME, "--paused"]);
    let seen = threads(libvirt.process(NAME).unwrap());
    let of = |name: &str| {
        seen.iter().find(|(thread, ..)| thread.starts_with(name)).map(|(_, policy, cpus)| (&**policy, &**cpus))
    };
    assert_eq!(
        [of("CPU 0/"), of("CPU 1/"), of("qemu-system")],
        [Some(("2/2", "1")), Some(("3/0", "0")), Some(("2/1", "0"))],
        "{seen:?}"
    );
    libvirt.virsh(&["destroy", NAME]);
    // A policy that libvirt does not have is named once, with the setting that has it.
    let unknown = ["place.vm.vcpu_threads=[[{ policy: batch, nice: 5, cpus: 1 }, { cpus: 0 }]]", kept[1]];
    receipt_of(bench, "unknown.json", STUDY, &unknown);
    let lines = exported(bench, &["unknown.json", "--format", "libvirt", "--end", "pong"]);
    let named: Vec<&str> = lines.lines().filter(|line| line.contains("libvirt cannot describe")).collect();
    assert!(named.len() == 1 && named[0].contains(unknown[0]), "{lines}");
}

/// Test of a libvirt domain as the place of an end: the libvirt domain is started, gets the requested scheduling, and
/// is afterwards as before. The system of the libvirt domain is reached by ssh; in this test, ssh leads to the second
/// host, because a libvirt domain without a disk has no system.
#[test]
fn a_domain_as_a_place_is_steered_while_it_measures_and_is_as_before() {
    if cannot() || allowed_cpus().len() < 2 {
        return println!("skipped: needs root and two CPUs");
    }
    let bench = Bench::new();
    with_libvirt(bench.dir.path(), |libvirt| {
        libvirt.define(DESCRIPTION);
        let hosts = TwoHosts::new(1_000);
        let program = env!("CARGO_BIN_EXE_tailbound");
        let study = |name: &str| {
            format!(
                "study: domain\nquestion: q\nmeasure: {{ ping-pong: {{ duration: 4 s }} }}\nrate: 500 Hz\ndriver: udp\n\
                 ends:\n  ping: {{ cpus: \"1\" }}\n  pong: {{ place: {{ domain: {{ name: {name}, ssh: {{ host: guest-1, \
                 program: {program} }}, vcpu_threads: [{{ policy: fifo, priority: 1, cpus: \"0\" }}], emulator: {{ cpus: \
                 \"1\" }} }} }} }}\n\
                 path: {{ existing: {{ ping: {{ interface: x0 }}, pong: {{ interface: x0 }} }} }}\n"
            )
        };
        let child = hosts.bench.measuring(hosts.run(&study(NAME)));
        let during = threads(libvirt.process(NAME).expect("it was started"));
        let vcpus: Vec<_> = during.iter().filter(|(name, ..)| name.starts_with("CPU ")).collect();
        assert_eq!(vcpus.len(), 2, "{during:?}");
        assert!(vcpus.iter().all(|(_, policy, cpus)| (policy.as_str(), cpus.as_str()) == ("1/1", "0")), "{during:?}");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", hosts.bench.stderr());
        let (report, manifest) = (hosts.bench.report(), hosts.bench.manifest());
        assert_eq!(report["status"], "valid", "{}", report["warnings"]);
        assert_eq!(report["conditions"][0]["counts"]["answered"], 2000);
        assert_eq!(manifest["functional_only"], "the virtual CPUs of domain tb-pinned are emulated");
        let facts = fs::read_dir(hosts.bench.path("record/facts")).unwrap().flatten();
        let facts: Vec<String> = facts.map(|file| fs::read_to_string(file.path()).unwrap()).collect();
        assert!(facts.iter().any(|text| text.contains("domain.vcpu.0.thread") && text.contains("fifo 1, CPU 0")));
        // The domain was shut off before, and is shut off again.
        assert_eq!(libvirt.virsh(&["domstate", NAME]), "shut off");
        no_journal(&hosts.bench);
        hosts.bench.remove_record();
        let output = hosts.run(&study("tb-pined")).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{printed}");
        assert!(printed.contains("has no domain tb-pined (did you mean tb-pinned?)"), "{printed}");
        no_journal(&hosts.bench);
    });
}
