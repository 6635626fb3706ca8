//! Calls the program `openssl`, which makes and checks certificates and signatures.
//!
//! The program and not the library, because most users never need it, and because a documented program can be checked by
//! hand. Files are passed as anonymous files in memory, so that no private key is ever written to a disk.

use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Output, Stdio};
use tailbound_model::Problem;

/// Days for which certificates of a run are valid.
const DAYS: &str = "3650";
/// Configuration of `openssl req`, so that the configuration of the host has no effect.
const CONFIG: &str = "[req]\ndistinguished_name = name\n[name]\n[authority]\nbasicConstraints = critical, CA:TRUE\n";

/// A certificate and its private key, in PEM.
pub(super) struct Identity {
    pub certificate: String,
    pub key: String,
}

/// A file in memory that `openssl` can read, also more than once.
struct Sheet(File);

impl Sheet {
    fn new(text: &str) -> Result<Sheet, Problem> {
        // The program inherits the file, so that it must stay open over `exec`.
        let made = memfd_create(c"tailbound-security", MFdFlags::empty()).map(File::from).map_err(io::Error::from);
        let mut file = made.map_err(|e| failed(&["a file in memory"], &e.to_string()))?;
        file.write_all(text.as_bytes()).map_err(|e| failed(&["a file in memory"], &e.to_string()))?;
        Ok(Sheet(file))
    }

    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}

/// Makes a certificate authority with this name.
pub(super) fn authority(name: &str) -> Result<Identity, Problem> {
    let key = key()?;
    let (own, config, subject) = (Sheet::new(&key)?, Sheet::new(CONFIG)?, format!("/CN={name}"));
    let certificate = succeeded(&[
        "req",
        "-x509",
        "-new",
        "-key",
        &own.path(),
        "-sha256",
        "-days",
        DAYS,
        "-subj",
        &subject,
        "-config",
        &config.path(),
        "-extensions",
        "authority",
    ])?;
    Ok(Identity { certificate, key })
}

/// Makes an identity whose certificate has the subject `CN=name` and is signed by the authority.
pub(super) fn identity(authority: &Identity, name: &str, serial: usize) -> Result<Identity, Problem> {
    let key = key()?;
    let (own, config, subject) = (Sheet::new(&key)?, Sheet::new(CONFIG)?, format!("/CN={name}"));
    let request = succeeded(&["req", "-new", "-key", &own.path(), "-subj", &subject, "-config", &config.path()])?;
    let request = Sheet::new(&request)?;
    let (signer, signer_key) = (Sheet::new(&authority.certificate)?, Sheet::new(&authority.key)?);
    let certificate = succeeded(&[
        "x509",
        "-req",
        "-in",
        &request.path(),
        "-CA",
        &signer.path(),
        "-CAkey",
        &signer_key.path(),
        "-set_serial",
        &serial.to_string(),
        "-days",
        DAYS,
        "-sha256",
    ])?;
    Ok(Identity { certificate, key })
}

/// Signs a document, as S/MIME with a readable text.
pub(super) fn signed(authority: &Identity, document: &str) -> Result<String, Problem> {
    let (text, signer, key) = (Sheet::new(document)?, Sheet::new(&authority.certificate)?, Sheet::new(&authority.key)?);
    succeeded(&[
        "smime",
        "-sign",
        "-text",
        "-md",
        "sha256",
        "-in",
        &text.path(),
        "-signer",
        &signer.path(),
        "-inkey",
        &key.path(),
    ])
}

/// Public key of a private key; `None` = the text is no private key, or the key has a passphrase.
pub(super) fn public_of_key(key: &str) -> Result<Option<String>, Problem> {
    let key = Sheet::new(key)?;
    text_if_ok(&["pkey", "-in", &key.path(), "-passin", "pass:", "-pubout"])
}

/// Public key of a certificate; `None` = the text is no certificate.
pub(super) fn public_of_certificate(certificate: &str) -> Result<Option<String>, Problem> {
    let certificate = Sheet::new(certificate)?;
    text_if_ok(&["x509", "-in", &certificate.path(), "-noout", "-pubkey"])
}

/// Subject of a certificate in the form of RFC 2253, as permissions documents name it.
pub(super) fn subject(certificate: &str) -> Result<String, Problem> {
    let certificate = Sheet::new(certificate)?;
    let text = succeeded(&["x509", "-in", &certificate.path(), "-noout", "-subject", "-nameopt", "RFC2253"])?;
    Ok(text.trim().trim_start_matches("subject=").trim().to_owned())
}

/// End of the validity of a certificate, in the words of `openssl`.
pub(super) fn end_date(certificate: &str) -> Result<String, Problem> {
    let certificate = Sheet::new(certificate)?;
    let text = succeeded(&["x509", "-in", &certificate.path(), "-noout", "-enddate"])?;
    Ok(text.trim().trim_start_matches("notAfter=").to_owned())
}

/// Reason why a certificate of an authority does not prove a certificate, in the words of `openssl`; `None` = it does.
pub(super) fn refusal(authority: &str, certificate: &str) -> Result<Option<String>, Problem> {
    let (authority, certificate) = (Sheet::new(authority)?, Sheet::new(certificate)?);
    let output =
        called(&["verify", "-no-CApath", "-partial_chain", "-CAfile", &authority.path(), &certificate.path()])?;
    if output.status.success() {
        return Ok(None);
    }
    // A line such as `error 10 at 0 depth lookup: certificate has expired` has the reason.
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find_map(|line| Some(line.split_once(" depth lookup:")?.1.trim().to_owned()));
    Ok(Some(line.unwrap_or_else(|| last_line(&text))))
}

/// Makes a private key: elliptic curve P-256, which all implementations of DDS Security know.
fn key() -> Result<String, Problem> {
    succeeded(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
}

fn called(arguments: &[&str]) -> Result<Output, Problem> {
    let mut command = Command::new("openssl");
    command.args(arguments).env("OPENSSL_CONF", "/dev/null").stdin(Stdio::null());
    command.output().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Problem::new(
            "openssl_missing",
            "the program `openssl`, which makes and checks the certificates and signatures of `security`, is not \
             installed",
            "install it, on Debian and Ubuntu by `apt install openssl`",
        ),
        _ => failed(arguments, &e.to_string()),
    })
}

fn succeeded(arguments: &[&str]) -> Result<String, Problem> {
    let output = called(arguments)?;
    if !output.status.success() {
        return Err(failed(arguments, &last_line(&String::from_utf8_lossy(&output.stderr))));
    }
    String::from_utf8(output.stdout).map_err(|e| failed(arguments, &e.to_string()))
}

fn text_if_ok(arguments: &[&str]) -> Result<Option<String>, Problem> {
    let output = called(arguments)?;
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn last_line(text: &str) -> String {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no reason is known").to_owned()
}

fn failed(arguments: &[&str], why: &str) -> Problem {
    let what = format!("`openssl {}` failed: {why}", arguments.first().copied().unwrap_or_default());
    Problem::new("openssl_failed", what, "check `openssl version`: 1.1.1 or later is needed")
}
