//! Sample memory: a shared, pre-faulted memfd that outlives the measuring process.
//!
//! It holds a whole trial, or it is a ring that the supervisor drains while the trial runs: row n then lies in cell n
//! modulo the number of cells, a power of two.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64};
use tailbound_model::{CELL_SKIPPED, EchoCell, SenderCell};
use tailbound_wire::Role;

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
    /// Answers to slots that were stored already (ping side of a ring).
    pub late: AtomicU64,
    /// Answers that were written while their slot was being stored (ping side of a ring).
    pub raced: AtomicU64,
    /// What the supervisor has taken.
    pub drained: Drained,
}

/// How far a ring is drained; stays zero in memory for a whole trial. Written by the supervisor a few times a second, on a
/// cache line of its own.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Drained {
    /// Rows below are about to be stored: answers to them come too late.
    pub claimed: AtomicU64,
    /// Rows below are stored, and their cells are zero again.
    pub stored: AtomicU64,
}

/// Cells by row number.
#[derive(Debug)]
pub struct Ring<T: 'static> {
    cells: &'static [T],
    /// Bits of a row number that choose the cell; all bits where the memory holds the whole trial.
    mask: u64,
}

impl<T> Clone for Ring<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ring<T> {}

impl<T> Ring<T> {
    /// One cell for each row of the trial.
    pub fn whole(cells: &'static [T]) -> Self {
        Ring { cells, mask: u64::MAX }
    }

    /// Row n in cell n modulo the number of cells, which is a power of two.
    pub fn wrapped(cells: &'static [T]) -> Self {
        assert!(cells.len().is_power_of_two(), "a ring of {} cells", cells.len());
        Ring { cells, mask: cells.len() as u64 - 1 }
    }

    /// The cell of a row; `None` beyond the memory.
    #[inline]
    pub fn get(&self, row: u64) -> Option<&'static T> {
        self.cells.get((row & self.mask) as usize)
    }

    /// The number of cells.
    #[inline]
    pub fn len(&self) -> u64 {
        self.cells.len() as u64
    }

    /// No cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
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

impl From<Role> for MemoryKind {
    fn from(role: Role) -> Self {
        match role {
            Role::Ping | Role::Publisher(_) => MemoryKind::Sender,
            Role::Pong | Role::Further(_) => MemoryKind::Echo,
        }
    }
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
    ring: bool,
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
    pub fn map(fd: impl AsFd, kind: MemoryKind, ring: bool, populate: bool) -> std::io::Result<Memory> {
        let octets = nix::sys::stat::fstat(fd.as_fd())?.st_size as usize;
        let length = NonZeroUsize::new(octets)
            .filter(|n| n.get() >= HEADER_OCTETS)
            .ok_or_else(|| std::io::Error::other("the sample memory is shorter than its header"))?;
        let flags = if populate { MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE } else { MapFlags::MAP_SHARED };
        // SAFETY: a fresh shared mapping of a file of ours that never shrinks; nothing else lies there.
        let base = unsafe { mmap(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, flags, fd, 0)? };
        Ok(Memory { base: base.cast(), octets, kind, ring })
    }

    /// The header.
    pub fn header(&self) -> &'static Header {
        // SAFETY: the mapping is never unmapped, is larger than the header, page aligned, and all-zero is a valid header.
        unsafe { &*self.base.as_ptr().cast() }
    }

    fn count(&self) -> usize {
        (self.octets - HEADER_OCTETS) / self.kind.cell_octets()
    }

    fn ring<T>(&self, cells: &'static [T]) -> Ring<T> {
        if self.ring { Ring::wrapped(cells) } else { Ring::whole(cells) }
    }

    /// The sender's cells; none in other memory.
    pub fn sender(&self) -> Ring<SenderCell> {
        let cells = if self.kind == MemoryKind::Sender { self.count() } else { 0 };
        // SAFETY: never unmapped, aligned (48-byte cells of 8-byte atomics after a page), zero is a valid cell.
        self.ring(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(HEADER_OCTETS).cast(), cells) })
    }

    /// The echo cells; none in other memory.
    pub fn echo(&self) -> Ring<EchoCell> {
        let cells = if self.kind == MemoryKind::Echo { self.count() } else { 0 };
        // SAFETY: as in `sender`.
        self.ring(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(HEADER_OCTETS).cast(), cells) })
    }

    /// The row after the last that is worth storing: of a sender every slot that it turned to, also when it was killed.
    pub fn rows(&self) -> u64 {
        let counted = self.header().rows.load(Acquire);
        if self.kind == MemoryKind::Echo || counted > 0 {
            return counted;
        }
        let (cells, stored) = (self.sender(), self.header().drained.stored.load(Acquire));
        let touched =
            |row: &u64| cells.get(*row).is_some_and(|c| c.wake_ns.load(Relaxed) != 0 || c.flags.load(Relaxed) != 0);
        // Slots are turned to in order, so that the last one touched is found by halving.
        let (mut low, mut high) = (stored, stored + cells.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if touched(&middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The row after the last from `from` on that will not change any more: of a sender's slots those whose sending ended
    /// before `before_ns`, of echoes those that are complete.
    pub fn settled(&self, from: u64, before_ns: i64) -> u64 {
        let settled = |row: u64| match self.kind {
            MemoryKind::Echo => self.echo().get(row).is_some_and(|c| c.seq_plus_one.load(Acquire) != 0),
            MemoryKind::Sender => self.sender().get(row).is_some_and(|c| {
                let end = c.send_end_ns.load(Relaxed);
                c.flags.load(Relaxed) & CELL_SKIPPED != 0 || (end != 0 && end < before_ns)
            }),
        };
        let limit = from + self.count() as u64;
        let mut row = from;
        while row < limit && settled(row) {
            row += 1;
        }
        row
    }

    /// Octets of this many rows.
    pub fn octets_of(&self, rows: u64) -> usize {
        rows as usize * self.kind.cell_octets()
    }

    /// The octets of rows `from..to`. Taken when nothing writes them any more.
    pub fn octets(&self, from: u64, to: u64) -> Vec<u8> {
        let size = self.kind.cell_octets();
        let mut out = Vec::with_capacity((to - from) as usize * size);
        self.spans(from, to, |at, count| {
            // SAFETY: `spans` stays within the mapping; nothing writes these cells (see above).
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(at, count * size) });
        });
        out
    }

    /// Rows `from..to` are stored: their cells become zero, and the other side may use them again.
    pub fn release(&self, from: u64, to: u64) {
        self.spans(from, to, |at, count| {
            // SAFETY: `spans` stays within the mapping; nobody uses these cells before `stored` moves on.
            unsafe { at.cast_mut().write_bytes(0, count * self.kind.cell_octets()) };
        });
        self.header().drained.stored.store(to, Release);
    }

    /// The runs of neighbouring cells that rows `from..to` lie in.
    fn spans(&self, from: u64, to: u64, mut each: impl FnMut(*const u8, usize)) {
        let count = self.count();
        let mut row = from;
        while row < to {
            let at = if self.ring { row as usize & (count - 1) } else { row as usize };
            let run = ((to - row) as usize).min(count.saturating_sub(at));
            if run == 0 {
                return;
            }
            // SAFETY: `at` is below `count`.
            each(unsafe { self.base.as_ptr().add(HEADER_OCTETS + at * self.kind.cell_octets()) }, run);
            row += run as u64;
        }
    }

    /// Gives the mapping back.
    ///
    /// # Safety
    /// No reference from `header`, `sender` or `echo` is used afterwards.
    pub unsafe fn unmap(self) {
        // SAFETY: `map` made it with this length; the caller gave up all references.
        let _ = unsafe { nix::sys::mman::munmap(self.base.cast(), self.octets) };
    }
}
