//! A topic and its end points: writers read the list of the topic's readers without a lock.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

use crate::endpoint::Endpoint;
use crate::lock::lock;

/// An end point of a session, with its topic.
#[derive(Clone)]
pub struct Connected {
    pub endpoint: Arc<Endpoint>,
    pub topic: Arc<Topic>,
}

/// The readers of a topic, as writers see them; a published list is never changed.
type Readers = Vec<Arc<Endpoint>>;

/// One topic in one domain of the `null` driver.
pub struct Topic {
    pub name: String,
    /// The published list of the topic's readers, which writers read without a lock.
    readers: AtomicPtr<Readers>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    list: Vec<Arc<Endpoint>>,
    /// Earlier lists of the topic's readers that a writer might still read.
    retired: Vec<*mut Readers>,
}

// SAFETY: the topic owns the retired lists and accesses them only under its lock.
unsafe impl Send for Members {}

impl Topic {
    /// Makes a topic without end points.
    pub fn new(name: &str) -> Topic {
        Topic {
            name: name.to_owned(),
            readers: AtomicPtr::new(Box::into_raw(Box::default())),
            members: Mutex::default(),
        }
    }

    /// Returns the readers of the topic. While the caller uses the readers, it must be inside a call on a writer of
    /// this topic that is not closed.
    #[inline]
    pub fn readers(&self) -> &Readers {
        // SAFETY: the pointer is never null, and `free_retired` frees a list only if no writer is inside a call.
        unsafe { &*self.readers.load(Ordering::Acquire) }
    }

    /// Adds an end point to the topic.
    pub fn join(&self, endpoint: &Arc<Endpoint>) {
        let mut members = lock(&self.members);
        members.list.push(endpoint.clone());
        self.publish(&mut members);
    }

    /// Removes a closed end point from the topic; returns `true` if no end point remains.
    pub fn leave(&self, endpoint: &Arc<Endpoint>) -> bool {
        let mut members = lock(&self.members);
        members.list.retain(|e| !Arc::ptr_eq(e, endpoint));
        self.publish(&mut members);
        members.list.is_empty()
    }

    fn publish(&self, members: &mut Members) {
        let readers: Readers = members.list.iter().filter(|e| !e.is_writer()).cloned().collect();
        let old = self.readers.swap(Box::into_raw(Box::new(readers)), Ordering::SeqCst);
        members.retired.push(old);
        // A writer that is outside a call after the swap cannot hold an old list. If a writer is busy for long (a chain
        // of callbacks), the lists are freed at the next change.
        let quiet = |w: &Arc<Endpoint>| (0..1000).any(|_| !w.is_used());
        if members.list.iter().filter(|e| e.is_writer()).all(quiet) {
            for list in members.retired.drain(..) {
                // SAFETY: `Box::into_raw` made the list, it was replaced above, and no writer reads it (see the
                // comment).
                drop(unsafe { Box::from_raw(list) });
            }
        }
    }

    /// Number of matched peers of an end point of this topic.
    pub fn peers(&self, endpoint: &Endpoint) -> usize {
        lock(&self.members).list.iter().filter(|e| e.kind != endpoint.kind).count()
    }

    /// Reports the numbers of matched peers to all end points of the topic.
    pub fn report(&self) {
        let list = lock(&self.members).list.clone();
        for endpoint in &list {
            let peers = list.iter().filter(|e| e.kind != endpoint.kind).count();
            endpoint.report_match(i32::try_from(peers).unwrap_or(i32::MAX));
        }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let members = self.members.get_mut().unwrap_or_else(|e| e.into_inner());
        members.retired.push(*self.readers.get_mut());
        for list in members.retired.drain(..) {
            // SAFETY: the topic is dropped with its last end point, so no writer reads the lists.
            drop(unsafe { Box::from_raw(list) });
        }
    }
}
