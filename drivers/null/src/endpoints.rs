//! The end points of a session, by number.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_ENOMEM};

use crate::topic::Connected;

/// Largest number of end points that one session can create.
const MOST_ENDPOINTS: usize = 1024;

/// The end points of a session; finding an end point takes no lock.
pub struct Endpoints {
    list: Box<[OnceLock<Connected>]>,
    created: AtomicU32,
}

impl Endpoints {
    /// Makes the list of end points of a new session, which is empty.
    pub fn new() -> Endpoints {
        Endpoints { list: (0..MOST_ENDPOINTS).map(|_| OnceLock::new()).collect(), created: AtomicU32::new(0) }
    }

    /// Adds the end point that `make` connects, and returns its number. If the list is full, no end point is made.
    pub fn add(&self, make: impl FnOnce() -> Connected) -> Outcome<u32> {
        let id = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(place) = self.list.get(id as usize - 1) else {
            return fail(TB_ENOMEM, format!("a session creates at most {MOST_ENDPOINTS} end points"));
        };
        let _ = place.set(make());
        Ok(id)
    }

    /// Returns an end point that was created; the end point may be destroyed.
    #[inline]
    pub fn existing(&self, id: u32) -> Outcome<&Connected> {
        let place = self.list.get((id as usize).wrapping_sub(1)).and_then(OnceLock::get);
        place.ok_or_else(|| Fail::closed(id))
    }

    /// Returns a reader that was created; the reader may be destroyed.
    #[inline]
    pub fn reader(&self, id: u32) -> Outcome<&Connected> {
        let connected = self.existing(id)?;
        if connected.endpoint.is_writer() {
            return fail(TB_EINVAL, format!("end point {id} is a writer"));
        }
        Ok(connected)
    }

    /// All end points of the session, including destroyed end points.
    pub fn all(&self) -> impl Iterator<Item = &Connected> {
        self.list.iter().filter_map(OnceLock::get)
    }

    /// The end points of the session that are not destroyed.
    pub fn open(&self) -> impl Iterator<Item = &Connected> {
        self.all().filter(|c| !c.endpoint.is_closed())
    }
}
