//! Creates pods in a Kubernetes cluster and waits until the pods run.

use crate::cluster::Cluster;
use crate::explain::{Starting, deleted, not_made, starting};
use crate::object::{self, MANAGED_BY, PodRequest, TOKEN_LABEL};
use crate::pod::Pod;
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Event, Pod as PodObject};
use kube::ResourceExt;
use kube::api::{ListParams, ObjectList, PostParams, WatchEvent, WatchParams};
use std::time::{Duration, Instant};
use tailbound_model::{PodSpec, Problem};
use tokio::time::{sleep, timeout};

/// Time limit from the creation of a pod until the pod runs.
const LIMIT: Duration = Duration::from_secs(120);
/// Interval between requests for the events of a pod that does not run yet and whose state does not change.
const LOOK: Duration = Duration::from_secs(2);
/// Pause before a new Kubernetes watch of pods, if the API server or the network has ended the previous watch.
const AGAIN: Duration = Duration::from_millis(500);

/// Number of requests that are sent at the same time; more requests would only wait in the API server.
const AT_ONCE: usize = 16;

impl Cluster {
    /// Creates a pod and waits until the pod runs, at most 120 s. A pod that cannot run is removed again.
    ///
    /// # Errors
    /// The API server refuses the pod; no node accepts it; its image cannot be pulled; its container or network cannot
    /// be created; somebody removes it.
    pub async fn start(&self, spec: &PodSpec, request: &PodRequest) -> Result<Pod, Problem> {
        let mut pods = self.start_all(spec, std::slice::from_ref(request)).await?;
        Ok(pods.swap_remove(0))
    }

    /// Creates pods that have the same token in a label, waits until all of these pods run, and returns them in the
    /// order of the requests. One Kubernetes watch observes all pods. If a pod cannot run, all pods are removed again.
    ///
    /// # Errors
    /// The first error, as for [`Cluster::start`].
    pub async fn start_all(&self, spec: &PodSpec, requests: &[PodRequest]) -> Result<Vec<Pod>, Problem> {
        let create = requests.iter().map(|request| self.create_pod(spec, request));
        let made: Vec<Result<PodObject, Problem>> =
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
                // The first error is reported.
                let _ = self.delete(&name, &uid).await;
            }
        }
        runs
    }

    async fn create_pod(&self, spec: &PodSpec, request: &PodRequest) -> Result<PodObject, Problem> {
        let object = object::pod(spec, request);
        let failed = format!("the pod {} cannot be made", request.name);
        let pods = self.pods();
        let create = async { Ok(pods.create(&PostParams::default(), &object).await) };
        let made = self.ask(self.asked("create", "pods"), &failed, create).await?;
        made.map_err(|e| not_made(e, &self.asked("create", "pods"), &failed))
    }

    /// Watches created pods through the Kubernetes API until all of these pods run.
    async fn watch(&self, made: Vec<PodObject>, token: &str) -> Result<Vec<Pod>, Problem> {
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
                    // A server may end a watch at any time.
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

    /// Returns the pod if it runs, an error if it cannot run or does not run after [`LIMIT`], and otherwise `None`.
    pub(crate) async fn judge(&self, seen: &PodObject, waited: Duration) -> Result<Option<Pod>, Problem> {
        let events = match is_late(waited, seen) {
            true => self.events(&seen.uid().unwrap_or_default()).await,
            false => Vec::new(),
        };
        self.judge_by(seen, &events, waited).await
    }

    async fn judge_by(&self, seen: &PodObject, events: &[Event], waited: Duration) -> Result<Option<Pod>, Problem> {
        match starting(seen, events, waited) {
            Starting::Runs => Ok(Some(Pod::of(self, seen))),
            Starting::Never(e) => {
                let words = self.last_words(seen).await;
                Err(Problem { what: e.what + &words, ..e })
            }
            Starting::Waits(_) if waited < LIMIT => Ok(None),
            Starting::Waits(for_what) => Err(Problem::new(
                "pod_not_started",
                format!("the pod {} does not run after {} s: {for_what}", seen.name_any(), LIMIT.as_secs()),
                format!("`kubectl -n {} describe pod` shows more while the pod waits", self.namespace),
            )),
        }
    }

    /// Returns the pods if all run, an error if a pod cannot run or does not run after [`LIMIT`], and otherwise `None`.
    async fn judge_all(&self, pods: &mut Starters, waited: Duration) -> Result<Option<Vec<Pod>>, Problem> {
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

    async fn removed(&self, name: &str, uid: &str) -> Problem {
        Problem::new(
            "pod_not_started",
            deleted(name, &self.events(uid).await),
            "find out which program removes the pods or the namespace",
        )
    }
}

/// Whether a pod has waited so long that its events should be read. Reading the events takes a separate request.
fn is_late(waited: Duration, seen: &PodObject) -> bool {
    waited > LOOK && seen.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Pending"))
}

/// Created pods that do not run yet, in their last known state.
struct Starters {
    all: Vec<PodObject>,
    /// Version (Kubernetes resource version) of the pods after which changes are requested from the API server.
    since: String,
    /// Time at which events were requested last, counted from the creation of the pods.
    looked: Duration,
}

impl Starters {
    fn of(made: Vec<PodObject>) -> Starters {
        let version = |pod: &PodObject| pod.resource_version().and_then(|v| v.parse::<u64>().ok());
        // The watch begins at the version of the pod that was created first, so that no change of the other pods is
        // missed.
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

    /// Updates the known state of all pods; returns name and identity of a pod that no longer exists.
    fn see_all(&mut self, now: ObjectList<PodObject>) -> Option<(String, String)> {
        let since = now.metadata.resource_version.clone().unwrap_or_default();
        let gone = self.all.iter().find(|known| !now.items.iter().any(|pod| pod.uid() == known.uid()));
        let gone = gone.map(|pod| (pod.name_any(), pod.uid().unwrap_or_default()));
        now.items.into_iter().for_each(|pod| self.see(pod));
        self.since = since;
        gone
    }
}
