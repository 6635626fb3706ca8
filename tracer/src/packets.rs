//! The BPF programs of `bpf/packets.bpf.c`, which follow datagrams through the kernel.

use crate::programs::{self, chain};
use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::{Btf, Ebpf, EbpfLoader, Pod, include_bytes_aligned};
use std::os::fd::AsRawFd;
use tailbound_abi::tb_packet;

static OBJECT: &[u8] = include_bytes_aligned!("../bpf/packets.bpf.o");

/// Tracepoints of the programs, with the name that a program has in the object. Kernels lack some of them.
/// The end of a run of soft interrupts comes before its begin: a begin without an end would never end.
const POINTS: [(&str, &str); 10] = [
    ("on_softirq_exit", "softirq_exit"),
    ("on_poll", "napi_poll"),
    ("on_softirq_entry", "softirq_entry"),
    ("on_queue", "net_dev_queue"),
    ("on_transmit", "net_dev_start_xmit"),
    ("on_backlog", "netif_rx"),
    ("on_receive", "netif_receive_skb"),
    ("on_drop", "kfree_skb"),
    ("on_data_ready", "sk_data_ready"),
    ("on_read", "sock_recv_length"),
];

/// Entry of the map `receivers` (`struct receiving` of the C file).
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Receiving {
    buffer: u64,
    lost: u64,
    run: u32,
    thread: u32,
    to_port: u16,
    unused: [u16; 19],
}

// SAFETY: `Receiving` has no padding, and every pattern of bits is a value of it.
unsafe impl Pod for Receiving {}

/// BPF programs in the kernel that follow datagrams, with their maps.
pub struct Packets {
    bpf: Ebpf,
    records: RingBuf<MapData>,
    receivers: Array<MapData, Receiving>,
    ports: HashMap<MapData, u16, u8>,
    /// 1 while datagrams are followed (`following` of the C file).
    following: Array<MapData, u32>,
    loaded: Vec<&'static str>,
    /// Attached programs: dropping a link detaches its program.
    links: Vec<BtfTracePointLink>,
}

impl Packets {
    /// Loads the programs into the kernel, for CPUs below `cpus`, with a ring buffer of `bytes`.
    ///
    /// # Errors
    /// The kernel refuses a program, or has none of the tracepoints; the text is the reason.
    pub fn load(cpus: u32, bytes: u32) -> Result<Packets, String> {
        let btf = Btf::from_sys_fs().map_err(|e| format!("the kernel's types (/sys/kernel/btf): {}", chain(&e)))?;
        let mut loader = EbpfLoader::new();
        let half = u64::from(bytes / 2);
        loader.btf(Some(&btf)).map_max_entries("receivers", cpus.max(1)).map_max_entries("packets", bytes);
        let namespace = programs::pid_namespace();
        loader.override_global("packets_wake_at_bytes", &half, true).override_global("pid_namespace", &namespace, true);
        let mut bpf = loader.load(OBJECT).map_err(|e| chain(&e))?;
        let mut map = |name: &str| bpf.take_map(name).ok_or_else(|| format!("the object has no map {name}"));
        let records = RingBuf::try_from(map("packets")?).map_err(|e| chain(&e))?;
        let receivers = Array::try_from(map("receivers")?).map_err(|e| chain(&e))?;
        let following = Array::try_from(map(".bss")?).map_err(|e| chain(&e))?;
        let ports = HashMap::try_from(map("ports")?).map_err(|e| chain(&e))?;
        let (mut loaded, links) = (Vec::new(), Vec::new());
        for (program, tracepoint) in POINTS {
            if programs::load(&mut bpf, program, tracepoint, &btf)? {
                loaded.push(program);
            }
        }
        if loaded.is_empty() {
            return Err("the kernel has no tracepoint of packets".into());
        }
        Ok(Packets { bpf, records, receivers, ports, following, loaded, links })
    }

    /// Attaches all programs.
    ///
    /// # Errors
    /// The kernel refuses; no program is attached then.
    pub fn attach(&mut self) -> Result<(), String> {
        self.links = programs::attach_all(&mut self.bpf, &self.loaded)?;
        Ok(())
    }

    /// Detaches all programs.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Follows datagrams that are sent from these ports from now on; without ports, nothing.
    ///
    /// # Errors
    /// There are too many ports, or the kernel refuses.
    pub fn watch(&mut self, ports: &[u16]) -> Result<(), String> {
        self.following.set(0, 0, 0).map_err(|e| chain(&e))?;
        let old: Vec<u16> = self.ports.keys().filter_map(Result::ok).collect();
        for port in old {
            self.ports.remove(&port).map_err(|e| chain(&e))?;
        }
        for port in ports {
            self.ports.insert(port.to_be(), 1, 0).map_err(|e| chain(&e))?;
        }
        self.following.set(0, u32::from(!ports.is_empty()), 0).map_err(|e| chain(&e))
    }

    /// Passes all records to `take`. Returns the number of records that were lost since the programs were loaded.
    pub fn read(&mut self, mut take: impl FnMut(&tb_packet)) -> u64 {
        while let Some(item) = self.records.next() {
            if item.len() >= size_of::<tb_packet>() {
                // SAFETY: the item has the size of a record, and the ring buffer aligns its items to 8 bytes.
                take(unsafe { &*item.as_ptr().cast() });
            }
        }
        self.receivers.iter().map(|one| one.map_or(0, |one| one.lost)).sum()
    }

    /// Descriptor that becomes readable when the ring buffer is half full.
    pub fn fd(&self) -> i32 {
        self.records.as_raw_fd()
    }
}
