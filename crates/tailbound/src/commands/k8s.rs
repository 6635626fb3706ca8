//! `tailbound k8s`: what a cluster is given, as text for `kubectl apply`.

use crate::cli::{K8sSub, Manifest};
use crate::exit::{Failure, Outcome};
use crate::say::out;
use tailbound_bundle::ImageName;
use tailbound_model::ExitCode;

/// Everything but the namespace. Comments in it say why each right is needed.
const OBJECTS: &str = include_str!("k8s/manifest.yaml");
const NAMESPACE: &str = include_str!("k8s/namespace.yaml");

pub fn k8s(command: &K8sSub) -> Outcome {
    match command {
        K8sSub::Manifest(args) => manifest(args),
    }
}

fn manifest(args: &Manifest) -> Outcome {
    let refused = |text: String| Failure::new(ExitCode::BadInput, text);
    for (option, name) in [("--namespace", &args.namespace), ("--name", &args.name)] {
        if !is_label(name) {
            return Err(refused(format!(
                "`{name}` cannot be a name in a cluster ({option}): it takes 1 to 63 lower-case letters, digits and `-`, \
                 and begins and ends with a letter or digit (RFC 1123)"
            )));
        }
    }
    let release = env!("CARGO_PKG_VERSION");
    let image = args.image.clone().unwrap_or_else(|| format!("localhost/tailbound:{release}"));
    let (named, digest) = image.split_once('@').map_or((image.as_str(), None), |(n, d)| (n, Some(d)));
    ImageName::parse(named, release).map_err(|e| refused(e.to_string()))?;
    if digest.is_some_and(|d| !is_digest(d)) {
        return Err(refused(format!("`{image}` (--image): behind `@` stands `sha256:` with 64 hexadecimal digits")));
    }
    // These are in every cluster, and not ours to label or delete.
    let is_there = args.namespace == "default" || args.namespace.starts_with("kube-");
    let text = OBJECTS
        .replace("{{namespace_object}}", if is_there { "" } else { NAMESPACE })
        .replace("{{namespace}}", &args.namespace)
        .replace("{{name}}", &args.name)
        .replace("{{release}}", release)
        .replace("{{image}}", &image);
    out!("{text}");
    Ok(ExitCode::Done)
}

/// A label of RFC 1123, as Kubernetes takes it.
fn is_label(name: &str) -> bool {
    name.len() <= 63
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.is_empty()
        && !name.starts_with('-')
        && !name.ends_with('-')
}

fn is_digest(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(|d| d.len() == 64 && d.bytes().all(|b| b"0123456789abcdef".contains(&b)))
}
