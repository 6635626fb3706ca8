//! The network namespaces of a lab: made with an entry in the journal, found by their purpose ([`Room`]), and removed
//! once no process is in them.

use crate::error::LabError;
use crate::failure::failed;
use crate::netns::{NetNs, processes_in};
use crate::step::{Room, Step};
use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tailbound_host::{EntryId, Journal};
use tailbound_model::Undo;

/// Longest time that processes have to leave a namespace after they were ended.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// The network namespaces that a lab has made or opened, each with its purpose.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    all: Vec<(Room, NetNs)>,
    /// Whole second of CLOCK_TAI to which the gate schedules of the lab refer, ns; not set before the first schedule.
    pub second_ns: OnceLock<i64>,
}

impl Rooms {
    pub fn add(&mut self, room: Room, netns: NetNs) {
        self.all.push((room, netns));
    }

    pub fn get(&self, room: Room) -> io::Result<&NetNs> {
        let found = self.all.iter().find(|(r, _)| *r == room);
        found.map(|(_, netns)| netns).ok_or_else(|| io::Error::other("the namespace was not made"))
    }

    /// Returns all network namespaces of the lab, the namespace that was made last first.
    pub fn take_all(self) -> impl Iterator<Item = (Room, NetNs)> {
        self.all.into_iter().rev()
    }
}

/// Writes the journal entry of a network namespace, and then makes the namespace.
pub(crate) fn make_namespace(
    room: Room,
    run_id: &str,
    journal: &Journal,
    entries: &mut Vec<(Option<Room>, EntryId)>,
) -> Result<NetNs, LabError> {
    let undo = |inode| Undo::UnnamedNetns { inode, what: format!("{} of run {run_id}", room.name()) };
    let entry = journal.before(undo(0))?;
    entries.push((Some(room), entry));
    let netns = NetNs::make().map_err(|error| failed(&Step::Namespace(room), error))?;
    journal.update(entry, undo(netns.inode()))?;
    Ok(netns)
}

/// Waits until no process is in a network namespace any more, at most for one second.
pub(crate) async fn wait_until_left(room: Room, inode: u64) -> Result<(), LabError> {
    let end = Instant::now() + LEAVE_WITHIN;
    loop {
        let holders = processes_in(inode);
        if holders.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            let processes = holders.iter().map(|(pid, name)| format!("{pid} ({name})")).collect::<Vec<_>>().join(", ");
            return Err(LabError::StillHeld { place: room.name().to_owned(), processes });
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
