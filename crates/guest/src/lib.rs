//! Virtual machines of this host, with QEMU: what they boot, how they are started, and how they are spoken with.
//!
//! In: a [`VmSpec`](tailbound_model::VmSpec), the content of a bundle, interfaces that the caller has opened. Out: a machine
//! that runs, streams to the agents in it, the threads that it is on this host. It knows nothing of labs, studies or records.
//!
//! ```text
//! KernelChoice ─► Kernel ─► initramfs ─► Machine ── QEMU ── kernel ── /init ── agent hold
//!                 (image,    (bundle,       │                            │
//!                  modules)   modules)      └── stream ═══ a port ═══════┘
//! ```
//!
//! Nothing is installed in a guest and nothing is written to a disk: all that it has is in its initramfs, whose `/init` is
//! this program. What the kernel images and initramfs cost to make is kept in a [`Cache`].
//!
//! A stream to a guest is a port of virtio-serial, or a TCP connection through QEMU's user-mode network. Whoever serves it in
//! the guest says [`GREETING`] once a connection is there, and then joins it to the holder of agents.

mod along;
mod cache;
mod clock;
mod cpio;
mod error;
mod export;
mod init;
mod initramfs;
mod kernel;
mod line;
mod machine;
mod modules;
mod ports;
mod prepare;
mod pvh;
mod stream;
mod trial;
mod within;

pub use along::{with_named, with_programs};
pub use cache::Cache;
pub use clock::set_clock;
pub use error::GuestError;
pub use export::{Exported, libvirt};
pub use init::{init, serve, serve_named};
pub use initramfs::{Initramfs, initramfs};
pub use kernel::Kernel;
pub use line::{Card, Mac, Mode, NicLine};
pub use machine::{Look, Machine, MachineOrder, NOT_COUNTED, Nic, OutsideThread, Plug, unblocked};
pub use modules::{KEPT, NETWORK};
pub use ports::{GREETING, PORT_NAMES, await_ports, join_ports};
pub use prepare::{Prepared, prepare, qemu};
pub use stream::{PATIENCE, PATIENCE_WITH_A_RUN, stream};
pub use within::{InsideOrder, run_inside, within};
