//! Page faults of one thread: perf events at the begin and at the end of each fault, joined to one event.
//!
//! The kernel counts a page fault when it begins to handle the fault, and a minor or major one when the page is there.
//! Both counts are perf events of software with a record for each count, so that a thread without page faults causes no
//! records.

use super::records::{long, word};
use perf_event::events::Software;
use tailbound_model::{SwitchEvent, SwitchKind};

/// Perf events of page faults: the begin, the end of a fault without a disk, and the end of a fault with a disk.
pub(super) const EVENTS: [Software; 3] = [Software::PAGE_FAULTS, Software::PAGE_FAULTS_MIN, Software::PAGE_FAULTS_MAJ];

/// Joins begin and end of the page faults of one thread.
#[derive(Debug)]
pub(super) struct Faults {
    /// Ids of the perf events, in the order of [`EVENTS`].
    ids: [u64; 3],
    /// Begin of the page fault that has not ended, monotonic ns. A fault that the kernel cannot handle never ends.
    begun_ns: Option<i64>,
}

impl Faults {
    pub fn of(ids: [u64; 3]) -> Faults {
        Faults { ids, begun_ns: None }
    }

    /// Takes one sample of the perf events: id of the event, process and thread, time, CPU. Returns a page fault that
    /// ended.
    pub fn take(&mut self, sample: &[u8]) -> Option<SwitchEvent> {
        let (id, at_ns) = (long(sample, 0)? as u64, long(sample, 16)?);
        if id == self.ids[0] {
            self.begun_ns = Some(at_ns);
            return None;
        }
        let begun_ns = self.begun_ns.take()?;
        let ns = (at_ns - begun_ns).clamp(0, i64::from(u32::MAX)) as u32;
        let what = SwitchKind::PageFault { thread: word(sample, 12)?, ns, disk: id == self.ids[2] };
        Some(SwitchEvent { at_ns: begun_ns, cpu: word(sample, 24)? as u32, what })
    }

    /// Forgets a fault that has begun, because the record of its end may be missing.
    pub fn forget(&mut self) {
        self.begun_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(id: u64, at_ns: i64) -> Vec<u8> {
        let thread = [7i32.to_ne_bytes(), 8i32.to_ne_bytes()].concat();
        [&id.to_ne_bytes()[..], &thread, &at_ns.to_ne_bytes(), &3u64.to_ne_bytes()].concat()
    }

    fn fault(at_ns: i64, ns: u32, disk: bool) -> Option<SwitchEvent> {
        Some(SwitchEvent { at_ns, cpu: 3, what: SwitchKind::PageFault { thread: 8, ns, disk } })
    }

    #[test]
    fn begin_and_end_of_a_page_fault_are_one_event() {
        let mut faults = Faults::of([10, 11, 12]);
        assert_eq!(faults.take(&sample(10, 1_000)), None);
        assert_eq!(faults.take(&sample(12, 151_000)), fault(1_000, 150_000, true));
        assert_eq!(faults.take(&sample(10, 200_000)), None);
        assert_eq!(faults.take(&sample(11, 201_500)), fault(200_000, 1_500, false));
    }

    #[test]
    fn a_page_fault_without_begin_or_without_end_is_left_out() {
        let mut faults = Faults::of([10, 11, 12]);
        assert_eq!(faults.take(&sample(11, 500)), None);
        // The kernel sends a signal instead of a page.
        assert_eq!(faults.take(&sample(10, 1_000)), None);
        assert_eq!(faults.take(&sample(10, 9_000)), None);
        assert_eq!(faults.take(&sample(11, 9_700)), fault(9_000, 700, false));
        assert_eq!(faults.take(&sample(10, 20_000)), None);
        faults.forget();
        assert_eq!(faults.take(&sample(11, 90_000)), None);
    }
}
