//! Pods deleted: by this program in a process of its own, which knows how clusters are spoken with.

use super::Undone;
use crate::own_program;
use std::io::{self, Write};
use std::process::Stdio;
use tailbound_model::PodSpec;

/// Deletes what has the token as a label; there may be nothing any more.
pub(super) fn delete(cluster: &PodSpec, token: &str) -> io::Result<Undone> {
    let mut command = own_program()?;
    command.args(["pod", "delete", "--token", token]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&serde_json::to_vec(cluster)?)?;
    }
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(if output.status.success() { &output.stdout } else { &output.stderr });
    match (output.status.success(), said.trim()) {
        (true, "") => Ok(Undone::AlreadyGone),
        (true, names) => Ok(Undone::Did(format!("deleted {}", names.replace('\n', ", ")))),
        (false, why) => Err(io::Error::other(why.to_owned())),
    }
}
