//! Sample memory: a shared, pre-faulted memfd that outlives the measuring process.
//!
//! The sample memory has room for a whole trial, or it is a ring that the supervisor drains while the trial runs. In a
//! ring, row n lies in cell n modulo the number of cells, and that number is a power of two.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64};
use tailbound_model::{CELL_SKIPPED, EchoCell, SenderCell};
use tailbound_wire::Role;

/// Header on the first page of the sample memory. A field with the value zero has not been written yet.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Header {
    /// Monotonic time at which slot 0 of the trial is due, ns.
    pub t0_ns: AtomicI64,
    /// In the memory of a receiving end (pong): number of rows of samples used so far. In the memory of a sending end
    /// (ping): number of slots begun, written at the end of the trial.
    pub rows: AtomicU64,
    /// Number of rows of samples for which the sample memory had no room.
    pub dropped: AtomicU64,
    /// Number of answers of the pong end that the driver refused to send.
    pub refused: AtomicU64,
    /// Code `TB_E*` of the last answer of the pong end that the driver refused to send.
    pub refusal: AtomicI64,
    /// Number of answers that arrived too late for a ring: the row of their slot was already stored, or was about to be
    /// stored. Counted by the ping end.
    pub late: AtomicU64,
    /// Number of answers that the ping end wrote into a ring while the row of their slot was being stored.
    pub raced: AtomicU64,
    /// 1 if the supervisor asked the ping end to end the trial early: it does not drain the ring any more, so that the
    /// ring becomes full.
    pub ended_early: AtomicU64,
    /// Progress of the supervisor in draining rows of samples from the ring.
    pub drained: Drained,
}

/// Progress of the supervisor in draining a ring. The fields stay zero if the sample memory has room for the whole
/// trial. The supervisor writes the fields a few times a second, so they have a cache line of their own.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Drained {
    /// Number of the first row of samples that is not claimed. Rows with a lower number are about to be stored: an
    /// answer to the message of such a row comes too late.
    pub claimed: AtomicU64,
    /// Number of the first row of samples that is not stored. Rows with a lower number are stored, and their cells are
    /// zero again.
    pub stored: AtomicU64,
}

/// Cells of the sample memory, selected by the number of a row of samples.
#[derive(Debug)]
pub struct Ring<T: 'static> {
    cells: &'static [T],
    /// Mask of those bits in the number of a row of samples that select the cell of the row. All bits are set if the
    /// memory has room for the whole trial.
    mask: u64,
}

impl<T> Clone for Ring<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ring<T> {}

impl<T> Ring<T> {
    /// Uses the cells of the sample memory without wrapping: each row of the trial has its own cell.
    pub fn whole(cells: &'static [T]) -> Self {
        Ring { cells, mask: u64::MAX }
    }

    /// Uses the cells of the sample memory as a ring: row n lies in cell n modulo the number of cells. That number must
    /// be a power of two.
    pub fn wrapped(cells: &'static [T]) -> Self {
        assert!(cells.len().is_power_of_two(), "a ring of {} cells", cells.len());
        Ring { cells, mask: cells.len() as u64 - 1 }
    }

    /// Cell of a row of samples; `None` if the row lies beyond the sample memory.
    #[inline]
    pub fn get(&self, row: u64) -> Option<&'static T> {
        self.cells.get((row & self.mask) as usize)
    }

    /// The cells of the rows `from..to` that exist in the sample memory.
    fn between(self, from: u64, to: u64) -> impl Iterator<Item = &'static T> {
        (from..to).map_while(move |row| self.get(row))
    }

    /// Number of cells in the sample memory.
    #[inline]
    pub fn len(&self) -> u64 {
        self.cells.len() as u64
    }

    /// True if the sample memory has no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

/// Number of bytes before the first cell of the sample memory.
const HEADER_BYTES: usize = 4096;

/// Type of the cells in a sample memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// The cells of the sample memory are of type [`SenderCell`].
    Sender,
    /// The cells of the sample memory are of type [`EchoCell`].
    Echo,
}

impl From<Role> for MemoryKind {
    fn from(role: Role) -> Self {
        match role {
            Role::Ping | Role::Publisher(_) => MemoryKind::Sender,
            Role::Pong | Role::Further(_) => MemoryKind::Echo,
        }
    }
}

impl MemoryKind {
    /// Size of one cell of the sample memory in bytes.
    pub fn cell_bytes(self) -> usize {
        match self {
            MemoryKind::Sender => size_of::<SenderCell>(),
            MemoryKind::Echo => size_of::<EchoCell>(),
        }
    }
}

/// A mapping of sample memory. It is not unmapped on drop, because its cells are used until the process or the trial
/// ends.
#[derive(Debug)]
pub struct Memory {
    base: std::ptr::NonNull<u8>,
    bytes: usize,
    kind: MemoryKind,
    ring: bool,
}

// SAFETY: the mapping holds nothing but atomics.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Number of bytes of a sample memory with `cells` cells.
    pub fn bytes_for(kind: MemoryKind, cells: u64) -> u64 {
        HEADER_BYTES as u64 + cells * kind.cell_bytes() as u64
    }

    /// Creates the memory file for `cells` cells of samples.
    ///
    /// # Errors
    /// The kernel refuses the memory, for example because none is free.
    pub fn create(kind: MemoryKind, cells: u64) -> std::io::Result<OwnedFd> {
        let fd = memfd_create(c"tailbound-samples", MFdFlags::MFD_CLOEXEC)?;
        nix::unistd::ftruncate(&fd, Self::bytes_for(kind, cells) as i64)?;
        Ok(fd)
    }

    /// Maps the sample memory. If `populate`, every page is touched now, so that no page fault happens later.
    ///
    /// # Errors
    /// The file is shorter than the header, or the kernel refuses the mapping.
    pub fn map(fd: impl AsFd, kind: MemoryKind, ring: bool, populate: bool) -> std::io::Result<Memory> {
        let bytes = nix::sys::stat::fstat(fd.as_fd())?.st_size as usize;
        let length = NonZeroUsize::new(bytes)
            .filter(|n| n.get() >= HEADER_BYTES)
            .ok_or_else(|| std::io::Error::other("the sample memory is shorter than its header"))?;
        let flags = if populate { MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE } else { MapFlags::MAP_SHARED };
        // SAFETY: a new shared mapping of a file of ours that never shrinks; no other object lies there.
        let base = unsafe { mmap(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, flags, fd, 0)? };
        Ok(Memory { base: base.cast(), bytes, kind, ring })
    }

    /// Allocates sample memory without a file, for tests under Miri, which cannot map files. The memory is never freed.
    #[cfg(test)]
    pub fn leaked(kind: MemoryKind, cells: u64, ring: bool) -> Memory {
        let bytes = Self::bytes_for(kind, cells) as usize;
        let layout = std::alloc::Layout::from_size_align(bytes, HEADER_BYTES).unwrap();
        // SAFETY: the size is not zero.
        let base = std::ptr::NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).unwrap();
        Memory { base, bytes, kind, ring }
    }

    /// The header on the first page of the sample memory.
    pub fn header(&self) -> &'static Header {
        // SAFETY: the mapping is never unmapped, is larger than the header, page aligned, and all-zero is a valid
        // header.
        unsafe { &*self.base.as_ptr().cast() }
    }

    fn count(&self) -> usize {
        (self.bytes - HEADER_BYTES) / self.kind.cell_bytes()
    }

    fn ring<T>(&self, cells: &'static [T]) -> Ring<T> {
        if self.ring { Ring::wrapped(cells) } else { Ring::whole(cells) }
    }

    /// Cells of the sample memory of a sending end; empty if the memory belongs to a receiving end.
    pub fn sender(&self) -> Ring<SenderCell> {
        let cells = if self.kind == MemoryKind::Sender { self.count() } else { 0 };
        // SAFETY: never unmapped, aligned (48-byte cells of 8-byte atomics after a page), zero is a valid cell.
        self.ring(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(HEADER_BYTES).cast(), cells) })
    }

    /// Cells of the sample memory of a receiving end; empty if the memory belongs to a sending end.
    pub fn echo(&self) -> Ring<EchoCell> {
        let cells = if self.kind == MemoryKind::Echo { self.count() } else { 0 };
        // SAFETY: as in `sender`.
        self.ring(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(HEADER_BYTES).cast(), cells) })
    }

    /// Number of the row after the last row that must be stored. The rows of a sender are all slots that the sender has
    /// begun, also if the sender was killed.
    pub fn rows(&self) -> u64 {
        let counted = self.header().rows.load(Acquire);
        if self.kind == MemoryKind::Echo || counted > 0 {
            return counted;
        }
        let (cells, stored) = (self.sender(), self.header().drained.stored.load(Acquire));
        let touched =
            |row: &u64| cells.get(*row).is_some_and(|c| c.wake_ns.load(Relaxed) != 0 || c.flags.load(Relaxed) != 0);
        // Slots are begun in order, so that a binary search finds the last slot that was begun.
        let (mut low, mut high) = (stored, stored + cells.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if touched(&middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Number of the first row, from `from` on, that may still change. A row of a sending end changes no more if its
    /// slot was skipped or its send call ended before `before_ns`; a row of a receiving end changes no more if it is
    /// complete. At most `most` rows are looked at.
    pub fn settled(&self, from: u64, most: u64, before_ns: i64) -> u64 {
        let settled = |row: u64| match self.kind {
            MemoryKind::Echo => self.echo().get(row).is_some_and(|c| c.seq_plus_one.load(Acquire) != 0),
            MemoryKind::Sender => self.sender().get(row).is_some_and(|c| {
                let end = c.send_end_ns.load(Acquire);
                c.flags.load(Relaxed) & CELL_SKIPPED != 0 || (end != 0 && end < before_ns)
            }),
        };
        let limit = from + most.min(self.count() as u64);
        let mut row = from;
        while row < limit && settled(row) {
            row += 1;
        }
        row
    }

    /// Size in bytes of sample memory for `rows` rows of samples.
    pub fn bytes_of(&self, rows: u64) -> usize {
        rows as usize * self.kind.cell_bytes()
    }

    /// The bytes of the rows `from..to`, as they lie in the memory; fewer rows if the memory is shorter. Each field is
    /// read atomically, because a very late answer may write a cell at the same time.
    pub fn bytes(&self, from: u64, to: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes_of(to.saturating_sub(from).min(self.count() as u64)));
        match self.kind {
            MemoryKind::Sender => {
                self.sender().between(from, to).for_each(|cell| out.extend_from_slice(&cell.to_bytes()));
            }
            MemoryKind::Echo => {
                self.echo().between(from, to).for_each(|cell| out.extend_from_slice(&cell.to_bytes()));
            }
        }
        out
    }

    /// Releases the rows of samples `from..to`, which are stored: sets their cells to zero, so that the measuring
    /// process may use the cells again.
    pub fn release(&self, from: u64, to: u64) {
        match self.kind {
            MemoryKind::Sender => self.sender().between(from, to).for_each(SenderCell::clear),
            MemoryKind::Echo => self.echo().between(from, to).for_each(EchoCell::clear),
        }
        self.header().drained.stored.store(to, Release);
    }

    /// Unmaps the sample memory.
    ///
    /// # Safety
    /// The caller uses no reference from `header`, `sender` or `echo` afterwards.
    pub unsafe fn unmap(self) {
        // SAFETY: `map` created the mapping with this length; the caller uses no reference any more.
        let _ = unsafe { nix::sys::mman::munmap(self.base.cast(), self.bytes) };
    }
}
