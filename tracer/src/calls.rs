//! The BPF programs of `bpf/calls.bpf.c`, which record calls of programs of ROS 2.

use crate::programs::{self, chain};
use aya::maps::{Array, MapData, RingBuf};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::uprobe::{UProbeError, UProbeLink, UProbeScope};
use aya::programs::{ProgramError, UProbe};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use std::ffi::OsStr;
use tailbound_abi::{TB_CALLS_OF_RCLCPP, TB_CALLS_OF_RMW, tb_call};

static OBJECT: &[u8] = include_bytes_aligned!("../bpf/calls.bpf.o");

/// Functions of rmw with which messages are published.
const PUBLISH: [&str; 3] = ["rmw_publish", "rmw_publish_serialized_message", "rmw_publish_loaned_message"];
/// Functions of rmw with which rcl takes messages: all have the same order of arguments.
const TAKE: [&str; 3] =
    ["rmw_take_with_info", "rmw_take_serialized_message_with_info", "rmw_take_loaned_message_with_info"];
/// `rclcpp::Executor::execute_subscription(std::shared_ptr<rclcpp::SubscriptionBase>)`.
const EXECUTE: [&str; 1] = ["_ZN6rclcpp8Executor20execute_subscriptionESt10shared_ptrINS_16SubscriptionBaseEE"];

/// BPF programs in the kernel that record calls, with their maps.
pub struct Calls {
    bpf: Ebpf,
    records: RingBuf<MapData>,
    lost: Array<MapData, u64>,
    /// Attached programs: dropping a link detaches its program.
    links: Vec<UProbeLink>,
    /// The program that records waits for a CPU, attached.
    _switches: Vec<BtfTracePointLink>,
}

impl Calls {
    /// Loads the programs into the kernel, with a ring buffer of `bytes`.
    ///
    /// # Errors
    /// The kernel refuses a program; the text is the reason.
    pub fn load(bytes: u32) -> Result<Calls, String> {
        programs::permitted()
            .map_err(|e| format!("the kernel permits it to root, or with CAP_BPF and CAP_PERFMON: {e}"))?;
        let btf = Btf::from_sys_fs().map_err(|e| format!("the kernel's types (/sys/kernel/btf): {}", chain(&e)))?;
        let (namespace, is_arm) = (programs::pid_namespace(), u32::from(cfg!(target_arch = "aarch64")));
        let mut loader = EbpfLoader::new();
        loader.btf(Some(&btf)).map_max_entries("calls", bytes);
        loader.override_global("pid_namespace", &namespace, true).override_global("is_arm", &is_arm, true);
        let mut bpf = loader.load(OBJECT).map_err(|e| chain(&e))?;
        for program in ["on_publish", "on_take", "on_return", "on_execute", "on_executed"] {
            find(&mut bpf, program)?.load().map_err(|e| programs::refusal(program, &e))?;
        }
        // Without the tracepoint, waits for a CPU are not known.
        let mut switches = Vec::new();
        if programs::load(&mut bpf, "on_switch", "sched_switch", &btf)? {
            switches = programs::attach_all(&mut bpf, ["on_switch"])?;
        }
        let mut map = |name: &str| bpf.take_map(name).ok_or_else(|| format!("the object has no map {name}"));
        let records = RingBuf::try_from(map("calls")?).map_err(|e| chain(&e))?;
        let lost = Array::try_from(map(".bss")?).map_err(|e| chain(&e))?;
        Ok(Calls { bpf, records, lost, links: Vec::new(), _switches: switches })
    }

    /// Attaches the programs to functions of the library at `path`. Returns to how many; 0 = it has none of them.
    ///
    /// # Errors
    /// The kernel refuses, or the file cannot be read; none of the functions is recorded then.
    pub fn attach(&mut self, path: &OsStr, of: u32) -> Result<u32, String> {
        let sets: &[(&[&str], [&str; 2])] = match of {
            TB_CALLS_OF_RMW => &[(&PUBLISH, ["on_return", "on_publish"]), (&TAKE, ["on_return", "on_take"])],
            TB_CALLS_OF_RCLCPP => &[(&EXECUTE, ["on_executed", "on_execute"])],
            _ => return Err(format!("no functions have the number {of}")),
        };
        let mut links = Vec::new();
        for (functions, programs) in sets {
            for function in *functions {
                // The end first: a begin without an end would never end.
                for program in programs {
                    links.extend(attach(&mut self.bpf, program, function, path)?);
                }
            }
        }
        let functions = links.len() as u32 / 2;
        self.links.append(&mut links);
        Ok(functions)
    }

    /// Passes all records to `take`. Returns the number of records that were lost since the programs were loaded.
    pub fn read(&mut self, mut take: impl FnMut(&tb_call)) -> u64 {
        while let Some(item) = self.records.next() {
            if item.len() >= size_of::<tb_call>() {
                // SAFETY: the item has the size of a record, and the ring buffer aligns its items to 8 bytes.
                take(unsafe { &*item.as_ptr().cast() });
            }
        }
        self.lost.get(&0, 0).unwrap_or(0)
    }
}

fn find<'a>(bpf: &'a mut Ebpf, name: &str) -> Result<&'a mut UProbe, String> {
    let program = bpf.program_mut(name).ok_or_else(|| format!("the object has no program {name}"))?;
    program.try_into().map_err(|e: ProgramError| chain(&e))
}

/// Attaches a program to a function; `None` = the library does not have the function.
fn attach(bpf: &mut Ebpf, program: &str, function: &str, path: &OsStr) -> Result<Option<UProbeLink>, String> {
    let program = find(bpf, program)?;
    match program.attach(function, path, UProbeScope::AllProcesses) {
        Ok(id) => program.take_link(id).map(Some).map_err(|e| chain(&e)),
        Err(ProgramError::UProbeError(UProbeError::SymbolError { .. })) => Ok(None),
        Err(e) => Err(chain(&e)),
    }
}
