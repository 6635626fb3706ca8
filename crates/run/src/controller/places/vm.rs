//! Places that are virtual machines, which QEMU runs on this host.
//!
//! A guest has its own kernel, clock and CPUs. The wiring that carries the packets of a guest is created before the
//! guest starts, so guests are started for a lab and end with it. In the guest, a process (the holder) runs the agents;
//! each stream to an agent is carried by a process on this host, over a virtio-serial port of the guest.

use super::host::{Candidate, Help, Host};
use super::kind::{Lifetime, PlaceKind, Reach};
use super::place::Place;
use super::{DriverFiles, all_at_once, ssh_link::Ship};
use crate::controller::RunError;
use crate::controller::context::RunContext;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tailbound_guest::{
    Cache, Card, Look, Mac, Machine, MachineOrder, Mode, NOT_COUNTED, Nic, NicLine, OutsideThread, Prepared, prepare,
};
use tailbound_host::journal::EntryId;
use tailbound_host::own_program;
use tailbound_lab::LabSpec;
use tailbound_lab::wiring::Plug;
use tailbound_model::*;

/// Longest time for a guest to boot, also if it is emulated together with other guests.
const BOOTS: Duration = Duration::from_secs(90);
/// Silence after which an agent in a guest counts as lost. The time is long, because an emulated guest is slow.
const PATIENCE: Duration = Duration::from_secs(30);
/// Name of the kernel module that a guest needs for VLANs.
const VLAN_MODULE: &str = "8021q";
/// File with the time for which KVM polls before it yields the CPU of a halted virtual CPU.
const HALT_POLL: &str = tailbound_model::KVM_HALT_POLL;
/// Reason, for error messages, why a paused guest does not answer.
const PAUSED: &str = "the guest is paused: its QEMU has received the command `stop` and no `cont`";

struct Guest {
    machine: Machine,
    entry: EntryId,
    address: Option<IpAddr>,
    /// File in the record that keeps the console output of the guest.
    console: PathBuf,
}

/// A guest that the controller is to start.
struct Wanted<'a> {
    /// Index of the guest's connection among the connections of the wiring: the index in the lab of the end that runs in
    /// the guest, or a higher index if the guest is a neighbour.
    port: usize,
    spec: &'a VmSpec,
    /// Name of the guest in the record. The name is needed because guests of other conditions may have the same `name`.
    named: String,
}

/// Reason why a guest of the plan cannot run on this host: QEMU, kernel, modules or KVM are missing. The boot files are
/// created by this check, and kept for the start of the guests.
pub(in crate::controller) fn lack(plan: &Plan, driver_files: DriverFiles) -> Option<RunError> {
    let possible = plan.conditions.iter().filter(|c| c.not_possible.is_none());
    let mut specs: Vec<VmSpec> = Vec::new();
    for spec in possible.map(|condition| &condition.spec) {
        for place in [&spec.ping.place, &spec.pong.place] {
            if let PlaceSpec::Vm(guest) = place {
                let booted = booted(guest, spec.vlan.as_ref());
                if !specs.contains(&booted) {
                    specs.push(booted);
                }
            }
        }
    }
    let mut ship = Ship::new(driver_files);
    specs.iter().find_map(|spec| prepared(spec, &mut ship).err())
}

/// Specification of the guest with the kernel modules that its lab needs.
fn booted(spec: &VmSpec, vlan: Option<&VlanSpec>) -> VmSpec {
    let mut booted = spec.clone();
    if vlan.is_some() && !booted.modules.iter().any(|module| module == VLAN_MODULE) {
        booted.modules.push(VLAN_MODULE.to_owned());
    }
    booted
}

/// Prepares the files from which a guest boots.
fn prepared(spec: &VmSpec, ship: &mut Ship) -> Result<Prepared, RunError> {
    let unfit = |e| RunError::of(ExitCode::MachineNotFit, e);
    prepare(spec, ship.contents()?, &[], &Cache::of_user().map_err(unfit)?).map_err(unfit)
}

impl PlaceKind for VmSpec {
    /// Starts all guests of the lab that do not run yet, also the neighbours, at the same time, and waits until they
    /// answer.
    fn reach(&self, mut reach: Reach<'_>) -> Result<Vec<Host>, RunError> {
        let lab = reach.lab;
        let neighbours = lab.neighbours();
        let mut wanted: Vec<Wanted<'_>> = Vec::new();
        for end in 0..lab.places() {
            if let PlaceSpec::Vm(spec) = lab.place(end)
                && reach.hosts.of_end(lab, end).is_none()
                && !wanted.iter().any(|w| *w.spec == **spec)
            {
                wanted.push(Wanted { port: end, spec, named: name_in_record(&mut reach.hosts.guests, spec) });
            }
        }
        for (number, (_, spec)) in neighbours.iter().enumerate() {
            if reach.hosts.neighbour(spec).is_none() {
                let named = name_in_record(&mut reach.hosts.guests, spec);
                wanted.push(Wanted { port: lab.places() + number, spec, named });
            }
        }
        start_all(&wanted, &mut reach)
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::Wiring
    }
}

/// Name of a guest in the record. The first guest with a `name` has just that name; further guests with the same `name`
/// have a number after it.
fn name_in_record(guests: &mut Vec<VmSpec>, spec: &VmSpec) -> String {
    if !guests.contains(spec) {
        guests.push(spec.clone());
    }
    let mut alike = guests.iter().filter(|guest| guest.name == spec.name);
    match alike.position(|guest| guest == spec) {
        Some(0) | None => format!("guest {}", spec.name),
        Some(n) => format!("guest {} #{}", spec.name, n + 1),
    }
}

/// Starts guests at the same time, and waits until they answer.
///
/// # Errors
/// A guest cannot be started or does not boot. In this case no guest is left running.
fn start_all(wanted: &[Wanted<'_>], reach: &mut Reach<'_>) -> Result<Vec<Host>, RunError> {
    let context = reach.context;
    let mut guests: Vec<Guest> = Vec::new();
    let mut about: Vec<(Vec<Fact>, Option<String>)> = Vec::new();
    let leave = |guests: Vec<Guest>| guests.into_iter().for_each(|g| drop(Box::new(g).leave(context)));
    for one in wanted {
        match start(one, reach) {
            Ok((guest, facts, emulated)) => {
                guests.push(guest);
                about.push((facts, emulated));
            }
            Err(e) => {
                leave(guests);
                return Err(e);
            }
        }
    }
    if let Some(e) = await_boot(&guests, context) {
        leave(guests);
        return Err(RunError::of(ExitCode::RunFailed, e));
    }
    let help = Help {
        program: "",
        by_hand: "`tailbound guest shell` boots the same kernel with a shell",
        other_release: "please report this error: the guest runs a copy of this program",
    };
    let candidates = wanted.iter().zip(guests).map(|(one, guest)| Candidate {
        reached: Box::new(guest) as Box<dyn Place>,
        place: PlaceSpec::Vm(Box::new(one.spec.clone())),
        called: format!("guest {}", one.spec.name),
        named: one.named.clone(),
    });
    let mut hosts = Host::start_all(candidates.collect(), context, &help)?;
    for ((host, one), (facts, emulated)) in hosts.iter_mut().zip(wanted).zip(about) {
        host.facts.facts.extend(facts);
        host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
        // The guest whose neighbour this is has the same reason.
        host.functional_only = emulated.filter(|_| one.port < reach.lab.places());
    }
    Ok(hosts)
}

/// Waits until all guests have booted. Returns the reason if a guest has not booted.
fn await_boot(guests: &[Guest], context: &RunContext) -> Option<Problem> {
    let wait = |guest: &Guest| guest.machine.wait(BOOTS, &|| context.stop.came());
    all_at_once(guests.iter().collect(), wait).into_iter().find_map(Result::err)
}

/// Starts a guest. The guest is still booting when the function returns. Also returns facts about the guest, and the
/// reason if its figures say nothing about speed.
fn start(one: &Wanted<'_>, reach: &mut Reach<'_>) -> Result<(Guest, Vec<Fact>, Option<String>), RunError> {
    let (spec, context) = (one.spec, reach.context);
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("guest {}: {text}", spec.name), "");
    let prepared = prepared(&booted(spec, reach.lab.vlan.as_ref()), &mut reach.hosts.bundle)?;
    let nic = nic(one, reach)?;
    let address = nic.as_ref().map(|nic| IpAddr::V4(nic.line.address));
    let device = match nic.as_ref().map(|nic| &nic.plug) {
        Some(tailbound_guest::Plug::Device(device)) => Some(device.clone()),
        _ => None,
    };
    let directory = reach.hosts.scratch(context)?.join(format!("guest-{}", spec.name));
    // Sockets of an earlier guest may be there.
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).map_err(|e| failed(format!("cannot make {}: {e}", directory.display())))?;
    let token = context.token(format!("guest-{}", spec.name));
    let undo = Undo::EndProcessByToken { token: token.clone() };
    let entry = context.journal.before(undo).map_err(|e| failed(e.to_string()))?;
    // A process inherits the CPUs of the process that starts it, and the controller uses fewer CPUs than a guest may
    // use.
    let own = tailbound_host::allowed_cpus();
    let _ = tailbound_host::scheduling::set_affinity(0, &reach.hosts.allowed);
    let started = Machine::start(MachineOrder {
        spec,
        kvm: prepared.kvm,
        kernel: &prepared.kernel,
        initramfs: &prepared.initramfs.file,
        directory: &directory,
        nics: nic.into_iter().collect(),
        token: &token,
        agents: agents(reach.lab, spec),
        snapshots: prepared.snapshots.as_ref(),
        mode: Mode::Agents,
    });
    let _ = tailbound_host::scheduling::set_affinity(0, &CpuList(own.into_iter().collect()));
    let machine = match started {
        Ok(machine) => machine,
        Err(e) => {
            let _ = context.journal.undo(entry);
            return Err(RunError::of(ExitCode::RunFailed, e));
        }
    };
    tracing::info!(guest = spec.name, pid = machine.process().pid, kvm = prepared.kvm, "guest started");
    let undo = Undo::EndProcess { process: machine.process(), what: format!("QEMU of guest {}", spec.name), token };
    context.journal.update(entry, undo).map_err(|e| failed(e.to_string()))?;
    let facts = facts(spec, &prepared, &machine, device);
    let emulated = (!prepared.kvm).then(|| format!("the virtual CPUs of guest {} are emulated", spec.name));
    let console = context.logs.join(format!("console-{}.log", spec.name));
    Ok((Guest { machine, entry, address, console }, facts, emulated))
}

/// Network card of a guest, connected to the wiring of the lab; `None` = the lab has no wiring.
fn nic(one: &Wanted<'_>, reach: &mut Reach<'_>) -> Result<Option<Nic>, RunError> {
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("guest {}: {text}", one.spec.name), "");
    let vlan = reach.lab.vlan.clone();
    let Some((_, wiring)) = &mut reach.hosts.wiring else { return Ok(None) };
    let inside = wiring.inside(one.port);
    let card = inside.mac.map_or(Card::Passed, |mac| Card::Made(Mac(mac)));
    let line = NicLine { card, address: inside.address, prefix: inside.prefix, mtu: inside.mtu, vlan };
    let plug = wiring.plug(one.port).ok_or_else(|| failed("the interface for the guest is in use already".into()))?;
    Ok(Some(Nic { line, plug: plugged(plug, one.spec).map_err(|e| failed(format!("/dev/vhost-net: {e}")))? }))
}

/// Number of agents in a guest: one agent for each end, and the host agent.
fn agents(lab: &LabSpec, spec: &VmSpec) -> u32 {
    let there = |place: &PlaceSpec| matches!(place, PlaceSpec::Vm(guest) if **guest == *spec);
    let ends =
        [(&lab.ping, lab.publishers), (&lab.pong, lab.subscribers)].into_iter().filter(|(place, _)| there(place));
    1 + ends.map(|(_, count)| count).sum::<u32>()
}

/// Converts an interface of the guests' virtual network (wiring) into the form that QEMU needs.
fn plugged(plug: Plug, spec: &VmSpec) -> io::Result<tailbound_guest::Plug> {
    Ok(match plug {
        Plug::Tap { fds, .. } => {
            let open = |_| Ok(std::fs::OpenOptions::new().read(true).write(true).open("/dev/vhost-net")?.into());
            let vhost_fds = match spec.vhost {
                Some(_) => Some(fds.iter().map(open).collect::<io::Result<_>>()?),
                None => None,
            };
            tailbound_guest::Plug::Tap { fds, vhost_fds }
        }
        Plug::Datagram { local, remote } => tailbound_guest::Plug::Datagram { local, remote },
        Plug::Device(device) => tailbound_guest::Plug::Device(device),
    })
}

/// Facts about a guest that are known on this host. `device` is a network card of this host that is passed to the
/// guest.
fn facts(spec: &VmSpec, prepared: &Prepared, machine: &Machine, device: Option<String>) -> Vec<Fact> {
    let threads = machine.threads();
    let fact = |key: String, value: String, source: &str| Fact {
        key: format!("guest.{key}"),
        value: FactValue::Text(value),
        source: source.to_owned(),
    };
    let vcpus = threads.iter().filter(|thread| thread.name.starts_with("vCPU ")).count();
    let word = |on| if on { "on" } else { "off" }.to_owned();
    let mut facts = vec![
        fact("accelerator".into(), if prepared.kvm { "kvm" } else { "emulated" }.into(), "query-kvm of QEMU"),
        fact("kernel".into(), format!("{} ({})", prepared.kernel.version, spec.kernel), "the study"),
        fact("qemu".into(), prepared.qemu.clone(), "qemu-system-x86_64 --version"),
        fact("vcpus".into(), vcpus.to_string(), "query-cpus-fast of QEMU"),
        fact("memory".into(), format!("{} MiB", spec.memory_mib), "the study"),
        fact("huge_pages".into(), word(spec.huge_pages), "the study"),
        fact("lock_memory".into(), word(spec.lock_memory), "the study"),
    ];
    if machine.restored() {
        let value = "restored from a snapshot: its real-time clock is late by the age of the snapshot";
        facts.push(fact("start".into(), value.into(), "the environment variable TAILBOUND_GUEST_SNAPSHOTS"));
    }
    facts.push(match prepared.kvm {
        true => fact("exits".into(), "counted in each trial".into(), "query-stats of QEMU"),
        false => fact("exits".into(), NOT_COUNTED.into(), "query-kvm of QEMU"),
    });
    if prepared.kvm {
        // This is a setting of this host, which may change later.
        let read = std::fs::read_to_string(HALT_POLL).map(|text| format!("{} ns", text.trim()));
        let value = read.map_or_else(|e| FactValue::Unknown(e.to_string()), FactValue::Text);
        facts.push(Fact {
            key: "guest.halt_poll".into(),
            value,
            source: format!("{HALT_POLL}, when the guest was started"),
        });
    }
    match device {
        Some(device) => facts.push(fact("device".into(), device, "the study")),
        None => facts.extend([
            fact("offloads".into(), word(spec.offloads), "the study"),
            fact("vhost".into(), word(spec.vhost.is_some()), "the study"),
            fact("queues".into(), spec.queues.to_string(), "the study"),
        ]),
    }
    if let Some(why) = &prepared.without_kvm {
        facts.push(fact("without_kvm".into(), why.clone(), "a boot of this kernel"));
    }
    // Several threads of QEMU may have the same name.
    for (number, thread) in threads.iter().enumerate() {
        let nothing = |s: String| if s.is_empty() { "as it was".to_owned() } else { s };
        let text = format!("{} (asked: {})", thread.seen, nothing(thread.asked.to_string()));
        facts.push(fact(format!("thread.{number}.{}", thread.name), text, "sched_getattr(2), sched_getaffinity(2)"));
    }
    facts
}

/// Appends the console output of a guest to its file in the record. A guest may be started more than once in a run.
fn keep(console: &Path, kept: &Path) -> io::Result<()> {
    let mut to = std::fs::OpenOptions::new().create(true).append(true).open(kept)?;
    io::copy(&mut std::fs::File::open(console)?, &mut to).map(drop)
}

/// Command on this host that starts Tailbound in the guest whose sockets are in `directory`.
pub(super) fn over_ports(directory: &Path) -> Command {
    let Ok(mut command) = own_program() else { return Command::new("false") };
    command.args(["guest", "stream", "--directory"]).arg(directory).arg("--");
    command
}

impl Place for Guest {
    fn command(&self) -> Command {
        over_ports(self.machine.directory())
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn address(&self) -> Option<IpAddr> {
        self.address
    }

    fn differences(&self) -> Vec<String> {
        // The end of a guest is reported by `ended`.
        if self.machine.ended().is_some() { Vec::new() } else { self.machine.differs() }
    }

    fn ended(&self) -> Option<String> {
        let paused = || self.machine.look().ok().filter(|look| !look.runs()).map(|_| PAUSED.to_owned());
        self.machine.ended().or_else(paused)
    }

    fn look(&self) -> Option<Result<Look, Problem>> {
        match self.machine.look() {
            Ok(look) => Some(Ok(look)),
            // The error also has the end of the console and a remedy for a failed boot; only its first line is the
            // reason.
            Err(e) => self
                .machine
                .ended()
                .is_none()
                .then(|| Err(Problem::new("guest_not_asked", e.what.lines().next().unwrap_or_default(), ""))),
        }
    }

    fn threads_outside(&self) -> Vec<GuestThread> {
        let one = |thread: &OutsideThread| GuestThread {
            name: thread.name.clone(),
            vcpu: thread.vcpu().and_then(|number| number.try_into().ok()),
            tid: thread.tid,
            cpus: thread.seen.cpus.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        self.machine.threads().iter().map(one).collect()
    }

    fn leave(self: Box<Self>, context: &RunContext) -> Option<String> {
        self.machine.stop();
        // If the console cannot be kept, the record is still complete.
        let _ = keep(&self.machine.directory().join("console.log"), &self.console);
        context.journal.done(self.entry).err().map(|e| e.to_string())
    }
}
