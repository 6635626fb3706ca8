//! XDP programs that redirect packets, loaded by bpf(2) and attached by BPF links. The programs are not pinned to
//! files, so the kernel removes the programs with the last descriptor, also after SIGKILL.
//!
//! Commands and structs have the layout of linux/bpf.h. The BPF instructions of the programs are written out here.

use nix::net::if_::if_nametoindex;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use tailbound_model::XdpMode;

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const MAP_ARRAY: u32 = 2;
const MAP_DEVICES: u32 = 14;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// Numbers of the BPF helper functions that the programs call.
const LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;
/// Values that an XDP program can return for a packet.
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const XDP_REDIRECT: i32 = 4;
/// Licence of the BPF programs; the helper functions that these programs call are not restricted to GPL programs.
const LICENCE: &CStr = c"Apache-2.0";

/// One BPF instruction (struct bpf_insn of linux/bpf.h).
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// Makes a BPF instruction; `to` and `from` are register numbers.
const fn op(code: u8, to: u8, from: u8, offset: i16, value: i32) -> Instruction {
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    Instruction { code, registers, offset, value }
}

const fn set(to: u8, value: i32) -> Instruction {
    op(0xb7, to, 0, 0, value)
}

const fn copy(to: u8, from: u8) -> Instruction {
    op(0xbf, to, from, 0, 0)
}

const fn call(helper: i32) -> Instruction {
    op(0x85, 0, 0, 0, helper)
}

const EXIT: Instruction = op(0x95, 0, 0, 0, 0);

/// Makes the two BPF instructions that load the address of a map into a register.
fn map(to: u8, map: &OwnedFd) -> [Instruction; 2] {
    const A_MAP: u8 = 1;
    [op(0x18, to, A_MAP, 0, map.as_raw_fd()), op(0, 0, 0, 0, 0)]
}

/// Returns a BPF program that redirects every packet to the device with key `to` of the map `devices`, and counts the
/// redirected packets in element `own` of the map `counts`.
fn redirecting(devices: &OwnedFd, counts: &OwnedFd, own: i32, to: i32) -> Vec<Instruction> {
    let mut all = map(1, devices).to_vec();
    all.extend([set(2, to), set(3, XDP_DROP), call(REDIRECT_MAP), copy(6, 0)]);
    // If the packet was not redirected, jump to the last two instructions.
    all.push(op(0x55, 0, 0, 9, XDP_REDIRECT));
    // The key of the map is on the stack; register 10 points to the end of the stack.
    all.extend([op(0x62, 10, 0, -4, own), copy(2, 10), op(0x07, 2, 0, 0, -4)]);
    all.extend(map(1, counts));
    all.push(call(LOOKUP));
    // Every element exists, but the kernel's verifier requires the check.
    all.push(op(0x15, 0, 0, 2, 0));
    // Atomic `*r0 += 1`.
    all.extend([set(1, 1), op(0xdb, 0, 1, 0, 0)]);
    all.extend([copy(0, 6), EXIT]);
    all
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapElement {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

/// Marks structs that may be used as parts of `union bpf_attr`, the argument of bpf(2).
///
/// # Safety
/// Every implementing struct is `repr(C)`, and the pointers in it, if any, are valid for everything that the command
/// reads and writes.
unsafe trait Attributes {}
// SAFETY: the struct contains no pointers.
unsafe impl Attributes for MapCreate {}
// SAFETY: the struct is made only in `element`, with a key and a value that have the map's sizes and outlive the call.
unsafe impl Attributes for MapElement {}
// SAFETY: the struct is made only in `load`, with instructions and a licence that outlive the call, and no log.
unsafe impl Attributes for ProgLoad {}
// SAFETY: the struct contains no pointers.
unsafe impl Attributes for LinkCreate {}

fn bpf<A: Attributes>(command: i32, attributes: &mut A) -> io::Result<i32> {
    // SAFETY: the kernel reads at most the given size, and the type guarantees valid pointers.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn descriptor<A: Attributes>(command: i32, attributes: &mut A) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: these commands return a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a BPF map with `u32` keys that start at 0.
fn make_map(kind: u32, value_size: u32, entries: u32) -> io::Result<OwnedFd> {
    descriptor(MAP_CREATE, &mut MapCreate { kind, key_size: 4, value_size, entries, flags: 0 })
}

/// Reads or writes the value of a key in a BPF map; `T` must have the size of the map's values.
fn element<T>(command: i32, map: &OwnedFd, key: u32, value: &mut T) -> io::Result<()> {
    let (key, value) = (&raw const key as u64, std::ptr::from_mut(value) as u64);
    bpf(command, &mut MapElement { map: map.as_raw_fd() as u32, pad: 0, key, value, flags: 0 })?;
    Ok(())
}

fn load(name: &[u8], instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let mut padded = [0; 16];
    padded[..name.len()].copy_from_slice(name);
    let mut attributes = ProgLoad {
        kind: PROGRAM_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: padded,
        interface: 0,
        attach: ATTACH_XDP,
    };
    descriptor(PROG_LOAD, &mut attributes)
}

fn attach(program: &OwnedFd, interface: u32, mode: XdpMode) -> io::Result<OwnedFd> {
    let flags = match mode {
        XdpMode::Generic => 1 << 1,
        XdpMode::Native => 1 << 2,
    };
    let program = program.as_raw_fd() as u32;
    descriptor(LINK_CREATE, &mut LinkCreate { program, interface, attach: ATTACH_XDP, flags })
}

/// Two interfaces whose packets XDP programs redirect to each other until this value is dropped.
#[derive(Debug)]
pub(super) struct Redirect {
    counts: OwnedFd,
    _links: [OwnedFd; 2],
}

impl Redirect {
    /// Attaches redirecting XDP programs to two interfaces of the calling thread's network namespace.
    pub fn attach(names: [&str; 2], mode: XdpMode) -> io::Result<Redirect> {
        let index = |name: &str| if_nametoindex(name).map_err(io::Error::from);
        let interfaces = [index(names[0])?, index(names[1])?];
        let (devices, counts) = (make_map(MAP_DEVICES, 4, 2)?, make_map(MAP_ARRAY, 8, 2)?);
        for (place, mut interface) in (0..).zip(interfaces) {
            element(MAP_UPDATE, &devices, place, &mut interface)?;
        }
        let one = |own: i32| {
            let program = load(b"tb_redirect", &redirecting(&devices, &counts, own, 1 - own))?;
            attach(&program, interfaces[own as usize], mode)
        };
        let _links = [one(0)?, one(1)?];
        Ok(Redirect { counts, _links })
    }

    /// Number of redirected packets that the first (0) or second (1) interface received.
    pub fn count(&self, place: u32) -> io::Result<i64> {
        let mut value = 0i64;
        element(MAP_LOOKUP, &self.counts, place, &mut value)?;
        Ok(value)
    }
}

/// Attaches an XDP program that passes all packets to an interface of the calling thread's network namespace. The
/// program stays attached until the descriptor is closed.
pub(super) fn pass(name: &str) -> io::Result<OwnedFd> {
    let program = load(b"tb_pass", &[set(0, XDP_PASS), EXIT])?;
    attach(&program, if_nametoindex(name)?, XdpMode::Native)
}

/// Returns the kernel's error for a BPF link without a program: EBADF if the kernel supports XDP links, EINVAL if it
/// does not, EPERM without privilege.
pub(super) fn links_error() -> io::Error {
    let none = LinkCreate { program: u32::MAX, interface: 0, attach: ATTACH_XDP, flags: 0 };
    bpf(LINK_CREATE, &mut { none })
        .err()
        .unwrap_or_else(|| io::Error::other("the kernel made a link without a program"))
}
