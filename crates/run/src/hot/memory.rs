//! Sample memory: a shared, pre-faulted memfd that outlives the measuring process.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicI64, AtomicU64};
use tailbound_model::{EchoCell, SenderCell};

/// First page of the memory. Zero means "not yet".
#[repr(C)]
#[derive(Debug, Default)]
pub struct Header {
    /// Monotonic time of slot 0.
    pub t0_ns: AtomicI64,
    /// Rows used (pong side) or slots turned to (ping side, at the end).
    pub rows: AtomicU64,
    /// Rows that did not fit.
    pub dropped: AtomicU64,
    /// Answers that the driver refused to send (pong side).
    pub refused: AtomicU64,
    /// Its last refusal, a `TB_E*` code.
    pub refusal: AtomicI64,
}

/// Octets before the first cell.
const HEADER_OCTETS: usize = 4096;

/// What the cells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// [`SenderCell`].
    Sender,
    /// [`EchoCell`].
    Echo,
}

impl MemoryKind {
    /// Octets of one cell.
    pub fn cell_octets(self) -> usize {
        match self {
            MemoryKind::Sender => size_of::<SenderCell>(),
            MemoryKind::Echo => size_of::<EchoCell>(),
        }
    }
}

/// A mapping of sample memory. Never unmapped: cells are handed out for the life of the process or of the trial.
#[derive(Debug)]
pub struct Memory {
    base: std::ptr::NonNull<u8>,
    octets: usize,
    kind: MemoryKind,
}

// SAFETY: the mapping holds nothing but atomics.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Octets that `cells` cells need.
    pub fn octets_for(kind: MemoryKind, cells: u64) -> u64 {
        HEADER_OCTETS as u64 + cells * kind.cell_octets() as u64
    }

    /// Makes the memory file.
    ///
    /// # Errors
    /// The kernel's word, e.g. out of memory.
    pub fn create(kind: MemoryKind, cells: u64) -> std::io::Result<OwnedFd> {
        let fd = memfd_create(c"tailbound-samples", MFdFlags::MFD_CLOEXEC)?;
        nix::unistd::ftruncate(&fd, Self::octets_for(kind, cells) as i64)?;
        Ok(fd)
    }

    /// Maps it; with `populate` every page is touched now, so that no page fault happens later.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn map(fd: impl AsFd, kind: MemoryKind, populate: bool) -> std::io::Result<Memory> {
        let octets = nix::sys::stat::fstat(fd.as_fd())?.st_size as usize;
        let length = NonZeroUsize::new(octets)
            .filter(|n| n.get() >= HEADER_OCTETS)
            .ok_or_else(|| std::io::Error::other("the sample memory is shorter than its header"))?;
        let flags = if populate { MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE } else { MapFlags::MAP_SHARED };
        // SAFETY: a fresh shared mapping of a file of ours that never shrinks; nothing else lies there.
        let base = unsafe { mmap(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, flags, fd, 0)? };
        Ok(Memory { base: base.cast(), octets, kind })
    }

    /// The header.
    pub fn header(&self) -> &'static Header {
        // SAFETY: the mapping is never unmapped, is larger than the header, page aligned, and all-zero is a valid header.
        unsafe { &*self.base.as_ptr().cast() }
    }

    fn cells(&self) -> usize {
        (self.octets - HEADER_OCTETS) / self.kind.cell_octets()
    }

    /// The sender's cells; empty for other memory.
    pub fn sender(&self) -> &'static [SenderCell] {
        if self.kind != MemoryKind::Sender {
            return &[];
        }
        // SAFETY: never unmapped, aligned (48-byte cells of 8-byte atomics after a page), zero is a valid cell.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(HEADER_OCTETS).cast(), self.cells()) }
    }

    /// The echo cells; empty for other memory.
    pub fn echo(&self) -> &'static [EchoCell] {
        if self.kind != MemoryKind::Echo {
            return &[];
        }
        // SAFETY: as in `sender`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(HEADER_OCTETS).cast(), self.cells()) }
    }

    /// The octets of the first `rows` cells, for sending them on. Taken when nothing writes any more.
    pub fn octets_of_rows(&self, rows: u64) -> &'static [u8] {
        let length = (rows as usize).min(self.cells()) * self.kind.cell_octets();
        // SAFETY: within the mapping; called after the trial, when no other thread or process writes the cells.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(HEADER_OCTETS), length) }
    }

    /// Gives the mapping back.
    ///
    /// # Safety
    /// No reference from `header`, `sender`, `echo` or `octets_of_rows` is used afterwards.
    pub unsafe fn unmap(self) {
        // SAFETY: `map` made it with this length; the caller gave up all references.
        let _ = unsafe { nix::sys::mman::munmap(self.base.cast(), self.octets) };
    }
}
