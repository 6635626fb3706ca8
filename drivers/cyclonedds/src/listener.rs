//! Listeners of Cyclone for samples and matches. The listeners run on Cyclone's threads.

use core::ffi::{c_int, c_void};

use tailbound_abi as abi;

use crate::endpoint::Endpoint;
use crate::{ffi, receive};

/// Makes a Cyclone listener for a writer or reader; `arg` points to its [`Endpoint`].
///
/// # Safety
/// The end point outlives the entity that the listener is set on. The caller deletes the listener.
pub unsafe fn new(writer: bool, mode: c_int, arg: *mut c_void) -> *mut ffi::dds_listener_t {
    // SAFETY: the functions have the types that the setters require, and expect an `Endpoint` as argument.
    unsafe {
        let listener = ffi::dds_create_listener(arg);
        if writer {
            ffi::dds_lset_publication_matched(listener, Some(publication_matched));
        } else {
            ffi::dds_lset_subscription_matched(listener, Some(subscription_matched));
            if mode == abi::TB_LISTENER {
                ffi::dds_lset_data_available(listener, Some(data_available));
            }
        }
        listener
    }
}

unsafe extern "C" fn data_available(reader: ffi::dds_entity_t, arg: *mut c_void) {
    // SAFETY: `arg` is the end point, see `new`.
    let endpoint = unsafe { &*arg.cast_const().cast::<Endpoint>() };
    receive::deliver(endpoint, reader);
}

unsafe extern "C" fn publication_matched(
    _: ffi::dds_entity_t,
    status: ffi::dds_publication_matched_status_t,
    arg: *mut c_void,
) {
    // SAFETY: `arg` is the end point, see `new`.
    let endpoint = unsafe { &*arg.cast_const().cast::<Endpoint>() };
    endpoint.set_matched(status.current_count as i32);
}

unsafe extern "C" fn subscription_matched(
    _: ffi::dds_entity_t,
    status: ffi::dds_subscription_matched_status_t,
    arg: *mut c_void,
) {
    // SAFETY: `arg` is the end point, see `new`.
    let endpoint = unsafe { &*arg.cast_const().cast::<Endpoint>() };
    endpoint.set_matched(status.current_count as i32);
}
