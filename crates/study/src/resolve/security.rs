//! Resolves the keys of DDS Security.

use super::plain;
use crate::error::Fault;
use crate::format::SecurityChoice;
use crate::read::At;
use std::path::Path;
use tailbound_model::SecuritySpec;

/// Resolves the keys of DDS Security in a study; returns `None` for `off`. `dir` is the directory of the study file.
pub(crate) fn security(choice: &At<SecurityChoice>, dir: &Path) -> Result<Option<SecuritySpec>, Fault> {
    let SecurityChoice::On(keys) = &choice.value else { return Ok(None) };
    let directory = |files: &At<String>| {
        let path = std::path::absolute(dir.join(&files.value)).unwrap_or_else(|_| dir.join(&files.value));
        let unreadable = |why: String| {
            let help = "name a directory with `ping` and `pong`, relative to the directory of the study file; or leave \
                        `files` out, then Tailbound makes certificates";
            Fault::new(files.at, format!("cannot read `{}`: {why}", files.value)).help(help)
        };
        let metadata = std::fs::metadata(&path).map_err(|e| unreadable(plain(&e)))?;
        if !metadata.is_dir() {
            return Err(unreadable("it is not a directory".into()));
        }
        path.to_str().map(str::to_owned).ok_or_else(|| unreadable("the path is not text in UTF-8".into()))
    };
    let files = keys.files.as_ref().map(directory).transpose()?;
    Ok(Some(SecuritySpec { governance: keys.governance.into(), files }))
}
