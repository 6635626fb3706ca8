//! Resolves the driver of a trial and the user's configuration file for the vendor's middleware.

use super::Context;
use crate::error::{Fault, advice};
use crate::format::{DriverChoice, EndKeys, Ends, StudyFile};
use crate::read::At;
use crate::source::MAX_TEXT;
use crate::tree::Node;
use sha2::{Digest, Sha256};
use tailbound_model::{ConfigFile, DriverSpec, SECURED};

/// Names of drivers that are not part of the binary; a script `dev/NAME` builds each of these drivers.
pub const APART: [&str; 5] = ["cyclonedds-security", "fastdds", "ros2", "iceoryx2", "zenoh"];
/// Names of drivers that have a separate build with DDS Security.
const WITHOUT_SECURITY: [&str; 1] = ["cyclonedds"];

/// The driver of the ping end, and the driver of the pong end if the study names one.
pub(super) fn drivers<'a>(
    file: &'a StudyFile,
    root: &Node,
) -> Result<(&'a At<DriverChoice>, Option<&'a At<DriverChoice>>), Fault> {
    let own = |end: fn(&Ends) -> Option<&EndKeys>| file.ends.as_ref().and_then(end).and_then(|e| e.driver.as_ref());
    let (ping, pong) = (own(|e| e.ping.as_ref()), own(|e| e.pong.as_ref()));
    match (ping.or(file.driver.as_ref()), pong.or(file.driver.as_ref())) {
        (Some(ping), Some(pong)) => Ok((ping, Some(pong))),
        _ => {
            let help = "write `driver: udp`, or list drivers under `factors`";
            Err(Fault::new(root.at, "`driver` is missing").help(help))
        }
    }
}

/// Resolves a driver. With DDS Security (`secured`), a driver without security is replaced by its build with security.
pub(super) fn driver(choice: &At<DriverChoice>, secured: bool, context: &Context<'_>) -> Result<DriverSpec, Fault> {
    let DriverChoice { name: written, config, options } = &choice.value;
    let name = &match secured && WITHOUT_SECURITY.contains(&written.as_str()) {
        true => format!("{written}{SECURED}"),
        false => written.clone(),
    };
    let known = context.options.known_drivers;
    let tool = tool(choice, context)?;
    let is_file = name.contains('/') || name.ends_with(".so");
    if tool.is_none() && !known.is_empty() && !is_file && !known.contains(&name.as_str()) {
        let help = match APART.contains(&name.as_str()) {
            true if name != written => format!(
                "`security` needs a build of driver `{written}` with DDS Security: `dev/{name}` in the sources of \
                 Tailbound builds it, with the package libssl-dev"
            ),
            true => format!("this driver is a separate file: `dev/{name}` in the sources of Tailbound builds it"),
            false => {
                let all: Vec<&str> = known.iter().copied().chain(context.options.tools.iter().map(|t| t.0)).collect();
                format!("{}. A driver in a file is named by its path", advice(name, &all))
            }
        };
        return Err(Fault::new(choice.at, format!("there is no driver `{name}`")).help(help));
    }
    let config = config.as_ref().map(|path| text_file(path, context)).transpose()?;
    let replaced = (name != written).then(|| written.clone());
    Ok(DriverSpec { name: name.clone(), written: replaced, options: options.clone(), config, tool })
}

/// Reads the tool file, if the study gives as its driver the path of a tool file, or a name that a known tool has and
/// no driver has.
fn tool(choice: &At<DriverChoice>, context: &Context<'_>) -> Result<Option<ConfigFile>, Fault> {
    let name = &choice.value.name;
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        return text_file(&At { at: choice.at, value: name.clone() }, context).map(Some);
    }
    let shipped = context.options.tools.iter().find(|(tool, _)| tool == name);
    let shipped = shipped.filter(|_| !context.options.known_drivers.contains(&name.as_str()));
    Ok(shipped.map(|(tool, text)| ConfigFile {
        path: format!("tools/{tool}.yaml"),
        sha256: hash(text.as_bytes()),
        text: (*text).to_owned(),
    }))
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text_file(path: &At<String>, context: &Context<'_>) -> Result<ConfigFile, Fault> {
    let file = context.dir.join(&path.value);
    let unreadable = |why: String| {
        let help = "the path is relative to the directory of the study file";
        Fault::new(path.at, format!("cannot read `{}`: {why}", path.value)).help(help)
    };
    let metadata = std::fs::metadata(&file).map_err(|e| unreadable(plain(&e)))?;
    if !metadata.is_file() || metadata.len() > MAX_TEXT as u64 {
        return Err(unreadable("the file is not a regular file, or is larger than 1 MiB".into()));
    }
    let bytes = std::fs::read(&file).map_err(|e| unreadable(plain(&e)))?;
    let sha256 = hash(&bytes);
    let text = String::from_utf8(bytes).map_err(|_| unreadable("the file is not text in UTF-8".into()))?;
    Ok(ConfigFile { path: path.value.clone(), sha256, text })
}

/// Text of an operating system error without the error number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
