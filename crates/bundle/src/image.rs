//! From a bundle to an image that a container runtime takes in: one layer, which is the bundle as the root directory.
//!
//! The archive is an OCI image layout (image-spec 1.1) with the `manifest.json` that older `docker load` wants beside it.
//! Nothing in it tells when or by whom it was made: the same bundle and name give the same octets.

mod layer;
mod name;

pub use name::{BadName, ImageName};

use crate::error::BundleError;
use crate::manifest::hex;
use crate::pack::{Contents, partial};
pub(crate) use layer::plain;
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

/// An image that was written.
#[derive(Debug)]
pub struct Image {
    /// Digest of its manifest, as registries and runtimes show it.
    pub digest: String,
    /// Processor family as images have it.
    pub architecture: String,
    /// Octets of the layer.
    pub octets: u64,
}

/// A part of the image, by its content.
struct Blob {
    sha256: String,
    octets: u64,
}

impl Blob {
    fn of(text: &str) -> Blob {
        Blob { sha256: hex(&Sha256::digest(text)), octets: text.len() as u64 }
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.sha256)
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.sha256)
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest(), "size": self.octets })
    }
}

/// Writes `contents` as the image `name` to `file`, which appears when it is whole.
///
/// # Errors
/// `file` exists; no room; a file that cannot be read or written, or that changed meanwhile.
pub fn image(contents: &Contents, name: &ImageName, file: &Path) -> Result<Image, BundleError> {
    if file.symlink_metadata().is_ok() {
        return Err(BundleError::Exists { path: file.to_owned(), what: "file" });
    }
    // The layer is made once for its digest, which stands in front of it, and once more to be written: no copy on disk.
    let mut count = Count { hasher: Sha256::new(), octets: 0 };
    layer(contents, &mut count).map_err(|e| e.at(file))?;
    let root = Blob { sha256: hex(&count.hasher.finalize()), octets: count.octets };
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
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&partial);
    }
    written.map(|()| Image { digest: manifest_blob.digest(), architecture, octets: root.octets })
}

/// A digest is all that is kept of what is written here.
struct Count {
    hasher: Sha256,
    octets: u64,
}

impl Write for Count {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.hasher.update(octets);
        self.octets += octets.len() as u64;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What went wrong while octets were put into an archive.
#[derive(Debug)]
pub(crate) enum Failed {
    Source(BundleError),
    Archive(io::Error),
}

impl From<io::Error> for Failed {
    fn from(e: io::Error) -> Failed {
        Failed::Archive(e)
    }
}

impl Failed {
    pub(crate) fn at(self, file: &Path) -> BundleError {
        match self {
            Failed::Source(e) => e,
            Failed::Archive(e) if e.kind() == io::ErrorKind::StorageFull => BundleError::NoRoom(file.to_owned()),
            Failed::Archive(e) => BundleError::file("cannot write", file)(e),
        }
    }
}

fn archive(contents: &Contents, to: &Path, small: &[(String, String)], root: &Blob) -> Result<(), Failed> {
    let mut archive = tar::Builder::new(BufWriter::new(File::create_new(to)?));
    for (path, text) in small {
        archive.append(&entry(path, EntryType::Regular, 0o644, text.len() as u64)?, text.as_bytes())?;
    }
    let head = entry(&root.path(), EntryType::Regular, 0o644, root.octets)?;
    archive.get_mut().write_all(head.as_bytes())?;
    // It is a whole number of blocks itself: nothing to fill up behind it.
    layer(contents, archive.get_mut())?;
    archive.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

/// What a runtime does with the image. The loader is named, as everywhere a bundle is started.
fn config(contents: &Contents, architecture: &str, root: &Blob) -> Value {
    let bundle = &contents.bundle;
    let entry: Vec<String> = bundle.words(Path::new("/")).iter().map(|w| w.display().to_string()).collect();
    json!({
        "architecture": architecture, "os": "linux",
        "config": {
            "Entrypoint": entry,
            // A user that no file knows has no home: here it can write.
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

/// Go's word for a processor family, which images use, by that of `uname -m`.
fn architecture(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "loongarch64" => "loong64",
        "powerpc64" => "ppc64le",
        same => same,
    }
}
