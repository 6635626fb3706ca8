//! Virtual machines (guests) on this host, run by QEMU: the files that they boot, starting them, and connecting to
//! them.
//!
//! Input: a [`VmSpec`](tailbound_model::VmSpec), the content of a bundle, and interfaces that the caller has opened.
//! Output: a running machine, streams to the agents in it, and the machine's threads on this host. This crate does not
//! depend on labs, studies or records.
//!
//! ```text
//! KernelChoice ─► Kernel ─► initramfs ─► Machine ── QEMU ── kernel ── /init ── agent hold
//!                 (image,    (bundle,       │                            │
//!                  modules)   modules)      └── stream ═══ a port ═══════┘
//! ```
//!
//! Nothing is installed in a guest and nothing is written to a disk: all files are in the initramfs, whose `/init` is
//! this program. A [`Cache`] keeps kernel images and initramfs files for later runs.
//!
//! A stream to a guest is a port of virtio-serial, or a TCP connection through QEMU's user-mode network. For each
//! connection, the program in the guest sends [`GREETING`] and then joins the connection to the holder of agents.

mod cache;
mod clock;
mod cpio;
mod error;
mod export;
mod extra_files;
mod init;
mod initramfs;
mod kernel;
mod kvm_trial;
mod line;
mod machine;
mod module_file;
mod modules;
mod ports;
mod prepare;
mod pvh;
mod qemu;
mod run_in_guest;
mod stream;

pub use cache::Cache;
pub use clock::set_clock;
pub use export::{Exported, libvirt};
pub use extra_files::{with_named, with_programs};
pub use init::{init, serve, serve_named};
pub use initramfs::{Initramfs, initramfs};
pub use kernel::Kernel;
pub use line::{Card, Mac, Mode, NicLine};
pub use machine::{Look, Machine, MachineOrder, NOT_COUNTED, Nic, OutsideThread, Plug, unblocked};
pub use modules::{NETWORK, REQUIRED};
pub use ports::{GREETING, PORT_NAMES, await_ports, join_ports};
pub use prepare::{Prepared, prepare};
pub use qemu::qemu;
pub use run_in_guest::{GuestRunOrder, run_in_guest, serve_run};
pub use stream::{PATIENCE, PATIENCE_WITH_A_RUN, stream};
