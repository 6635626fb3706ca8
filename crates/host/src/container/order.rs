//! Input for making a container: the image and the description of the container.

use tailbound_model::ContainerSpec;

/// A container image that is in the image store of a container client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Processor architecture of the container image, with the name that OCI uses: `amd64`, `arm64`.
    pub architecture: String,
    /// Digest of the container image's manifest (OCI).
    pub digest: String,
}

/// Description of a container that a container client is to make.
#[derive(Debug)]
pub struct Order<'a> {
    /// Specification of the container, as the study gives it.
    pub spec: &'a ContainerSpec,
    /// Name of the container image from which the container is made.
    pub image: &'a str,
    /// Name that the container client gives the container.
    pub name: &'a str,
    /// Value of the container label by which the container is found.
    pub token: &'a str,
    /// Arguments of `tailbound`, which is the first process of the container.
    pub arguments: &'a [&'a str],
}

/// Processor architecture of this host, with the name that OCI uses (`amd64`, `arm64`).
pub fn own_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
