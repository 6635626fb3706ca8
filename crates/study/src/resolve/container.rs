//! Resolves the keys of a container in which an end runs.

use super::Context;
use super::cpus::allowed;
use super::pod::{capability, is_label, mib};
use crate::error::Fault;
use crate::format::{ClientChoice, ContainerKeys};
use crate::read::At;
use tailbound_model::{ContainerClient, ContainerNetwork, ContainerSpec};

/// Resolves the keys of a container as the place of an end.
pub(super) fn container(keys: &ContainerKeys, end: &str, context: &Context<'_>) -> Result<ContainerSpec, Fault> {
    if let Some(name) = keys.name.as_ref().filter(|n| !is_label(&n.value)) {
        let reason = format!("`{}` cannot be part of the name of a container", name.value);
        return Err(Fault::new(name.at, reason).help(
            "use 1 to 40 lower-case letters, digits and `-`; the name begins and ends with a letter or a digit",
        ));
    }
    let client = keys.client.map(|client| match client {
        ClientChoice::Podman => ContainerClient::Podman,
        ClientChoice::Ctr => ContainerClient::Ctr,
    });
    Ok(ContainerSpec {
        name: keys.name.as_ref().map_or_else(|| end.to_owned(), |n| n.value.clone()),
        client,
        image: keys.image.as_ref().map(image).transpose()?,
        network: keys.network.as_ref().map(|n| network(n, client)).transpose()?.unwrap_or_default(),
        cpus: keys.cpus.as_ref().map(|c| allowed(c, context)).transpose()?.flatten(),
        memory_mib: keys.memory.as_ref().map(|m| mib(m.value.0, m, "container")).transpose()?,
        capabilities: keys.capabilities.iter().flatten().map(capability).collect::<Result<_, _>>()?,
    })
}

/// True if the container client (`podman` or `ctr`) takes the text as one word and not as an option, which begins with
/// a dash.
fn is_word(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && !word.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn image(name: &At<String>) -> Result<String, Fault> {
    let bad = || Fault::new(name.at, format!("`{}` cannot be the name of an image", name.value));
    is_word(&name.value)
        .then(|| name.value.clone())
        .ok_or_else(|| bad().help("write the name that `tailbound image` prints, for example `localhost/tailbound:1`"))
}

fn network(word: &At<String>, client: Option<ContainerClient>) -> Result<ContainerNetwork, Fault> {
    let fault = |reason: String, help: &str| Err(Fault::new(word.at, reason).help(help));
    match word.value.as_str() {
        "host" => Ok(ContainerNetwork::Host),
        "none" => Ok(ContainerNetwork::None),
        // podman gives special meanings to other words: sharing a namespace, or having no namespace.
        name if !is_word(name) || name.contains([':', ',', '/']) => fault(
            format!("`{name}` cannot be the name of a network"),
            "write `host`, `none`, or a name that `podman network ls` shows",
        ),
        name if client == Some(ContainerClient::Ctr) => fault(
            format!("ctr knows no networks by name, and `network` is `{name}`"),
            "write `network: host`; or `network: none` and a `path` that Tailbound creates; or `client: podman`",
        ),
        name => Ok(ContainerNetwork::Named(name.to_owned())),
    }
}
