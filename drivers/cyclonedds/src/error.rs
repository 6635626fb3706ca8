//! Converts errors of Cyclone DDS into failures of the driver.

use core::ffi::CStr;

use tailbound_abi as abi;
use tailbound_abi::side::{Fail, Outcome};

use crate::ffi;

/// Makes the failure for a return code of Cyclone DDS from the function named `call`.
#[cold]
pub fn dds(call: &str, ret: i32) -> Fail {
    let code = match ret {
        ffi::DDS_RETCODE_BAD_PARAMETER => abi::TB_EINVAL,
        ffi::DDS_RETCODE_OUT_OF_RESOURCES => abi::TB_ENOMEM,
        ffi::DDS_RETCODE_TIMEOUT => abi::TB_ETIMEDOUT,
        ffi::DDS_RETCODE_ALREADY_DELETED => abi::TB_ECLOSED,
        ffi::DDS_RETCODE_UNSUPPORTED => abi::TB_EUNSUPPORTED,
        ffi::DDS_RETCODE_IMMUTABLE_POLICY | ffi::DDS_RETCODE_INCONSISTENT_POLICY => abi::TB_EQOS,
        _ => abi::TB_EIO,
    };
    // SAFETY: dds_strretcode returns a static string for every value.
    let text = unsafe { CStr::from_ptr(ffi::dds_strretcode(ret)) }.to_string_lossy();
    Fail::new(code, format!("Cyclone DDS: {call}: {text}"))
}

/// Checks an entity handle or return code of Cyclone: negative values are errors.
#[inline]
pub fn check(call: &str, ret: i32) -> Outcome<i32> {
    if ret < 0 { Err(dds(call, ret)) } else { Ok(ret) }
}
