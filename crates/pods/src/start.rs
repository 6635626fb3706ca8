//! Making a pod, and waiting until it runs.

use crate::cluster::Cluster;
use crate::error::PodError;
use crate::explain::{Starting, deleted, not_made, starting};
use crate::object::{self, MANAGED_BY, PodRequest, TOKEN_LABEL};
use crate::pod::Pod;
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Event, Pod as PodObject};
use kube::ResourceExt;
use kube::api::{ListParams, ObjectList, PostParams, WatchEvent, WatchParams};
use std::time::{Duration, Instant};
use tailbound_model::PodSpec;
use tokio::time::{sleep, timeout};

/// A pod that takes longer is given up.
const LIMIT: Duration = Duration::from_secs(120);
/// How often a pod that does not run yet is looked at without news of it; events are asked for then.
const LOOK: Duration = Duration::from_secs(2);
/// Between two watches, of which the server or the way to it has ended the first.
const AGAIN: Duration = Duration::from_millis(500);

/// Requests that are on their way at the same time: more would wait in the API server.
const AT_ONCE: usize = 16;

impl Cluster {
    /// Makes a pod and waits until it runs, 120 s at most. One that cannot run is removed again.
    ///
    /// # Errors
    /// The API server refuses it; no node takes it; its image is not to be had; its container or its network cannot be
    /// made; somebody removes it.
    pub async fn start(&self, spec: &PodSpec, request: &PodRequest) -> Result<Pod, PodError> {
        let mut pods = self.start_all(spec, std::slice::from_ref(request)).await?;
        Ok(pods.swap_remove(0))
    }

    /// Makes pods of one token together and waits until all run; they come in the order of the requests. One watch sees
    /// all of them. If one cannot run, all are removed again.
    ///
    /// # Errors
    /// As with [`Cluster::start`], of the first that fails.
    pub async fn start_all(&self, spec: &PodSpec, requests: &[PodRequest]) -> Result<Vec<Pod>, PodError> {
        let create = requests.iter().map(|request| self.create_pod(spec, request));
        let made: Vec<Result<PodObject, PodError>> =
            futures_util::stream::iter(create).buffered(AT_ONCE).collect().await;
        let (made, refused): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
        let made: Vec<PodObject> = made.into_iter().flatten().collect();
        let uids: Vec<(String, String)> =
            made.iter().map(|pod| (pod.name_any(), pod.uid().unwrap_or_default())).collect();
        let runs = match refused.into_iter().find_map(Result::err) {
            Some(e) => Err(e),
            None => self.watch(made, &requests[0].token).await,
        };
        if runs.is_err() {
            for (name, uid) in uids {
                // The first error is the one to tell.
                let _ = self.delete(&name, &uid).await;
            }
        }
        runs
    }

    async fn create_pod(&self, spec: &PodSpec, request: &PodRequest) -> Result<PodObject, PodError> {
        let object = object::pod(spec, request);
        let failed = format!("the pod {} cannot be made", request.name);
        let pods = self.pods();
        let create = async { Ok(pods.create(&PostParams::default(), &object).await) };
        let made = self.ask(self.asked("create", "pods"), &failed, create).await?;
        made.map_err(|e| not_made(e, &self.asked("create", "pods"), &failed))
    }

    /// Watches them until all run.
    async fn watch(&self, made: Vec<PodObject>, token: &str) -> Result<Vec<Pod>, PodError> {
        let (began, mut pods) = (Instant::now(), Starters::of(made));
        let failed = format!("the pod {} cannot be watched", pods.first());
        let ours = format!("{MANAGED_BY}=tailbound,{TOKEN_LABEL}={token}");
        let params = WatchParams::default().labels(&ours).timeout(60);
        loop {
            let api = self.pods();
            let watch = self.ask(self.asked("watch", "pods"), &failed, api.watch(&params, &pods.since));
            let mut news = watch.await?.boxed();
            loop {
                match timeout(LOOK, news.try_next()).await {
                    Ok(Ok(Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)))) => pods.see(pod),
                    Ok(Ok(Some(WatchEvent::Deleted(pod)))) if pods.knows(&pod) => {
                        return Err(self.removed(&pod.name_any(), &pod.uid().unwrap_or_default()).await);
                    }
                    // The server ends watches as it likes.
                    Ok(Ok(None | Some(WatchEvent::Error(_))) | Err(_)) => break,
                    Ok(Ok(Some(WatchEvent::Bookmark(_) | WatchEvent::Deleted(_)))) | Err(_) => {}
                }
                if let Some(running) = self.judge_all(&mut pods, began.elapsed()).await? {
                    return Ok(running);
                }
            }
            sleep(AGAIN).await;
            let all = ListParams::default().labels(&ours);
            let now = self.ask(self.asked("list", "pods"), &failed, api.list(&all)).await?;
            if let Some((name, uid)) = pods.see_all(now) {
                return Err(self.removed(&name, &uid).await);
            }
            if let Some(running) = self.judge_all(&mut pods, began.elapsed()).await? {
                return Ok(running);
            }
        }
    }

    /// The pod, if it runs; an error, if it cannot or has had its time.
    pub(crate) async fn judge(&self, seen: &PodObject, waited: Duration) -> Result<Option<Pod>, PodError> {
        let events = match is_late(waited, seen) {
            true => self.events(&seen.uid().unwrap_or_default()).await,
            false => Vec::new(),
        };
        self.judge_by(seen, &events, waited).await
    }

    async fn judge_by(&self, seen: &PodObject, events: &[Event], waited: Duration) -> Result<Option<Pod>, PodError> {
        match starting(seen, events, waited) {
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

    /// The pods, if all run; an error, if one cannot or they have had their time.
    async fn judge_all(&self, pods: &mut Starters, waited: Duration) -> Result<Option<Vec<Pod>>, PodError> {
        let late = pods.all.iter().any(|seen| is_late(waited, seen)) && waited >= pods.looked + LOOK;
        let events = if late { self.events_of_pods().await } else { Vec::new() };
        if late {
            pods.looked = waited;
        }
        let mut running = Vec::new();
        for seen in &pods.all {
            let uid = seen.uid();
            let of_it: Vec<Event> = events.iter().filter(|e| e.involved_object.uid == uid).cloned().collect();
            running.extend(self.judge_by(seen, &of_it, waited).await?);
        }
        Ok((running.len() == pods.all.len()).then_some(running))
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

/// Pods that are to run, as they were seen last.
struct Starters {
    all: Vec<PodObject>,
    /// The version from which on news are wanted.
    since: String,
    /// When events were asked for last, from the beginning on.
    looked: Duration,
}

impl Starters {
    fn of(made: Vec<PodObject>) -> Starters {
        let version = |pod: &PodObject| pod.resource_version().and_then(|v| v.parse::<u64>().ok());
        // From the first that was made on: nothing of the others is missed.
        let first = made.iter().min_by_key(|pod| version(pod)).and_then(ResourceExt::resource_version);
        Starters { since: first.unwrap_or_default(), looked: Duration::ZERO, all: made }
    }

    fn first(&self) -> String {
        self.all.first().map_or_else(String::new, ResourceExt::name_any)
    }

    fn knows(&self, pod: &PodObject) -> bool {
        self.all.iter().any(|known| known.uid() == pod.uid())
    }

    fn see(&mut self, pod: PodObject) {
        if let Some(known) = self.all.iter_mut().find(|known| known.uid() == pod.uid()) {
            self.since = pod.resource_version().unwrap_or_default();
            *known = pod;
        }
    }

    /// As they all are now; one that is there no more by name and identity.
    fn see_all(&mut self, now: ObjectList<PodObject>) -> Option<(String, String)> {
        let since = now.metadata.resource_version.clone().unwrap_or_default();
        let gone = self.all.iter().find(|known| !now.items.iter().any(|pod| pod.uid() == known.uid()));
        let gone = gone.map(|pod| (pod.name_any(), pod.uid().unwrap_or_default()));
        now.items.into_iter().for_each(|pod| self.see(pod));
        self.since = since;
        gone
    }
}
