//! Lets the network cards of a trial's ends stamp the frames that they send and receive, and restores afterwards what the cards stamped before.
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
    /// Lets the card of this interface of the agent's network namespace stamp sent frames and all received frames. If it cannot stamp all
    /// received frames, it stamps those that it stamped before. `owner` identifies the agent among the agents of all runs.
    ///
    /// # Errors
    /// The driver of the card refuses, or the journal cannot be written. Sent frames may be stamped nevertheless.
    pub fn add(&mut self, interface: &str, owner: &str) -> Result<(), Problem> {
        let tool = Ethtool::open(interface).map_err(|why| refusal(interface, None, SENT, &io::Error::other(why)))?;
        // Without this, what a killed run has left would be taken for a configuration of the user.
        let _ = tailbound_host::journal::cleanup(&mut |_| ());
        let before = tool.stamping().map_err(|reason| refusal(interface, None, SENT, &reason))?;
        let card = Card { tool, interface, owner, before };
        let all = before.with_all_frames();
        let Err(reason) = self.set(&card, all)? else { return Ok(()) };
        // Many cards can stamp no received frames but messages of PTP.
        let sent = CardStamping { received: before.received, ..all };
        self.set(&card, sent)?.map_err(|reason| refusal(interface, Some(before), SENT, &reason))?;
        Err(refusal(interface, Some(sent), RECEIVED, &reason))
    }

    /// Sets which frames a card stamps, and reads it back. The inner error is the answer of the driver.
    fn set(&mut self, card: &Card, wanted: CardStamping) -> Result<io::Result<()>, Problem> {
        let Card { tool, interface, before, .. } = card;
        if *before == wanted {
            return Ok(Ok(()));
        }
        let undo = match card.undo() {
            Ok(undo) => undo,
            Err(reason) => return Ok(Err(reason)),
        };
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => none.insert(Journal::create(card.owner)?),
        };
        let entry = journal.before(undo(wanted))?;
        if let Err(reason) = tool.set_stamping(wanted) {
            journal.done(entry)?;
            return Ok(Err(reason));
        }
        let found = match tool.stamping() {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        // A driver may let the card stamp more than it was asked for.
        journal.update(entry, undo(found))?;
        let is_set = found.stamps_sent() && (wanted.received == before.received || found.received == wanted.received);
        tracing::info!(interface, %before, %wanted, %found, "set which frames a network card stamps");
        Ok(if is_set {
            Ok(())
        } else {
            Err(io::Error::other(format!("it accepted `{wanted}`, and reports `{found}`")))
        })
    }
}

/// A network card that is to stamp frames.
struct Card<'a> {
    tool: Ethtool,
    interface: &'a str,
    owner: &'a str,
    /// What it stamped before.
    before: CardStamping,
}

impl Card<'_> {
    /// Makes the undo of a setting of the card.
    fn undo(&self) -> io::Result<impl Fn(CardStamping) -> Undo> {
        let ifindex = nix::net::if_::if_nametoindex(self.interface)?;
        let netns = NetnsId { inode: fs::metadata("/proc/self/ns/net")?.ino(), path: String::new() };
        let (interface, before) = (self.interface.to_owned(), self.before);
        Ok(move |set| {
            let (interface, netns) = (interface.clone(), netns.clone());
            Undo::RestoreStamping { interface, ifindex, netns, before, set }
        })
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

/// Frames that a card is to stamp: code of the problem if it cannot, words for the frames, and what remains.
type Frames = (&'static str, &'static str, &'static str);
const SENT: Frames = ("card_stamping", "sent frames", "`timestamps: stages` needs no stamps of a card");
const RECEIVED: Frames = (
    "card_receive_stamping",
    "all received frames",
    "messages whose frames the card does not stamp have no hardware receive stamp, so that `wire` and `receive path` are one part",
);

/// The problem that the card of an interface cannot be set to stamp frames. `before`: what it stamps now, as far as it is known.
fn refusal(interface: &str, before: Option<CardStamping>, (code, frames, rest): Frames, reason: &io::Error) -> Problem {
    let now = before.map_or_else(String::new, |before| format!(", which stamps `{before}`,"));
    let what =
        format!("the network card of {interface}{now} cannot be set to stamp {frames} (SIOCSHWTSTAMP): {reason}");
    let remedy = match reason.kind() {
        io::ErrorKind::PermissionDenied => {
            let filter = if code == RECEIVED.0 { " -r 1" } else { "" };
            format!("run as root (CAP_NET_ADMIN), or set it before the run: `hwstamp_ctl -i {interface} -t 1{filter}`")
        }
        _ => format!("`ethtool -T {interface}` shows what the card can stamp; {rest}"),
    };
    Problem::new(code, what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_words_of_the_driver() {
        let before = CardStamping { sent: 0, received: 12 };
        let of =
            |frames, errno| refusal("eth1", Some(before), frames, &io::Error::from_raw_os_error(errno)).to_string();
        let texts = [SENT, RECEIVED].map(|frames| [libc::ERANGE, libc::EPERM].map(|errno| of(frames, errno)));
        insta::assert_snapshot!(texts.as_flattened().join("\n"));
        let unknown = StampingCards::default().add("lo", "card-test").unwrap_err();
        assert!(unknown.what.contains("(SIOCSHWTSTAMP)") && unknown.what.contains("lo"), "{unknown}");
    }
}
