//! Observes the creation of threads with this program's own `pthread_create`, which interposes the C library's.
//!
//! A scan of /proc finds threads late and misses threads that end soon. This module sees every thread of every library,
//! linked statically or loaded, with its creator and its start routine. The C library's `pthread_create` then creates
//! the thread.

use crate::creation_list::{CallPosition, CreationList, Listed};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::time::Duration;

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> i32;

/// Largest number of thread creations that are recorded. Later creations are only counted.
const KEPT: usize = 1024;

static LIST: CreationList<KEPT> = CreationList::new();

/// The driver's function `open` or `create`, if it is being called now; null = none.
static CALL: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());
static CREATED: AtomicU32 = AtomicU32::new(0);

/// Marks that the driver's function `open` or `create` is being called: threads that are created until the returned
/// guard is dropped count as created in this call.
pub(crate) fn during(call: &'static CStr) -> impl Drop {
    struct Call;
    impl Drop for Call {
        fn drop(&mut self) {
            CALL.store(std::ptr::null_mut(), Release);
        }
    }
    CREATED.store(0, Relaxed);
    CALL.store(call.as_ptr().cast_mut(), Release);
    Call
}

/// The creation of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    /// Id of the created thread.
    pub tid: i32,
    /// Position of the creation among all thread creations of the process, from 0.
    pub order: u32,
    /// Id of the thread that created the new thread.
    pub creator: i32,
    /// File (program or library) that contains the start routine of the thread; `None` = not known.
    pub object: Option<String>,
    /// Function of the driver (`open` or `create`) in which the thread was created, and position of the thread in that
    /// call.
    pub(crate) position: Option<CallPosition>,
}

/// All recorded thread creations so far whose thread has started to run.
pub fn creations() -> Vec<Creation> {
    let creation = |c: Listed| {
        let object = object_of(c.start);
        Creation { tid: c.tid, order: c.order, creator: c.creator, object, position: c.position }
    };
    LIST.creations().into_iter().map(creation).collect()
}

/// Waits until every created thread has set its scheduling. Returns `false` if a thread has not done so within `limit`,
/// because it still waits for a CPU.
pub(crate) fn await_all(limit: Duration) -> bool {
    LIST.await_all(limit)
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

/// Data that a new thread needs before it calls its start routine.
struct Launch {
    start: Start,
    argument: *mut c_void,
    slot: u32,
    position: Option<CallPosition>,
}

extern "C" fn begin(launch: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` below made the box for this thread alone.
    let launch = unsafe { Box::from_raw(launch.cast::<Launch>()) };
    // SAFETY: gettid has no preconditions.
    LIST.started(launch.slot, unsafe { libc::gettid() });
    let (start, argument, slot, position) = (launch.start, launch.argument, launch.slot, launch.position);
    drop(launch);
    if let Some(function) = ON_CREATION.get() {
        function(position);
    }
    LIST.settled(slot);
    start(argument)
}

static ON_CREATION: OnceLock<fn(Option<CallPosition>)> = OnceLock::new();

/// Sets a function that each new thread calls before its start routine. Only the first call has an effect.
pub(crate) fn on_creation(function: fn(Option<CallPosition>)) {
    let _ = ON_CREATION.set(function);
}

/// Address of the library function `name` that this program interposes; `None` = there is no such function.
pub(crate) fn next(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: dlsym only looks up a name.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) })
}

/// Interposes the function `pthread_create` of the C library, and records the creation of the thread.
///
/// # Safety
/// The rules of pthread_create(3) apply to the arguments.
#[cfg_attr(not(miri), unsafe(no_mangle))] // Miri refuses a second function of this name.
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> i32 {
    let Some(next) = next(c"pthread_create") else { return libc::ENOSYS };
    // SAFETY: the symbol has this type on every Linux C library.
    let create: Create = unsafe { std::mem::transmute(next.as_ptr()) };
    // The creator records the call, because the call may be over before the thread runs.
    let call = CALL.load(Acquire);
    let position = if call.is_null() { 0 } else { CREATED.fetch_add(1, Relaxed) };
    // SAFETY: `during` stores nothing but static texts.
    let position = (!call.is_null()).then(|| (unsafe { CStr::from_ptr(call) }, position));
    // SAFETY: gettid has no preconditions.
    let slot = LIST.created(unsafe { libc::gettid() }, start as usize, position);
    let launch = Box::into_raw(Box::new(Launch { start, argument, slot, position }));
    // SAFETY: the caller's arguments, with our start routine in front of its own.
    let code = unsafe { create(thread, attributes, begin, launch.cast()) };
    if code != 0 {
        // SAFETY: the thread does not exist, so the box is still ours.
        drop(unsafe { Box::from_raw(launch) });
        LIST.settled(slot);
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
        let creation = super::creations().into_iter().find(|c| c.tid == tid).expect("the creation was seen");
        // SAFETY: as above.
        assert_eq!(creation.creator, unsafe { libc::gettid() });
        assert!(creation.object.is_some());
        thread.join().unwrap();
    }
}
