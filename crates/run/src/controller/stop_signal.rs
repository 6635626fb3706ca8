//! Signals that end a run normally, with all changes undone: Ctrl-C, SIGTERM, and SIGHUP unless it is ignored
//! (`nohup`).

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// State that says whether a signal that ends the run has arrived. Signals are watched from the begin of a run to its
/// end, so that no signal is missed between two trials.
#[derive(Clone)]
pub(super) struct StopSignal(watch::Receiver<bool>);

/// Begins to listen for signals in a separate thread, because the controller is busy while it starts guests and waits
/// for other hosts.
pub(super) fn listen() -> StopSignal {
    let (set, received) = watch::channel(false);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let job = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(watch_signals(set, ready));
    };
    // If the thread cannot be created, the default action of a signal ends the process, and the agents save their
    // samples.
    let _ = std::thread::Builder::new().name("tb-stop".into()).spawn(job);
    let _ = is_ready.recv();
    StopSignal(received)
}

async fn watch_signals(set: watch::Sender<bool>, ready: std::sync::mpsc::Sender<()>) {
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if !hangup_ignored() {
        kinds.push(SignalKind::hangup());
    }
    for mut stream in kinds.into_iter().filter_map(|kind| signal(kind).ok()) {
        let set = set.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                set.send_replace(true);
            }
        });
    }
    let _ = ready.send(());
    std::future::pending().await
}

fn hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|l| l.strip_prefix("SigIgn:")).and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (libc::SIGHUP - 1) != 0)
}

impl StopSignal {
    /// True if a signal that ends the run has arrived.
    pub fn came(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until a signal arrives that asks the controller to end the run.
    pub async fn wait(&self) {
        let mut received = self.0.clone();
        if received.wait_for(|came| *came).await.is_err() {
            std::future::pending().await
        }
    }
}
