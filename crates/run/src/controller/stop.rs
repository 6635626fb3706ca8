//! Signals that end a run in order: Ctrl-C, SIGTERM, and SIGHUP unless it is ignored (`nohup`).

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Whether such a signal came. Heard from the beginning of a run to its end, so that none falls between two trials.
#[derive(Clone)]
pub(super) struct Stop(watch::Receiver<bool>);

/// Listens from now on, in a thread of its own: starting guests, and asking other hosts, keeps the controller busy.
pub(super) fn heard() -> Stop {
    let (tell, told) = watch::channel(false);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let job = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(listen(tell, ready));
    };
    // Without it a signal's default ends the process; the agents then save their samples.
    let _ = std::thread::Builder::new().name("tb-stop".into()).spawn(job);
    let _ = is_ready.recv();
    Stop(told)
}

async fn listen(tell: watch::Sender<bool>, ready: std::sync::mpsc::Sender<()>) {
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if !hangup_ignored() {
        kinds.push(SignalKind::hangup());
    }
    for mut stream in kinds.into_iter().filter_map(|kind| signal(kind).ok()) {
        let tell = tell.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                tell.send_replace(true);
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

impl Stop {
    /// It came.
    pub fn came(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it comes.
    pub async fn wait(&self) {
        let mut told = self.0.clone();
        if told.wait_for(|came| *came).await.is_err() {
            std::future::pending().await
        }
    }
}
