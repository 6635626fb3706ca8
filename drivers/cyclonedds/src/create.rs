//! Creates the Cyclone entities of an end point: topic, writer or reader, listener, and the entities for blocking.

use core::ffi::c_void;
use std::ffi::CString;

use tailbound_abi as abi;
use tailbound_abi::side::{Fail, Outcome};

use crate::endpoint::{Endpoint, Entities};
use crate::error::check;
use crate::naming::Naming;
use crate::qos::Policies;
use crate::wait::new_set;
use crate::{ffi, listener, sample};

/// The Cyclone entities in which an end point is created.
#[derive(Clone, Copy)]
pub struct Home {
    /// Cyclone's handle of the participant in which the end point is created.
    pub participant: ffi::dds_entity_t,
    /// Owner of the session's waitsets: a waitset accepts only entities below its owner.
    pub owner: ffi::dds_entity_t,
}

/// Creates the topic, then the writer or reader, then the entities for blocking. If one of these steps fails, no
/// entity remains.
pub fn make(
    endpoint: &Endpoint,
    home: Home,
    naming: Naming,
    policies: &Policies,
    guards: [ffi::dds_entity_t; 2],
) -> Outcome {
    let name =
        CString::new(endpoint.topic.as_str()).map_err(|_| Fail::invalid("the topic name contains a NUL character"))?;
    let descriptor = sample::descriptor(naming);
    // SAFETY: name and descriptor live until the call returns, which copies them.
    let topic = check("dds_create_topic", unsafe {
        ffi::dds_create_topic(home.participant, &descriptor, name.as_ptr(), core::ptr::null(), core::ptr::null())
    })?;
    make_on(endpoint, topic, home, policies, guards).inspect_err(|_| {
        // SAFETY: there is no writer or reader on the topic.
        unsafe { ffi::dds_delete(topic) };
    })
}

fn make_on(
    endpoint: &Endpoint,
    topic: ffi::dds_entity_t,
    home: Home,
    policies: &Policies,
    guards: [ffi::dds_entity_t; 2],
) -> Outcome {
    let writer = endpoint.kind == abi::TB_WRITER;
    let arg: *const Endpoint = endpoint;
    let qos = policies.native(writer);
    // SAFETY: `arg` stays valid until the session has deleted all entities. The calls copy qos and listener, which
    // are freed afterwards. The sertype lives as long as its entity and is referenced before use.
    unsafe {
        let listener = listener::new(writer, endpoint.mode, arg.cast_mut().cast::<c_void>());
        let entity = if writer {
            check("dds_create_writer", ffi::dds_create_writer(home.participant, topic, qos, listener))
        } else {
            check("dds_create_reader", ffi::dds_create_reader(home.participant, topic, qos, listener))
        };
        ffi::dds_delete_listener(listener);
        ffi::dds_delete_qos(qos);
        let entity = entity?;
        let made = equip(endpoint, topic, entity, home, guards).inspect_err(|_| {
            ffi::dds_delete(entity);
        })?;
        let _ = endpoint.made.set(made);
    }
    Ok(())
}

/// Completes the entities of an end point: gets the serialiser and, for a reader that blocks, creates its condition and
/// waitset.
///
/// # Safety
/// `entity` is the writer or reader of `endpoint`.
unsafe fn equip(
    endpoint: &Endpoint,
    topic: ffi::dds_entity_t,
    entity: ffi::dds_entity_t,
    home: Home,
    guards: [ffi::dds_entity_t; 2],
) -> Outcome<Entities> {
    let (mut condition, mut waitset) = (0, 0);
    let mut sertype: *const ffi::ddsi_sertype = core::ptr::null();
    // SAFETY: Cyclone checks the handles; the sertype belongs to the existing entity.
    unsafe {
        if endpoint.kind == abi::TB_READER && endpoint.mode == abi::TB_BLOCK {
            condition = check("dds_create_readcondition", ffi::dds_create_readcondition(entity, ffi::DDS_ANY_STATE))?;
            waitset = new_set(home.owner, &[condition], guards)?;
        }
        check("dds_get_entity_sertype", ffi::dds_get_entity_sertype(entity, &mut sertype))?;
        let sertype = ffi::ddsi_sertype_ref(sertype);
        Ok(Entities { topic, entity, condition, waitset, sertype })
    }
}
