//! The end points of a session, by number, with the options of the session.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_ENOMEM, TB_LISTENER};

use crate::endpoint::Common;
use crate::options::Options;
use crate::reader::Reader;
use crate::writer::Writer;

/// Largest number of end points that one session can create.
const MOST_ENDPOINTS: usize = 1024;

/// An end point of the driver: a reader or a writer.
pub enum Endpoint {
    Reader(Arc<Reader>),
    Writer(Arc<Writer>),
}

impl Endpoint {
    pub fn common(&self) -> &Common {
        match self {
            Endpoint::Reader(r) => &r.common,
            Endpoint::Writer(w) => &w.common,
        }
    }

    /// Destroys the end point; returns `false` if another call has already destroyed it.
    pub fn destroy(&self) -> bool {
        match self {
            Endpoint::Reader(r) => r.destroy(),
            Endpoint::Writer(w) => w.destroy(),
        }
    }
}

/// The end points and the options of a session; the discovery thread of the session uses them too.
pub struct Endpoints {
    pub options: Options,
    list: Box<[OnceLock<Box<Endpoint>>]>,
    /// The readers of `list` from which the loading program takes samples, at the same places, so that each of its calls
    /// finds the reader with few instructions; null for every other end point.
    polled: Box<[AtomicPtr<Reader>]>,
    created: AtomicU32,
}

impl Endpoints {
    /// Makes the list of end points of a new session, which is empty.
    pub fn new(options: Options) -> Endpoints {
        let list = (0..MOST_ENDPOINTS).map(|_| OnceLock::new()).collect();
        let polled = (0..MOST_ENDPOINTS).map(|_| AtomicPtr::new(null_mut())).collect();
        Endpoints { options, list, polled, created: AtomicU32::new(0) }
    }

    /// Adds an end point and returns its number. If the list is full, the end point is destroyed.
    pub fn add(&self, endpoint: Endpoint) -> Outcome<u32> {
        let id = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(place) = self.list.get(id as usize - 1) else {
            endpoint.destroy();
            return fail(TB_ENOMEM, format!("a session creates at most {MOST_ENDPOINTS} end points"));
        };
        let polled = match &endpoint {
            Endpoint::Reader(reader) if reader.mode != TB_LISTENER => Arc::as_ptr(reader).cast_mut(),
            _ => null_mut(),
        };
        // Each number is given once, so the place is free.
        let _ = place.set(Box::new(endpoint));
        self.polled[id as usize - 1].store(polled, Ordering::Release);
        Ok(id)
    }

    /// Returns a reader from which the loading program takes samples, also if it has been destroyed since; `None` if the
    /// number belongs to another end point or to none.
    #[inline]
    pub fn polled(&self, id: u32) -> Option<&Reader> {
        let reader = self.polled.get((id as usize).wrapping_sub(1))?.load(Ordering::Acquire);
        // SAFETY: null, or a reader that `list` keeps as long as `self` exists.
        unsafe { reader.as_ref() }
    }

    /// Returns an end point that was created, also if it has been destroyed since.
    #[inline]
    pub fn existing(&self, id: u32) -> Outcome<&Endpoint> {
        let place = self.list.get((id as usize).wrapping_sub(1)).and_then(OnceLock::get);
        place.map(|e| &**e).ok_or_else(|| Fail::closed(id))
    }

    /// The end points of the session that are not destroyed.
    pub fn open(&self) -> impl Iterator<Item = &Endpoint> {
        self.list.iter().map_while(OnceLock::get).map(|e| &**e).filter(|e| !e.common().is_closed())
    }

    /// Destroys all end points of the session.
    pub fn destroy_all(&self) {
        for endpoint in self.list.iter().filter_map(OnceLock::get) {
            endpoint.destroy();
        }
    }
}
