//! Pods deleted: by this program in a process of its own, which knows how clusters are spoken with.

use super::Undone;
use crate::ask_own_program;
use std::io;
use tailbound_model::PodSpec;

/// Deletes what has the token as a label, by the word for what it is; there may be nothing any more.
pub(super) fn delete(word: &str, cluster: &PodSpec, token: &str) -> io::Result<Undone> {
    let output = ask_own_program(&["pod", word, "--token", token], &serde_json::to_vec(cluster)?)?;
    let said = String::from_utf8_lossy(if output.status.success() { &output.stdout } else { &output.stderr });
    match (output.status.success(), said.trim()) {
        (true, "") => Ok(Undone::AlreadyGone),
        (true, names) => Ok(Undone::Did(format!("deleted {}", names.replace('\n', ", ")))),
        (false, why) => Err(io::Error::other(why.to_owned())),
    }
}
