//! Common parts of readers and writers of the driver: identity, lifetime, matching.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tailbound_abi::side::{Host, Wanted};

use crate::net;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Time in ns: if a matched reader has received no discovery question of a writer for this time, the discovery thread
/// no longer receives for the reader.
pub const LINGER_NS: i64 = 100_000_000;

/// The members that a reader and a writer of the `udp` driver have in common.
pub struct Common {
    pub topic: String,
    pub topic_key: u64,
    pub identity: u64,
    pub tag: u64,
    pub max_len: u64,
    pub host: Host,
    pub socket: AtomicI32,
    closed: AtomicBool,
    inside: AtomicU32,
    matching: Mutex<Vec<u64>>,
    matched: AtomicU32,
    changed: Condvar,
    /// Time of the last discovery question or answer that was received from a peer, in ns of `CLOCK_MONOTONIC`.
    pub heard_ns: AtomicI64,
    /// Number of `wait_matched` calls of the end point that run now.
    pub waiting: AtomicU32,
    /// Whether a `wait_matched` call on this end point has found the requested number of peers.
    pub settled: AtomicBool,
}

/// Proof that an end point was open when a call began. `close` waits until all such proofs are dropped.
///
/// The hot calls do not need this proof: they check `closed` under the lock that `destroy` takes before it closes the
/// socket.
pub struct Inside<'a>(&'a Common);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Release);
    }
}

impl Common {
    pub fn new(wanted: &Wanted, topic_key: u64, host: Host, socket: RawFd) -> Common {
        Common {
            topic: wanted.topic.to_owned(),
            topic_key,
            identity: net::random(),
            tag: wanted.tag,
            max_len: wanted.max_len,
            host,
            socket: AtomicI32::new(socket),
            closed: AtomicBool::new(false),
            inside: AtomicU32::new(0),
            matching: Mutex::default(),
            matched: AtomicU32::new(0),
            changed: Condvar::new(),
            heard_ns: AtomicI64::new(net::monotonic_ns()),
            waiting: AtomicU32::new(0),
            settled: AtomicBool::new(false),
        }
    }

    /// Begins a call on the end point; `None` if the end point is destroyed.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_>> {
        // SeqCst pairs with `close`: either this load sees `closed`, or `close` sees the count.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(self);
        (!self.closed.load(Ordering::SeqCst)).then_some(inside)
    }

    #[inline]
    pub fn fd(&self) -> RawFd {
        self.socket.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Marks the end point as closed, ends calls that block on it and waits for all calls; returns `false` if the end
    /// point was closed before.
    pub fn close(&self) -> bool {
        if self.closed.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.changed.notify_all();
        net::shutdown(self.fd());
        while self.inside.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        true
    }

    /// Closes the socket of the end point. This function may be called only after [`Common::close`], and after taking
    /// the lock under which the socket was used.
    pub fn drop_socket(&self) {
        let fd = self.socket.swap(-1, Ordering::SeqCst);
        if fd >= 0 {
            // SAFETY: the descriptor belongs to this end point, and `close` has checked that no call uses it.
            unsafe { libc::close(fd) };
        }
    }

    /// Records a peer from which a datagram was received; a new peer is reported to the loading program.
    pub fn heard(&self, peer: u64) {
        self.heard_ns.store(net::monotonic_ns(), Ordering::Relaxed);
        let mut peers = lock(&self.matching);
        if peers.contains(&peer) {
            return;
        }
        peers.push(peer);
        let now = peers.len() as u32;
        self.matched.store(now, Ordering::SeqCst);
        self.changed.notify_all();
        drop(peers);
        // SAFETY: only threads and calls of the session run this, and all of them end before it closes.
        unsafe { self.host.on_match(self.tag, i32::try_from(now).unwrap_or(i32::MAX)) };
    }

    /// Removes a peer; the loss of a known peer is reported to the loading program.
    pub fn lost(&self, peer: u64) {
        let mut peers = lock(&self.matching);
        let before = peers.len();
        peers.retain(|known| *known != peer);
        let now = peers.len() as u32;
        if peers.len() == before {
            return;
        }
        self.matched.store(now, Ordering::SeqCst);
        drop(peers);
        // SAFETY: only threads and calls of the session run this, and all of them end before it closes.
        unsafe { self.host.on_match(self.tag, i32::try_from(now).unwrap_or(i32::MAX)) };
    }

    pub fn matched(&self) -> u32 {
        self.matched.load(Ordering::SeqCst)
    }

    /// Waits until the end point has `peers` peers, while another thread asks for peers.
    pub fn wait_matched(&self, peers: u32, remaining: impl Fn() -> Option<Duration>) -> bool {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let matched = self.wait_peers(peers, remaining);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        matched
    }

    fn wait_peers(&self, peers: u32, remaining: impl Fn() -> Option<Duration>) -> bool {
        let mut list = lock(&self.matching);
        while self.matched() < peers && !self.is_closed() {
            list = match remaining() {
                Some(Duration::ZERO) => return false,
                Some(left) => self.changed.wait_timeout(list, left).unwrap_or_else(|e| e.into_inner()).0,
                None => self.changed.wait(list).unwrap_or_else(|e| e.into_inner()),
            };
        }
        self.matched() >= peers
    }
}
