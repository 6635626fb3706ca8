//! Making a pod, and waiting until it runs.

use crate::cluster::Cluster;
use crate::error::PodError;
use crate::explain::{Starting, deleted, not_made, starting};
use crate::object::{self, PodRequest};
use crate::pod::Pod;
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod as PodObject;
use kube::ResourceExt;
use kube::api::{PostParams, WatchEvent, WatchParams};
use std::time::{Duration, Instant};
use tailbound_model::PodSpec;
use tokio::time::{sleep, timeout};

/// A pod that takes longer is given up.
const LIMIT: Duration = Duration::from_secs(120);
/// How often a pod that does not run yet is looked at without news of it; events are asked for then.
const LOOK: Duration = Duration::from_secs(2);
/// Between two watches, of which the server or the way to it has ended the first.
const AGAIN: Duration = Duration::from_millis(500);

impl Cluster {
    /// Makes a pod and waits until it runs, 120 s at most. One that cannot run is removed again.
    ///
    /// # Errors
    /// The API server refuses it; no node takes it; its image is not to be had; its container or its network cannot be
    /// made; somebody removes it.
    pub async fn start(&self, spec: &PodSpec, request: &PodRequest) -> Result<Pod, PodError> {
        let object = object::pod(spec, request);
        let failed = format!("the pod {} cannot be made", request.name);
        let pods = self.pods();
        let create = async { Ok(pods.create(&PostParams::default(), &object).await) };
        let made = self.ask(self.asked("create", "pods"), &failed, create).await?;
        let made = made.map_err(|e| not_made(e, &self.asked("create", "pods"), &failed))?;
        let runs = self.runs(made).await;
        match &runs {
            Ok(_) => {}
            // The first error is the one to tell.
            Err((uid, _)) => drop(self.delete(&request.name, uid).await),
        }
        runs.map_err(|(_, e)| e)
    }

    /// Watches it until it runs. Or its identity, and why it does not.
    async fn runs(&self, made: PodObject) -> Result<Pod, (String, PodError)> {
        let uid = made.uid().unwrap_or_default();
        self.watch(made, &uid).await.map_err(|e| (uid, e))
    }

    async fn watch(&self, made: PodObject, uid: &str) -> Result<Pod, PodError> {
        let (began, name, pods) = (Instant::now(), made.name_any(), self.pods());
        let failed = format!("the pod {name} cannot be watched");
        let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(60);
        let mut seen = made;
        loop {
            let since = seen.resource_version().unwrap_or_default();
            let watch = self.ask(self.asked("watch", "pods"), &failed, pods.watch(&params, &since));
            let mut news = watch.await?.boxed();
            loop {
                match timeout(LOOK, news.try_next()).await {
                    Ok(Ok(Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)))) => seen = pod,
                    Ok(Ok(Some(WatchEvent::Deleted(_)))) => return Err(self.removed(&name, uid).await),
                    // The server ends watches as it likes.
                    Ok(Ok(None | Some(WatchEvent::Error(_))) | Err(_)) => break,
                    Ok(Ok(Some(WatchEvent::Bookmark(_)))) | Err(_) => {}
                }
                if let Some(pod) = self.judge(&seen, began.elapsed()).await? {
                    return Ok(pod);
                }
            }
            sleep(AGAIN).await;
            let now = self.ask(self.asked("get", "pods"), &failed, pods.get_opt(&name)).await?;
            seen = match now.filter(|pod| pod.uid().as_deref() == Some(uid)) {
                Some(now) => now,
                None => return Err(self.removed(&name, uid).await),
            };
            if let Some(pod) = self.judge(&seen, began.elapsed()).await? {
                return Ok(pod);
            }
        }
    }

    /// The pod, if it runs; an error, if it cannot or has had its time.
    async fn judge(&self, seen: &PodObject, waited: Duration) -> Result<Option<Pod>, PodError> {
        let events = match is_late(waited, seen) {
            true => self.events(&seen.uid().unwrap_or_default()).await,
            false => Vec::new(),
        };
        match starting(seen, &events, waited) {
            Starting::Runs => Ok(Some(Pod::of(self, seen))),
            Starting::Never(e) => {
                let words = self.last_words(seen).await;
                Err(PodError { what: e.what + &words, ..e })
            }
            Starting::Waits(_) if waited < LIMIT => Ok(None),
            Starting::Waits(for_what) => Err(PodError::new(
                format!("the pod {} does not run after {} s: {for_what}", seen.name_any(), LIMIT.as_secs()),
                format!("`kubectl -n {} describe pod` while it waits tells more", self.namespace),
            )),
        }
    }

    async fn removed(&self, name: &str, uid: &str) -> PodError {
        PodError::new(
            deleted(name, &self.events(uid).await),
            "find out who removes pods there, or removes the namespace",
        )
    }
}

/// Events are a request of their own: only where the pod keeps one waiting.
fn is_late(waited: Duration, seen: &PodObject) -> bool {
    waited > LOOK && seen.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Pending"))
}
