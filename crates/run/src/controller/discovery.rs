//! Discovery: the options by which drivers find each other, and the facts about discovery in the record.

use super::active_lab::ActiveLab;
use tailbound_driver::Description;
use tailbound_model::*;

/// Name of the driver option with the addresses of discovery servers.
const SERVER: &str = "discovery_server";

/// Reason why a driver cannot do the discovery that the study asks for; `None` = the driver can do it.
pub(super) fn lack(spec: &TrialSpec, driver: &Description) -> Option<String> {
    let (asked, name) = (spec.discovery, &driver.name);
    let needed: &[&str] = match asked {
        Discovery::Auto => return None,
        Discovery::Multicast => &["multicast"],
        Discovery::Peers | Discovery::Dns => &["multicast", "peers"],
        Discovery::Server => &[SERVER, "discovery_listen"],
    };
    if spec.driver.config.is_some() {
        return Some(format!(
            "the `config` of driver {name} is used unchanged, so Tailbound cannot add `discovery: {asked}` to it"
        ));
    }
    let own = ["multicast", "peers", SERVER].into_iter().find(|key| spec.driver.options.contains_key(*key));
    if let Some(key) = own {
        return Some(format!(
            "`discovery: {asked}` sets the option `{key}` of driver {name}, but the study sets this option too"
        ));
    }
    let key = needed.iter().find(|key| driver.option(key).is_none())?;
    Some(format!("driver {name} cannot do `discovery: {asked}`: it has no option `{key}`"))
}

/// Driver options with which one end uses the path of the lab (for example the addresses of its peers), adapted to the
/// discovery that the study asks for.
pub(super) fn options(spec: &TrialSpec, end: usize, lab: &ActiveLab) -> Vec<(String, String)> {
    let net = lab.lab.end(end);
    let multicast = spec.discovery == Discovery::Multicast || by_multicast(spec.discovery, end, lab);
    let mut options = net.driver_options.clone();
    for (key, value) in &mut options {
        if key == "multicast" && !multicast {
            "off".clone_into(value);
        }
    }
    if let (Discovery::Dns, Some(name)) = (spec.discovery, &lab.name) {
        options.iter_mut().filter(|(key, _)| key == "peers").for_each(|(_, peers)| peers.clone_from(name));
    }
    match (spec.discovery, &lab.server) {
        (Discovery::Auto | Discovery::Peers | Discovery::Dns, _) | (Discovery::Server, None) => {}
        (Discovery::Multicast, _) => options.retain(|(key, _)| key != "peers"),
        (Discovery::Server, Some(server)) => {
            options.retain(|(key, _)| key != "peers" && key != "multicast");
            options.push((SERVER.to_owned(), server.address.to_string()));
        }
    }
    options
}

/// True if `discovery: auto` uses multicast: the interfaces carry multicast, and the path check has not shown that
/// multicast is lost.
fn by_multicast(asked: Discovery, end: usize, lab: &ActiveLab) -> bool {
    asked == Discovery::Auto && lab.lab.end(end).multicast && lab.path.multicast_passes != Some(false)
}

/// Facts about discovery for the record: the method that is used, and the reason.
pub(super) fn facts(spec: &TrialSpec, lab: &ActiveLab) -> DiscoveryFacts {
    let (by, why) = match spec.discovery {
        Discovery::Auto if by_multicast(spec.discovery, 0, lab) => (
            "multicast and peers",
            "the interfaces carry multicast, and the path check has not shown that multicast is lost",
        ),
        Discovery::Auto if lab.lab.end(0).multicast => ("peers", "the path check has shown that multicast is lost"),
        Discovery::Auto => ("peers", "the interfaces carry no multicast"),
        Discovery::Multicast => ("multicast", "the study says so"),
        Discovery::Peers => ("peers", "the study says so"),
        Discovery::Dns => ("dns", "the study says so"),
        Discovery::Server => ("server", "the study says so"),
    };
    let server = lab.server.as_ref().map(|server| server.address.to_string());
    let name = lab.name.clone().filter(|_| spec.discovery == Discovery::Dns);
    DiscoveryFacts { by: by.into(), why: why.into(), server, name }
}

/// Adds the state of the discovery server to the finding that the ends have not found each other.
pub(super) fn with_server(finding: Option<String>, lab: &ActiveLab) -> Option<String> {
    let finding = finding?;
    let Some(server) = &lab.server else { return Some(finding) };
    let why = server.failure().map_or_else(String::new, |why| format!(": {why}"));
    Some(format!("{finding}; the ends use the discovery server at {}{why}", server.address))
}

/// Describes for a dry run which Kubernetes objects (Deployment and Service of a discovery server, Services with a DNS
/// name) a run would create so that the ends find each other.
pub(super) fn describe(plan: &Plan) -> Vec<String> {
    let possible = plan.conditions.iter().filter(|c| c.not_possible.is_none()).map(|c| &c.spec);
    let first = |wanted: Discovery| possible.clone().find(|spec| spec.discovery == wanted);
    let server = first(Discovery::Server).map(|spec| {
        format!(
            "discovery server: make a Deployment of one pod, with the server of driver {}, and a ClusterIP Service \
             for this pod; wait until the server is ready, delete both objects afterwards  [your rights in the \
             cluster]",
            spec.driver.name
        )
    });
    let name = first(Discovery::Dns).map(|_| {
        "DNS name of the pods: make a headless Service for the pods, wait until its name resolves to all pods, delete \
         the Service afterwards  [your rights in the cluster]"
            .to_owned()
    });
    server.into_iter().chain(name).collect()
}
