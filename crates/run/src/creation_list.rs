//! The list of thread creations, which creators and new threads write without locks.
//!
//! What goes in: an entry from the creator of a thread, then the id of the new thread from the thread itself. What
//! comes out: the entries whose thread runs. The list does not know how the creation of threads is observed.

use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize};
use std::time::{Duration, Instant};

/// The driver's call that created a thread, and the position of the thread among the threads of the call, from 0.
pub(crate) type CallPosition = (&'static CStr, u32);

struct Slot {
    /// Id of the created thread; zero until the thread runs. The id is written last, so an entry with an id is
    /// complete.
    tid: AtomicI32,
    creator: AtomicI32,
    start: AtomicUsize,
    call: AtomicPtr<c_char>,
    position: AtomicU32,
    /// True once the created thread has set its scheduling, or once the creation has failed.
    settled: AtomicBool,
}

impl Slot {
    const fn empty() -> Slot {
        let (tid, creator, start) = (AtomicI32::new(0), AtomicI32::new(0), AtomicUsize::new(0));
        let (call, position) = (AtomicPtr::new(std::ptr::null_mut()), AtomicU32::new(0));
        Slot { tid, creator, start, call, position, settled: AtomicBool::new(false) }
    }
}

/// A thread creation whose thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    pub tid: i32,
    /// Position of the creation in the order of all creations, from 0.
    pub order: u32,
    /// Id of the thread that created the new thread.
    pub creator: i32,
    /// Address of the start routine of the new thread.
    pub start: usize,
    pub position: Option<CallPosition>,
}

/// List of the first `KEPT` thread creations. Later creations are only counted.
pub(crate) struct CreationList<const KEPT: usize> {
    slots: [Slot; KEPT],
    count: AtomicU32,
}

impl<const KEPT: usize> CreationList<KEPT> {
    pub const fn new() -> Self {
        CreationList { slots: [const { Slot::empty() }; KEPT], count: AtomicU32::new(0) }
    }

    /// Adds an entry for a new thread; the creator calls this function before the thread exists. Returns the number of
    /// the entry.
    pub fn created(&self, creator: i32, start: usize, position: Option<CallPosition>) -> u32 {
        let number = self.count.fetch_add(1, Relaxed);
        if let Some(slot) = self.slots.get(number as usize) {
            slot.creator.store(creator, Relaxed);
            slot.start.store(start, Relaxed);
            if let Some((call, position)) = position {
                slot.call.store(call.as_ptr().cast_mut(), Relaxed);
                slot.position.store(position, Relaxed);
            }
        }
        number
    }

    /// Writes the id of a new thread into the thread's entry of this list; the new thread calls this function. The new
    /// thread sees the complete entry, because it sees everything that its creator wrote before it created the thread.
    pub fn started(&self, number: u32, tid: i32) {
        if let Some(slot) = self.slots.get(number as usize) {
            slot.tid.store(tid, Release);
        }
    }

    /// Records that the new thread has set its scheduling, or that its creator could not create it.
    pub fn settled(&self, number: u32) {
        if let Some(slot) = self.slots.get(number as usize) {
            slot.settled.store(true, Release);
        }
    }

    fn used(&self) -> &[Slot] {
        &self.slots[..(self.count.load(Acquire) as usize).min(KEPT)]
    }

    /// All creations so far whose thread has started to run.
    pub fn creations(&self) -> Vec<Listed> {
        let listed = |(order, slot): (u32, &Slot)| {
            let tid = slot.tid.load(Acquire);
            (tid != 0).then(|| {
                let (call, position) = (slot.call.load(Relaxed), slot.position.load(Relaxed));
                // SAFETY: `created` stores nothing but static texts.
                let position = (!call.is_null()).then(|| (unsafe { CStr::from_ptr(call) }, position));
                let (creator, start) = (slot.creator.load(Relaxed), slot.start.load(Relaxed));
                Listed { tid, order, creator, start, position }
            })
        };
        (0..).zip(self.used()).filter_map(listed).collect()
    }

    /// Waits until the thread of every entry has set its scheduling or could not be created. Returns `false` if this
    /// takes longer than `limit`.
    pub fn await_all(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            if self.used().iter().all(|slot| slot.settled.load(Acquire)) {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::thread;

    const CREATORS: i32 = 2;
    const EACH: i32 = 3;
    const LONG: Duration = Duration::from_secs(60);

    /// The creation that the list must show for the thread with the id `tid`: creator, start routine and call. Every
    /// third thread is created outside a call.
    fn expected(tid: i32) -> (i32, usize, Option<CallPosition>) {
        (tid / 10, tid as usize * 7, (tid % 3 != 0).then_some((c"open", tid as u32)))
    }

    /// Checks that each creation in the list is complete and is listed once. Returns the ids of the threads.
    fn seen<const KEPT: usize>(list: &CreationList<KEPT>) -> BTreeSet<i32> {
        let listed = list.creations();
        for c in &listed {
            assert_eq!((c.creator, c.start, c.position), expected(c.tid), "{c:?}");
        }
        assert!(listed.is_sorted_by(|a, b| a.order < b.order));
        let tids: BTreeSet<i32> = listed.iter().map(|c| c.tid).collect();
        assert_eq!(tids.len(), listed.len());
        tids
    }

    /// Creates threads from several creators while another thread reads the list.
    fn fill<const KEPT: usize>(list: &CreationList<KEPT>) {
        thread::scope(|scope| {
            for creator in 1..=CREATORS {
                scope.spawn(move || {
                    for tid in (0..EACH).map(|n| creator * 10 + n) {
                        let (creator, start, position) = expected(tid);
                        let number = list.created(creator, start, position);
                        scope.spawn(move || {
                            list.started(number, tid);
                            list.settled(number);
                        });
                    }
                });
            }
            let mut before = BTreeSet::new();
            for _ in 0..8 {
                let now = seen(list);
                assert!(now.is_superset(&before));
                before = now;
                thread::yield_now();
            }
        });
    }

    #[test]
    fn a_creation_is_seen_complete_or_not_at_all() {
        let list = CreationList::<16>::new();
        fill(&list);
        assert!(list.await_all(LONG));
        assert_eq!(seen(&list).len() as i32, CREATORS * EACH);
    }

    #[test]
    fn creations_beyond_the_list_are_only_counted() {
        let list = CreationList::<4>::new();
        fill(&list);
        assert!(list.await_all(LONG));
        assert_eq!(seen(&list).len(), 4);
        assert_eq!(list.count.load(Relaxed) as i32, CREATORS * EACH);
    }

    #[test]
    fn a_thread_that_has_settled_is_listed() {
        let list = CreationList::<16>::new();
        let (creator, start, position) = expected(14);
        let number = list.created(creator, start, position);
        assert!(!list.await_all(Duration::ZERO));
        thread::scope(|scope| {
            scope.spawn(|| {
                list.started(number, 14);
                list.settled(number);
            });
            assert!(list.await_all(LONG));
            assert_eq!(seen(&list), BTreeSet::from([14]));
        });
        // A creation that fails is settled by its creator, and is never listed.
        let failed = list.created(creator, start, position);
        list.settled(failed);
        assert!(list.await_all(Duration::ZERO));
        assert_eq!(seen(&list), BTreeSet::from([14]));
    }
}
