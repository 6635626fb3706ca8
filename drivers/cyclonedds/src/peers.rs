//! Matched end points and the participants to which the end points belong.

use core::ffi::{CStr, c_char, c_void};

use serde_json::{Map, Value, json};
use tailbound_abi::side::Outcome;

use crate::endpoint::Endpoint;
use crate::error::check;
use crate::{ffi, qos};

/// Copies the text of a C string of Cyclone.
///
/// # Safety
/// The pointer is null or points to a string that ends with a NUL byte.
pub unsafe fn text(s: *const c_char) -> String {
    if s.is_null() {
        return String::new();
    }
    // SAFETY: the caller of this function promises it.
    unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
}

/// Formats a GUID as 32 hexadecimal digits in four groups.
pub fn guid(guid: &ffi::dds_guid_t) -> String {
    let hex: String = guid.v.iter().map(|b| format!("{b:02x}")).collect();
    [&hex[0..8], &hex[8..16], &hex[16..24], &hex[24..32]].join(":")
}

/// Reads data from discovery about a participant: host, process, addresses. A value is absent if the participant's DDS
/// implementation does not send it.
fn about(qos: *const ffi::dds_qos_t) -> Map<String, Value> {
    let mut known = Map::new();
    let properties = [
        ("hostname", c"__Hostname"),
        ("process", c"__ProcessName"),
        ("pid", c"__Pid"),
        ("addresses", c"__NetworkAddresses"),
    ];
    for (key, property) in properties {
        let mut value: *mut c_char = core::ptr::null_mut();
        // SAFETY: on success the value is a string that the caller frees.
        unsafe {
            if ffi::dds_qget_prop(qos, property.as_ptr(), &mut value) && !value.is_null() {
                known.insert(key.to_owned(), json!(text(value)));
                ffi::dds_free(value.cast());
            }
        }
    }
    known
}

/// Calls `f` for every sample in a built-in topic of DDS (a topic with discovery data).
pub fn each_builtin<T>(participant: ffi::dds_entity_t, topic: ffi::dds_entity_t, mut f: impl FnMut(&T)) -> Outcome<()> {
    const MAX: usize = 128;
    // SAFETY: the reader belongs to this function. Null pointers make Cyclone lend the samples, which are returned
    // before the reader is deleted.
    unsafe {
        let reader = check(
            "dds_create_reader of a built-in topic",
            ffi::dds_create_reader(participant, topic, core::ptr::null(), core::ptr::null()),
        )?;
        loop {
            let mut samples: [*mut c_void; MAX] = [core::ptr::null_mut(); MAX];
            let mut info = [const { core::mem::MaybeUninit::<ffi::dds_sample_info>::uninit() }; MAX];
            let n = ffi::dds_take(reader, samples.as_mut_ptr(), info.as_mut_ptr().cast(), MAX, MAX as u32);
            for i in 0..n.max(0) as usize {
                if info[i].assume_init_ref().valid_data {
                    f(&*samples[i].cast::<T>());
                }
            }
            if n > 0 {
                ffi::dds_return_loan(reader, samples.as_mut_ptr(), n);
            }
            if n < MAX as i32 {
                ffi::dds_delete(reader);
                return check("dds_take of a built-in topic", n).map(drop);
            }
        }
    }
}

/// Returns the DDS participants that are known from discovery, by GUID, including the session's own participant.
pub fn participants(participant: ffi::dds_entity_t) -> Outcome<Map<String, Value>> {
    let mut all = Map::new();
    each_builtin(participant, ffi::DDS_BUILTIN_TOPIC_DCPSPARTICIPANT, |p: &ffi::dds_builtintopic_participant| {
        all.insert(guid(&p.key), Value::Object(about(p.qos)));
    })?;
    Ok(all)
}

/// Returns the end points with which `endpoint` is matched.
pub fn matched(participant: ffi::dds_entity_t, endpoint: &Endpoint) -> Outcome<Value> {
    const MAX: usize = 1024;
    let writer = endpoint.kind == tailbound_abi::TB_WRITER;
    let entity = endpoint.open()?.entity;
    let mut handles = vec![0; MAX];
    // SAFETY: the array has room for MAX handles; the results are freed after reading.
    let peers = unsafe {
        let n = if writer {
            check(
                "dds_get_matched_subscriptions",
                ffi::dds_get_matched_subscriptions(entity, handles.as_mut_ptr(), MAX),
            )?
        } else {
            check("dds_get_matched_publications", ffi::dds_get_matched_publications(entity, handles.as_mut_ptr(), MAX))?
        };
        handles.truncate(n as usize);
        let mut peers = Vec::new();
        for handle in handles {
            let data = if writer {
                ffi::dds_get_matched_subscription_data(entity, handle)
            } else {
                ffi::dds_get_matched_publication_data(entity, handle)
            };
            if let Some(peer) = data.as_ref() {
                let qos = qos::read(peer.qos, !writer);
                peers.push((
                    guid(&peer.participant_key),
                    json!({"guid": guid(&peer.key), "handle": handle, "type": text(peer.type_name), "qos": qos}),
                ));
                ffi::dds_builtintopic_free_endpoint(data);
            }
        }
        peers
    };
    let known = participants(participant)?;
    let peers = peers.into_iter().map(|(who, mut peer)| {
        peer["participant"] = json!(who);
        if let Some(Value::Object(about)) = known.get(&who) {
            for (key, value) in about {
                peer[key] = value.clone();
            }
        }
        peer
    });
    Ok(peers.collect())
}
