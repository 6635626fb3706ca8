//! Who is there: liveliness tokens of readers and writers, by topic.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tailbound_abi::TB_EIO;
use tailbound_abi::side::{Fail, Host, Outcome};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait};

/// Makes the failure for an error of zenoh; `what` is the failed operation.
pub fn refused(what: &str) -> impl Fn(zenoh::Error) -> Fail + '_ {
    move |e| Fail::new(TB_EIO, format!("{what}: zenoh: {}", text_of(&e)))
}

/// Text of an error of zenoh, without the place in the sources of zenoh at its end.
pub fn text_of(e: &zenoh::Error) -> String {
    let text = e.to_string();
    text.split(" at /").next().unwrap_or(&text).trim_end_matches(['.', ' ']).to_owned()
}

/// Guard of the callbacks of an end point: they run only while it is open.
pub struct Gate(RwLock<bool>);

impl Gate {
    pub fn new() -> Arc<Gate> {
        Arc::new(Gate(RwLock::new(true)))
    }

    /// Runs a callback, if the end point is open.
    #[inline]
    pub fn pass(&self, f: impl FnOnce()) {
        let open = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if *open {
            f();
        }
    }

    /// Closes the gate; no callback runs when this function returns.
    pub fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// The present peers of an end point.
#[derive(Default)]
pub struct Peers {
    names: Mutex<BTreeSet<String>>,
    changed: Condvar,
}

impl Peers {
    fn change(&self, name: &str, is_there: bool) -> usize {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match is_there {
            true => names.insert(name.to_owned()),
            false => names.remove(name),
        };
        self.changed.notify_all();
        names.len()
    }

    pub fn names(&self) -> BTreeSet<String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn number(&self) -> usize {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits until the number of peers changes or is at least `wanted`, at most for `limit`. Returns the number.
    pub fn wait(&self, wanted: usize, limit: Duration) -> usize {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= wanted {
            return names.len();
        }
        self.changed.wait_timeout(names, limit).unwrap_or_else(PoisonError::into_inner).0.len()
    }
}

/// The token of an end point, and the subscription to the tokens of its peers.
pub struct Presence {
    _token: LivelinessToken,
    _others: Subscriber<()>,
}

/// Announces an end point of a topic, and learns of its peers. `own` and `other` are the kinds `writer` and `reader`; `prefix` is the
/// part of the key in front of them.
pub fn announce(
    session: &Session,
    (prefix, own, other): (&str, &str, &str),
    name: &str,
    peers: &Arc<Peers>,
    (gate, host, tag): (&Arc<Gate>, Host, u64),
) -> Outcome<Presence> {
    let (peers, gate) = (peers.clone(), gate.clone());
    let seen = move |sample: zenoh::sample::Sample| {
        gate.pass(|| {
            let name = sample.key_expr().as_str().rsplit('/').next().unwrap_or_default();
            let now = peers.change(name, sample.kind() == SampleKind::Put);
            // SAFETY: the gate is closed before the session is closed.
            unsafe { host.on_match(tag, now as i32) };
        });
    };
    let alive = session.liveliness();
    let others = alive.declare_subscriber(format!("{prefix}/{other}/*")).history(true).callback(seen).wait();
    let others = others.map_err(refused("cannot learn of other end points"))?;
    let token = alive.declare_token(format!("{prefix}/{own}/{name}")).wait();
    let token = token.map_err(refused("cannot announce the end point"))?;
    Ok(Presence { _token: token, _others: others })
}
