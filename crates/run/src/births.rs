//! Threads seen at birth: this program's own `pthread_create`, in front of the C library's.
//!
//! A scan of /proc finds a thread after the fact and misses short ones; this sees every thread of every library, statically
//! linked or loaded, with its creator and its start routine. The next `pthread_create` does the work.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize};
use std::time::{Duration, Instant};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> i32;

/// Births that are kept; later ones are counted only.
const KEPT: usize = 1024;

struct Slot {
    tid: AtomicI32,
    creator: AtomicI32,
    start: AtomicUsize,
    call: AtomicPtr<c_char>,
    place: AtomicU32,
    /// What is done at birth is done.
    settled: AtomicBool,
}

impl Slot {
    const fn empty() -> Slot {
        let (tid, creator, start) = (AtomicI32::new(0), AtomicI32::new(0), AtomicUsize::new(0));
        let (call, place) = (AtomicPtr::new(std::ptr::null_mut()), AtomicU32::new(0));
        Slot { tid, creator, start, call, place, settled: AtomicBool::new(false) }
    }
}

static SLOTS: [Slot; KEPT] = [const { Slot::empty() }; KEPT];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The call of the driver that is under way, and how many threads were made in it.
static CALL: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());
static MADE: AtomicU32 = AtomicU32::new(0);

/// Threads made until the guard is dropped are born in this call of the driver, `open` or `create`.
pub(crate) fn during(call: &'static CStr) -> impl Drop {
    struct Call;
    impl Drop for Call {
        fn drop(&mut self) {
            CALL.store(std::ptr::null_mut(), Release);
        }
    }
    MADE.store(0, Relaxed);
    CALL.store(call.as_ptr().cast_mut(), Release);
    Call
}

/// The driver's call in which a thread was made, and its place among those made in it, from 0.
pub(crate) type Place = (&'static CStr, u32);

fn place_of(call: *mut c_char, place: u32) -> Option<Place> {
    // SAFETY: `during` stores nothing but static texts.
    (!call.is_null()).then(|| (unsafe { CStr::from_ptr(call) }, place))
}

/// A thread's birth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth {
    /// Thread id.
    pub tid: i32,
    /// Place in the order of births, from 0.
    pub order: u32,
    /// Thread that made it.
    pub creator: i32,
    /// File that holds the start routine.
    pub object: Option<String>,
    /// Where in the driver's calls it was made.
    pub(crate) place: Option<Place>,
}

/// All births so far whose thread has begun to run.
pub fn births() -> Vec<Birth> {
    let count = (COUNT.load(Acquire) as usize).min(KEPT);
    (0u32..)
        .zip(&SLOTS[..count])
        .filter_map(|(order, slot)| {
            let tid = slot.tid.load(Acquire);
            (tid != 0).then(|| Birth {
                tid,
                order,
                creator: slot.creator.load(Relaxed),
                object: object_of(slot.start.load(Relaxed)),
                place: place_of(slot.call.load(Relaxed), slot.place.load(Relaxed)),
            })
        })
        .collect()
}

/// Waits until every thread that was made has run its first lines; `false` when one has not within `limit`: it waits for
/// its CPU.
pub(crate) fn settle(limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        let count = (COUNT.load(Acquire) as usize).min(KEPT);
        if SLOTS[..count].iter().all(|slot| slot.settled.load(Acquire)) {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn object_of(address: usize) -> Option<String> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr only looks the address up; it fills the struct when it returns non-zero.
    unsafe {
        if libc::dladdr(address as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

struct Life {
    start: Start,
    argument: *mut c_void,
    slot: u32,
    place: Option<Place>,
}

extern "C" fn begin(life: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` below for this thread alone.
    let life = unsafe { Box::from_raw(life.cast::<Life>()) };
    if let Some(slot) = SLOTS.get(life.slot as usize) {
        // SAFETY: gettid has no preconditions.
        slot.tid.store(unsafe { libc::gettid() }, Release);
    }
    let (start, argument, slot, place) = (life.start, life.argument, life.slot, life.place);
    drop(life);
    if let Some(told) = AT_BIRTH.get() {
        told(place);
    }
    settled(slot);
    start(argument)
}

fn settled(slot: u32) {
    if let Some(slot) = SLOTS.get(slot as usize) {
        slot.settled.store(true, Release);
    }
}

static AT_BIRTH: OnceLock<fn(Option<Place>)> = OnceLock::new();

/// What each thread does from now on before its start routine. Set once.
pub(crate) fn at_birth(told: fn(Option<Place>)) {
    let _ = AT_BIRTH.set(told);
}

/// The function of this name behind our own.
pub(crate) fn next(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: looks a name up and nothing else.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) })
}

/// In front of the C library's function of this name.
///
/// # Safety
/// As pthread_create(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> i32 {
    let Some(next) = next(c"pthread_create") else { return libc::ENOSYS };
    // SAFETY: the symbol has this type on every Linux C library.
    let create: Create = unsafe { std::mem::transmute(next.as_ptr()) };
    let slot = COUNT.fetch_add(1, Relaxed);
    // Told by the creator: the call may be over before the thread runs.
    let call = CALL.load(Acquire);
    let place = if call.is_null() { 0 } else { MADE.fetch_add(1, Relaxed) };
    if let Some(kept) = SLOTS.get(slot as usize) {
        // SAFETY: gettid has no preconditions.
        kept.creator.store(unsafe { libc::gettid() }, Relaxed);
        kept.start.store(start as usize, Relaxed);
        kept.call.store(call, Relaxed);
        kept.place.store(place, Relaxed);
    }
    let life = Box::into_raw(Box::new(Life { start, argument, slot, place: place_of(call, place) }));
    // SAFETY: the caller's arguments, with our start routine in front of its own.
    let code = unsafe { create(thread, attributes, begin, life.cast()) };
    if code != 0 {
        // SAFETY: the thread does not exist, so the box is still ours.
        drop(unsafe { Box::from_raw(life) });
        settled(slot);
    }
    code
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_is_seen_with_its_creator() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: gettid has no preconditions.
            sender.send(unsafe { libc::gettid() }).unwrap();
        });
        let tid = receiver.recv().unwrap();
        let birth = super::births().into_iter().find(|b| b.tid == tid).expect("the birth was seen");
        // SAFETY: as above.
        assert_eq!(birth.creator, unsafe { libc::gettid() });
        assert!(birth.object.is_some());
        thread.join().unwrap();
    }
}
