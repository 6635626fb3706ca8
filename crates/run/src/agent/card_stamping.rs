//! Lets the network cards of a trial's ends stamp the frames that they send, and restores afterwards what the cards stamped before.
//!
//! Each change is in a journal of this host before it is made, so that `tailbound lab cleanup` restores it if the agent is killed. A card
//! that already stamps what is needed is not touched.

use crate::host_problems::undo_failures;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use tailbound_host::Journal;
use tailbound_host::interface::Ethtool;
use tailbound_model::{CardStamping, NetnsId, Problem, Undo};

/// The network cards that were set to stamp frames; they are restored if this value is dropped.
#[derive(Debug, Default)]
pub(super) struct StampingCards {
    journal: Option<Journal>,
}

impl StampingCards {
    /// Lets the card of this interface of the agent's network namespace stamp sent frames. `owner` identifies the agent among the agents
    /// of all runs.
    ///
    /// # Errors
    /// The driver of the card refuses, or the journal cannot be written.
    pub fn add(&mut self, interface: &str, owner: &str) -> Result<(), Problem> {
        let refused = |before: Option<CardStamping>| move |reason: io::Error| refusal(interface, before, &reason);
        let tool = Ethtool::open(interface).map_err(|why| refusal(interface, None, &io::Error::other(why)))?;
        // Without this, what a killed run has left would be taken for a configuration of the user.
        let _ = tailbound_host::journal::cleanup(&mut |_| ());
        let before = tool.stamping().map_err(refused(None))?;
        if before.stamps_sent() {
            return Ok(());
        }
        let set = CardStamping { sent: 1, ..before };
        let ifindex = nix::net::if_::if_nametoindex(interface).map_err(|e| refused(Some(before))(e.into()))?;
        let inode = fs::metadata("/proc/self/ns/net").map_err(refused(Some(before)))?.ino();
        let netns = NetnsId { inode, path: String::new() };
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => none.insert(Journal::create(owner)?),
        };
        let undo = |set| {
            let (interface, netns) = (interface.to_owned(), netns.clone());
            Undo::RestoreStamping { interface, ifindex, netns, before, set }
        };
        let entry = journal.before(undo(set))?;
        if let Err(reason) = tool.set_stamping(set) {
            journal.done(entry)?;
            return Err(refusal(interface, Some(before), &reason));
        }
        let found = tool.stamping().map_err(refused(Some(before)))?;
        // A driver may let the card stamp more than it was asked for.
        journal.update(entry, undo(found))?;
        if !found.stamps_sent() {
            let reason = io::Error::other(format!("it accepted `{set}`, and reports `{found}`"));
            return Err(refusal(interface, Some(before), &reason));
        }
        Ok(())
    }
}

impl Drop for StampingCards {
    fn drop(&mut self) {
        let Some(journal) = self.journal.take() else { return };
        let undone = journal.undo_all(&mut |done| tracing::info!(done, "network cards stamp what they stamped before"));
        if let Err(error) = undone.and_then(|()| journal.finish()) {
            let reasons = undo_failures(&error).join("; ");
            tracing::warn!(reasons, "a network card could not be restored; `tailbound lab cleanup` tries again");
        }
    }
}

/// The problem that the card of an interface cannot be set to stamp sent frames. `before`: what it stamps now, as far as it is known.
fn refusal(interface: &str, before: Option<CardStamping>, reason: &io::Error) -> Problem {
    let now = before.map_or_else(String::new, |before| format!(", which stamps `{before}`,"));
    let what =
        format!("the network card of {interface}{now} cannot be set to stamp sent frames (SIOCSHWTSTAMP): {reason}");
    let remedy = match reason.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("run as root (CAP_NET_ADMIN), or set it before the run: `hwstamp_ctl -i {interface} -t 1`")
        }
        _ => format!(
            "`ethtool -T {interface}` shows what the card can stamp; `timestamps: stages` needs no stamps of a card"
        ),
    };
    Problem::new("card_stamping", what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_words_of_the_driver() {
        let before = CardStamping { sent: 0, received: 12 };
        let of = |errno| refusal("eth1", Some(before), &io::Error::from_raw_os_error(errno)).to_string();
        insta::assert_snapshot!([of(libc::ERANGE), of(libc::EPERM)].join("\n"));
        let unknown = StampingCards::default().add("lo", "card-test").unwrap_err();
        assert!(unknown.what.contains("(SIOCSHWTSTAMP)") && unknown.what.contains("lo"), "{unknown}");
    }
}
