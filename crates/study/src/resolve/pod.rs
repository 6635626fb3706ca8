//! Resolves the keys of a pod in which an end runs.

use crate::error::Fault;
use crate::format::{NetworkChoice, NodeKeys, ObserveChoice, PodKeys, PullChoice};
use crate::read::At;
use std::collections::BTreeMap;
use tailbound_model::{ByteSize, NodeChoice, PodSpec, Pull};

const MIB: u64 = 1 << 20;
/// Default memory of a pod in MiB, for the samples of a trial and for the program.
const MEMORY_MIB: u32 = 512;
/// Smallest memory of a pod or container in MiB, which the program itself needs.
const LEAST_MIB: u64 = 64;

/// Resolves the keys of a pod as the place of an end.
pub(super) fn pod(keys: &PodKeys, end: &str) -> Result<PodSpec, Fault> {
    if let Some(name) = keys.name.as_ref().filter(|n| !is_label(&n.value)) {
        let reason = format!("`{}` cannot be part of the name of a pod", name.value);
        return Err(Fault::new(name.at, reason).help(
            "use 1 to 40 lower-case letters, digits and `-`; the name begins and ends with a letter or a digit",
        ));
    }
    if let Some(file) = keys.kubeconfig.as_ref().filter(|f| !f.value.starts_with('/')) {
        let reason = format!("`{}` is not an absolute path", file.value);
        return Err(Fault::new(file.at, reason)
            .help("write a path that begins with `/`; or set KUBECONFIG and leave `kubeconfig` out"));
    }
    let words = |all: &Option<BTreeMap<String, String>>| all.clone().unwrap_or_default();
    let value = |text: &Option<At<String>>| text.as_ref().map(|t| t.value.clone());
    Ok(PodSpec {
        name: keys.name.as_ref().map_or_else(|| end.to_owned(), |n| n.value.clone()),
        kubeconfig: value(&keys.kubeconfig),
        context: value(&keys.context),
        namespace: value(&keys.namespace),
        node: match &keys.node {
            // The ping end's pod is the first, so there is no other node yet.
            Some(NodeKeys::Other) if end == "ping" => None,
            Some(NodeKeys::Other) => Some(NodeChoice::Other),
            Some(NodeKeys::Spread) => Some(NodeChoice::Spread),
            Some(NodeKeys::Name(name)) => Some(NodeChoice::Name(name.value.clone())),
            Some(NodeKeys::Labels(labels)) => Some(NodeChoice::Labels(labels.clone())),
            None => None,
        },
        host_network: keys.network == Some(NetworkChoice::Host),
        observe: keys.observe == Some(ObserveChoice::On),
        image: value(&keys.image),
        pull: match keys.pull {
            None | Some(PullChoice::IfNotPresent) => Pull::IfNotPresent,
            Some(PullChoice::Always) => Pull::Always,
            Some(PullChoice::Never) => Pull::Never,
        },
        cpus: keys.cpus.as_ref().map_or(1, |c| c.value),
        memory_mib: keys.memory.as_ref().map_or(Ok(MEMORY_MIB), |m| mib(m.value.0, m, "pod"))?,
        capabilities: keys.capabilities.iter().flatten().map(capability).collect::<Result<_, _>>()?,
        runtime_class: value(&keys.runtime_class),
        service_account: value(&keys.service_account),
        labels: words(&keys.labels),
        annotations: words(&keys.annotations),
    })
}

pub(super) fn mib<T>(size: ByteSize, at: &At<T>, whose: &str) -> Result<u32, Fault> {
    let bytes = size.0;
    match u32::try_from(bytes / MIB) {
        Ok(whole) if bytes.is_multiple_of(MIB) && bytes >= LEAST_MIB * MIB => Ok(whole),
        _ => {
            let reason = format!("{size} cannot be the memory of a {whose}");
            Err(Fault::new(at.at, reason)
                .help(format!("write whole MiB, at least {LEAST_MIB} MiB, for example `512 MiB`")))
        }
    }
}

pub(super) fn capability(word: &At<String>) -> Result<String, Fault> {
    let is =
        |w: &str| !w.is_empty() && !w.starts_with("CAP_") && w.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    match is(&word.value) {
        true => Ok(word.value.clone()),
        false => Err(Fault::new(word.at, format!("`{}` is not the name of a capability", word.value))
            .help("without `CAP_`: `SYS_NICE`, `IPC_LOCK`, `NET_RAW`")),
    }
}

/// True if the name is a label of RFC 1123 with at most 40 bytes; pod names contain the run id before this label.
pub(super) fn is_label(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=40).contains(&name.len()) && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}
