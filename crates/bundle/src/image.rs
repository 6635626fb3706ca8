//! Makes an image for container runtimes from a bundle: one layer, which contains the bundle as the root directory.
//!
//! The archive is an OCI image layout (image-spec 1.1) with an additional `manifest.json` for older versions of `docker
//! load`. The archive contains neither times nor owners, so the same bundle and name give the same bytes.

mod archive_error;
mod layer;
mod name;

pub use name::{BadName, ImageName};

use crate::contents::Contents;
use crate::error::BundleError;
use crate::manifest::hex;
use crate::partial::partial;
use archive_error::ArchiveError;
use layer::{entry, layer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tar::EntryType;

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// Facts about a container image that was written to a file.
#[derive(Debug)]
pub struct Image {
    /// Digest of the container image's manifest, as registries and container runtimes show it.
    pub digest: String,
    /// Processor architecture of the container image, with the name that container images use.
    pub architecture: String,
    /// Size of the container image's layer in bytes.
    pub bytes: u64,
}

/// A part of a container image (layer, configuration or manifest), identified by the hash of its content.
struct Blob {
    sha256: String,
    bytes: u64,
}

impl Blob {
    fn of(text: &str) -> Blob {
        Blob { sha256: hex(&Sha256::digest(text)), bytes: text.len() as u64 }
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.sha256)
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.sha256)
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest(), "size": self.bytes })
    }
}

/// Writes `contents` as the image `name` to `file`. The file appears only when it is complete.
///
/// # Errors
/// `file` exists, the file system is full, a file cannot be read or written, or a file changed while it was read.
pub fn image(contents: &Contents, name: &ImageName, file: &Path) -> Result<Image, BundleError> {
    if file.symlink_metadata().is_ok() {
        return Err(BundleError::Exists { path: file.to_owned(), what: "file" });
    }
    // The layer is made twice, so that no copy is needed on disk: first for its digest, which precedes the layer in the
    // archive, and then for writing.
    let mut count = Count { hasher: Sha256::new(), bytes: 0 };
    layer(contents, &mut count).map_err(|e| e.at(file))?;
    let root = Blob { sha256: hex(&count.hasher.finalize()), bytes: count.bytes };
    let architecture = architecture(&contents.bundle.machine).to_owned();
    let config = config(contents, &architecture, &root).to_string();
    let config_blob = Blob::of(&config);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
        "config": config_blob.descriptor(CONFIG_TYPE), "layers": [root.descriptor(LAYER_TYPE)],
    })
    .to_string();
    let manifest_blob = Blob::of(&manifest);
    let mut described = manifest_blob.descriptor(MANIFEST_TYPE);
    described["platform"] = json!({ "architecture": architecture, "os": "linux" });
    described["annotations"] =
        json!({ "io.containerd.image.name": name.to_string(), "org.opencontainers.image.ref.name": name.tag() });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [described] });
    let docker = json!([{ "Config": config_blob.path(), "RepoTags": [name.to_string()], "Layers": [root.path()] }]);
    let small = [
        ("oci-layout".to_owned(), json!({ "imageLayoutVersion": "1.0.0" }).to_string()),
        ("index.json".to_owned(), index.to_string()),
        ("manifest.json".to_owned(), docker.to_string()),
        (config_blob.path(), config),
        (manifest_blob.path(), manifest),
    ];

    let partial = partial(file);
    let written = archive(contents, &partial, &small, &root)
        .map_err(|e| e.at(file))
        .and_then(|()| std::fs::rename(&partial, file).map_err(BundleError::file("cannot name", file)));
    if written.is_err() {
        // The first error is the one that is reported.
        let _ = std::fs::remove_file(&partial);
    }
    written.map(|()| Image { digest: manifest_blob.digest(), architecture, bytes: root.bytes })
}

/// A writer that stores nothing: it computes the digest and the length of the written bytes.
struct Count {
    hasher: Sha256,
    bytes: u64,
}

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn archive(contents: &Contents, to: &Path, small: &[(String, String)], root: &Blob) -> Result<(), ArchiveError> {
    let mut archive = tar::Builder::new(BufWriter::new(File::create_new(to)?));
    for (path, text) in small {
        archive.append(&entry(path, EntryType::Regular, 0o644, text.len() as u64)?, text.as_bytes())?;
    }
    let head = entry(&root.path(), EntryType::Regular, 0o644, root.bytes)?;
    archive.get_mut().write_all(head.as_bytes())?;
    // The layer consists of whole blocks, so no padding is needed.
    layer(contents, archive.get_mut())?;
    archive.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

/// Makes the configuration of the image for a container runtime. The entry point names the loader, as always when a
/// bundle is started.
fn config(contents: &Contents, architecture: &str, root: &Blob) -> Value {
    let bundle = &contents.bundle;
    let entry: Vec<String> = bundle.words(Path::new("/")).iter().map(|w| w.display().to_string()).collect();
    json!({
        "architecture": architecture, "os": "linux",
        "config": {
            "Entrypoint": entry,
            // A user without an entry in /etc/passwd has no home directory, but can write to /tmp.
            "Env": ["PATH=/bin", "HOME=/tmp"],
            "WorkingDir": "/tmp",
            "Labels": {
                "org.opencontainers.image.title": "tailbound",
                "org.opencontainers.image.version": bundle.tailbound,
                "tailbound.bundle": bundle.hash,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [root.digest()] },
        "history": [{ "created_by": "tailbound image" }],
    })
}

/// Converts the name of a processor architecture from the form of `uname -m` into the form of images, which comes from
/// Go.
fn architecture(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "loongarch64" => "loong64",
        "powerpc64" => "ppc64le",
        same => same,
    }
}
