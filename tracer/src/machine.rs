//! The BPF programs of `bpf/machine.bpf.c`: loaded into the kernel, attached, and their records read.

use crate::programs::{self, chain, permitted};
use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::ProgramError;
use aya::programs::perf_event::{
    PerfEvent, PerfEventConfig, PerfEventLink, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::{Btf, Ebpf, EbpfLoader, Pod, include_bytes_aligned};
use std::os::fd::AsRawFd;
use tailbound_abi::tb_trace;

static OBJECT: &[u8] = include_bytes_aligned!("../bpf/machine.bpf.o");

/// Number of CPUs that the BPF programs can watch (`MAX_CPUS` of the C file).
const MAX_CPUS: usize = 1024;

/// Tracepoints of the programs, with the name that a program has in the object.
const NEEDED: [(&str, &str); 7] = [
    ("on_switch", "sched_switch"),
    ("on_waking", "sched_waking"),
    ("on_move", "sched_migrate_task"),
    ("on_softirq_entry", "softirq_entry"),
    ("on_softirq_exit", "softirq_exit"),
    ("on_irq_entry", "irq_handler_entry"),
    ("on_irq_exit", "irq_handler_exit"),
];
/// Tracepoints of x86, which other CPUs and some kernels lack: each has a begin `_entry` and an end `_exit`.
const VECTORS: [&str; 6] =
    ["local_timer", "reschedule", "call_function", "call_function_single", "irq_work", "thermal_apic"];

/// Other tracepoints that some kernels lack, each with the name that its program has in the object.
const OTHERS: [(&str, &str); 1] = [("on_frequency", "cpu_frequency")];
/// Pairs of tracepoints at the begin and the end of the freeing of memory, with the names of their programs.
const RECLAIMS: [(&str, &str); 2] =
    [("on_machine_reclaim", "mm_vmscan_direct_reclaim"), ("on_group_reclaim", "mm_vmscan_memcg_reclaim")];

/// Programs of page faults, with the perf event at which each of them runs.
const FAULTS: [(&str, SoftwareEvent); 3] = [
    ("on_fault_minor", SoftwareEvent::PageFaultsMin),
    ("on_fault_major", SoftwareEvent::PageFaultsMaj),
    ("on_fault_begin", SoftwareEvent::PageFaults),
];

/// Entry of the map `slots` (`struct slot` of the C file).
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Slot {
    begins_ns: [u64; 3],
    lost: u64,
    softirq: u32,
    preempted: u32,
    limit_at: u64,
    limited: i32,
    limit: u32,
    timer_ns: u64,
    alive_ns: u64,
    has_timer: u64,
    unused: [u64; 6],
}

// SAFETY: `Slot` has no padding, and every pattern of bits is a value of it.
unsafe impl Pod for Slot {}

/// The CPUs whose records are written, one bit each (`watched` of the C file).
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Watched([u64; MAX_CPUS / 64]);

// SAFETY: an array of numbers.
unsafe impl Pod for Watched {}

/// BPF programs in the kernel, with their maps.
pub struct Machine {
    bpf: Ebpf,
    records: RingBuf<MapData>,
    slots: Array<MapData, Slot>,
    watched: Array<MapData, Watched>,
    threads: HashMap<MapData, u32, u8>,
    preempted: HashMap<MapData, u32, u32>,
    faults: HashMap<MapData, u32, u64>,
    reclaims: HashMap<MapData, u32, u64>,
    /// Names of the programs that the kernel has loaded.
    loaded: Vec<String>,
    /// Attached programs: dropping a link detaches its program.
    links: Vec<BtfTracePointLink>,
    /// Attached programs of page faults: dropping a link detaches its program.
    fault_links: Vec<PerfEventLink>,
    /// The CPUs on which the programs of page faults are attached.
    fault_cpus: Vec<u32>,
}

impl Machine {
    /// Loads the programs into the kernel, for CPUs below `cpus`, with a ring buffer of `bytes`.
    ///
    /// # Errors
    /// The kernel refuses, or lacks a tracepoint that is needed; the text is the reason.
    pub fn load(cpus: u32, bytes: u32) -> Result<Machine, String> {
        // Reading the kernel's types takes 40 ms, which a process without the privilege need not spend.
        permitted().map_err(|e| format!("the kernel permits it to root, or with CAP_BPF and CAP_PERFMON: {e}"))?;
        let btf = Btf::from_sys_fs().map_err(|e| format!("the kernel's types (/sys/kernel/btf): {}", chain(&e)))?;
        let mut loader = EbpfLoader::new();
        let half = u64::from(bytes / 2);
        loader.btf(Some(&btf)).map_max_entries("slots", cpus.max(1)).map_max_entries("records", bytes);
        let namespace = programs::pid_namespace();
        let tick_ns = programs::tick_ns();
        loader.override_global("wake_at_bytes", &half, true).override_global("pid_namespace", &namespace, true);
        loader.override_global("tick_ns", &tick_ns, true);
        let mut bpf = loader.load(OBJECT).map_err(|e| chain(&e))?;
        let mut map = |name: &str| bpf.take_map(name).ok_or_else(|| format!("the object has no map {name}"));
        let records = RingBuf::try_from(map("records")?).map_err(|e| chain(&e))?;
        let slots = Array::try_from(map("slots")?).map_err(|e| chain(&e))?;
        let watched = Array::try_from(map(".bss")?).map_err(|e| chain(&e))?;
        let threads = HashMap::try_from(map("threads")?).map_err(|e| chain(&e))?;
        let preempted = HashMap::try_from(map("preempted")?).map_err(|e| chain(&e))?;
        let faults = HashMap::try_from(map("faults")?).map_err(|e| chain(&e))?;
        let reclaims = HashMap::try_from(map("reclaims")?).map_err(|e| chain(&e))?;
        let (loaded, links) = (Vec::new(), Vec::new());
        let (fault_links, fault_cpus) = (Vec::new(), Vec::new());
        let mut machine = Machine {
            bpf,
            records,
            slots,
            watched,
            threads,
            preempted,
            faults,
            reclaims,
            loaded,
            links,
            fault_links,
            fault_cpus,
        };
        machine.load_programs(&btf)?;
        Ok(machine)
    }

    /// Loads all programs whose tracepoints the kernel has.
    fn load_programs(&mut self, btf: &Btf) -> Result<(), String> {
        for (program, tracepoint) in NEEDED {
            if !self.load_program(program, tracepoint, btf)? {
                return Err(format!("the kernel has no tracepoint {tracepoint}"));
            }
        }
        let vectors = VECTORS.map(|name| (format!("on_{name}"), name.to_owned(), ["entry", "exit"]));
        let reclaims = RECLAIMS.map(|(program, name)| (program.to_owned(), name.to_owned(), ["begin", "end"]));
        for (program, tracepoint, [begin, end]) in vectors.iter().chain(&reclaims) {
            // A begin without its end would never end.
            if self.load_program(&format!("{program}_{end}"), &format!("{tracepoint}_{end}"), btf)? {
                self.load_program(&format!("{program}_{begin}"), &format!("{tracepoint}_{begin}"), btf)?;
            }
        }
        for (program, tracepoint) in OTHERS {
            self.load_program(program, tracepoint, btf)?;
        }
        for (program, _) in FAULTS {
            self.fault_program(program)?.load().map_err(|e| chain(&e))?;
        }
        Ok(())
    }

    /// Loads one program. Returns false if the kernel does not have the tracepoint.
    fn load_program(&mut self, program: &str, tracepoint: &str, btf: &Btf) -> Result<bool, String> {
        let is_there = programs::load(&mut self.bpf, program, tracepoint, btf)?;
        if is_there {
            self.loaded.push(program.to_owned());
        }
        Ok(is_there)
    }

    fn fault_program(&mut self, name: &str) -> Result<&mut PerfEvent, String> {
        let program = self.bpf.program_mut(name).ok_or_else(|| format!("the object has no program {name}"))?;
        program.try_into().map_err(|e: ProgramError| chain(&e))
    }

    /// Attaches all programs but those of page faults.
    ///
    /// # Errors
    /// The kernel refuses; no program is attached then.
    pub fn attach(&mut self) -> Result<(), String> {
        let empty = Slot {
            begins_ns: [0; 3],
            lost: 0,
            softirq: 0,
            preempted: 0,
            limit_at: 0,
            limited: 0,
            limit: 0,
            timer_ns: 0,
            alive_ns: 0,
            has_timer: 0,
            unused: [0; 6],
        };
        for cpu in 0..self.slots.len() {
            let lost = self.slots.get(&cpu, 0).map_or(0, |slot| slot.lost);
            self.slots.set(cpu, Slot { lost, ..empty }, 0).map_err(|e| chain(&e))?;
        }
        let left: Vec<u32> = self.preempted.keys().filter_map(Result::ok).collect();
        for thread in left {
            // The entry can be gone only if nothing is attached and it was removed already.
            let _ = self.preempted.remove(&thread);
        }
        // The end of an interrupt first: a begin without an end would make its CPU look interrupted for ever.
        let (first, then): (Vec<String>, Vec<String>) =
            self.loaded.clone().into_iter().partition(|name| !name.ends_with("_entry") && !name.ends_with("_begin"));
        self.links = programs::attach_all(&mut self.bpf, first.into_iter().chain(then))?;
        Ok(())
    }

    /// Detaches all programs.
    pub fn detach(&mut self) {
        self.links.clear();
        self.fault_links.clear();
        self.fault_cpus.clear();
    }

    /// Attaches the programs of page faults on these CPUs, as far as the kernel permits perf events there: without them
    /// the other records are still of use.
    fn attach_faults(&mut self, cpus: &[u32]) -> Result<(), String> {
        for (name, event) in FAULTS {
            let program = self.fault_program(name)?;
            let mut links = Vec::new();
            for cpu in cpus {
                let (event, scope) =
                    (PerfEventConfig::Software(event), PerfEventScope::AllProcessesOneCpu { cpu: *cpu });
                if let Ok(id) = program.attach(event, scope, SamplePolicy::Period(1), false) {
                    links.push(program.take_link(id).map_err(|e| chain(&e))?);
                }
            }
            self.fault_links.extend(links);
        }
        self.fault_cpus = cpus.to_vec();
        Ok(())
    }

    /// Writes records of these CPUs, wake-ups of these threads and their page faults on these CPUs from now on.
    ///
    /// # Errors
    /// A CPU number is too high, there are too many threads, or the kernel refuses.
    pub fn watch(&mut self, cpus: &[u32], threads: &[u32]) -> Result<(), String> {
        let mut watched = Watched([0; MAX_CPUS / 64]);
        for cpu in cpus {
            let word = watched.0.get_mut(*cpu as usize / 64).filter(|_| *cpu < self.slots.len());
            *word.ok_or_else(|| format!("CPU {cpu} is beyond the CPUs that BPF watches"))? |= 1 << (cpu % 64);
        }
        let old: Vec<u32> = self.threads.keys().filter_map(Result::ok).collect();
        for thread in old {
            self.threads.remove(&thread).map_err(|e| chain(&e))?;
        }
        for thread in threads {
            self.threads.insert(thread, 1, 0).map_err(|e| chain(&e))?;
        }
        self.watched.set(0, watched, 0).map_err(|e| chain(&e))?;
        for begun in [&mut self.faults, &mut self.reclaims] {
            let left: Vec<u32> = begun.keys().filter_map(Result::ok).collect();
            for thread in left {
                // The entry can be gone only if what had begun has ended.
                let _ = begun.remove(&thread);
            }
        }
        // The kernel waits for all CPUs before it detaches a program, and for as long as a real-time load keeps a CPU from
        // the threads of the kernel: the programs stay attached while no thread is watched, and then write nothing.
        if cpus.is_empty() || cpus == self.fault_cpus {
            return Ok(());
        }
        self.fault_links.clear();
        self.attach_faults(cpus)
    }

    /// Passes all records to `take`. Returns the number of records that were lost since the programs were loaded.
    pub fn read(&mut self, mut take: impl FnMut(&tb_trace)) -> u64 {
        while let Some(item) = self.records.next() {
            if item.len() >= size_of::<tb_trace>() {
                // SAFETY: the item has the size of a record, and the ring buffer aligns its items to 8 bytes.
                take(unsafe { &*item.as_ptr().cast() });
            }
        }
        self.slots.iter().map(|slot| slot.map_or(0, |slot| slot.lost)).sum()
    }

    /// Descriptor that becomes readable when the ring buffer is half full.
    pub fn fd(&self) -> i32 {
        self.records.as_raw_fd()
    }
}
