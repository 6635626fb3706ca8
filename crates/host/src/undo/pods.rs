//! Undo: deletes pods and Services by starting this program again, because the code for clusters is not in this crate.

use super::outcome::Undone;
use crate::ask_own_program;
use std::io;
use tailbound_model::PodSpec;

/// Deletes the objects of a Kubernetes cluster that have a label with the value `token`, by the subcommand `word` of
/// `tailbound pod`. It is not an error if no such object exists any more.
pub(super) fn delete(word: &str, cluster: &PodSpec, token: &str) -> io::Result<Undone> {
    let output = ask_own_program(&["pod", word, "--token", token], &serde_json::to_vec(cluster)?)?;
    let text = String::from_utf8_lossy(if output.status.success() { &output.stdout } else { &output.stderr });
    match (output.status.success(), text.trim()) {
        (true, "") => Ok(Undone::AlreadyGone),
        (true, names) => Ok(Undone::Did(format!("deleted {}", names.replace('\n', ", ")))),
        (false, why) => Err(io::Error::other(why.to_owned())),
    }
}
