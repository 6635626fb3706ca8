//! The DNS name that resolves to all pods of a lab. The ends of the lab use this name to find each other.

use super::host::Host;
use super::{Hosts, discovery_server, not_fit};
use crate::controller::RunError;
use crate::controller::context::RunContext;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tailbound_host::journal::EntryId;
use tailbound_lab::{Far, LabSpec};
use tailbound_model::*;

/// Longest time until the DNS name of the pods resolves. The DNS of a cluster knows new pods after a second or two, but
/// keeps a cached negative answer for a longer time.
const RESOLVED: Duration = Duration::from_secs(40);
/// Time between two attempts to resolve the DNS name of the pods.
const PAUSE: Duration = Duration::from_millis(500);

/// A DNS name that resolves to the addresses of all pods of a lab.
pub(super) struct Name {
    pub name: String,
    /// Names of the pods to whose addresses the DNS name resolves.
    pods: Vec<String>,
    token: String,
    entry: EntryId,
}

impl Name {
    /// Removes the DNS name of the pods. Returns the reason if it could not be removed.
    pub fn leave(&self, context: &RunContext) -> Option<String> {
        let left = context.journal.undo(self.entry).err()?;
        Some(format!("the Service with the label {} is still in its cluster: {left}", self.token))
    }
}

impl Hosts {
    /// Creates the DNS name that a trial asks for, and removes the DNS name of another lab.
    ///
    /// # Errors
    /// The cluster refuses the name, or its DNS does not resolve the name to all pods.
    pub(super) fn make_name(&mut self, trial: &TrialSpec, context: &RunContext) -> Result<(), RunError> {
        let lab = LabSpec::from(trial);
        let mut hosts: Vec<Arc<Host>> = Vec::new();
        for host in (0..lab.places()).filter_map(|end| self.of_end(&lab, end)) {
            if !hosts.iter().any(|known| Arc::ptr_eq(known, host)) {
                hosts.push(host.clone());
            }
        }
        let pods: Vec<String> = hosts.iter().filter_map(|host| host.pod.clone()).collect();
        let wanted = trial.discovery == Discovery::Dns;
        if let Some(old) = self.name.take_if(|name| !wanted || name.pods != pods) {
            self.left.extend(old.leave(context));
        }
        let (PlaceSpec::Pod(spec), Some(owner)) = (&trial.ping.place, pods.first().cloned()) else { return Ok(()) };
        if !wanted || self.name.is_some() {
            return Ok(());
        }
        let (token, run) = (self.next_token(context), context.run_id.clone());
        let order = NameOrder { spec: (**spec).clone(), token: token.clone(), owner, run };
        let undo = Undo::DeleteService { cluster: spec.clone(), token: token.clone() };
        let (name, entry) = discovery_server::make("name of the pods", ("name", &order), undo, context)?;
        let made = self.name.insert(Name { name, pods, token, entry });
        await_resolved(&made.name, &hosts)
    }

    /// DNS name of the lab's pods, if there is one.
    pub fn name(&self) -> Option<String> {
        self.name.as_ref().map(|name| name.name.clone())
    }
}

/// Waits until the DNS name resolves in every pod to the addresses of all pods.
fn await_resolved(name: &str, hosts: &[Arc<Host>]) -> Result<(), RunError> {
    let all: BTreeSet<IpAddr> = hosts.iter().filter_map(|host| host.address()).collect();
    let began = Instant::now();
    for host in hosts {
        loop {
            let got = match host.ask(Ask::Resolve(name.to_owned())) {
                Ok(Answer::Addresses(got)) if all.iter().all(|address| got.contains(address)) => break,
                Ok(Answer::Addresses(got)) => format!("resolves to {} in this pod", list(&got)),
                Ok(Answer::Failed(text, _)) => format!("does not resolve in this pod: {text}"),
                Ok(other) => format!("got the answer {other:?}"),
                Err(e) => return Err(not_fit(e, "")),
            };
            if began.elapsed() > RESOLVED {
                return Err(not_resolved(host.name(), name, &got, &all));
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

fn not_resolved(pod: &str, name: &str, got: &str, all: &BTreeSet<IpAddr>) -> RunError {
    not_fit(
        format!("{pod}: after {} s the name {name} {got}; it should resolve to {}", RESOLVED.as_secs(), list(all)),
        "check whether the cluster has a DNS service (`kubectl -n kube-system get service kube-dns`) that pods may \
         use; if it has none, write `discovery: peers`",
    )
}

fn list<'a>(addresses: impl IntoIterator<Item = &'a IpAddr>) -> String {
    addresses.into_iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_resolve_is_reported_with_a_remedy() {
        let all = ["10.244.1.2", "10.244.2.2"].map(|a| a.parse().unwrap()).into();
        let got = "resolves to 10.244.1.2 in this pod";
        let error = not_resolved("pod ping", "tailbound-1a2b-3.default.svc", got, &all);
        let text = "pod ping: after 40 s the name tailbound-1a2b-3.default.svc resolves to 10.244.1.2 in this pod; it \
                    should resolve to 10.244.1.2, 10.244.2.2\n  help: check whether the cluster has a DNS service \
                    (`kubectl -n kube-system get service kube-dns`) that pods may use; if it has none, write \
                    `discovery: peers`";
        assert_eq!(error.to_string(), text);
    }
}
