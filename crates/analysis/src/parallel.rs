//! Distributes the work of an analysis over the CPUs.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs `work` on every task, on as many threads as there are CPUs; the results have the order of the tasks.
pub(crate) fn all<T: Sync, R: Send, E: Send>(
    tasks: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R, E>)>> = Mutex::new(Vec::with_capacity(tasks.len()));
    let worker = || {
        while let Some((at, task)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            tasks.get(at).map(|t| (at, t))
        } {
            let result = work(task);
            done.lock().expect("a thread that panics ends the whole scope of threads").push((at, result));
        }
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(tasks.len());
    thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(worker);
        }
        worker();
    });
    let mut done = done.into_inner().expect("all workers have ended");
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs two tasks at the same time, the first one on a thread of its own.
pub(crate) fn both<A: Send, B>(first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
    })
}
