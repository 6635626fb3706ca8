//! The identities of a user: reads and checks them before anything is measured.
//!
//! Drivers report a wrong certificate only as a participant that is never matched, so that each file is checked here,
//! where the reason and the name of the file are known.

use super::openssl;
use std::path::{Path, PathBuf};
use tailbound_model::Problem;

/// What a user can do about files that are wrong.
const REMEDY: &str = "replace the file; or leave `security.files` out, then Tailbound makes certificates for the run";

/// The identity of one side, as text in PEM.
pub(super) struct UserIdentity {
    pub authority: String,
    pub certificate: String,
    pub key: String,
    pub subject: String,
    place: PathBuf,
}

/// Reads and checks the identities of both sides: first `ping`, then `pong`.
///
/// # Errors
/// A file cannot be read, is not what its name says, is not valid now, or does not belong to the others.
pub(super) fn read(directory: &Path) -> Result<[UserIdentity; 2], Problem> {
    let [ping, pong] = ["ping", "pong"].map(|side| side_of(directory, side));
    let (ping, pong) = (ping?, pong?);
    proven(&ping, &pong)?;
    proven(&pong, &ping)?;
    Ok([ping, pong])
}

/// Names of the files of an identity: authority, certificate and key, as `ros2 security create_enclave` names them.
const NAMES: [&str; 3] = ["identity_ca.cert.pem", "cert.pem", "key.pem"];

fn side_of(directory: &Path, side: &str) -> Result<UserIdentity, Problem> {
    let place = directory.join(side);
    let file = |name: &str| {
        let path = place.join(name);
        let text = |e: std::io::Error| e.to_string().split(" (os error").next().unwrap_or_default().to_lowercase();
        std::fs::read_to_string(&path).map_err(|e| wrong(&path, format!("cannot be read: {}", text(e))))
    };
    let [authority, certificate, key] = NAMES.map(file);
    let (authority, certificate, key) = (authority?, certificate?, key?);
    let [authority_path, certificate_path, key_path] = NAMES.map(|name| place.join(name));
    let of_key = openssl::public_of_key(&key)?
        .ok_or_else(|| wrong(&key_path, "is not a private key in PEM without a passphrase".into()))?;
    openssl::public_of_certificate(&authority)?.ok_or_else(|| not_a_certificate(&authority_path))?;
    let public = openssl::public_of_certificate(&certificate)?.ok_or_else(|| not_a_certificate(&certificate_path))?;
    if of_key != public {
        return Err(wrong(&key_path, format!("is not the private key of {}", certificate_path.display())));
    }
    let subject = openssl::subject(&certificate)?;
    let identity = UserIdentity { authority, certificate, key, subject, place };
    proven(&identity, &identity)?;
    Ok(identity)
}

/// Checks that the authority of one side proves the certificate of the other side.
fn proven(by: &UserIdentity, identity: &UserIdentity) -> Result<(), Problem> {
    let Some(why) = openssl::refusal(&by.authority, &identity.certificate)? else { return Ok(()) };
    let path = identity.place.join(NAMES[1]);
    Err(match why.contains("expired") {
        true => wrong(
            &path,
            format!(
                "has expired, or its authority has: it was valid until {}",
                openssl::end_date(&identity.certificate)?
            ),
        ),
        false => wrong(&path, format!("is not proved by the authority {}: {why}", by.place.join(NAMES[0]).display())),
    })
}

fn not_a_certificate(path: &Path) -> Problem {
    wrong(path, "is not a certificate in PEM".into())
}

fn wrong(path: &Path, what: String) -> Problem {
    Problem::new("security_files", format!("{} {what}", path.display()), REMEDY).at("security.files")
}
