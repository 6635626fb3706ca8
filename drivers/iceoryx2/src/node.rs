//! The node of a session, and what nodes of dead processes have left behind.

use std::time::Duration;

use iceoryx2::node::{NodeCleanupFailure, NodeCreationFailure, NodeListFailure, NodeView};
use iceoryx2::prelude::*;
use tailbound_abi::TB_EIO;
use tailbound_abi::side::{Fail, Outcome};

use crate::options::Options;

/// The kind of service of iceoryx2: between processes, and with ports that several threads may use.
pub type Ipc = ipc_threadsafe::Service;

/// Longest time that another process may take to remove what a dead process has left.
const REMOVAL: Duration = Duration::from_secs(5);

/// Settings of iceoryx2 for a session: its own defaults, and no configuration file of the machine.
pub fn config(options: &Options) -> Outcome<Config> {
    let mut config = Config::default();
    config.global.prefix = FileName::new(options.prefix().as_bytes())
        .map_err(|e| Fail::new(TB_EIO, format!("the prefix {} is refused: {e:?}", options.prefix())))?;
    // Each user has a directory: iceoryx2 gives nobody else access, and its own directory belongs to the first user.
    let root = root();
    let path = iceoryx2::prelude::Path::new(root.as_bytes());
    config
        .global
        .set_root_path(&path.map_err(|e| Fail::new(TB_EIO, format!("the directory {root} is refused: {e:?}")))?);
    // The driver removes what is stale itself, so that it can report and refuse.
    config.global.node.cleanup_dead_nodes_on_creation = false;
    config.global.node.cleanup_dead_nodes_on_destruction = false;
    config.global.service.cleanup_dead_nodes_on_open = false;
    Ok(config)
}

/// Directory of the files of this user.
fn root() -> String {
    // SAFETY: the call takes nothing and cannot fail.
    format!("/tmp/tailbound-iceoryx2-{}", unsafe { libc::geteuid() })
}

/// Creates the node of a session.
pub fn create(config: &Config) -> Outcome<Node<Ipc>> {
    // The measuring program handles its signals itself.
    let builder = NodeBuilder::new().config(config).signal_handling_mode(SignalHandlingMode::Disabled);
    builder.create::<Ipc>().map_err(|e| {
        let root = config.global.root_path();
        let advice = match e {
            NodeCreationFailure::InsufficientPermissions => {
                format!(
                    "; another user owns {root}, or files in it: remove the directory when no run of Tailbound uses it"
                )
            }
            _ => format!("; iceoryx2 keeps its files in {root} and in /dev/shm"),
        };
        Fail::new(TB_EIO, format!("the node cannot be created: {e:?}{advice}"))
    })
}

/// Removes the counter of nodes that iceoryx2 keeps for a domain (16 bytes), if no node is left. Identities of nodes also contain
/// the time and the process, so that a counter that begins anew repeats none.
pub fn remove_counter(config: &Config) {
    let mut left = 0;
    let listed = Node::<Ipc>::list(config, |_| {
        left += 1;
        CallbackProgression::Stop
    });
    if listed.is_err() || left > 0 {
        return;
    }
    let prefix = config.global.prefix.to_string();
    for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) && name.ends_with(".global_mgmt") {
            // Another process may have removed it, or another user may own it.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// The nodes of processes, as their files show them.
#[derive(Default)]
pub struct Seen {
    /// Number of nodes whose processes run.
    pub alive: usize,
    /// Number of nodes of dead processes whose files were removed now.
    pub removed: usize,
}

/// Counts the nodes of the session's domain, and removes the files of those whose processes are dead.
///
/// # Errors
/// The files of a dead process cannot be removed.
pub fn remove_stale(config: &Config) -> Outcome<Seen> {
    let (mut seen, mut refused) = (Seen::default(), None);
    let listed = Node::<Ipc>::list(config, |state| {
        match state {
            NodeState::Alive(_) => seen.alive += 1,
            NodeState::Dead(dead) => {
                let process = dead.details().as_ref().map(|d| (d.process_id().value(), d.executable().to_string()));
                match dead.blocking_remove_stale_resources(REMOVAL) {
                    Ok(()) => seen.removed += 1,
                    Err(NodeCleanupFailure::ResourcesAlreadyCleanedUp) => {}
                    Err(e) => refused = Some((e, process)),
                }
            }
            // Nodes of another user, or nodes that are made or removed just now.
            NodeState::Inaccessible(_) | NodeState::Undefined(_) => {}
        }
        CallbackProgression::Continue
    });
    match (listed, refused) {
        (_, Some((e, process))) => Err(not_removed(config, e, process)),
        (Ok(()), None) => Ok(seen),
        (Err(NodeListFailure::InsufficientPermissions), None) => {
            let root = config.global.root_path();
            let text = format!(
                "{root} cannot be read, because another user owns it: remove it when no run of Tailbound uses it"
            );
            Err(Fail::new(TB_EIO, text))
        }
        (Err(e), None) => Err(Fail::new(TB_EIO, format!("the nodes of this host cannot be listed: {e:?}"))),
    }
}

fn not_removed(config: &Config, e: NodeCleanupFailure, process: Option<(i32, String)>) -> Fail {
    let who = process.map_or_else(|| "a process".to_owned(), |(pid, name)| format!("process {pid} ({name})"));
    let (prefix, root) = (config.global.prefix, config.global.root_path());
    let what = match e {
        NodeCleanupFailure::InsufficientPermissions => {
            "run once as the user of that process, or choose another `domain`"
        }
        NodeCleanupFailure::VersionMismatch => {
            "that process had another version of iceoryx2: remove the files, or choose another `domain`"
        }
        _ => "when no other program with iceoryx2 runs, remove the files, or choose another `domain`",
    };
    let files = format!("/dev/shm/{prefix}* and {root}");
    Fail::new(
        TB_EIO,
        format!("{who} has ended and left files of iceoryx2 behind, which cannot be removed ({e:?}): {what} ({files})"),
    )
}
