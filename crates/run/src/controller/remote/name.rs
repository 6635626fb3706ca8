//! The name of all pods of a run, by which their ends find each other.

use super::host::Host;
use super::{Hosts, not_fit, server};
use crate::controller::RunError;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tailbound_host::journal::{EntryId, Journal};
use tailbound_lab::{Far, LabSpec};
use tailbound_model::*;

/// A cluster tells its DNS of new pods within a second or two; an answer that is kept, that there are none, lives longer.
const KNOWN: Duration = Duration::from_secs(40);
/// How often it is asked until then.
const LOOK: Duration = Duration::from_millis(500);

/// A name that gives the addresses of all pods of a lab.
pub(super) struct Name {
    pub name: String,
    /// The pods that it was made for.
    pods: Vec<String>,
    token: String,
    entry: EntryId,
}

impl Name {
    /// Removes it; why it could not be removed.
    pub fn leave(&self, journal: &Journal) -> Option<String> {
        let left = journal.undo(self.entry).err()?;
        Some(format!("the Service with the label {} is still in its cluster: {left}", self.token))
    }
}

impl Hosts {
    /// Sees to it that the pods of a trial have a name, where their ends are to find each other by it, and no other one.
    ///
    /// # Errors
    /// The cluster refuses it, or its DNS does not answer with their addresses: who says so, and what to do.
    pub(super) fn call(&mut self, trial: &TrialSpec, (run_id, journal): (&str, &Journal)) -> Result<(), RunError> {
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
            self.left.extend(old.leave(journal));
        }
        let (PlaceSpec::Pod(spec), Some(owner)) = (&trial.ping.place, pods.first().cloned()) else { return Ok(()) };
        if !wanted || self.name.is_some() {
            return Ok(());
        }
        self.made += 1;
        let (token, run) = (format!("{run_id}-{}", self.made), run_id.to_owned());
        let order = NameOrder { spec: (**spec).clone(), token: token.clone(), owner, run };
        let undo = Undo::DeleteService { cluster: spec.clone(), token: token.clone() };
        let (name, entry) = server::make("name of the pods", ("name", &order), undo, journal)?;
        let made = self.name.insert(Name { name, pods, token, entry });
        known(&made.name, &hosts)
    }

    /// The name.
    pub fn name(&self) -> Option<String> {
        self.name.as_ref().map(|name| name.name.clone())
    }
}

/// Waits until every pod gets the addresses of all.
fn known(name: &str, hosts: &[Arc<Host>]) -> Result<(), RunError> {
    let all: BTreeSet<IpAddr> = hosts.iter().filter_map(|host| host.address()).collect();
    let began = Instant::now();
    for host in hosts {
        loop {
            let got = match host.ask(Ask::Resolve(name.to_owned())) {
                Ok(Told::Addresses(got)) if all.iter().all(|address| got.contains(address)) => break,
                Ok(Told::Addresses(got)) => format!("gives {} there", list(&got)),
                Ok(Told::Failed(text, _)) => format!("gives nothing there: {text}"),
                Ok(other) => format!("was answered by {other:?}"),
                Err(e) => return Err(not_fit(e, "")),
            };
            if began.elapsed() > KNOWN {
                return Err(unknown(host.name(), name, &got, &all));
            }
            std::thread::sleep(LOOK);
        }
    }
    Ok(())
}

fn unknown(pod: &str, name: &str, got: &str, all: &BTreeSet<IpAddr>) -> RunError {
    not_fit(
        format!("{pod}: after {} s the name {name} {got}; it is to give {}", KNOWN.as_secs(), list(all)),
        "look whether the cluster has a DNS (`kubectl -n kube-system get service kube-dns`) and whether pods may ask it; \
         without one, write `discovery: peers`",
    )
}

fn list<'a>(addresses: impl IntoIterator<Item = &'a IpAddr>) -> String {
    addresses.into_iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_answers_is_told_with_what_to_do() {
        let all = ["10.244.1.2", "10.244.2.2"].map(|a| a.parse().unwrap()).into();
        let error = unknown("pod ping", "tailbound-1a2b-3.default.svc", "gives 10.244.1.2 there", &all);
        let text = "pod ping: after 40 s the name tailbound-1a2b-3.default.svc gives 10.244.1.2 there; it is to give \
                    10.244.1.2, 10.244.2.2\n  what to do: look whether the cluster has a DNS (`kubectl -n kube-system get \
                    service kube-dns`) and whether pods may ask it; without one, write `discovery: peers`";
        assert_eq!(error.to_string(), text);
    }
}
