//! The counts of one end of a flow: a shared, pre-faulted memfd that outlives the measuring process, as the sample memory.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};
use tailbound_model::{FlowCounts, FlowPart, PartCounts, SecondCounts};

/// [`PartCounts`] as it is written.
#[repr(C)]
#[derive(Debug, Default)]
pub struct PartCells {
    /// Messages.
    pub messages: AtomicU64,
    /// Octets.
    pub octets: AtomicU64,
    /// First counter.
    pub first: AtomicU64,
    /// First time.
    pub first_ns: AtomicI64,
    /// Last time.
    pub last_ns: AtomicI64,
    /// CPU time at its beginning.
    pub cpu_began_ns: AtomicI64,
}

/// The head of [`FlowCounts`] as it is written.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Totals {
    /// By part.
    pub parts: [PartCells; 3],
    /// The second of the first cell.
    pub first_second: AtomicI64,
    /// See [`FlowCounts`], as all that follows.
    pub out_of_order: AtomicU64,
    /// Duplicates.
    pub duplicates: AtomicU64,
    /// Stale.
    pub stale: AtomicU64,
    /// Foreign.
    pub foreign: AtomicU64,
    /// Missing.
    pub missing: AtomicU64,
    /// Next counter.
    pub next: AtomicU64,
    /// CPU time at the end.
    pub cpu_ended_ns: AtomicI64,
    /// Within calls that send.
    pub send_ns: AtomicI64,
    /// Blocked in them.
    pub blocked_ns: AtomicI64,
    /// The longest.
    pub longest_ns: AtomicI64,
    /// Refused in the window.
    pub refused: AtomicU64,
    /// Refused in all.
    pub refused_in_all: AtomicU64,
    /// The last refusal.
    pub refusal: AtomicI64,
}

/// [`SecondCounts`] as it is written.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SecondCell {
    /// Messages.
    pub messages: AtomicU64,
    /// Octets.
    pub octets: AtomicU64,
    /// Missing.
    pub missing: AtomicU64,
    /// Out of order.
    pub out_of_order: AtomicU64,
    /// Duplicates.
    pub duplicates: AtomicU64,
    /// Blocked.
    pub blocked_ns: AtomicI64,
}

/// The counts of one end.
#[derive(Debug, Clone, Copy)]
pub struct FlowCells {
    /// The head.
    pub totals: &'static Totals,
    /// Second by second.
    pub seconds: &'static [SecondCell],
}

impl FlowCells {
    /// The cell of a time; what lies beyond the last is counted there.
    #[inline]
    pub fn second(&self, ns: i64) -> &'static SecondCell {
        let index = (ns / 1_000_000_000 - self.totals.first_second.load(Relaxed)).max(0) as usize;
        &self.seconds[index.min(self.seconds.len() - 1)]
    }

    /// The cells of a part.
    #[inline]
    pub fn part(&self, part: FlowPart) -> &'static PartCells {
        &self.totals.parts[part as usize]
    }

    /// What they hold now.
    pub fn read(&self) -> FlowCounts {
        let t = self.totals;
        let part = |p: &PartCells| PartCounts {
            messages: p.messages.load(Relaxed),
            octets: p.octets.load(Relaxed),
            first: p.first.load(Relaxed),
            first_ns: p.first_ns.load(Relaxed),
            last_ns: p.last_ns.load(Relaxed),
            cpu_began_ns: p.cpu_began_ns.load(Relaxed),
        };
        let second = |(i, s): (usize, &SecondCell)| SecondCounts {
            second: t.first_second.load(Relaxed) + i as i64,
            messages: s.messages.load(Relaxed),
            octets: s.octets.load(Relaxed),
            missing: s.missing.load(Relaxed),
            out_of_order: s.out_of_order.load(Relaxed),
            duplicates: s.duplicates.load(Relaxed),
            blocked_ns: s.blocked_ns.load(Relaxed),
        };
        let empty = |s: &SecondCounts| SecondCounts { second: s.second, ..SecondCounts::default() } == *s;
        FlowCounts {
            parts: t.parts.each_ref().map(part),
            seconds: self.seconds.iter().enumerate().map(second).filter(|s| !empty(s)).collect(),
            out_of_order: t.out_of_order.load(Relaxed),
            duplicates: t.duplicates.load(Relaxed),
            stale: t.stale.load(Relaxed),
            foreign: t.foreign.load(Relaxed),
            missing: t.missing.load(Relaxed),
            next: t.next.load(Relaxed),
            cpu_ended_ns: t.cpu_ended_ns.load(Relaxed),
            send_ns: t.send_ns.load(Relaxed),
            blocked_ns: t.blocked_ns.load(Relaxed),
            longest_ns: t.longest_ns.load(Relaxed),
            refused: t.refused.load(Relaxed),
            refused_in_all: t.refused_in_all.load(Relaxed),
            refusal: t.refusal.load(Relaxed),
        }
    }
}

/// A mapping of the counts, kept for the life of the process or of the trial.
#[derive(Debug)]
pub struct FlowMemory {
    base: std::ptr::NonNull<u8>,
    octets: usize,
}

// SAFETY: the mapping holds nothing but atomics.
unsafe impl Send for FlowMemory {}
// SAFETY: as above.
unsafe impl Sync for FlowMemory {}

const HEAD: usize = size_of::<Totals>().next_multiple_of(64);

impl FlowMemory {
    /// Makes the file, for a flow of at most so many seconds.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn create(seconds: usize) -> std::io::Result<OwnedFd> {
        let fd = memfd_create(c"tailbound-counts", MFdFlags::MFD_CLOEXEC)?;
        nix::unistd::ftruncate(&fd, (HEAD + seconds.max(1) * size_of::<SecondCell>()) as i64)?;
        Ok(fd)
    }

    /// Maps it, all pages touched.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn map(fd: impl AsFd) -> std::io::Result<FlowMemory> {
        let octets = nix::sys::stat::fstat(fd.as_fd())?.st_size as usize;
        let length = NonZeroUsize::new(octets)
            .filter(|n| n.get() >= HEAD + size_of::<SecondCell>())
            .ok_or_else(|| std::io::Error::other("the memory of the counts is too short"))?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh shared mapping of a file of ours that never shrinks; nothing else lies there.
        let base = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE, fd, 0)? };
        Ok(FlowMemory { base: base.cast(), octets })
    }

    /// The cells.
    pub fn cells(&self) -> FlowCells {
        let seconds = (self.octets - HEAD) / size_of::<SecondCell>();
        // SAFETY: mapped for as long as they are used (see `unmap`), page aligned, all-zero is valid; both lie within.
        unsafe {
            FlowCells {
                totals: &*self.base.as_ptr().cast(),
                seconds: std::slice::from_raw_parts(self.base.as_ptr().add(HEAD).cast(), seconds),
            }
        }
    }

    /// Gives the mapping back.
    ///
    /// # Safety
    /// No cell of it is used afterwards.
    pub unsafe fn unmap(self) {
        // SAFETY: `map` made it with this length; the caller gave up all references.
        let _ = unsafe { nix::sys::mman::munmap(self.base.cast(), self.octets) };
    }
}
