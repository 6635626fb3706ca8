//! Runs `tailbound k8s`: prints the objects that a Kubernetes cluster needs, for `kubectl apply`.

use crate::cli::{K8sSub, Manifest};
use crate::failure::{CommandResult, Failure};
use crate::output::out;
use tailbound_bundle::ImageName;
use tailbound_model::ExitCode;

/// Text of all printed Kubernetes objects except the namespace. Comments in the file say why each right is needed.
const OBJECTS: &str = include_str!("k8s/manifest.yaml");
const NAMESPACE: &str = include_str!("k8s/namespace.yaml");

pub fn k8s(command: &K8sSub) -> CommandResult {
    match command {
        K8sSub::Manifest(args) => manifest(args),
    }
}

fn manifest(args: &Manifest) -> CommandResult {
    for (option, name) in [("--namespace", &args.namespace), ("--name", &args.name)] {
        if !is_label(name) {
            let text = format!("`{name}` ({option}) is not a valid name of a Kubernetes object");
            return Err(Failure::bad_input(text).help(
                "use 1 to 63 lower-case letters, digits and `-`; the name must begin and end with a letter or digit (RFC 1123)",
            ));
        }
    }
    let release = env!("CARGO_PKG_VERSION");
    let image = args.image.clone().unwrap_or_else(|| format!("localhost/tailbound:{release}"));
    let (named, digest) = image.split_once('@').map_or((image.as_str(), None), |(n, d)| (n, Some(d)));
    ImageName::parse(named, release).map_err(Failure::bad_input)?;
    if digest.is_some_and(|d| !is_digest(d)) {
        return Err(Failure::bad_input(format!("`{image}` (--image) has no valid digest"))
            .help("write `sha256:` and 64 hexadecimal digits after the `@`"));
    }
    // These namespaces exist in every cluster. The manifest must not label or delete them.
    let exists_already = args.namespace == "default" || args.namespace.starts_with("kube-");
    let text = OBJECTS
        .replace("{{namespace_object}}", if exists_already { "" } else { NAMESPACE })
        .replace("{{namespace}}", &args.namespace)
        .replace("{{name}}", &args.name)
        .replace("{{release}}", release)
        .replace("{{image}}", &image);
    out!("{text}");
    Ok(ExitCode::Done)
}

/// Whether Kubernetes accepts the text as a name: a label as defined in RFC 1123.
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
