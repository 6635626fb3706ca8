//! Takes locks whose data stay valid if a thread panics.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex, also if a thread has panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
