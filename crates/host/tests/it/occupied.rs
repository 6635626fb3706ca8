//! Keeps all CPUs from becoming idle: in some virtual machines (Linux 6.18, haltpoll), perf events of idle CPUs are lost,
//! among them the switch from the idle thread to another one and wake-ups by interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tailbound_host::{allowed_cpus, scheduling};
use tailbound_model::CpuList;

/// Threads that run on every CPU while nothing else does, until this value is dropped.
pub(crate) struct Occupied {
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Occupied {
    pub fn start() -> Occupied {
        let done = Arc::new(AtomicBool::new(false));
        let spin = |cpu: u32| {
            let done = done.clone();
            std::thread::spawn(move || {
                scheduling::set_affinity(0, &CpuList::one(cpu)).unwrap();
                let zero = libc::sched_param { sched_priority: 0 };
                // SAFETY: a valid parameter; SCHED_IDLE needs no privilege.
                assert_eq!(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &zero) }, 0);
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = allowed_cpus().into_iter().map(spin).collect();
        Occupied { done, threads }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}
