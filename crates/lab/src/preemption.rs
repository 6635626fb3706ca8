//! Frame preemption at interfaces of the user (IEEE 802.1Qbu, 802.3br), for gates with preemptible classes.
//!
//! Input: the ends of a lab whose gates have preemptible classes. Output: a problem, or the MAC merge layer of each of their interfaces
//! switched on, with an entry of the journal that has what was set before. Never run on a network card that has frame preemption.

use crate::error::{LabError, lack};
use crate::netns::{NetNs, run_in};
use crate::qdisc;
use crate::user_interface::UserInterface;
use crate::wanted::merge_command;
use std::io;
use std::time::{Duration, Instant};
use tailbound_host::interface::preemption::{self, MergeState};
use tailbound_host::{EntryId, Journal};
use tailbound_model::{MergeLayer, Problem, Undo};

/// Longest time until the neighbour of an interface has shown that it can receive fragments: it is asked three times, each time for
/// at most 128 ms (IEEE 802.3br, 99.4.3).
const VERIFIED_WITHIN: Duration = Duration::from_secs(1);

/// A problem if the interface (index, name) of an end cannot preempt frames. Changes nothing at the interface.
pub(crate) fn problem(netns: &NetNs, (index, name): (u32, &str), end: &str) -> Option<Problem> {
    match run_in(netns, move || preemption::read(index)).and_then(|task| task.join()?) {
        Ok(Some(_)) => None,
        Ok(None) => Some(lack_of(name, end)),
        Err(error) => Some(lack(
            format!("the frame preemption of {name} ({end}) cannot be read: {error}"),
            "run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN)",
        )),
    }
}

fn lack_of(name: &str, end: &str) -> Problem {
    lack(
        format!(
            "{name} ({end}) has no frame preemption (MAC merge layer, IEEE 802.3br): its driver does not have it, or the kernel is older \
             than 6.3"
        ),
        format!(
            "remove `preemptible`, or name the interface of a network card that has it (`ethtool --show-mm {name}`)"
        ),
    )
}

/// Switches frame preemption on at all these interfaces. They receive fragments before one of them asks its neighbour whether it does.
/// Each change is in the journal before it is made; `entries` gets its entry.
///
/// # Errors
/// The kernel or a driver refuses; the caller undoes the entries.
pub(crate) async fn switch_on(
    all: &[&UserInterface<'_>],
    journal: &Journal,
    entries: &mut Vec<EntryId>,
) -> Result<(), LabError> {
    let mut before = Vec::new();
    for one in all {
        let (ifindex, state) = read(one).await?;
        let undo = Undo::RestorePreemption {
            interface: one.name.to_owned(),
            ifindex,
            netns: one.id.clone(),
            before: state.layer,
            set: MergeLayer::ALL,
        };
        entries.push(journal.before(undo)?);
        before.push(state.layer);
    }
    for (one, before) in all.iter().zip(before) {
        set(one, MergeLayer { receives: true, ..before }).await?;
    }
    for one in all {
        set(one, MergeLayer::ALL).await?;
    }
    Ok(())
}

/// Waits until all these interfaces send preemptible frames in fragments, and compares their settings with the request.
///
/// # Errors
/// A neighbour has not shown that it can receive fragments, or another program changed the settings.
pub(crate) async fn wait_until_active(all: &[&UserInterface<'_>]) -> Result<(), LabError> {
    let end = Instant::now() + VERIFIED_WITHIN;
    for one in all {
        loop {
            let (_, state) = read(one).await?;
            match fault(&state, Instant::now() > end) {
                None if state.is_active => break,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
                Some(reason) => return Err(refusal(one, MergeLayer::ALL, io::Error::other(reason))),
            }
        }
    }
    Ok(())
}

/// What is wrong with the state of an interface whose frame preemption was switched on; `is_late`: its neighbour had time enough.
fn fault(state: &MergeState, is_late: bool) -> Option<String> {
    if state.layer != MergeLayer::ALL {
        return Some(format!("the interface has the settings `{}` when they are read back", state.layer));
    }
    let late = "its neighbour has not shown within a second that it can receive fragments (verification)";
    (is_late && !state.is_active).then(|| late.to_owned())
}

/// Index and state of an interface.
async fn read(at: &UserInterface<'_>) -> Result<(u32, MergeState), LabError> {
    let job = |index| Ok((index, preemption::read(index)?));
    let failed = |error| LabError::read(format!("reading the frame preemption of {}", at.name), at.end, error);
    let (index, state) = qdisc::at(at.netns, at.name, job).await.map_err(failed)?;
    Ok((index, state.ok_or_else(|| LabError::Lacks(vec![lack_of(at.name, at.end)]))?))
}

async fn set(at: &UserInterface<'_>, layer: MergeLayer) -> Result<(), LabError> {
    let set = qdisc::at(at.netns, at.name, move |index| preemption::set(index, layer)).await;
    set.map_err(|reason| refusal(at, layer, reason))
}

fn refusal(at: &UserInterface<'_>, layer: MergeLayer, reason: io::Error) -> LabError {
    let remedy = format!(
        "everything was undone; switch frame preemption on at the other side of the cable too (`ethtool --set-mm NEIGHBOUR pmac-enabled \
         on`), look at what the card reports (`ethtool --show-mm {}`), or remove `preemptible`",
        at.name
    );
    LabError::Step { step: format!("{}: {}", at.end, merge_command(at.name, layer)), reason, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::NetnsId;

    fn state(layer: MergeLayer, is_active: bool) -> MergeState {
        MergeState { layer, is_active, sent_bytes: Some(60), received_bytes: Some(60) }
    }

    #[test]
    fn a_neighbour_without_preemption_and_changed_settings_are_faults() {
        let all = MergeLayer::ALL;
        assert_eq!(
            [(true, true), (false, false)].map(|(is_active, late)| fault(&state(all, is_active), late)),
            [None, None]
        );
        let netns = NetNs::own().unwrap();
        let id = NetnsId { inode: netns.inode(), path: String::new() };
        let eth0 = UserInterface { end: "ping", netns: &netns, name: "eth0", id };
        let faults = [state(all, false), state(MergeLayer { sends: false, ..all }, false)];
        let texts = faults.map(|state| {
            let reason = fault(&state, true).unwrap();
            refusal(&eth0, all, io::Error::other(reason)).to_string()
        });
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[tokio::test]
    async fn an_interface_without_preemption_is_named_and_nothing_is_written_to_the_journal() {
        let netns = NetNs::own().unwrap();
        insta::assert_snapshot!(problem(&netns, (1, "lo"), "ping").unwrap().paragraph());
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::create_in(dir.path(), "preemption").unwrap();
        let id = NetnsId { inode: netns.inode(), path: String::new() };
        let lo = UserInterface { end: "ping", netns: &netns, name: "lo", id };
        let mut entries = Vec::new();
        let error = switch_on(&[&lo], &journal, &mut entries).await.unwrap_err();
        assert!(error.to_string().contains("lo (ping) has no frame preemption"), "{error}");
        assert!(entries.is_empty());
        journal.finish().unwrap();
    }
}
