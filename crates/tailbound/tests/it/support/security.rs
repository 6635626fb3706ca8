//! Files of DDS Security for tests, and the build of the driver `cyclonedds-security`.

use super::Bench;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// File of the driver `cyclonedds-security`, built in the directory in which the binary under test looks for drivers.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_BIN_EXE_tailbound")).ancestors().nth(2).expect("a target directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/cyclonedds-security");
        let output = Command::new(script).env("CARGO_TARGET_DIR", target).output().expect("dev/cyclonedds-security");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target.join("lib/tailbound/drivers/libtailbound_driver_cyclonedds-security.so")
    })
}

/// A certificate authority of a user, in a directory.
pub struct Authority {
    directory: PathBuf,
}

fn openssl(arguments: &[&str], directory: &Path) {
    let output = Command::new("openssl").args(arguments).current_dir(directory).output().expect("openssl");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn key(directory: &Path, name: &str) {
    let curve = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", name];
    openssl(&curve, directory);
}

impl Authority {
    pub fn new(directory: PathBuf) -> Authority {
        fs::create_dir_all(&directory).unwrap();
        key(&directory, "ca.key.pem");
        let own = ["req", "-x509", "-new", "-key", "ca.key.pem", "-days", "30", "-subj", "/CN=authority", "-out"];
        openssl(&[&own[..], &["ca.cert.pem"]].concat(), &directory);
        Authority { directory }
    }

    /// Writes an identity as `ros2 security create_enclave` names its files. With negative `days`, it has expired.
    pub fn identity(&self, place: &Path, subject: &str, days: i32) {
        fs::create_dir_all(place).unwrap();
        key(place, "key.pem");
        openssl(&["req", "-new", "-key", "key.pem", "-subj", subject, "-out", "request.pem"], place);
        let (authority, authority_key) = (self.file("ca.cert.pem"), self.file("ca.key.pem"));
        let days = days.to_string();
        let sign = ["x509", "-req", "-in", "request.pem", "-CA", &authority, "-CAkey", &authority_key, "-set_serial"];
        openssl(&[&sign[..], &["7", "-days", &days, "-out", "cert.pem"]].concat(), place);
        fs::copy(self.directory.join("ca.cert.pem"), place.join("identity_ca.cert.pem")).unwrap();
    }

    /// Writes a certificate of TLS for an address, and its key: `cert.pem` and `key.pem`.
    pub fn server(&self, place: &Path, address: &str) {
        key(place, "key.pem");
        openssl(&["req", "-new", "-key", "key.pem", "-subj", "/CN=server", "-out", "request.pem"], place);
        fs::write(place.join("extensions"), format!("subjectAltName=IP:{address}\n")).unwrap();
        let (authority, authority_key) = (self.file("ca.cert.pem"), self.file("ca.key.pem"));
        let sign = ["x509", "-req", "-in", "request.pem", "-CA", &authority, "-CAkey", &authority_key, "-set_serial"];
        openssl(&[&sign[..], &["8", "-extfile", "extensions", "-out", "cert.pem"]].concat(), place);
    }

    /// Signs a document into the file `name` of the directory of the authority, and returns its path.
    pub fn signed(&self, name: &str, text: &str) -> String {
        fs::write(self.directory.join("document.xml"), text).unwrap();
        let sign = ["smime", "-sign", "-text", "-in", "document.xml", "-signer", "ca.cert.pem", "-inkey", "ca.key.pem"];
        openssl(&[&sign[..], &["-out", name]].concat(), &self.directory);
        self.file(name)
    }

    /// Path of a file of the authority.
    pub fn file(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }
}

/// Checks that the record of this bench is valid, that every message of every trial was answered, and that both ends reported the
/// protection that the study asks for.
pub fn all_secured(bench: &Bench, governance: &str) {
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    for condition in report["conditions"].as_array().unwrap() {
        let counts = &condition["counts"];
        assert!(counts["answered"].as_i64() > Some(0) && counts["lost"] == 0, "{condition} {}", report["findings"]);
    }
    for trial in bench.manifest()["trials"].as_array().unwrap() {
        let security = &trial["path"]["security"];
        assert_eq!(security["governance"], governance, "{trial}");
        for end in ["ping", "pong"] {
            assert!(security["in_force"][end].is_string(), "{trial}");
        }
    }
}

/// Checks that no file of a run below these directories, of its record or state, contains a private key.
pub fn keeps_keys_to_itself(directories: &[&Path]) {
    let (mut open, mut files) = (directories.iter().map(|path| path.to_path_buf()).collect::<Vec<_>>(), 0);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
                continue;
            }
            files += 1;
            let bytes = fs::read(entry.path()).unwrap();
            assert!(!bytes.windows(11).any(|part| part == b"PRIVATE KEY"), "{}", entry.path().display());
        }
    }
    assert!(files > 3, "{files} files");
}
