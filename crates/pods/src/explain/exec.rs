//! Explains why a process in a pod does not start, or fails.

use super::{Asked, innermost, refused, told};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use std::io;

/// Makes the error for a process in a pod whose streams could not be opened.
pub(crate) fn exec_refused(error: kube::Error, asked: &Asked<'_>, failed: &str) -> io::Error {
    match &error {
        kube::Error::Api(status) if status.code == 404 => {
            io::Error::new(io::ErrorKind::NotFound, format!("{failed}: the pod does not exist any more"))
        }
        _ => io::Error::other(refused(error, asked, failed).to_string()),
    }
}

/// Makes the error for a process in a pod that has ended; no error if the process succeeded.
pub(crate) fn exec_ended(over: Option<&Status>, what: &str, said: &str) -> io::Result<()> {
    let said = told(said.lines().map(str::trim).rfind(|l| !l.is_empty()));
    let Some(status) = over else {
        let text = format!("{what}: the connection to the API server was lost{said}");
        return Err(io::Error::new(io::ErrorKind::ConnectionReset, text));
    };
    if status.status.as_deref() == Some("Success") {
        return Ok(());
    }
    let causes = status.details.as_ref().and_then(|d| d.causes.as_ref());
    let code = causes.into_iter().flatten().find(|c| c.reason.as_deref() == Some("ExitCode"));
    Err(io::Error::other(match code.and_then(|c| c.message.as_deref()) {
        Some(code) => format!("{what} has ended with exit code {code}{said}"),
        None => format!("{what} cannot be started{}", not_started(status.message.as_deref().unwrap_or_default())),
    }))
}

/// Explains why a process in a pod was not started.
fn not_started(said: &str) -> String {
    match (said.contains("container not found"), said.rfind("dial tcp")) {
        (true, _) => ": the container of the pod has ended".to_owned(),
        (_, Some(dial)) => format!(": the API server does not reach the node of the pod ({})", &said[dial..]),
        _ => told(Some(innermost(said))),
    }
}
