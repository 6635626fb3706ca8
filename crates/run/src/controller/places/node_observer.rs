//! Observers: pods in the namespaces of a cluster node, which can read properties of the node that a measuring pod
//! cannot read.

use super::{Host, Hosts, pod};
use crate::controller::RunError;
use crate::controller::context::RunContext;
use std::sync::Arc;
use tailbound_model::*;

impl Hosts {
    /// Returns the observer of the cluster node on which a pod runs; `None` = the study asks for no observer. All pods
    /// of a node share one observer.
    ///
    /// # Errors
    /// The cluster refuses the observer, or the observer does not become ready.
    pub(super) fn observer(
        &mut self,
        spec: &PodSpec,
        pod: &Host,
        context: &RunContext,
    ) -> Result<Option<Arc<Host>>, RunError> {
        let Some(node) = pod.node.as_deref().filter(|_| spec.observe) else { return Ok(None) };
        for lost in self.observers.extract_if(.., |host| !host.answers()) {
            lost.leave(context);
        }
        let cluster = |spec: &PodSpec| (spec.kubeconfig.clone(), spec.context.clone(), spec.namespace.clone());
        let same = |host: &&Arc<Host>| {
            let of = if let PlaceSpec::Pod(of) = &host.place { cluster(of) == cluster(spec) } else { false };
            of && host.node.as_deref() == Some(node)
        };
        if let Some(there) = self.observers.iter().find(same) {
            return Ok(Some(there.clone()));
        }
        self.made += 1;
        let token = context.token(self.made);
        let host = Arc::new(pod::observe(spec, context, (token, node))?);
        self.observers.push(host.clone());
        Ok(Some(host))
    }
}
