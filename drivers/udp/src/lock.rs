//! A lock that takes few instructions, for what one thread normally uses alone.
//!
//! A mutex of the standard library also checks, at each use, whether a thread has panicked while it held the mutex. Each
//! received message uses the lock of its reader three times.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two attempts to take a lock that another thread holds.
const PAUSE: Duration = Duration::from_micros(50);

/// A value that one thread at a time can use.
pub struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread that has taken the lock has a reference to the value.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the value of a [`Lock`], which is free again when the access is dropped.
pub struct Held<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    pub fn new(value: T) -> Lock<T> {
        Lock { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Takes the lock if it is free; otherwise waits until it is free.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        match self.try_lock() {
            Some(held) => held,
            None => self.lock_later(),
        }
    }

    /// Takes the lock if it is free; otherwise returns `None`.
    #[inline]
    pub fn try_lock(&self) -> Option<Held<'_, T>> {
        // The swap comes first, because `then_some` would make and drop a `Held` of another thread.
        if self.taken.swap(true, Ordering::Acquire) { None } else { Some(Held(self)) }
    }

    /// Sleeps between attempts, so that a thread of any priority can finish its use of the lock.
    #[cold]
    fn lock_later(&self) -> Held<'_, T> {
        loop {
            std::thread::sleep(PAUSE);
            if let Some(held) = self.try_lock() {
                return held;
            }
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread has taken the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has taken the lock, and this is its only access to the value.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_addition_of_several_threads_is_lost() {
        let lock = Lock::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 4000);
    }

    #[test]
    fn a_lock_that_is_taken_cannot_be_taken_again() {
        let lock = Lock::new(());
        let held = lock.try_lock();
        assert!(held.is_some());
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none());
        drop(held);
        assert!(lock.try_lock().is_some());
    }
}
