//! Tests of ends in guests. QEMU emulates the guests, so that the tests need no KVM; their kernel is Debian's real-time
//! kernel, which `dev/setup vm` downloads.

use crate::support::guests::{Guests, KERNEL, study};
use crate::support::host::signal;
use crate::support::security::{all_secured, built};
use crate::support::{exit_and_stderr, fastdds, output_of};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Test: every path between guests that this machine can make carries every message.
#[test]
fn every_path_between_two_guests_delivers_and_leaves_nothing() {
    let guests = Guests::new();
    let paths = "path: [bridge, macvtap, xdp, { xdp: { mode: generic } }, open-vswitch, { open-vswitch: { ports: \
                 af-xdp-native } }, { open-vswitch: { ports: af-xdp-generic } }, datagram]";
    let text = study("slots: 200, warm_up: 20, timeout: 5 s", "", &format!("driver: udp\nfactors: {{ {paths} }}"));
    let report = guests.valid(&text);
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 8);
    for condition in conditions {
        let counts = &condition["counts"];
        assert_eq!((&counts["answered"], &counts["lost"]), (&200.into(), &0.into()), "{condition}");
        // The ports of the path count each message and each answer. A path of sockets (datagram) has no ports that count.
        let trial = &report["trials"][condition["trial_ids"][0].as_u64().unwrap() as usize];
        let ports = trial["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
        let path = condition["levels"]["path"].as_str().unwrap();
        assert_eq!(ports.len(), if path == "datagram" { 0 } else { 2 }, "{trial}");
        let counter = match path {
            path if path.starts_with("xdp") => "xdp.redirected",
            path if path.starts_with("open-vswitch") => "switch.rx_packets",
            _ => "interface.rx_packets",
        };
        for port in ports {
            assert!(port["counters"][counter].as_i64() >= Some(220), "{path}: {port}");
        }
        let told = condition["path_proof"]["text"].as_str().unwrap();
        assert_eq!(told.contains("the path itself: "), path != "datagram", "{told}");
        // The two ends have two kernels and so two clocks: one-way figures are ranges.
        assert!(condition["out"].is_null() && condition["out_range"]["low"].is_object(), "{condition}");
    }
    let manifest = guests.bench.manifest();
    let functional = manifest["functional_only"].as_str().unwrap();
    assert!(functional.contains("the virtual CPUs of guest ping are emulated"), "{functional}");
    let facts = fs::read_dir(guests.bench.path("record/facts")).unwrap().flatten();
    let facts: Vec<String> = facts.map(|file| fs::read_to_string(file.path()).unwrap()).collect();
    let guest = facts.iter().find(|text| text.contains("\"guest ping\"")).expect("facts of the guest");
    for word in ["guest.accelerator", "emulated", "guest.qemu", "kernel.preempt_rt", "guest.thread.", "clocksource"] {
        assert!(guest.contains(word), "{word} in {guest}");
    }
    // The network card as the guest sees it: without offloads, and with the CPUs of its interrupts.
    let sides = report["path"][0]["ends"].as_array().unwrap();
    for side in sides {
        let of =
            |key: &str| side["card"].as_array().unwrap().iter().find(|f| f["key"].as_str().unwrap().starts_with(key));
        let features = of("virtio.features").unwrap_or_else(|| panic!("{side}"))["value"].as_str().unwrap().to_owned();
        let features: Vec<&str> = features.split(' ').collect();
        assert!(features.contains(&"version_1") && features.contains(&"ctrl_vq"), "{features:?}");
        assert!(!features.contains(&"csum") && !features.contains(&"mrg_rxbuf"), "{features:?}");
        assert_eq!((&of("queues.rx").unwrap()["value"], &of("queues.tx").unwrap()["value"]), (&1.into(), &1.into()));
        assert!(of("interrupt.").unwrap()["value"].as_str().unwrap().contains(": may use CPUs 0, goes to 0"), "{side}");
    }
    let console = fs::read_to_string(guests.bench.path("record/logs/console-pong.log")).unwrap();
    assert!(console.contains("READY"), "{console}");
    guests.nothing_is_left();
}

/// Test: the agent inside a guest and the virtual CPUs on the host have the policies that the study requests, as
/// programs other than Tailbound read them.
#[test]
fn policies_are_in_effect_inside_and_outside_of_a_guest() {
    let guests = Guests::new();
    let vm = ", name: rt, vcpu_threads: [{ policy: fifo, priority: 1, cpus: \"1\" }], emulator: { cpus: \"0\" }";
    let text = study("duration: 4 s", vm, "driver: cyclonedds\npath: bridge")
        .replace("place:", "ends:\n  ping: { place: netns, cpus: \"0\" }\n  pong:\n    scheduling: { policy: fifo, priority: 50 }\n    place:");
    let child = guests.measuring(&text);
    let qemu = guests.processes("qemu-system");
    let threads = fs::read_dir(format!("/proc/{}/task", qemu[0])).unwrap().flatten();
    let mut vcpus = 0;
    for thread in threads {
        let tid = thread.file_name().to_str().unwrap().to_owned();
        let name = fs::read_to_string(thread.path().join("comm")).unwrap();
        let (policy, cpus) = (output_of("chrt", &["-p", &tid]), output_of("taskset", &["-cp", &tid]));
        if name.starts_with("CPU 0/") {
            vcpus += 1;
            assert!(policy.contains("SCHED_FIFO") && policy.ends_with("priority: 1"), "{policy}");
            assert!(cpus.ends_with(": 1"), "{cpus}");
        } else {
            assert!(policy.contains("SCHED_OTHER") && cpus.ends_with(": 0"), "{name}: {policy} {cpus}");
        }
    }
    assert_eq!(vcpus, 1);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", guests.bench.stderr());
    let report = guests.bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    assert_eq!(report["conditions"][0]["counts"]["answered"], 800, "{}", report["conditions"][0]["counts"]);
    let tables = report["threads"].as_array().unwrap();
    let inside = tables.iter().find(|table| table["ends"][0] == "pong").expect("the threads in the guest");
    let rows = inside["after"].as_array().unwrap();
    assert!(rows.len() > 3 && rows.iter().all(|row| row["policy"] == "fifo 50"), "{inside}");
    // The record has the diagnostics logs of the controller, of the guest's holder, and of the agent inside.
    for (name, line) in [
        ("controller.log", "guest started guest=\"rt\""),
        ("host-guest-rt.log", "holder listens"),
        ("agent-pong.log", "measuring process started"),
    ] {
        assert!(guests.bench.log(name).contains(line), "{name}: {}", guests.bench.log(name));
    }
    guests.nothing_is_left();
}

/// Test of the built-in studies of guests, shortened: two network namespaces of this host and two guests over one
/// bridge; and periodic messages into a guest, without a load and during bulk streams.
#[test]
fn the_studies_of_guests_measure_hosts_and_guests() {
    let guests = Guests::new();
    let run = |study: &str, settings: &[&str]| {
        let mut command = guests.tailbound();
        command.args(["run", study, "--quiet", "--out", "record"]);
        let kernel = format!("place.kernel={{ package: {KERNEL} }}");
        let of_guest = |at: &str| [format!("{at}{kernel}"), format!("{at}place.accelerator=emulated")];
        let place = if study == "vm-bridges" { of_guest("ends.pong.") } else { of_guest("") };
        let short = ["repeat=1", "measure.warm_up=20", "measure.timeout=5s", "quiet=off"].map(str::to_owned);
        for setting in place.into_iter().chain(short).chain(settings.iter().map(|s| (*s).to_owned())) {
            command.args(["--set", &setting]);
        }
        let (code, text) = exit_and_stderr(&command.output().unwrap());
        assert_eq!(code, 0, "{study}: {text}");
        let report = guests.bench.report();
        assert_eq!(report["status"], "valid", "{}", report["warnings"]);
        guests.nothing_is_left();
        let manifest = guests.bench.manifest();
        guests.bench.remove_record();
        (report, manifest)
    };
    let (report, _) =
        run("vm-latency", &["setting=[host, guests]", "place.vcpus=1", "payload=[64 B, 4 KiB]", "measure.duration=2s"]);
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 4);
    for condition in conditions {
        assert_eq!((&condition["counts"]["lost"], &condition["counts"]["not_sent"]), (&0.into(), &0.into()));
        let guests = condition["levels"]["setting"] == "guests";
        assert_eq!(
            (condition["out"].is_object(), condition["out_range"].is_object()),
            (!guests, guests),
            "{condition}"
        );
    }
    let range = "report.range={ from: 500 ms, to: 1500 ms }";
    // A tenth of the streams of the built-in study, which is the most that an emulated guest can receive.
    let load = "load=[[], [{ run: { udp-stream: { flows: 3, rate: 1 kHz } } }]]";
    let (report, manifest) =
        run("vm-bridges", &["over=[vfio, bridge]", "ends.pong.place.vcpus=1", "measure.duration=2s", range, load]);
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 4);
    let (cards, bridges): (Vec<_>, Vec<_>) = conditions.iter().partition(|c| c["levels"]["over"] == "vfio");
    for condition in cards {
        assert_eq!(condition["status"], "not_possible");
        let why = condition["not_possible"].as_str().unwrap();
        assert!(why.contains("this host has no PCI device 0000:03:00.0"), "{why}");
    }
    let against = report["against"]["rows"].as_array().unwrap();
    let cards: Vec<_> = against.iter().map(|row| row["why"].as_str().unwrap()).collect();
    assert!(cards.len() == 2 && cards.iter().all(|why| why.starts_with("not possible")), "{cards:?}");
    for condition in bridges {
        let counts = &condition["counts"];
        assert_eq!(counts["scheduled"], 1988, "{counts}");
        // An emulated guest may drop messages during bulk streams.
        let idle = condition["levels"]["load"] == "none";
        assert!(if idle { counts["lost"] == 0 } else { counts["answered"].as_u64() > Some(1000) }, "{counts}");
        let most = |leg: &str| condition[leg]["high"]["quantiles"][0]["value_ns"].as_i64().expect("a median");
        let trial = &manifest["trials"][condition["trial_ids"][0].as_u64().unwrap() as usize];
        // A time stamp of the kernel is converted to the clock of the end; the record has the error of the conversion.
        let converted_ns = trial["ends"]["pong"]["clock_width_ns"].as_i64().expect("stamps were converted");
        assert!(most("out_network_range") <= most("out_range") + converted_ns, "{condition}");
        assert!(condition["range"].is_object(), "the chosen range stands beside the whole");
    }
}

/// For each thread that was waiting for a CPU when the trial ended: lower limit of the time for which it had waited
/// during the trial, in ns.
fn waited_at_the_end(report: &Value, trial: usize) -> Vec<i64> {
    let processes = report["threads"].as_array().unwrap().iter().filter(|p| p["trial"] == trial);
    let threads = processes.flat_map(|p| p["after"].as_array().unwrap()).filter(|t| t["later"].is_object());
    let number = |value: &Value| value.as_i64().unwrap();
    let within =
        |t: &Value| number(&t["later"]["run_delay_ns"]) - number(&t["run_delay_ns"]) - number(&t["later"]["after_ns"]);
    threads.map(within).collect()
}

/// Test inside a guest, with a kernel that has no fair server and with real-time throttling off: a real-time task keeps
/// time-sharing threads of the middleware from their CPU until the task ends, but not threads of a higher priority.
#[test]
fn a_real_time_task_starves_threads_of_the_middleware_on_a_real_time_kernel() {
    let guests = Guests::that_boot();
    let mut command = guests.tailbound();
    command.args(["guest", "run", "--kernel", KERNEL, "--accelerator", "emulated", "--vcpus", "2", "--out", "record"]);
    command.arg("child-threads");
    for setting in [
        "driver=cyclonedds",
        "measure.on_overrun=catch-up",
        "measure.duration=2s",
        "measure.timeout=1s",
        "quiet=off",
        "repeat=1",
        "arrangement=[{ processes: 2, participants: 2, executors: 2 }]",
        "load=[[{ run: cpu, scheduling: { policy: rr, priority: 90, cpus: '0' } }]]",
        "host={ real_time_throttling: off }",
        // Recorded events patch the code of the kernel, after which a guest with several emulated CPUs may hang (QEMU 7.2).
        "attribution=off",
    ] {
        command.args(["--set", setting]);
    }
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    assert_eq!(code, 0, "{text}");
    let report = guests.bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 2);
    for condition in conditions {
        let starved = condition["levels"]["scheduling"].as_str().unwrap().ends_with("other");
        let answered = condition["counts"]["answered"].as_u64().unwrap();
        assert_eq!(answered, if starved { 0 } else { 200 }, "{condition}");
        let trial = condition["trial_ids"][0].as_u64().unwrap() as usize;
        let pattern = &report["trials"][trial]["pattern"]["name"];
        // A starved thread may have a lock that the main thread needs, in its send call or outside of it.
        let blocked = pattern == "main thread blocked" || pattern == "publish blocked";
        let told = pattern == "messages lost" || blocked && starved;
        assert_eq!(told, starved, "{pattern}");
        // The kernel counts the waiting time only when the thread gets a CPU, after the load has ended.
        let waited_ns = waited_at_the_end(&report, trial).into_iter().max().unwrap_or(0);
        let told = |f: &&Value| f["code"] == "starved" && f["conditions"][0] == condition["id"];
        let told = report["findings"].as_array().unwrap().iter().find(told).map(|f| f["text"].as_str().unwrap());
        assert_eq!(told.is_some(), starved, "{}", report["findings"]);
        if let Some(text) = told {
            assert!(waited_ns >= 2_000_000_000, "{waited_ns} ns of a trial of 2 s and the time-out after it");
            let words = ["of the ping end (other) was ready to run but waited", "In this time the load `cpu` (rr 90)"];
            assert!(words.iter().all(|w| text.contains(w)), "{text}");
        }
    }
    let settings = &guests.bench.manifest()["host_settings"][0]["settings"][0];
    assert_eq!(settings["found"], "-1");
    assert!(settings["put_back"].as_str().unwrap().contains("950000"), "{settings}");
    guests.nothing_is_left();
}

/// Test: a guest that ends during a run is reported, and after a kill of the controller the clean-up leaves nothing.
#[test]
fn guests_that_end_or_stop_and_a_controller_that_is_killed() {
    // A guest that continues from a snapshot has printed its last words before.
    let guests = Guests::that_boot();
    // The ping end goes on for the whole trial after the guest of the pong end is killed.
    let text = study("duration: 15 s", "", "driver: udp\npath: open-vswitch");
    let child = guests.measuring(&text);
    // SAFETY: a process that this test has started.
    unsafe { libc::kill(guests.of_end("pong"), libc::SIGKILL) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", guests.bench.stderr());
    let errors = guests.bench.stderr();
    for words in ["agent pong was lost in mid-trial", "guest pong: QEMU has ended (signal: 9", "end of the console"] {
        assert!(errors.contains(words), "{words} in {errors}");
    }
    guests.nothing_is_left();
    guests.bench.remove_record();

    let mut child = guests.measuring(&text);
    assert_eq!(guests.processes("qemu-system").len(), 2);
    assert!(guests.processes("ovs").len() >= 2);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let output = guests.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let cleaned = String::from_utf8_lossy(&output.stdout).into_owned() + &exit_and_stderr(&output).1;
    assert!(output.status.success() && cleaned.contains("QEMU of guest ping"), "{cleaned}");
    guests.nothing_is_left();
}

/// Test: a signal while guests boot ends the run; no trial begins, and nothing of the guests is left.
#[test]
fn a_signal_while_guests_boot_ends_them() {
    let guests = Guests::that_boot();
    let printed = fs::File::create(guests.bench.path("stderr")).unwrap();
    let text = study("slots: 10", "", "driver: udp\npath: bridge");
    let mut child = guests.run(&text).stdout(std::process::Stdio::null()).stderr(printed).spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while guests.processes("qemu-system").len() < 2 {
        assert!(std::time::Instant::now() < until, "{}", guests.bench.stderr());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    signal(&child, libc::SIGINT);
    let status = child.wait().unwrap();
    let told = guests.bench.stderr();
    assert!(!status.success() && told.contains("the run was interrupted before trial 1 of 1"), "{told}");
    assert!(!told.contains("trial 1/1"), "it booted, and was asked to measure: {told}");
    assert!(!guests.bench.path("record").exists(), "a run that measured nothing leaves nothing: {told}");
    guests.nothing_is_left();
}

/// Test: the QEMU of a guest is stopped for a second. The counter on which the guest's clock is based continues, so
/// messages take up to a second and the trial stays valid.
#[test]
fn a_guest_that_stood_still_has_late_messages_and_a_clock_that_went_on() {
    let guests = Guests::that_boot();
    let child = guests.measuring(&study("duration: 10 s, timeout: 5 s", "", "driver: udp\npath: bridge"));
    let pong = guests.of_end("pong");
    // Twice: on a busy machine the first stop may come before the first slot.
    for _ in 0..2 {
        // SAFETY: a process that this test has started.
        unsafe { libc::kill(pong, libc::SIGSTOP) };
        std::thread::sleep(std::time::Duration::from_millis(1000));
        // SAFETY: the same.
        unsafe { libc::kill(pong, libc::SIGCONT) };
        std::thread::sleep(std::time::Duration::from_millis(3000));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", guests.bench.stderr());
    let report = guests.bench.report();
    let worst = report["conditions"][0]["round_trip"]["max_ns"].as_i64().unwrap();
    assert!(worst >= 900_000_000, "{worst}");
    guests.nothing_is_left();
}

/// Test: the clock of a guest is made faster by a known rate, from inside the guest, and the bounds of the clock drift,
/// computed from the messages, enclose this rate. A step of the wall clock makes the trial of the step invalid, and no
/// other trial.
#[test]
fn a_clock_that_is_slewed_or_stepped_inside_a_guest_is_found() {
    const PPM: f64 = 400.0;
    let guests = Guests::that_boot();
    let text = study("duration: 8 s, timeout: 5 s", "", "driver: { udp: { timestamps: on } }\npath: bridge\nrepeat: 3");
    let child = guests.measuring(&text);
    let directory =
        fs::read_dir(guests.bench.path("scratch")).unwrap().flatten().next().unwrap().path().join("guest-pong");
    let inside = |setting: &[&str]| {
        let mut command = guests.tailbound();
        command.args(["guest", "stream", "--directory"]).arg(&directory).args(["--", "guest", "clock"]).args(setting);
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    inside(&["--ppm", "400"]);
    guests.bench.wait_for_event("measuring begins", 3);
    std::thread::sleep(std::time::Duration::from_millis(500));
    inside(&["--step-ms", "50"]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", guests.bench.stderr());
    let manifest = guests.bench.manifest();
    let of = |trial: usize| manifest["trials"][trial]["status"].as_str().unwrap().to_owned();
    assert_eq!([of(1), of(2)], ["valid", "invalid"], "{}", manifest["warnings"]);
    let warning = manifest["warnings"].as_array().unwrap().iter().find(|w| w["code"] == "clock_stepped").unwrap();
    let told = warning["text"].as_str().unwrap().split_once("stepped by ").unwrap().1.split(' ').next().unwrap();
    let step_ms: f64 = told.parse().unwrap();
    assert!(warning["trial"] == 2 && (45.0..55.0).contains(&step_ms), "{warning}");

    let record = tailbound_record::Record::open(&guests.bench.path("record")).unwrap();
    let mut clocks = tailbound_stats::TwoClocks::default();
    let there = |ns: i64| ns != tailbound_model::NO_TIME;
    record
        .slots(1, &mut |batch| {
            for i in (0..batch.len()).filter(|i| there(batch.receive_ns[*i]) && there(batch.echo_in_ns[*i])) {
                clocks.there(batch.send_begin_ns[i], batch.echo_in_ns[i]);
                clocks.back(batch.echo_begin_ns[i], batch.receive_ns[i]);
            }
        })
        .unwrap();
    let [least, most] = clocks.bounds().expect("two clocks that fit").drift_ns_per_s();
    // Both kernels calibrate their clock with the same counter of this host, to a few millionths.
    assert!(least <= PPM * 1e3 + 20e3 && PPM * 1e3 - 20e3 <= most, "{least} to {most} ns a second");
    assert!(least > 0.0, "the other clock was set to run faster: {least} to {most} ns a second");
    guests.nothing_is_left();
}

#[test]
fn impossible_studies_are_refused_with_a_remedy() {
    let guests = Guests::new();
    let mut all = String::new();
    let mut refused = |what: &str, (guest, rest): (&str, &str), path: Option<&Path>| {
        let mut command = guests.run(&study("slots: 10", guest, rest));
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let (code, text) = exit_and_stderr(&command.output().unwrap());
        guests.nothing_is_left();
        guests.bench.remove_record();
        // Debian's package of the kernel has another number after each update.
        let is_release = |word: &&str| word.starts_with("6.1.0-") && word.ends_with("-rt-amd64");
        let text = match text.split_whitespace().find(is_release) {
            Some(release) => text.replace(release, "RELEASE"),
            None => text.clone(),
        };
        all += &format!("# {what}: exit {code}\n{}\n", text.replace(KERNEL, "KERNEL").trim_end());
    };
    let empty = guests.bench.path("empty");
    fs::create_dir(&empty).unwrap();
    let udp = "driver: udp\npath: bridge";
    refused("no QEMU", ("", udp), Some(&empty));
    refused("a module that this kernel has not", (", modules: [no_such_module]", udp), None);
    refused("vhost where the kernel has none", (", vhost: on", udp), None);
    refused(
        "the kernel's Open vSwitch where there is none",
        ("", "driver: udp\npath: { open-vswitch: { ports: kernel } }"),
        None,
    );
    refused("a virtual CPU on a CPU that is not there", (", vcpu_threads: [{ cpus: \"77\" }]", udp), None);
    let jumbo = "driver: udp\npath: { open-vswitch: { ports: af-xdp-native, mtu: 9000 } }";
    refused("more than a frame of AF_XDP", ("", jumbo), None);
    refused("offloads where nobody fills them in", (", offloads: on", "driver: udp\npath: xdp"), None);
    insta::assert_snapshot!(all);
}

/// Test: the files of DDS Security reach ends in guests, with each vendor. The guests boot, because certificates are not valid before
/// they were made, and the clock of a guest from a snapshot is behind.
#[test]
fn ends_in_guests_have_identities() {
    built();
    let drivers = if fastdds::built().is_some() { "[cyclonedds, fastdds]" } else { "[cyclonedds]" };
    let guests = Guests::that_boot();
    let rest = format!("path: bridge\nsecurity: {{ governance: encrypt }}\nfactors: {{ driver: {drivers} }}");
    guests.valid(&study("slots: 200, warm_up: 20, timeout: 5 s", "", &rest));
    all_secured(&guests.bench, "encrypt");
    guests.nothing_is_left();
}
