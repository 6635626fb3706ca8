//! Tests of the container image: its digests are right, two builds give the same bytes, and a real containerd imports
//! and runs it.

use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Entries of a tar archive (path, header, content), in the order of the archive.
fn unpacked(archive: impl Read) -> Vec<(String, tar::Header, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let each = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().display().to_string(), entry.header().clone(), content)
    });
    each.collect()
}

/// Makes a small bundle for a container image: a program of the system and its libraries.
fn small_bundle(bench: &Bench) -> PathBuf {
    let directory = bench.path("b");
    tailbound_bundle::pack(Path::new("/bin/true"), "0.9.1", &[], &directory).unwrap();
    directory
}

#[test]
fn every_descriptor_matches_its_content() {
    let bench = Bench::new();
    let bundle = small_bundle(&bench);
    let name = "registry.example:5000/measuring/tailbound:on-this-day";
    let made = bench.tailbound().args(["image", "--bundle", "b", "--out", "i.tar", "--name", name]).output().unwrap();
    succeeded(&made);

    let files: BTreeMap<String, Vec<u8>> =
        unpacked(fs::File::open(bench.path("i.tar")).unwrap()).into_iter().map(|(p, _, c)| (p, c)).collect();
    let json = |path: &str| serde_json::from_slice::<Value>(&files[path]).unwrap();
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
        let path = format!("blobs/sha256/{digest}");
        let content = &files[&path];
        let found: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!((found, content.len() as u64), (digest, descriptor["size"].as_u64().unwrap()));
        (path, content)
    };
    assert_eq!(json("oci-layout")["imageLayoutVersion"], "1.0.0");
    let index = json("index.json");
    let described = &index["manifests"][0];
    assert_eq!(described["annotations"]["io.containerd.image.name"], name);
    assert_eq!(described["annotations"]["org.opencontainers.image.ref.name"], "on-this-day");
    assert!(String::from_utf8_lossy(&made.stdout).contains(described["digest"].as_str().unwrap()));
    let manifest: Value = serde_json::from_slice(blob(described).1).unwrap();
    let (config_path, config) = blob(&manifest["config"]);
    let (layer_path, layer) = blob(&manifest["layers"][0]);
    let config: Value = serde_json::from_slice(config).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    assert_eq!(config["architecture"], architecture);
    // The file that `docker load` reads names the same blobs.
    let docker = &json("manifest.json")[0];
    assert_eq!((&docker["Config"], &docker["Layers"][0]), (&config_path.into(), &layer_path.into()));
    assert_eq!(docker["RepoTags"][0], name);
    assert_eq!(files.len(), 6);

    // The layer is the bundle, as a root directory on which a runtime can mount.
    let root: BTreeMap<String, (u32, Vec<u8>)> =
        unpacked(&**layer).into_iter().map(|(p, h, c)| (p, (h.mode().unwrap(), c))).collect();
    let bundle = tailbound_bundle::Bundle::verify(&bundle).unwrap();
    for file in &bundle.files {
        assert_eq!(root[&file.path].1, fs::read(bench.path("b").join(&file.path)).unwrap());
    }
    assert_eq!((root["tmp/"].0, root["proc/"].0, root["bin/tailbound"].0), (0o1777, 0o755, 0o755));
    assert!(config["config"]["Entrypoint"][0] == format!("/lib/{}", bundle.loader), "{config}");
    assert_eq!(config["config"]["Labels"]["tailbound.bundle"], bundle.hash.as_str());
}

/// Test: neither times, nor modes, nor owners of the files in the bundle change the container image.
#[test]
fn the_same_bundle_gives_the_same_bytes() {
    let bench = Bench::new();
    let bundle = small_bundle(&bench);
    let image = |name: &str| {
        succeeded(&bench.tailbound().args(["image", "--bundle", "b", "--out", name]).output().unwrap());
        fs::read(bench.path(name)).unwrap()
    };
    let first = image("1.tar");
    for file in ["bin/tailbound", "lib/libc.so.6"] {
        let file = bundle.join(file);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::File::open(&file).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    assert!(first == image("2.tar"), "the images differ");
    // Without --name the image has the release of the bundle as its tag.
    let index = &unpacked(&*first)[1];
    assert!(String::from_utf8_lossy(&index.2).contains("\"localhost/tailbound:0.9.1\""));
    for (path, header, _) in unpacked(&*first) {
        let of = (header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap());
        assert_eq!(of, (0, 0, 0), "{path}");
    }
}

#[test]
fn impossible_images_are_refused_and_leave_nothing() {
    let bench = Bench::new();
    small_bundle(&bench);
    fs::write(bench.path("there"), "mine").unwrap();
    fs::create_dir(bench.path("empty")).unwrap();
    fs::write(bench.path("text.so"), "no driver").unwrap();
    small_bundle_damaged(&bench);
    let mut text = String::new();
    for args in [
        &["--bundle", "b", "--out", "there"][..],
        &["--bundle", "b", "--out", "no/such/place.tar"],
        &["--bundle", "b", "--name", "Tailbound:1"],
        &["--bundle", "b", "--name", "tailbound:"],
        &["--bundle", "b", "--name", "a@sha256:0"],
        &["--bundle", "empty"],
        &["--bundle", "none"],
        &["--bundle", "damaged"],
        &["--bundle", "b", "--driver", "udp"],
        &["--driver", "./text.so"],
        &["--driver", "./none.so"],
    ] {
        let (code, printed) = exit_and_stderr(&bench.tailbound().arg("image").args(args).output().unwrap());
        text += &format!("{}\nexit {code}\n{printed}\n", args.join(" "));
    }
    insta::assert_snapshot!(text.replace(bench.dir.path().to_str().unwrap(), "BENCH"));
    let mut left: Vec<_> = fs::read_dir(bench.dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, ["b", "damaged", "empty", "text.so", "there"]);
    assert_eq!(fs::read_to_string(bench.path("there")).unwrap(), "mine");
}

fn small_bundle_damaged(bench: &Bench) {
    let directory = bench.path("damaged");
    tailbound_bundle::pack(Path::new("/bin/true"), "0.9.1", &[], &directory).unwrap();
    fs::write(directory.join("bin/tailbound"), "another program").unwrap();
}

#[test]
#[cfg_attr(not(feature = "system-tests"), ignore = "mounts a small file system: dev/test --all")]
fn a_full_disk_is_reported_and_left_empty() {
    let bench = Bench::new();
    small_bundle(&bench);
    fs::create_dir(bench.path("small")).unwrap();
    let script = "mount -t tmpfs -o size=1m tmpfs small && { \"$@\"; code=$?; ls -A small; exit $code; }";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_tailbound")])
        .args(["image", "--bundle", "b", "--out", "small/i.tar"])
        .current_dir(bench.dir.path())
        .output()
        .unwrap();
    let message = "error: the file system is full: small/i.tar cannot be written\n  help: free some space, or name a path on another file system with --out\n";
    assert_eq!(exit_and_stderr(&output), (4, message.to_owned()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "what is left there");
}

#[test]
#[cfg_attr(not(feature = "system-tests"), ignore = "runs containers: dev/test --all")]
fn containerd_takes_it_in_and_runs_a_study() {
    let bench = Bench::new();
    succeeded(&bench.tailbound().args(["image", "--out", "i.tar", "--name", "tailbound:test"]).output().unwrap());
    let image = "localhost/tailbound:test";
    let containerd = crate::support::containerd::Containerd::start(bench.dir.path());
    succeeded(&containerd.ctr(&["images", "import", bench.path("i.tar").to_str().unwrap()]));

    let mount = format!("type=bind,src={},dst=/records,options=rbind:rw", bench.dir.path().display());
    let run = |words: &[&str]| {
        let with = ["run", "--rm", "--net-host", "--mount", &mount, "--cap-add", "CAP_IPC_LOCK", image, "measuring"];
        containerd.ctr(&[&with[..], words].concat())
    };
    // The program runs by its name, as `kubectl exec` starts it, and by the entry point.
    let version = run(&["tailbound", "--version"]);
    succeeded(&version);
    let printed = String::from_utf8_lossy(&version.stdout);
    assert_eq!(printed, format!("tailbound {} (built from a checkout)\n", env!("CARGO_PKG_VERSION")));
    bench.study(
        "study: inside\nquestion: does it run\nmeasure: { ping-pong: { slots: 2000 } }\nrate: 1 kHz\npath: loopback\n\
         place: process\nfactors: { driver: [udp, cyclonedds] }\n",
    );
    let entry = entry_point(&bench.path("i.tar"));
    let words: Vec<&str> = entry.iter().map(String::as_str).collect();
    succeeded(&run(&[&words[..], &["run", "/records/study.yaml", "--out", "/records/record", "--quiet"]].concat()));
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{report}");
    for condition in [0, 1] {
        assert_eq!(report["conditions"][condition]["counts"]["answered"], 2000, "{report}");
    }
}

/// Entry point of an image: the words that a runtime puts before the arguments of a container.
fn entry_point(image: &Path) -> Vec<String> {
    let files = unpacked(fs::File::open(image).unwrap());
    let configs = files.iter().filter_map(|(_, _, content)| serde_json::from_slice::<Value>(content).ok());
    let entry = configs.map(|c| c["config"]["Entrypoint"].clone()).find(|e| e.is_array()).unwrap();
    serde_json::from_value(entry).unwrap()
}
