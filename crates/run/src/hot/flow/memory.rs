//! Shared memory for the counts of one end of a flow: a memfd whose pages are touched in advance. Like the sample
//! memory, it outlives the measuring process.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};
use tailbound_model::{FlowCounts, FlowPart, PartCounts, SecondCounts};

/// The counts [`PartCounts`] of one part of a flow as atomics in shared memory.
#[repr(C)]
#[derive(Debug, Default)]
pub struct PartCells {
    /// Number of messages that were sent or received in this part of the flow.
    pub messages: AtomicU64,
    /// Number of payload bytes in this part of the flow.
    pub bytes: AtomicU64,
    /// Message counter of the first message of this part of the flow.
    pub first: AtomicU64,
    /// Monotonic time of the first message of this part of the flow (before, in or after the window), ns.
    pub first_ns: AtomicI64,
    /// Monotonic time of the last message of this part of the flow, ns.
    pub last_ns: AtomicI64,
    /// CPU time of the process at the begin of this part of the flow, ns.
    pub cpu_began_ns: AtomicI64,
}

/// All counts of [`FlowCounts`] except the counts of each second, as atomics in shared memory.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Totals {
    /// Counts of each part of the flow: ramp-up, window and drain.
    pub parts: [PartCells; 3],
    /// Second of the monotonic clock that the first [`SecondCell`] counts.
    pub first_second: AtomicI64,
    /// Number of messages in the measuring window that arrived after a message with a higher counter. [`FlowCounts`]
    /// explains this field and the next fields.
    pub out_of_order: AtomicU64,
    /// Number of messages in the measuring window that are duplicates of messages received earlier.
    pub duplicates: AtomicU64,
    /// Number of messages that were too old to decide whether they are duplicates.
    pub stale: AtomicU64,
    /// Number of messages that do not belong to this flow.
    pub foreign: AtomicU64,
    /// Number of missing messages: their counters are below the highest received counter, and they have not arrived.
    pub missing: AtomicU64,
    /// The highest message counter that was sent or received, plus one.
    pub next: AtomicU64,
    /// CPU time of the measuring process at the end of the flow, ns.
    pub cpu_ended_ns: AtomicI64,
    /// Time that send calls took in the measuring window, ns.
    pub send_ns: AtomicI64,
    /// Time within send calls in the measuring window that blocked or were refused, ns.
    pub blocked_ns: AtomicI64,
    /// Duration of the longest blocked or refused send call in the measuring window, ns.
    pub longest_ns: AtomicI64,
    /// Number of send calls in the measuring window that the driver refused.
    pub refused: AtomicU64,
    /// Number of send calls in all parts of the flow that the driver refused.
    pub refused_in_all: AtomicU64,
    /// Code `TB_E*` of the last refused send call; 0 if none was refused.
    pub refusal: AtomicI64,
}

/// The counts [`SecondCounts`] of one second of a flow as atomics in shared memory.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SecondCell {
    /// Number of messages that were sent or received in this second.
    pub messages: AtomicU64,
    /// Number of payload bytes that were sent or received in this second.
    pub bytes: AtomicU64,
    /// Number of messages that were found missing in this second, because a message with a higher counter arrived.
    pub missing: AtomicU64,
    /// Number of messages in this second that arrived after a message with a higher counter.
    pub out_of_order: AtomicU64,
    /// Number of messages in this second that are duplicates of messages received earlier.
    pub duplicates: AtomicU64,
    /// Duration of those send calls in this second that blocked or were refused, ns.
    pub blocked_ns: AtomicI64,
}

/// References to the counts of one end of a flow, in shared memory.
#[derive(Debug, Clone, Copy)]
pub struct FlowCells {
    /// Counts of the whole flow and of its parts, in shared memory.
    pub totals: &'static Totals,
    /// Counts of each second of the flow, in shared memory.
    pub seconds: &'static [SecondCell],
}

impl FlowCells {
    /// Cell for the counts of that second in which a monotonic time (in ns) lies. If the time lies after the last
    /// second, the last cell is returned.
    #[inline]
    pub fn second(&self, ns: i64) -> &'static SecondCell {
        let index = (ns / 1_000_000_000 - self.totals.first_second.load(Relaxed)).max(0) as usize;
        &self.seconds[index.min(self.seconds.len() - 1)]
    }

    /// Counts of one part of the flow: ramp-up, window or drain.
    #[inline]
    pub fn part(&self, part: FlowPart) -> &'static PartCells {
        &self.totals.parts[part as usize]
    }

    /// Copies the present values of all flow counts from shared memory.
    pub fn read(&self) -> FlowCounts {
        let t = self.totals;
        let part = |p: &PartCells| PartCounts {
            messages: p.messages.load(Relaxed),
            bytes: p.bytes.load(Relaxed),
            first: p.first.load(Relaxed),
            first_ns: p.first_ns.load(Relaxed),
            last_ns: p.last_ns.load(Relaxed),
            cpu_began_ns: p.cpu_began_ns.load(Relaxed),
        };
        let second = |(i, s): (usize, &SecondCell)| SecondCounts {
            second: t.first_second.load(Relaxed) + i as i64,
            messages: s.messages.load(Relaxed),
            bytes: s.bytes.load(Relaxed),
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

/// A mapping of the memory for flow counts. It is kept until the process or the trial ends.
#[derive(Debug)]
pub struct FlowMemory {
    base: std::ptr::NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping holds nothing but atomics.
unsafe impl Send for FlowMemory {}
// SAFETY: as above.
unsafe impl Sync for FlowMemory {}

const HEAD: usize = size_of::<Totals>().next_multiple_of(64);

impl FlowMemory {
    /// Creates the memory file for the counts of a flow that lasts at most `seconds`.
    ///
    /// # Errors
    /// The kernel refuses the memory.
    pub fn create(seconds: usize) -> std::io::Result<OwnedFd> {
        let fd = memfd_create(c"tailbound-counts", MFdFlags::MFD_CLOEXEC)?;
        nix::unistd::ftruncate(&fd, (HEAD + seconds.max(1) * size_of::<SecondCell>()) as i64)?;
        Ok(fd)
    }

    /// Maps the memory file for flow counts, and touches all its pages.
    ///
    /// # Errors
    /// The file is too short, or the kernel refuses the mapping.
    pub fn map(fd: impl AsFd) -> std::io::Result<FlowMemory> {
        let bytes = nix::sys::stat::fstat(fd.as_fd())?.st_size as usize;
        let length = NonZeroUsize::new(bytes)
            .filter(|n| n.get() >= HEAD + size_of::<SecondCell>())
            .ok_or_else(|| std::io::Error::other("the memory for flow counts is too short"))?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new shared mapping of a file of ours that never shrinks; no other object lies there.
        let base = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE, fd, 0)? };
        Ok(FlowMemory { base: base.cast(), bytes })
    }

    /// References to all flow counts in this mapping of shared memory.
    pub fn cells(&self) -> FlowCells {
        let seconds = (self.bytes - HEAD) / size_of::<SecondCell>();
        // SAFETY: the memory is mapped while the cells are used (see `unmap`) and page aligned, all-zero is valid, and
        // both parts lie within the mapping.
        unsafe {
            FlowCells {
                totals: &*self.base.as_ptr().cast(),
                seconds: std::slice::from_raw_parts(self.base.as_ptr().add(HEAD).cast(), seconds),
            }
        }
    }

    /// Unmaps the memory for flow counts.
    ///
    /// # Safety
    /// The caller uses no cell of this mapping afterwards.
    pub unsafe fn unmap(self) {
        // SAFETY: `map` created the mapping with this length; the caller uses no reference any more.
        let _ = unsafe { nix::sys::mman::munmap(self.base.cast(), self.bytes) };
    }
}
