//! How the ends find each other: what drivers are given for it, and what the record says of that.

use super::lab::Standing;
use tailbound_driver::Description;
use tailbound_model::*;

/// What the option of a driver is called that names discovery servers.
const SERVER: &str = "discovery_server";

/// What of the study's wish a driver cannot do.
pub(super) fn lack(spec: &TrialSpec, driver: &Description) -> Option<String> {
    let (asked, name) = (spec.discovery, &driver.name);
    let needed: &[&str] = match asked {
        Discovery::Auto => return None,
        Discovery::Multicast => &["multicast"],
        Discovery::Peers | Discovery::Dns => &["multicast", "peers"],
        Discovery::Server => &[SERVER, "discovery_listen"],
    };
    if spec.driver.config.is_some() {
        return Some(format!("the `config` of driver {name} is used as it is, and `discovery: {asked}` is not in it"));
    }
    let own = ["multicast", "peers", SERVER].into_iter().find(|key| spec.driver.options.contains_key(*key));
    if let Some(key) = own {
        return Some(format!("`discovery: {asked}` sets the option `{key}` of driver {name}, and so does the study"));
    }
    let key = needed.iter().find(|key| driver.option(key).is_none())?;
    Some(format!("driver {name} cannot do `discovery: {asked}`: it has no option `{key}`"))
}

/// Options of the lab for an end, of which those remain that are wanted.
pub(super) fn options(spec: &TrialSpec, end: usize, standing: &Standing) -> Vec<(String, String)> {
    let net = standing.lab.end(end);
    let multicast = spec.discovery == Discovery::Multicast || by_multicast(spec.discovery, end, standing);
    let mut options = net.driver_options.clone();
    for (key, value) in &mut options {
        if key == "multicast" && !multicast {
            "off".clone_into(value);
        }
    }
    if let (Discovery::Dns, Some(name)) = (spec.discovery, &standing.name) {
        options.iter_mut().filter(|(key, _)| key == "peers").for_each(|(_, peers)| peers.clone_from(name));
    }
    match (spec.discovery, &standing.server) {
        (Discovery::Auto | Discovery::Peers | Discovery::Dns, _) | (Discovery::Server, None) => {}
        (Discovery::Multicast, _) => options.retain(|(key, _)| key != "peers"),
        (Discovery::Server, Some(server)) => {
            options.retain(|(key, _)| key != "peers" && key != "multicast");
            options.push((SERVER.to_owned(), server.address.to_string()));
        }
    }
    options
}

/// Not where it is known that nothing passes.
fn by_multicast(asked: Discovery, end: usize, standing: &Standing) -> bool {
    asked == Discovery::Auto && standing.lab.end(end).multicast && standing.path.multicast_passes != Some(false)
}

/// What the record says of it.
pub(super) fn facts(spec: &TrialSpec, standing: &Standing) -> DiscoveryFacts {
    let (by, why) = match spec.discovery {
        Discovery::Auto if by_multicast(spec.discovery, 0, standing) => {
            ("multicast and peers", "the interfaces carry multicast, and the path check has not shown that it is lost")
        }
        Discovery::Auto if standing.lab.end(0).multicast => {
            ("peers", "the path check has shown that multicast is lost")
        }
        Discovery::Auto => ("peers", "the interfaces carry no multicast"),
        Discovery::Multicast => ("multicast", "the study says so"),
        Discovery::Peers => ("peers", "the study says so"),
        Discovery::Dns => ("dns", "the study says so"),
        Discovery::Server => ("server", "the study says so"),
    };
    let server = standing.server.as_ref().map(|server| server.address.to_string());
    let name = standing.name.clone().filter(|_| spec.discovery == Discovery::Dns);
    DiscoveryFacts { by: by.into(), why: why.into(), server, name }
}

/// To a finding that the ends have not met: what has become of the discovery server, where there is one.
pub(super) fn with_server(finding: Option<String>, standing: &Standing) -> Option<String> {
    let finding = finding?;
    let Some(server) = &standing.server else { return Some(finding) };
    let why = server.unserved().map_or_else(String::new, |why| format!(": {why}"));
    Some(format!("{finding}; they were to find each other by the discovery server at {}{why}", server.address))
}

/// For a dry run: what would be made.
pub(super) fn describe(plan: &Plan) -> Vec<String> {
    let possible = plan.conditions.iter().filter(|c| c.not_possible.is_none()).map(|c| &c.spec);
    let first = |wanted: Discovery| possible.clone().find(|spec| spec.discovery == wanted);
    let server = first(Discovery::Server).map(|spec| {
        format!(
            "discovery server: make a Deployment of one pod, where driver {} serves, and a ClusterIP Service before it; \
             wait until it is ready, delete both afterwards  [your rights there]",
            spec.driver.name
        )
    });
    let name = first(Discovery::Dns).map(|_| {
        "name of the pods: make a headless Service of them, wait until each finds all by it, delete it afterwards  \
         [your rights there]"
            .to_owned()
    });
    server.into_iter().chain(name).collect()
}
