//! A context of ROS 2 with one node, and the settings of the middleware that exist once per process.

use std::ffi::CString;
use std::fmt::Write;
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use tailbound_abi::TB_EUNSUPPORTED;
use tailbound_abi::side::{Fail, Host, Outcome, fail};

use crate::environment::{VARIABLES, variable};
use crate::guarded::Guarded;
use crate::library::Ros;
use crate::options::Options;
use crate::types::{Allocator, Handle, InContext, RclContext};

/// The RMW whose network can be set: by the variable `CYCLONEDDS_URI`.
const CYCLONE: &str = "rmw_cyclonedds_cpp";
/// Variable with the configuration of Cyclone DDS.
const URI: &str = "CYCLONEDDS_URI";

/// A context with one node. When it is dropped, both are gone.
pub struct Context {
    ros: &'static Ros,
    context: Box<Guarded<RclContext>>,
    node: Box<Guarded<InContext>>,
}

/// The allocator of rcutils.
pub fn allocator(ros: &Ros) -> Allocator {
    // SAFETY: the function has no argument.
    unsafe { (ros.f.rcutils_get_default_allocator)() }
}

/// A text for a function of ROS 2.
pub fn c_string(text: &str) -> Outcome<CString> {
    CString::new(text).map_err(|_| Fail::invalid(format!("{text:?} contains a NUL byte")))
}

impl Context {
    /// Makes a context and its node.
    ///
    /// # Errors
    /// The middleware refuses, or its structures are larger than the driver knows.
    pub fn new(ros: &'static Ros, domain: usize, node: &str) -> Outcome<Context> {
        let f = &ros.f;
        let name = c_string(node)?;
        let mut options = Handle::NONE;
        let zero = RclContext([std::ptr::null_mut(); 2], 0);
        let new = Context { ros, context: Guarded::new(zero), node: Guarded::new(InContext::NONE) };
        let context = new.context.pointer();
        // SAFETY: the structures are zero as rcl wants them before their init functions, and stay at their address.
        unsafe {
            ros.check("rcl_init_options_init", (f.rcl_init_options_init)(&mut options, allocator(ros)))?;
            let done = ros
                .check("rcl_init_options_set_domain_id", (f.rcl_init_options_set_domain_id)(&mut options, domain))
                .and_then(|()| ros.check("rcl_init", (f.rcl_init)(0, null(), &options, context)));
            ros.ignore((f.rcl_init_options_fini)(&mut options));
            done?;
            let options = (f.rcl_node_get_default_options)();
            let made = (f.rcl_node_init)(new.node.pointer(), name.as_ptr(), c"".as_ptr(), context, &options);
            ros.check("rcl_node_init", made)?;
        }
        new.context.verify("rcl_context_t")?;
        new.node.verify("rcl_node_t")?;
        Ok(new)
    }

    /// The node, for functions of rcl.
    pub fn node(&self) -> *mut InContext {
        self.node.pointer()
    }

    /// The context, for functions of rcl.
    pub fn context(&self) -> *mut RclContext {
        self.context.pointer()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let f = &self.ros.f;
        // SAFETY: a node or a context that was not made is zero, which these functions refuse or ignore; what belongs to the
        // node was destroyed before.
        unsafe {
            for result in [
                (f.rcl_node_fini)(self.node.pointer()),
                (f.rcl_shutdown)(self.context.pointer()),
                (f.rcl_context_fini)(self.context.pointer()),
            ] {
                self.ros.ignore(result);
            }
        }
    }
}

/// The network that the sessions of this process have given to Cyclone DDS: `None` before the first session, and `Some(None)` if
/// they give none.
static NETWORK: Mutex<Option<Option<String>>> = Mutex::new(None);

/// The configuration that the driver itself has put into the environment.
pub fn own_configuration() -> Option<String> {
    NETWORK.lock().unwrap_or_else(PoisonError::into_inner).clone().flatten()
}

/// Gives the middleware its network, which is a variable of the process, before its first context is made.
///
/// # Errors
/// The environment or an earlier session of this process contradicts the options, or the RMW has no such setting.
pub fn set_network(ros: &Ros, options: &Options, host: &Host) -> Outcome {
    restricts_discovery(options)?;
    looks_elsewhere(options)?;
    let wanted = configuration(options);
    if ros.rmw != CYCLONE {
        if wanted.is_none() {
            return Ok(());
        }
        // The check of the path shows the interface that is used.
        let text = format!(
            "the driver can set address, peers, multicast and config for {CYCLONE} only, and the middleware is {}; set the \
             variables of this middleware before Tailbound starts",
            ros.rmw
        );
        if options.config.is_some() {
            return fail(TB_EUNSUPPORTED, format!("config: {text}"));
        }
        // SAFETY: the session is being opened.
        unsafe { host.log(1, &c_string(&text)?) };
        return Ok(());
    }
    let mut network = NETWORK.lock().unwrap_or_else(PoisonError::into_inner);
    match (&*network, variable(URI).filter(|_| wanted.is_some())) {
        (Some(before), _) if *before == wanted => return Ok(()),
        (Some(_), _) => {
            return Err(Fail::invalid(format!(
                "{URI} is one setting for the whole process, and another session of this process has another address, other peers \
                 or another configuration; give both ends the same or a process of their own"
            )));
        }
        (None, Some(own)) => {
            return Err(Fail::invalid(format!(
                "{URI} is already set in the environment ({own}), and the study sets the network too; unset the variable, or give \
                 its text to the driver: `driver: {{ rcl: {{ config: ... }} }}`"
            )));
        }
        (None, None) => {}
    }
    if let Some(text) = &wanted {
        crate::environment::set(URI, text)?;
    }
    *network = Some(wanted);
    Ok(())
}

/// Refuses an address of another interface than loopback if the environment restricts ROS 2 to this host.
fn restricts_discovery(options: &Options) -> Outcome {
    let Some(address) = options.address.filter(|address| !address.is_loopback()) else { return Ok(()) };
    let local = |name: &&&str| match **name {
        "ROS_LOCALHOST_ONLY" => variable(name).as_deref() == Some("1"),
        "ROS_AUTOMATIC_DISCOVERY_RANGE" => matches!(variable(name).as_deref(), Some("LOCALHOST" | "OFF")),
        _ => false,
    };
    match VARIABLES.iter().find(local) {
        None => Ok(()),
        Some(name) => Err(Fail::invalid(format!(
            "{name}={} in the environment restricts ROS 2 to this host, and the path of the study has the address {address}; unset \
             the variable",
            variable(name).unwrap_or_default()
        ))),
    }
}

/// Refuses peers of the environment that the study does not name: ROS 2 would look for end points on other hosts.
fn looks_elsewhere(options: &Options) -> Outcome {
    const PEERS: &str = "ROS_STATIC_PEERS";
    let (Some(address), Some(value)) = (options.address, variable(PEERS)) else { return Ok(()) };
    let of_study = |peer: &str| peer == address.to_string() || options.peers.iter().any(|own| own == peer);
    match value.split(';').map(str::trim).find(|peer| !peer.is_empty() && !of_study(peer)) {
        None => Ok(()),
        Some(other) => Err(Fail::invalid(format!(
            "{PEERS}={value} in the environment makes ROS 2 look for {other}, which is no end of the study; unset the variable"
        ))),
    }
}

/// The configuration of Cyclone DDS for these options; `None` if they ask for nothing.
fn configuration(options: &Options) -> Option<String> {
    if let Some(config) = &options.config {
        return Some(config.clone());
    }
    if options.address.is_none() && options.peers.is_empty() && options.multicast.is_none() {
        return None;
    }
    let mut xml = "<CycloneDDS><Domain Id=\"any\"><General>".to_owned();
    if let Some(address) = options.address {
        let _ = write!(xml, "<Interfaces><NetworkInterface address=\"{address}\"/></Interfaces>");
    }
    // Cyclone DDS warns on standard error if the interface has no multicast.
    let multicast = options.multicast.or(options.address.filter(|address| address.is_loopback()).map(|_| false));
    if let Some(multicast) = multicast {
        let _ = write!(xml, "<AllowMulticast>{multicast}</AllowMulticast>");
    }
    xml.push_str("</General>");
    if !options.peers.is_empty() {
        xml.push_str("<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>120</MaxAutoParticipantIndex><Peers>");
        for peer in &options.peers {
            let _ = write!(xml, "<Peer address=\"{}\"/>", peer.replace(['<', '>', '"', '&'], ""));
        }
        xml.push_str("</Peers></Discovery>");
    }
    xml.push_str("</Domain></CycloneDDS>");
    Some(xml)
}
