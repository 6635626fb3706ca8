//! Domain instances of Cyclone: one for each session, or one for each domain number if sessions request to share it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use serde_json::{Map, Value, json};
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_EIO};

use crate::config::Options;
use crate::error::dds;
use crate::{ffi, log};

/// A Cyclone domain instance that one session uses.
pub struct Domain {
    /// Number of the Cyclone domain instance within this process, for `dds_create_participant` and in log messages.
    pub id: u32,
    /// Whether other sessions may use the same Cyclone domain instance.
    pub shared: bool,
    /// Whether the participants of the Cyclone domain instance have DDS Security.
    pub secured: bool,
    /// The configuration that Cyclone got for its domain instance.
    pub xml: String,
    /// A line `path: value` for each effective setting of Cyclone, and the messages that Cyclone wrote while it created
    /// the domain instance; empty if the user's own configuration writes a trace.
    pub effective: Vec<String>,
    /// Handle that Cyclone gave its domain instance.
    pub entity: ffi::dds_entity_t,
}

impl Domain {
    /// Returns all effective settings of Cyclone as `path: value`, and the messages that Cyclone wrote while it created
    /// the domain instance (interfaces, ports, socket buffers). If the user's own configuration writes a trace, both
    /// results are empty.
    pub fn settings(&self) -> (Map<String, Value>, Vec<String>) {
        let mut config = Map::new();
        let mut notes = Vec::new();
        for line in &self.effective {
            match line
                .strip_prefix("config: Domain")
                .and_then(|l| l.rsplit_once(" {"))
                .and_then(|(l, _)| l.split_once(": "))
            {
                Some((path, value)) => {
                    let path = path.trim_start_matches('/').trim_end_matches("/#text");
                    config.insert(path.to_owned(), json!(value));
                }
                None => notes.push(line.clone()),
            }
        }
        (config, notes)
    }
}

struct Shared {
    entity: ffi::dds_entity_t,
    users: u32,
    xml: String,
    effective: Vec<String>,
}

/// Shared domain instances by domain number. The lock is held while a domain instance is created, because Cyclone calls
/// only one function of the process (the trace sink) with its trace.
static SHARED: Mutex<BTreeMap<u32, Shared>> = Mutex::new(BTreeMap::new());
/// Number of the next unshared domain instance; these numbers are above all domain numbers of DDS.
static NEXT_OWN: AtomicU32 = AtomicU32::new(10_000);

/// Creates a Cyclone domain instance for the options of a session, or joins a shared domain instance.
pub fn acquire(options: &Options) -> Outcome<Domain> {
    let secured = options.security.is_on();
    let mut shared = SHARED.lock().unwrap_or_else(|e| e.into_inner());
    if !options.shared {
        let id = NEXT_OWN.fetch_add(1, Relaxed);
        let xml = options.xml(Some(options.domain));
        let (entity, effective) = create(id, &xml, true)?;
        return Ok(Domain { id, shared: false, secured, xml, effective, entity });
    }
    let id = options.domain;
    let xml = options.xml(None);
    let entry = match shared.entry(id) {
        std::collections::btree_map::Entry::Occupied(found) => {
            let found = found.into_mut();
            if found.xml != xml && secured {
                return Err(Fail::invalid(format!(
                    "domain {id} is in use by another session of this process, and Cyclone DDS can give a process only one \
                     identity of DDS Security for each domain: let the ends be two processes"
                )));
            }
            if found.xml != xml {
                return Err(Fail::invalid(format!(
                    "domain {id} is in use by another session of this process with a different configuration: {}; this session needs: {xml}",
                    found.xml
                )));
            }
            found
        }
        std::collections::btree_map::Entry::Vacant(free) => {
            let (entity, effective) = create(id, &xml, options.is_traced())?;
            free.insert(Shared { entity, users: 0, xml: xml.clone(), effective })
        }
    };
    entry.users += 1;
    Ok(Domain { id, shared: true, secured, xml, effective: entry.effective.clone(), entity: entry.entity })
}

/// Releases a domain instance. When the last session has released the instance, the instance is deleted.
pub fn release(domain: &Domain) {
    let mut shared = SHARED.lock().unwrap_or_else(|e| e.into_inner());
    if domain.shared {
        let Some(entry) = shared.get_mut(&domain.id) else { return };
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        shared.remove(&domain.id);
    }
    // SAFETY: this was the last session that used the domain; Cyclone refuses an invalid handle.
    unsafe { ffi::dds_delete(domain.entity) };
}

fn create(id: u32, xml: &str, trace: bool) -> Outcome<(ffi::dds_entity_t, Vec<String>)> {
    let text = CString::new(xml).map_err(|_| Fail::invalid("config: contains a NUL character"))?;
    // SAFETY: `text` ends with a NUL byte and Cyclone copies it.
    let (entity, said) = log::capture(trace, || unsafe { ffi::dds_create_domain(id, text.as_ptr()) });
    if entity >= 0 {
        let keep = said.into_iter().filter(|m| m.category & ffi::DDS_LC_CONFIG != 0).map(|m| m.text).collect();
        return Ok((entity, keep));
    }
    let complaints = log::complaints(&said);
    if complaints.is_empty() {
        return Err(dds("dds_create_domain", entity));
    }
    let code = if complaints.contains("config:") { TB_EINVAL } else { TB_EIO };
    fail(code, format!("Cyclone DDS: {complaints}"))
}
