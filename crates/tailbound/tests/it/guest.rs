//! Tests of virtual machines on this host. QEMU emulates them, so that the tests need no KVM; their kernel is Debian's
//! real-time kernel, which `dev/setup vm` downloads.

use crate::support::{Bench, exit_and_stderr, succeeded};
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tailbound_bundle::Contents;
use tailbound_guest::*;
use tailbound_model::*;
use tailbound_wire::{Frame, FrameReader, Hello, Message, PROTOCOL_MAX, PROTOCOL_MIN, encode};

const BOOTS: Duration = Duration::from_secs(120);

/// Path of the kernel package that `dev/setup vm` has downloaded.
fn package() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests/rt.deb");
    package.canonicalize().expect("a kernel package in target/guests, which dev/setup vm brings")
}

/// Path of one cache for all tests, so that a kernel is unpacked only once.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests")
}

/// An agent in a guest, with the process (`tailbound guest stream`) that connects the control stream to the agent.
struct Agent {
    stream: Child,
    reader: FrameReader,
}

impl Agent {
    fn start(bench: &Bench, directory: &Path) -> Agent {
        let mut command = bench.tailbound();
        command.args(["guest", "stream", "--directory"]).arg(directory).args(["--", "agent", "--run-token", "t"]);
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut agent = Agent { stream: streams.spawn().unwrap(), reader: FrameReader::default() };
        agent.say(Message::Hello(Hello {
            protocol_min: PROTOCOL_MIN,
            protocol_max: PROTOCOL_MAX,
            tailbound: env!("CARGO_PKG_VERSION").into(),
            session: "s".into(),
            capabilities: Vec::new(),
            lease_ns: 30_000_000_000,
            boot_id: String::new(),
            clock: String::new(),
            pid: 0,
        }));
        let Message::Hello(_) = agent.hear() else { panic!("it does not begin with hello") };
        agent
    }

    fn say(&mut self, message: Message) {
        let frame = encode(&Frame::Message(Box::new(message)));
        self.stream.stdin.as_mut().unwrap().write_all(&frame).unwrap();
    }

    fn hear(&mut self) -> Message {
        loop {
            match self.reader.next_frame().unwrap() {
                Some(Frame::Message(message)) => return *message,
                Some(Frame::Memory { .. }) => panic!("sample memory that nobody asked for"),
                None => {}
            }
            let mut buffer = [0; 4096];
            let n = self.stream.stdout.as_mut().unwrap().read(&mut buffer).unwrap();
            assert!(n > 0, "the agent has ended");
            self.reader.push(&buffer[..n]);
        }
    }

    fn facts(&mut self) -> HostFacts {
        self.say(Message::Ask(Ask::Facts));
        let Message::Answer(Answer::Facts(facts)) = self.hear() else { panic!("no facts") };
        *facts
    }

    /// Closes the standard input of the process that carries the agent's stream, and waits for this process. Returns
    /// whether the process succeeded, and what it wrote to standard error.
    fn leave(mut self) -> (bool, String) {
        drop(self.stream.stdin.take());
        self.last_words()
    }

    fn last_words(mut self) -> (bool, String) {
        let mut printed = String::new();
        self.stream.stderr.as_mut().unwrap().read_to_string(&mut printed).unwrap();
        (self.stream.wait().unwrap().success(), printed)
    }
}

fn fact(facts: &HostFacts, key: &str) -> String {
    let found = facts.facts.iter().find(|f| f.key == key).unwrap_or_else(|| panic!("no fact {key}"));
    match &found.value {
        FactValue::Text(text) => text.clone(),
        FactValue::Flag(flag) => flag.to_string(),
        FactValue::Number(number) => number.to_string(),
        FactValue::Unknown(why) => panic!("{key}: {why}"),
    }
}

fn vcpu(cpu: u32) -> RoleScheduling {
    RoleScheduling { policy: Some(Policy::Batch { nice: 0 }), cpus: Some(CpuList::one(cpu)) }
}

#[test]
fn two_guests_answer_see_each_other_and_the_end_of_one_is_reported() {
    let bench = Bench::new();
    let cache = Cache::at(cache());
    let contents =
        Contents::gather(Path::new(env!("CARGO_BIN_EXE_tailbound")), env!("CARGO_PKG_VERSION"), &[]).unwrap();
    let spec = |name: &str, cpu, channel| VmSpec {
        name: name.into(),
        kernel: KernelChoice::Package(package().display().to_string()),
        accelerator: Accelerator::Emulated,
        vcpu_threads: vec![vcpu(cpu)],
        emulator: RoleScheduling { policy: None, cpus: Some("0-1".parse().unwrap()) },
        irq_cpus: Some(CpuList::one(1)),
        modules: vec!["sch_taprio".into()],
        channel,
        ..VmSpec::default()
    };
    let socket = |number: usize| bench.path(&format!("nic{number}"));
    let start = |number: usize, spec: &VmSpec| {
        let prepared = prepare(spec, &contents, &[], &cache).unwrap();
        assert!(prepared.initramfs.modules.iter().any(|m| m == "sch_taprio"));
        let directory = bench.path(&spec.name);
        std::fs::create_dir(&directory).unwrap();
        let address = Ipv4Addr::new(10, 177, 0, number as u8);
        let card = Card::Made(Mac([0x52, 0x54, 0, 0xaa, 0, number as u8]));
        let line = NicLine { card, address, prefix: 24, mtu: 1400, vlan: None };
        let order = MachineOrder {
            spec,
            kvm: prepared.kvm,
            kernel: &prepared.kernel,
            initramfs: &prepared.initramfs.file,
            directory: &directory,
            nics: vec![Nic { line, plug: Plug::Datagram { local: socket(number), remote: socket(3 - number) } }],
            token: "t",
            mode: Mode::Agents,
            agents: 2,
            snapshots: prepared.snapshots.as_ref(),
        };
        Machine::start(order).unwrap()
    };
    let specs = [spec("serial", 0, VmChannel::VirtioSerial), spec("tcp", 1, VmChannel::Tcp)];
    let begin = Instant::now();
    let machines = [start(1, &specs[0]), start(2, &specs[1])];
    for (cpu, machine) in (0..).zip(&machines) {
        machine.wait(BOOTS, &|| false).unwrap();
        println!("a guest answers {:.2} s after the start", begin.elapsed().as_secs_f64());
        let asked: Vec<_> = machine.threads().iter().filter(|t| t.name.starts_with("vCPU")).collect();
        assert_eq!(asked.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["vCPU 0", "vCPU 1"]);
        assert!(asked.iter().all(|t| t.asked == vcpu(cpu) && t.seen == vcpu(cpu)), "{asked:?}");
    }
    let mut agents: Vec<Agent> = machines.iter().map(|m| Agent::start(&bench, m.directory())).collect();
    println!("two agents answer {:.2} s after the start", begin.elapsed().as_secs_f64());
    for (agent, spec) in agents.iter_mut().zip(&specs) {
        let facts = agent.facts();
        assert_eq!((facts.host.as_str(), fact(&facts, "kernel.preempt_rt").as_str()), (spec.name.as_str(), "true"));
        assert_eq!(fact(&facts, "machine.emulated"), "true");
        assert_eq!(fact(&facts, "machine.hypervisor"), "QEMU TCG (emulation)");
    }
    // Several streams can be opened one after another while others are open.
    for _ in 0..3 {
        let (fine, printed) = Agent::start(&bench, machines[0].directory()).leave();
        assert!(fine, "{printed}");
    }
    machines[0].pause().unwrap();
    machines[0].resume().unwrap();
    agents[0].facts();
    assert_eq!(machines[0].differs(), Vec::<String>::new());

    let pid = machines[0].process().pid.to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    let (fine, printed) = agents.remove(0).last_words();
    assert!(!fine && printed.contains("the guest has ended") && printed.contains("tailbound guest READY"), "{printed}");
    let ended = machines[0].ended().expect("it has ended");
    assert!(ended.contains("signal: 9") && ended.contains("end of the console"), "{ended}");
    assert_eq!(machines[1].ended(), None);
}

#[test]
fn a_guest_that_does_not_boot_is_reported_with_its_console() {
    let bench = Bench::new();
    let study = bench.study(&crate::support::ping_pong("udp", ""));
    let mut command = bench.tailbound();
    command.args(["guest", "run", "--accelerator", "emulated", "--command-line", "rdinit=/gone", "--kernel"]);
    command.arg(package()).args(["--out", "record"]).arg(study).env("XDG_CACHE_HOME", cache());
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("guest study: the guest ended while it booted") && text.contains("Kernel panic"), "{text}");
    assert!(!bench.path("record").exists());
    let listed = bench.tailbound().args(["lab", "list"]).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("nothing"), "{listed:?}");
}

#[test]
fn a_study_runs_within_a_guest_and_its_record_comes_back() {
    let bench = Bench::new();
    let study = bench.study(
        "study: within\nquestion: q\nmeasure: { ping-pong: { slots: 200 } }\nrate: 100 Hz\npayload: 64 B\ndriver: udp\n\
         path: veth\nplace: netns\n",
    );
    let mut command = bench.tailbound();
    command.args(["guest", "run", "--accelerator", "emulated", "--kernel"]).arg(package()).args(["--out", "record"]);
    command.arg(study).args(["--set", "rate=50 Hz"]).env("XDG_CACHE_HOME", cache());
    let output = command.output().unwrap();
    succeeded(&output);
    assert!(String::from_utf8_lossy(&output.stdout).contains("record/report.html"));
    let manifest = bench.manifest();
    assert_eq!(manifest["status"], "valid");
    let facts = std::fs::read_dir(bench.path("record/facts"))
        .unwrap()
        .map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap());
    let facts: String = facts.collect();
    assert!(facts.contains("PREEMPT_RT") && facts.contains("QEMU TCG (emulation)"), "{facts}");
    assert_eq!(bench.report()["conditions"][0]["counts"]["answered"], 200);
}
