//! XDP programs that hand packets on, loaded by bpf(2) and attached by links: no file pins them, so the kernel removes
//! them with the last descriptor, also after SIGKILL.
//!
//! The commands and their structs are those of linux/bpf.h; the instructions are written out, because there are few.

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
/// Helper functions.
const LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;
/// What a program answers.
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const XDP_REDIRECT: i32 = 4;
/// None of the functions that are called is kept for a licence.
const LICENCE: &CStr = c"Apache-2.0";

/// struct bpf_insn.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// `to` and `from` are registers.
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

/// The address of a map: two instructions wide.
fn map(to: u8, map: &OwnedFd) -> [Instruction; 2] {
    const A_MAP: u8 = 1;
    [op(0x18, to, A_MAP, 0, map.as_raw_fd()), op(0, 0, 0, 0, 0)]
}

/// Hands every packet on to device `to` of the map, and counts in place `own` those that it took.
fn redirecting(devices: &OwnedFd, counts: &OwnedFd, own: i32, to: i32) -> Vec<Instruction> {
    let mut all = map(1, devices).to_vec();
    all.extend([set(2, to), set(3, XDP_DROP), call(REDIRECT_MAP), copy(6, 0)]);
    // Not redirected: on to the last two instructions.
    all.push(op(0x55, 0, 0, 9, XDP_REDIRECT));
    // The key of the map lies on the stack, whose end is register 10.
    all.extend([op(0x62, 10, 0, -4, own), copy(2, 10), op(0x07, 2, 0, 0, -4)]);
    all.extend(map(1, counts));
    all.push(call(LOOKUP));
    // Every place exists; the kernel's check of the program does not know that.
    all.push(op(0x15, 0, 0, 2, 0));
    // *r0 += 1, atomically.
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

/// The parts of `union bpf_attr`.
///
/// # Safety
/// Implemented by `repr(C)` structs whose pointers, where they have any, are valid for what the command reads and writes.
unsafe trait Attributes {}
// SAFETY: without pointers.
unsafe impl Attributes for MapCreate {}
// SAFETY: made in `element` only, with a key and a value of the map's sizes that outlive the call.
unsafe impl Attributes for MapElement {}
// SAFETY: made in `load` only, with instructions and a licence that outlive the call, and no log.
unsafe impl Attributes for ProgLoad {}
// SAFETY: without pointers.
unsafe impl Attributes for LinkCreate {}

fn bpf<A: Attributes>(command: i32, attributes: &mut A) -> io::Result<i32> {
    // SAFETY: the kernel reads at most the size that is told, and what it points at is as its type promises.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn descriptor<A: Attributes>(command: i32, attributes: &mut A) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: these commands return a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Keys are u32, counted from 0.
fn make_map(kind: u32, value_size: u32, entries: u32) -> io::Result<OwnedFd> {
    descriptor(MAP_CREATE, &mut MapCreate { kind, key_size: 4, value_size, entries, flags: 0 })
}

/// Reads or writes the value at a key; `T` is as large as the values of the map.
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

/// Two interfaces whose packets are handed on to each other, for as long as this is held.
#[derive(Debug)]
pub(super) struct Redirect {
    counts: OwnedFd,
    _links: [OwnedFd; 2],
}

impl Redirect {
    /// Attaches to two interfaces of the calling thread's network namespace.
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

    /// How many packets of the first or the second interface were handed on.
    pub fn count(&self, place: u32) -> io::Result<i64> {
        let mut value = 0i64;
        element(MAP_LOOKUP, &self.counts, place, &mut value)?;
        Ok(value)
    }
}

/// Lets everything pass on an interface of the calling thread's network namespace, for as long as this is held.
pub(super) fn pass(name: &str) -> io::Result<OwnedFd> {
    let program = load(b"tb_pass", &[set(0, XDP_PASS), EXIT])?;
    attach(&program, if_nametoindex(name)?, XdpMode::Native)
}

/// What the kernel says to a link of nothing: EBADF where it has links, EINVAL where it has not, EPERM.
pub(super) fn links_error() -> io::Error {
    let none = LinkCreate { program: u32::MAX, interface: 0, attach: ATTACH_XDP, flags: 0 };
    bpf(LINK_CREATE, &mut { none }).err().unwrap_or_else(|| io::Error::other("a link of nothing was made"))
}
