//! Tests of host knobs other than sysctls: wake-up latency, governor, interrupts, kernel threads, interfaces.

use crate::support::host::{AsFound, cannot, no_journal, read, signal, study};
use crate::support::output_of;
use crate::support::{Bench, exit_and_stderr};

const LATENCY: &str = "/dev/cpu_dma_latency";

/// The wake-up latency limit that the kernel applies, as the program `od` reads it.
fn bound() -> String {
    output_of("od", &["-An", "-N4", "-t", "d4", LATENCY])
}

#[test]
fn a_bound_on_wake_ups_is_in_effect_only_while_a_trial_measures() {
    if cannot() || !std::path::Path::new(LATENCY).exists() {
        return println!("skipped: {LATENCY} cannot be opened here");
    }
    let before = bound();
    let bench = Bench::new();
    let child = bench.begin(&study(500, "factors: { host.cpu_dma_latency: [3 us] }"));
    let seen = bound();
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!((code, seen.as_str(), bound()), (0, "3", before.clone()), "{text}");
    let report = bench.report();
    assert_eq!(report["host_settings"][0]["settings"][0]["found"], "3 us");
    assert_eq!(report["conditions"][0]["levels"]["host.cpu_dma_latency"], "3 us");
    // The kernel removes the limit when the process that set it ends, so no other process may have the descriptor.
    let bench = Bench::new();
    let mut child = bench.begin(&study(5000, "host: { cpu_dma_latency: 3 us }"));
    assert_eq!(bound(), "3");
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    assert_eq!(bound(), before);
    assert!(bench.lab("list").1.contains("release the bound of 3 us"));
    assert_eq!(bench.lab("cleanup").0, 0);
    no_journal(&bench);
}

/// Test: if another program has set a tighter limit, the limit of the study is not in effect and the study is refused.
#[test]
fn a_bound_that_is_not_in_force_is_refused() {
    if cannot() || !std::path::Path::new(LATENCY).exists() {
        return println!("skipped: {LATENCY} cannot be opened here");
    }
    let mut other = std::fs::OpenOptions::new().write(true).open(LATENCY).unwrap();
    std::io::Write::write_all(&mut other, &2i32.to_ne_bytes()).unwrap();
    let bench = Bench::new();
    let (code, text) = exit_and_stderr(&bench.run(&study(60, "host: { cpu_dma_latency: 100 us }"), &[]));
    drop(other);
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("host.cpu_dma_latency: /dev/cpu_dma_latency was set to `100 us`, but reads `2 us`"),
        "{text}"
    );
    no_journal(&bench);
}

#[test]
fn a_governor_is_set_or_its_absence_is_reported() {
    let file = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
    let bench = Bench::new();
    let text = study(500, "host: { governor: performance }");
    if !std::path::Path::new(file).exists() {
        let (code, text) = exit_and_stderr(&bench.run(&text, &[]));
        assert_eq!(code, 3);
        assert!(text.contains("host.governor: /sys/devices/system/cpu/cpufreq/policy* does not exist here"), "{text}");
        return println!("skipped: this machine has no frequencies to govern; that is told");
    }
    if cannot() {
        return;
    }
    let before = read(file);
    let child = bench.begin(&text);
    let seen = read(file);
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!((code, seen.as_str(), read(file)), (0, "performance", before), "{text}");
}

/// Number of an interrupt that occurs rarely and may be moved to another CPU, and the path of the file with its CPUs.
fn quiet_interrupt() -> Option<(String, String)> {
    let table = std::fs::read_to_string("/proc/interrupts").ok()?;
    table.lines().filter(|l| l.contains("ttyS") || l.contains("ACPI")).find_map(|line| {
        let number = line.split(':').next()?.trim();
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        let all = output_of("cat", &[&path]);
        // Writing the present value shows whether the interrupt may be moved.
        let movable = all.contains(['-', ',']) && std::fs::write(&path, &all).is_ok();
        movable.then(|| (number.to_owned(), path))
    })
}

#[test]
fn an_interrupt_moves_and_moves_back() {
    let Some((number, path)) = quiet_interrupt().filter(|_| !cannot()) else {
        return println!("skipped: no interrupt that may be moved here, or one CPU");
    };
    let found = AsFound::keep(path.leak());
    let name = output_of(
        "sh",
        &["-c", &format!("grep ' {number}:' /proc/interrupts | tr -s ' ' | rev | cut -d' ' -f1 | rev")],
    );
    for irq in [number, name] {
        let bench = Bench::new();
        let child = bench.begin(&study(500, &format!("host: {{ irq_affinity: {{ \"{irq}\": \"0\" }} }}")));
        let seen = read(found.path);
        let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
        assert_eq!((code, seen.as_str(), read(found.path)), (0, "0", found.value.clone()), "{irq}: {text}");
        let setting = &bench.report()["host_settings"][0]["settings"][0];
        assert_eq!(setting["put_back"], format!("restored to `{}`", found.value), "{setting}");
    }
    let bench = Bench::new();
    let (code, text) =
        exit_and_stderr(&bench.run(&study(60, "host: { irq_affinity: { no-such-device: \"0\" } }"), &[]));
    assert_eq!(code, 3);
    assert!(text.contains("interrupt no-such-device does not exist here: no line of /proc/interrupts"), "{text}");
}

#[test]
fn a_thread_of_the_kernel_has_its_policy_and_gets_its_own_back() {
    // This kernel thread sleeps for minutes, so that its policy affects nothing.
    let tid = output_of("pgrep", &["-x", "khungtaskd"]);
    if cannot() || tid.is_empty() {
        return println!("skipped: no thread khungtaskd here");
    }
    let policy =
        || output_of("chrt", &["-p", &tid]).lines().next().unwrap_or_default().rsplit(": ").next().unwrap().to_owned();
    let (before, cpus) = (policy(), output_of("taskset", &["-pc", &tid]));
    let bench = Bench::new();
    let rest = "host: { kernel_threads: { \"khungtask?\": { policy: batch, nice: 3, cpus: \"0\" } } }";
    let child = bench.begin(&study(500, rest));
    let (seen, seen_cpus) = (policy(), output_of("taskset", &["-pc", &tid]));
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!((code, seen.as_str()), (0, "SCHED_BATCH"), "{text}");
    assert!(seen_cpus.ends_with("list: 0"), "{seen_cpus}");
    assert_eq!((policy(), output_of("taskset", &["-pc", &tid])), (before.clone(), cpus.clone()));
    let setting = &bench.report()["host_settings"][0]["settings"][0];
    assert_eq!(setting["what"], format!("thread {tid} (khungtaskd)"));
    assert_eq!(setting["found"], "batch nice 3, CPU 0");
    // After a kill, the clean-up recognises the thread by its start time.
    let bench = Bench::new();
    let mut child = bench.begin(&study(5000, rest));
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    assert_eq!(policy(), "SCHED_BATCH");
    let (code, text) = bench.lab("cleanup");
    assert_eq!((code, policy(), output_of("taskset", &["-pc", &tid])), (0, before, cpus), "{text}");
    no_journal(&bench);
}

/// Test: if a pattern of the study matches a thread that another key names, the settings contradict each other; the
/// study is refused and all settings are restored.
#[test]
fn settings_that_undo_each_other_are_refused_and_all_restored() {
    let tid = output_of("pgrep", &["-x", "khungtaskd"]);
    if cannot() || tid.is_empty() {
        return println!("skipped: no thread khungtaskd here");
    }
    let before = output_of("chrt", &["-p", &tid]);
    let bench = Bench::new();
    let rest = "host: { kernel_threads: { khungtaskd: { policy: batch }, \"khungtask?\": { policy: idle } } }";
    let (code, text) = exit_and_stderr(&bench.run(&study(60, rest), &[]));
    assert_eq!((code, output_of("chrt", &["-p", &tid])), (3, before), "{text}");
    assert!(text.contains("(khungtaskd) was set to `batch`, and is `idle` now"), "{text}");
    no_journal(&bench);
}

#[test]
fn a_thread_that_the_kernel_ties_to_its_cpu_is_refused_before_anything_is_done() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let rest = "host: { kernel_threads: { \"ksoftirqd/0\": { cpus: \"0\" } } }";
    let (code, text) = exit_and_stderr(&bench.run(&study(60, rest), &[]));
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("(ksoftirqd/0) does not take `CPU 0`: the kernel does not allow a change of this thread's CPUs"),
        "{text}"
    );
    assert!(!bench.path("record").exists());
}

/// A network namespace of the user, with interfaces that have queues and coalescing. It is removed when this value is
/// dropped.
struct Netns(String);

impl Netns {
    fn make() -> Option<Netns> {
        let netns = Netns(format!("tb-nic-{}", std::process::id()));
        let ip = |args: &str| {
            let args = args.replace("NAME", &netns.0);
            std::process::Command::new("ip").args(args.split(' ')).status().is_ok_and(|s| s.success())
        };
        let made = ip("netns add NAME")
            && ip("-n NAME link set lo up")
            && ip(
                "-n NAME link add tbq0 numtxqueues 4 numrxqueues 4 type veth peer name tbq1 numtxqueues 4 numrxqueues 4",
            )
            && ip("-n NAME link set tbq0 up")
            && ip("-n NAME link set tbq1 up")
            && ip("-n NAME tuntap add tbq2 mode tap");
        made.then_some(netns)
    }

    fn inside(&self, command: &[&str]) -> String {
        output_of("ip", &[&["netns", "exec", self.0.as_str()], command].concat())
    }

    /// Number of transmit queues in use, read from sysfs.
    fn queues(&self) -> usize {
        self.inside(&["ls", "/sys/class/net/tbq0/queues"]).lines().filter(|l| l.starts_with("tx-")).count()
    }

    /// Number of frames before a receive interrupt, read with ETHTOOL_GCOALESCE from Python.
    fn frames(&self) -> String {
        let script = "import array, fcntl, socket, struct\n\
                      words = array.array('I', [0x0e] + [0] * 22)\n\
                      ask = struct.pack('16sP', b'tbq2', words.buffer_info()[0])\n\
                      fcntl.ioctl(socket.socket(), 0x8946, ask)\nprint(words[2])";
        self.inside(&["python3", "-c", script])
    }

    fn study(&self, slots: u32, nic: &str) -> String {
        let ends = "path: { existing: { ping: { interface: lo }, pong: { interface: lo } } }";
        study(slots, &format!("host: {{ nic: {nic} }}"))
            .replace("path: loopback\nplace: process", &format!("{ends}\nplace: {{ existing-netns: {} }}", self.0))
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn queues_and_coalescing_of_an_interface_are_set_and_restored() {
    let Some(netns) = Netns::make().filter(|_| !cannot()) else {
        return println!("skipped: no interfaces with queues can be made here");
    };
    let (queues, frames) = (netns.queues(), netns.frames());
    assert!(queues != 2 && frames != "8", "{queues} {frames}");
    let nic = "{ tbq0: { channels_tx: 2 }, tbq2: { coalesce_rx_frames: 8 } }";
    let bench = Bench::new();
    let child = bench.begin(&netns.study(500, nic));
    let seen = (netns.queues(), netns.frames());
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!((code, seen), (0, (2, "8".to_owned())), "{text}");
    assert_eq!((netns.queues(), netns.frames()), (queues, frames.clone()));
    let setting = &bench.report()["host_settings"][0]["settings"][0];
    assert_eq!((&setting["key"], &setting["at"]), (&"host.nic.tbq0.channels_tx".into(), &"ping".into()));
    assert_eq!((&setting["found"], &setting["before"]), (&"2".into(), &queues.to_string().into()));
    // After a kill the namespace has no process.
    let bench = Bench::new();
    let mut child = bench.begin(&netns.study(5000, nic));
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    assert_eq!((netns.queues(), netns.frames()), (2, "8".into()));
    let (code, text) = bench.lab("cleanup");
    assert_eq!((code, netns.queues(), netns.frames()), (0, queues, frames), "{text}");
    assert!(text.contains(&format!("set channels_tx of tbq0 back to `{queues}`")), "{text}");
    no_journal(&bench);
}

#[test]
fn what_an_interface_does_not_have_is_refused_before_anything_is_done() {
    let Some(netns) = Netns::make().filter(|_| !cannot()) else {
        return println!("skipped: no interfaces with queues can be made here");
    };
    let mut texts = String::new();
    for nic in ["{ tbq0: { channels_tx: 9 } }", "{ tbq0: { coalesce_rx: 0 us } }", "{ tbq9: { channels: 1 } }"] {
        let bench = Bench::new();
        let (code, text) = exit_and_stderr(&bench.run(&netns.study(60, nic), &[]));
        texts.push_str(&format!("exit {code}\n{text}\n"));
        assert!(!bench.path("record").exists(), "{nic}");
    }
    insta::assert_snapshot!(texts);
}
