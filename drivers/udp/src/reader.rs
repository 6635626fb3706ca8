//! One reader: its port, its places and, as a listener, its thread.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tailbound_abi::side::{Host, Outcome, Wanted, fail};
use tailbound_abi::{TB_EINVAL, TB_EIO, TB_LISTENER};

use crate::endpoint::{Common, lock};
use crate::error::os;
use crate::net::{self, Address};
use crate::options::{DEFAULT_RCVBUF_BYTES, Options};
use crate::receive::{Places, Received};
use crate::wire::{Control, MOST_CANDIDATES, candidate_port, group, topic_key};

/// How long `recvmsg` blocks before it looks whether it was woken: half of what the ABI allows.
pub const SLICE_MS: i64 = 50;

pub struct Reader {
    pub common: Common,
    pub mode: i32,
    pub timestamps: bool,
    pub places: Mutex<Places>,
    pub received: AtomicU64,
    /// Datagrams that were too short or too long.
    pub odd: AtomicU64,
    /// `wake` calls that a wait of this reader has reported.
    pub wakes_seen: AtomicU64,
    /// The host receives here now, and answers questions by doing so.
    pub in_use: AtomicBool,
    /// Thread id of the receive thread; 0 = none.
    pub thread_id: AtomicI32,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The writers that asked, to be told of the end.
    writers: Mutex<Vec<(u64, Address)>>,
}

impl Reader {
    pub fn new(options: &Options, wanted: &Wanted, host: Host, wakes: u64) -> Outcome<Arc<Reader>> {
        let key = topic_key(options.domain, wanted.topic);
        let socket = bind(options, wanted.topic, key)?;
        let fd = socket.as_raw_fd();
        prepare(fd, options)?;
        let slice = libc::timeval { tv_sec: 0, tv_usec: SLICE_MS * 1000 };
        net::set(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &slice).or_else(|e| os("SO_RCVTIMEO", &e))?;
        if options.timestamps {
            net::set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
                .or_else(|e| os("timestamps: SO_TIMESTAMPNS", &e))?;
        }
        let reader = Arc::new(Reader {
            common: Common::new(wanted, key, host, socket.into_raw_fd()),
            mode: wanted.mode,
            timestamps: options.timestamps,
            places: Mutex::new(Places::new(wanted.max_len)),
            received: AtomicU64::new(0),
            odd: AtomicU64::new(0),
            wakes_seen: AtomicU64::new(wakes),
            in_use: AtomicBool::new(false),
            thread_id: AtomicI32::new(0),
            thread: Mutex::new(None),
            writers: Mutex::default(),
        });
        if wanted.mode == TB_LISTENER {
            let own = reader.clone();
            match std::thread::Builder::new().name("tb-udp-rx".to_owned()).spawn(move || own.listen()) {
                Ok(thread) => *lock(&reader.thread) = Some(thread),
                Err(e) => {
                    reader.destroy();
                    return os("cannot start the receive thread", &e);
                }
            }
        }
        Ok(reader)
    }

    /// Answers a writer that asks for this topic.
    #[cold]
    pub fn answer(&self, control: Control, from: &Address) {
        if let Control::Hello { topic, writer } = control
            && topic == self.common.topic_key
        {
            let ack = Control::Ack { topic, reader: self.common.identity }.encode();
            // Lost answers are asked for again.
            let _ = net::send(self.common.fd(), &ack, &[], Some(from));
            let mut writers = lock(&self.writers);
            writers.retain(|(known, _)| *known != writer);
            writers.push((writer, *from));
            self.common.heard(writer);
        }
    }

    /// Takes in what is there without blocking, so that questions behind samples are answered too.
    pub fn pump(&self) {
        // Whoever holds the places is receiving, and answers.
        if let Ok(mut places) = self.places.try_lock() {
            while matches!(places.receive(self, libc::MSG_DONTWAIT), Received::Sample | Received::Other) {}
        }
    }

    fn listen(&self) {
        // SAFETY: no arguments.
        self.thread_id.store(unsafe { libc::gettid() }, Ordering::SeqCst);
        let mut places = lock(&self.places);
        while let Some(_inside) = self.common.enter() {
            match places.receive(self, 0) {
                Received::Sample => {
                    if let Some(view) = places.next() {
                        // SAFETY: the session joins this thread before it closes; the view lives until it is given back.
                        unsafe { self.common.host.on_sample(self.common.tag, &view) };
                        places.give_back(&view);
                    }
                }
                // A closed or failing socket must not make a loop that eats a CPU.
                Received::Failed(_) | Received::Full => std::thread::sleep(std::time::Duration::from_millis(1)),
                Received::Other | Received::Nothing => {}
            }
        }
    }

    /// `false` when somebody else destroyed it.
    pub fn destroy(&self) -> bool {
        let bye = Control::Bye { topic: self.common.topic_key, reader: self.common.identity }.encode();
        // Before the socket is shut down. A writer that misses it finds out when it is refused.
        if let Some(_inside) = self.common.enter() {
            for (_, writer) in lock(&self.writers).drain(..) {
                let _ = net::send(self.common.fd(), &bye, &[], Some(&writer));
            }
        }
        if !self.common.close() {
            return false;
        }
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
        self.thread_id.store(0, Ordering::SeqCst);
        *lock(&self.places) = Places::none();
        self.common.drop_socket();
        true
    }
}

/// Binds the first candidate port that is free.
fn bind(options: &Options, topic: &str, key: u64) -> Outcome<OwnedFd> {
    let socket = net::socket(options.address).or_else(|e| os("socket", &e))?;
    if options.multicast {
        return bind_group(options, socket, key);
    }
    for i in 0..MOST_CANDIDATES {
        let at = options.at(options.address, candidate_port(key, i));
        match net::bind(&socket, at) {
            Ok(()) => return Ok(socket),
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            Err(e) => return os(format!("cannot bind {at}"), &e),
        }
    }
    let (first, last) = (candidate_port(key, 0), candidate_port(key, MOST_CANDIDATES - 1));
    let on = options.address;
    fail(TB_EIO, format!("ports {first} to {last} on {on}, those of topic {topic}, are all in use; try another domain"))
}

/// All readers of a topic share its group and port.
fn bind_group(options: &Options, socket: OwnedFd, key: u64) -> Outcome<OwnedFd> {
    let (fd, at) = (socket.as_raw_fd(), group(key));
    let (IpAddr::V4(to), IpAddr::V4(on)) = (at.ip(), options.address) else { return Ok(socket) };
    net::set_int(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).or_else(|e| os("SO_REUSEADDR", &e))?;
    net::bind(&socket, at).or_else(|e| os(format!("cannot bind {at}"), &e))?;
    net::join(fd, to, on).or_else(|e| os(format!("data=multicast: cannot join {to} on {on}"), &e))?;
    Ok(socket)
}

/// Options that readers and writers have in common.
pub fn prepare(fd: i32, options: &Options) -> Outcome {
    if let Some(name) = &options.interface {
        net::set_device(fd, name)
            .or_else(|e| os(format!("interface: cannot bind to `{name}` (SO_BINDTODEVICE)"), &e))?;
    }
    let sizes = [("rcvbuf", libc::SO_RCVBUF, options.rcvbuf_bytes), ("sndbuf", libc::SO_SNDBUF, options.sndbuf_bytes)];
    for (key, name, size) in sizes {
        if let Some(size) = size {
            net::set_int(fd, libc::SOL_SOCKET, name, size).or_else(|e| os(key, &e))?;
            // The kernel doubles what it grants (socket(7)), and grants less than asked without a word.
            let given = net::get_int(fd, libc::SOL_SOCKET, name).unwrap_or(0) / 2;
            if given < size {
                let limit = if key == "rcvbuf" { "rmem_max" } else { "wmem_max" };
                return fail(
                    TB_EINVAL,
                    format!("{key}: asked were {size} B, the kernel gives {given} B; raise net.core.{limit}"),
                );
            }
        }
    }
    if options.rcvbuf_bytes.is_none() {
        net::set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, DEFAULT_RCVBUF_BYTES).or_else(|e| os("rcvbuf", &e))?;
    }
    if let (true, IpAddr::V4(on)) = (options.multicast, options.address) {
        net::send_groups_by(fd, on).or_else(|e| os(format!("data=multicast: cannot send by {on}"), &e))?;
        let ttl = options.ttl.unwrap_or(1);
        net::set_int(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, ttl).or_else(|e| os("ttl", &e))?;
    }
    if let Some(ttl) = options.ttl.filter(|ttl| *ttl > 0) {
        let (level, name) = match options.address.is_ipv4() {
            true => (libc::IPPROTO_IP, libc::IP_TTL),
            false => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
        };
        net::set_int(fd, level, name, ttl).or_else(|e| os("ttl", &e))?;
    }
    if let Some(priority) = options.priority {
        net::set_int(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, priority).or_else(|e| {
            let text = "priority: above 6 takes CAP_NET_ADMIN, or root (SO_PRIORITY)";
            os(if priority > 6 { text } else { "priority" }, &e)
        })?;
    }
    Ok(())
}
