//! A session of the driver `rclcpp`: nodes with their executors, and their end points.

use core::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock, RwLock};

use tailbound_abi::side::{Endpoints, Fail, Host, Outcome, Pair, Wanted, fail};
use tailbound_abi::{TB_EQOS, TB_EUNSUPPORTED, TB_LISTENER, TB_WRITER};

use super::endpoint::{End, Endpoint, Target, drop_target, on_message};
use super::options::Own;
use super::shim::{RawOptions, Shim, shim};
use super::taken::Taken;
use crate::context::{c_string, set_network};
use crate::library::{Ros, ros};
use crate::log::Registration;
use crate::options::Options;
use crate::qos;

/// A node with its context and its executor. They end when this value is dropped.
struct Participant {
    shim: &'static Shim,
    raw: *mut c_void,
}

// SAFETY: functions of the library may be called from any thread.
unsafe impl Send for Participant {}
// SAFETY: see `Send`.
unsafe impl Sync for Participant {}

impl Participant {
    fn new(shim: &'static Shim, (options, own): (&Options, &Own), node: &str) -> Outcome<Participant> {
        let name = c_string(node)?;
        let wanted = RawOptions {
            domain: options.domain as u64,
            node: name.as_ptr(),
            executor: own.executor as i32,
            threads: own.threads,
            callback_groups: own.callback_groups as i32,
            send_by: own.send_by as i32,
            intra_process: own.intra_process.into(),
            loan: own.loan.into(),
            serialized: own.is_serialized().into(),
            reserved: 0,
        };
        // SAFETY: the options live during the call.
        let raw = unsafe { (shim.f.open)(&wanted) };
        if raw.is_null() {
            return Err(shim.error("the node cannot be made"));
        }
        Ok(Participant { shim, raw })
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // SAFETY: the pointer is valid, and its end points are gone.
        unsafe { (self.shim.f.close)(self.raw) };
    }
}

/// One session with one or two nodes.
pub struct Session {
    /// The end points by number.
    pub endpoints: Endpoints<Endpoint>,
    participants: Vec<Participant>,
    /// Times at which the executors took messages, from the first subscription on.
    pub taken: OnceLock<Arc<Taken>>,
    /// The registration for log messages, until the session ends.
    _log: Registration,
    pub options: Options,
    pub own: Own,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    pub ros: &'static Ros,
    pub shim: &'static Shim,
    pub host: Host,
}

impl Session {
    /// Makes the nodes of a session with these options.
    ///
    /// # Errors
    /// An option is wrong, no ROS 2 can be used, or the nodes cannot be made.
    pub fn new(pairs: &[Pair], host: Host) -> Outcome<Session> {
        let mut own = Own::default();
        let options = Options::parse(pairs, |pair| own.set(pair))?;
        own.verify()?;
        let log = Registration::new(host);
        let ros = ros(options.rmw.as_deref())?;
        let shim = shim()?;
        set_network(ros, &options, &host)?;
        let nodes: Vec<String> = (0..options.participants).map(|index| options.node_of(index)).collect();
        let participants = nodes.iter().map(|node| Participant::new(shim, (&options, &own), node));
        Ok(Session {
            endpoints: Endpoints::default(),
            participants: participants.collect::<Outcome<_>>()?,
            taken: OnceLock::new(),
            _log: log,
            options,
            own,
            nodes,
            ros,
            shim,
            host,
        })
    }

    /// Returns an end point that was created; the end point may be destroyed.
    #[inline]
    pub fn endpoint(&self, id: u32) -> Outcome<&Endpoint> {
        self.endpoints.get(id)
    }

    /// The end points of the session that are not destroyed.
    pub fn alive(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.all().filter(|e| !e.closed.load(SeqCst))
    }

    /// Makes an end point with its publisher or subscription.
    pub fn make(&self, id: u32, wanted: &Wanted) -> Outcome<Endpoint> {
        let is_writer = wanted.kind == TB_WRITER;
        if !is_writer && wanted.mode != TB_LISTENER {
            return fail(TB_EUNSUPPORTED, "the driver rclcpp receives in callbacks only: receive mode listener");
        }
        let topic = c_string(&format!("/{}", wanted.topic.trim_start_matches('/')))?;
        let (place, policies): (Vec<Pair>, Vec<Pair>) = wanted.qos.iter().partition(|p| p.key == "participant");
        let last = self.participants.len() - 1;
        let place = place.first().map_or(Ok(0), |pair| pair.number(TB_EQOS, 0..=last))?;
        let mut profile = qos::default_options(self.ros, is_writer)?.profile;
        qos::parse(&policies, is_writer)?.into_profile(&mut profile);
        if self.own.intra_process && !qos::is_for_one_process(&profile) {
            let text = "intra_process=on: rclcpp passes messages inside a process only with history keep-last and durability volatile";
            return fail(TB_EQOS, text);
        }
        let (f, node) = (self.shim.f, self.participants[place].raw);
        let target =
            (!is_writer).then(|| Target::new(self.host, wanted.tag, self.taken.get_or_init(Arc::default).clone()));
        // SAFETY: node, topic and profile are valid during the call. The library owns the pointer to the target, and gives it back to
        // `drop_target`, also if the call fails.
        let raw = unsafe {
            match &target {
                None => (f.writer)(node, topic.as_ptr(), &profile, wanted.max_len),
                Some(target) => {
                    let context = Arc::into_raw(target.clone()).cast_mut().cast();
                    (f.reader)(node, topic.as_ptr(), &profile, on_message, context, drop_target)
                }
            }
        };
        if raw.is_null() {
            let what = if is_writer { "the publisher" } else { "the subscription" };
            let error = self.shim.error(&format!("{what} cannot be made"));
            // Most middlewares lend no memory, which is no fault of this machine.
            return Err(if self.own.loan { Fail { code: TB_EUNSUPPORTED, ..error } } else { error });
        }
        Ok(Endpoint {
            id,
            kind: wanted.kind,
            tag: wanted.tag,
            max_len: wanted.max_len,
            topic,
            closed: AtomicBool::new(false),
            end: RwLock::new(Some(End { shim: self.shim, raw, target })),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.endpoints.all().for_each(Endpoint::remove);
    }
}
