//! Cyclone domain instances: one per session, or one per domain number for the sessions that asked to share.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_EIO};

use crate::config::Options;
use crate::error::dds;
use crate::{ffi, log};

/// A domain instance in use by one session.
pub struct Domain {
    /// Number of the instance within this process (for `dds_create_participant` and in log messages).
    pub id: u32,
    /// Whether other sessions may use the same instance.
    pub shared: bool,
    /// The configuration as given to Cyclone.
    pub xml: String,
    /// `path: value` of the configuration that Cyclone arrived at, and what it said on the way; empty with a user's own that
    /// traces by itself.
    pub effective: Vec<String>,
    /// Its handle.
    pub entity: ffi::dds_entity_t,
}

struct Shared {
    entity: ffi::dds_entity_t,
    users: u32,
    xml: String,
    effective: Vec<String>,
}

/// Shared instances by domain number. The lock is held while a domain is made: the trace sink is one per process.
static SHARED: Mutex<BTreeMap<u32, Shared>> = Mutex::new(BTreeMap::new());
/// Instances of one session count from here, away from all domain numbers that DDS knows.
static NEXT_OWN: AtomicU32 = AtomicU32::new(10_000);

/// Makes or joins the domain instance that `options` ask for.
pub fn acquire(options: &Options) -> Outcome<Domain> {
    let mut shared = SHARED.lock().unwrap_or_else(|e| e.into_inner());
    if !options.shared {
        let id = NEXT_OWN.fetch_add(1, Relaxed);
        let xml = options.xml(Some(options.domain));
        let (entity, effective) = create(id, &xml, true)?;
        return Ok(Domain { id, shared: false, xml, effective, entity });
    }
    let id = options.domain;
    let xml = options.xml(None);
    let entry = match shared.entry(id) {
        std::collections::btree_map::Entry::Occupied(found) => {
            let found = found.into_mut();
            if found.xml != xml {
                return Err(Fail::invalid(format!(
                    "domain {id} is in use by another session of this process with a different configuration: {} (asked for: {xml})",
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
    Ok(Domain { id, shared: true, xml, effective: entry.effective.clone(), entity: entry.entity })
}

/// Gives an instance back; the last user of it deletes it.
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
    // SAFETY: this was the last session that used the domain; a stale handle is refused by Cyclone.
    unsafe { ffi::dds_delete(domain.entity) };
}

fn create(id: u32, xml: &str, trace: bool) -> Outcome<(ffi::dds_entity_t, Vec<String>)> {
    let text = CString::new(xml).map_err(|_| Fail::invalid("config: contains a NUL character"))?;
    // SAFETY: `text` is NUL-terminated and Cyclone copies it.
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
