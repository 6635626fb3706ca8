//! Virtual machines of this host, which QEMU runs.
//!
//! Kernel, clock and CPUs are their own. What carries their packets is made before they start, so they are started for a
//! lab and end with it. The agents in one are held there; each stream to one is a process that carries it over a port of
//! the machine.

use super::host::{Help, Host, Known, Way};
use super::{DriverFiles, link::Ship, not_fit};
use crate::controller::RunError;
use crate::controller::stop::Stop;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tailbound_guest::{
    Cache, Card, GuestError, Look, Mac, Machine, MachineOrder, Mode, NOT_COUNTED, Nic, NicLine, OutsideThread,
    Prepared, prepare,
};
use tailbound_host::journal::{EntryId, Journal};
use tailbound_host::own_program;
use tailbound_lab::LabSpec;
use tailbound_lab::under::{Plug, Under};
use tailbound_model::*;

/// A guest boots within this time, also where it is emulated beside others.
const BOOTS: Duration = Duration::from_secs(90);
/// An emulated guest may be slow to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The module of a guest that makes VLANs.
const VLANS: &str = "8021q";
/// How long KVM polls before it gives the CPU of a halted virtual CPU away.
const HALT_POLL: &str = tailbound_model::KVM_HALT_POLL;
/// What is wrong with one that does not answer.
const PAUSED: &str = "it is paused: somebody has said `stop` to its QEMU, and not `cont`";

struct Guest {
    machine: Machine,
    entry: EntryId,
    address: Option<IpAddr>,
    /// Where its console is kept.
    console: PathBuf,
}

/// One that is to be started: the end that it is for, and what it is to be.
pub(super) struct Wanted<'a> {
    pub end: usize,
    pub spec: &'a VmSpec,
    /// As the record knows it: guests of other conditions may have the same name.
    pub named: String,
}

/// What all of them share.
pub(super) struct Shared<'a> {
    pub lab: &'a LabSpec,
    pub under: Option<&'a mut Under>,
    /// For sockets.
    pub scratch: &'a Path,
    /// For consoles.
    pub logs: &'a Path,
    /// CPUs that this program was given: the controller keeps to fewer of them, and a guest may have all.
    pub allowed: &'a CpuList,
    /// A signal gives them up while they boot.
    pub stop: &'a Stop,
}

/// Why a guest of a plan cannot be made here, found out before anything is: QEMU, its kernel, modules, and whether KVM runs
/// it. What they boot is made, and kept for when they are started.
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

/// A guest with what the kernel of one needs that makes a VLAN.
fn booted(spec: &VmSpec, vlan: Option<&VlanSpec>) -> VmSpec {
    let mut booted = spec.clone();
    if vlan.is_some() && !booted.modules.iter().any(|module| module == VLANS) {
        booted.modules.push(VLANS.to_owned());
    }
    booted
}

fn prepared(spec: &VmSpec, ship: &mut Ship) -> Result<Prepared, RunError> {
    let unfit = |e: GuestError| not_fit(e.what, e.mend);
    prepare(spec, ship.contents()?, &[], &Cache::of_user().map_err(unfit)?).map_err(unfit)
}

/// Starts guests at the same time, and waits until they answer.
///
/// # Errors
/// One cannot be made or does not come up: the end of its console, and what to do. None is left then.
pub(super) fn reach_all(
    wanted: &[Wanted<'_>],
    mut shared: Shared<'_>,
    ship: &mut Ship,
    (run_id, journal): (&str, &Journal),
) -> Result<Vec<Host>, RunError> {
    let mut guests: Vec<Guest> = Vec::new();
    let mut about: Vec<(Vec<Fact>, Option<String>)> = Vec::new();
    let leave = |guests: Vec<Guest>| guests.into_iter().for_each(|g| drop(Box::new(g).leave(journal)));
    for one in wanted {
        match start(one, &mut shared, ship, (run_id, journal)) {
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
    let stop = shared.stop;
    let failed = std::thread::scope(|scope| {
        let wait = move |guest: &Guest| guest.machine.wait(BOOTS, &|| stop.came());
        let waiting: Vec<_> = guests.iter().map(|guest| scope.spawn(move || wait(guest))).collect();
        waiting
            .into_iter()
            .find_map(|w| w.join().unwrap_or_else(|_| Err(GuestError::new("waiting for it failed", ""))).err())
    });
    if let Some(e) = failed {
        leave(guests);
        return Err(RunError::new(ExitCode::RunFailed, e.what, e.mend));
    }
    let help = Help {
        program: "",
        by_hand: "`tailbound guest shell` boots the same kernel with a shell",
        other_release: "please report this: it is a copy of this program",
    };
    let known = wanted.iter().zip(guests).map(|(one, guest)| Known {
        way: Box::new(guest) as Box<dyn Way>,
        place: PlaceSpec::Vm(Box::new(one.spec.clone())),
        called: format!("guest {}", one.spec.name),
        named: one.named.clone(),
    });
    let mut hosts = Host::over_all(known.collect(), (run_id, journal), &help)?;
    for (host, (facts, emulated)) in hosts.iter_mut().zip(about) {
        host.facts.facts.extend(facts);
        host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
        host.functional_only = emulated;
    }
    Ok(hosts)
}

/// Starts one; it boots when this returns. Also why its figures are functional only, where they are.
fn start(
    one: &Wanted<'_>,
    shared: &mut Shared<'_>,
    ship: &mut Ship,
    (run_id, journal): (&str, &Journal),
) -> Result<(Guest, Vec<Fact>, Option<String>), RunError> {
    let spec = one.spec;
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("guest {}: {text}", spec.name), "");
    let prepared = prepared(&booted(spec, shared.lab.vlan.as_ref()), ship)?;
    let nic = match &mut shared.under {
        Some(under) => {
            let inside = under.inside(one.end);
            let card = inside.mac.map_or(Card::Passed, |mac| Card::Made(Mac(mac)));
            let vlan = shared.lab.vlan.clone();
            let line = NicLine { card, address: inside.address, prefix: inside.prefix, mtu: inside.mtu, vlan };
            let plug = under.plug(one.end).ok_or_else(|| failed("its interface is plugged in already".into()))?;
            Some(Nic { line, plug: plugged(plug, spec).map_err(|e| failed(format!("/dev/vhost-net: {e}")))? })
        }
        None => None,
    };
    let address = nic.as_ref().map(|nic| IpAddr::V4(nic.line.address));
    let device = match nic.as_ref().map(|nic| &nic.plug) {
        Some(tailbound_guest::Plug::Device(device)) => Some(device.clone()),
        _ => None,
    };
    let directory = shared.scratch.join(format!("guest-{}", spec.name));
    // One of before is in the way.
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).map_err(|e| failed(format!("cannot make {}: {e}", directory.display())))?;
    let token = format!("{run_id}-guest-{}", spec.name);
    let entry = journal.before(Undo::EndProcessByToken { token: token.clone() }).map_err(|e| failed(e.to_string()))?;
    // A process has the CPUs of whoever starts it.
    let own = tailbound_host::allowed_cpus();
    let _ = tailbound_host::scheduling::set_affinity(0, shared.allowed);
    let started = Machine::start(MachineOrder {
        spec,
        kvm: prepared.kvm,
        kernel: &prepared.kernel,
        initramfs: &prepared.initramfs.file,
        directory: &directory,
        nics: nic.into_iter().collect(),
        token: &token,
        agents: agents(shared.lab, spec),
        mode: Mode::Agents,
    });
    let _ = tailbound_host::scheduling::set_affinity(0, &CpuList(own.into_iter().collect()));
    let machine = match started {
        Ok(machine) => machine,
        Err(e) => {
            let _ = journal.undo(entry);
            return Err(RunError::new(ExitCode::RunFailed, e.what, e.mend));
        }
    };
    let undo = Undo::EndProcess { process: machine.process(), what: format!("QEMU of guest {}", spec.name), token };
    journal.update(entry, undo).map_err(|e| failed(e.to_string()))?;
    let facts = facts(spec, &prepared, machine.threads(), device);
    let emulated = (!prepared.kvm).then(|| format!("the virtual CPUs of guest {} are emulated", spec.name));
    let console = shared.logs.join(format!("console-{}.log", spec.name));
    Ok((Guest { machine, entry, address, console }, facts, emulated))
}

/// One for each end in it, and the one that answers for it.
fn agents(lab: &LabSpec, spec: &VmSpec) -> u32 {
    let there = |place: &PlaceSpec| matches!(place, PlaceSpec::Vm(guest) if **guest == *spec);
    let ends =
        [(&lab.ping, lab.publishers), (&lab.pong, lab.subscribers)].into_iter().filter(|(place, _)| there(place));
    1 + ends.map(|(_, count)| count).sum::<u32>()
}

/// The plug as QEMU takes it.
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

/// What this host tells of it.
/// `device`: the card of this host that it is given whole.
fn facts(spec: &VmSpec, prepared: &Prepared, threads: &[OutsideThread], device: Option<String>) -> Vec<Fact> {
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
    facts.push(match prepared.kvm {
        true => fact("exits".into(), "counted in each trial".into(), "query-stats of QEMU"),
        false => fact("exits".into(), NOT_COUNTED.into(), "query-kvm of QEMU"),
    });
    if prepared.kvm {
        // Of this host: a setting that stays as long as nobody changes it.
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
    // More than one thread of QEMU may have one name.
    for (number, thread) in threads.iter().enumerate() {
        let nothing = |s: String| if s.is_empty() { "as it was".to_owned() } else { s };
        let text = format!("{} (asked: {})", thread.seen, nothing(thread.asked.to_string()));
        facts.push(fact(format!("thread.{number}.{}", thread.name), text, "sched_getattr(2), sched_getaffinity(2)"));
    }
    facts
}

/// One after the other: a guest may be started more than once in a run.
fn keep(console: &Path, kept: &Path) -> io::Result<()> {
    let mut to = std::fs::OpenOptions::new().create(true).append(true).open(kept)?;
    io::copy(&mut std::fs::File::open(console)?, &mut to).map(drop)
}

/// A command that starts Tailbound in the guest whose directory this is.
pub(super) fn over_ports(directory: &Path) -> Command {
    let Ok(mut command) = own_program() else { return Command::new("false") };
    command.args(["guest", "stream", "--directory"]).arg(directory).arg("--");
    command
}

impl Way for Guest {
    fn program(&self) -> Command {
        over_ports(self.machine.directory())
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn address(&self) -> Option<IpAddr> {
        self.address
    }

    fn changed(&self) -> Vec<String> {
        // Of one that has ended something else is told.
        if self.machine.ended().is_some() { Vec::new() } else { self.machine.differs() }
    }

    fn ended(&self) -> Option<String> {
        let paused = || self.machine.look().ok().filter(|look| !look.runs()).map(|_| PAUSED.to_owned());
        self.machine.ended().or_else(paused)
    }

    fn look(&self) -> Option<Result<Look, String>> {
        match self.machine.look() {
            Ok(look) => Some(Ok(look)),
            // The end of its console and what to do about a boot are no part of why.
            Err(e) => self.machine.ended().is_none().then(|| Err(e.what.lines().next().unwrap_or_default().to_owned())),
        }
    }

    fn leave(self: Box<Self>, journal: &Journal) -> Option<String> {
        self.machine.stop();
        // A console that cannot be kept is missed by nobody who has the record.
        let _ = keep(&self.machine.directory().join("console.log"), &self.console);
        journal.done(self.entry).err().map(|e| e.to_string())
    }
}
