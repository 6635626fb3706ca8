//! Options of `open`.

use std::ffi::{CStr, c_char};

use tailbound_abi::{TB_EINVAL, TB_EQOS, tb_kv};

use crate::error::{Outcome, fail};
use crate::script::Script;

/// Well-known options that mean nothing inside one process.
const WITHOUT_EFFECT: &[&str] = &["interface", "address", "peers", "multicast", "naming", "transport"];

/// What `open` was asked for.
#[derive(Debug)]
pub struct Options {
    pub domain: u32,
    pub scripted: bool,
    pub script: Option<Script>,
    pub timestamps: bool,
}

/// A string of the caller's.
///
/// # Safety
/// `text` is null or a NUL-terminated string that lives as long as `'a`.
pub unsafe fn text<'a>(what: &str, text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return fail(TB_EINVAL, format!("{what} is null"));
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().or_else(|_| fail(TB_EINVAL, format!("{what} is not UTF-8")))
}

/// Keys and values of the caller's.
///
/// # Safety
/// `kv` points to `n` pairs of NUL-terminated strings that live as long as `'a`.
unsafe fn pairs<'a>(kv: *const tb_kv, n: usize) -> Outcome<Vec<(&'a str, &'a str)>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    if kv.is_null() {
        return fail(TB_EINVAL, "the list of options is null");
    }
    // SAFETY: the caller's promise.
    let raw = unsafe { std::slice::from_raw_parts(kv, n) };
    // SAFETY: as above.
    raw.iter().map(|p| unsafe { Ok((text("a key", p.key)?, text("a value", p.value)?)) }).collect()
}

impl Options {
    /// Reads them.
    ///
    /// # Safety
    /// `kv` points to `n` pairs of NUL-terminated strings.
    pub unsafe fn parse(kv: *const tb_kv, n: usize) -> Outcome<Options> {
        let mut options = Options { domain: 77, scripted: false, script: None, timestamps: false };
        // SAFETY: the caller's promise.
        for (key, value) in unsafe { pairs(kv, n)? } {
            match (key, value) {
                ("domain", _) => match value.parse() {
                    Ok(domain) => options.domain = domain,
                    Err(_) => {
                        return fail(TB_EINVAL, format!("domain: `{value}` is not a number from 0 to 4294967295"));
                    }
                },
                ("clock", "real") => options.scripted = false,
                ("clock", "scripted") => options.scripted = true,
                ("clock", _) => return fail(TB_EINVAL, format!("clock: `{value}` is neither real nor scripted")),
                ("timestamps", "on") => options.timestamps = true,
                ("timestamps", "off") => options.timestamps = false,
                ("timestamps", _) => return fail(TB_EINVAL, format!("timestamps: `{value}` is neither on nor off")),
                ("script", _) => match Script::parse(value) {
                    Ok(script) => options.script = Some(script),
                    Err(e) => return fail(TB_EINVAL, format!("script: {e}")),
                },
                (key, _) if WITHOUT_EFFECT.contains(&key) => {}
                _ => return fail(TB_EINVAL, format!("{key}: the null driver has no such option")),
            }
        }
        if options.script.is_some() && !options.scripted {
            return fail(TB_EINVAL, "script: delays need virtual time; add clock=scripted");
        }
        Ok(options)
    }
}

/// Refuses every QoS policy: there is nothing to choose inside one process.
///
/// # Safety
/// As [`Options::parse`].
pub unsafe fn refuse_qos(kv: *const tb_kv, n: usize) -> Outcome {
    // SAFETY: the caller's promise.
    match unsafe { pairs(kv, n)? }.first() {
        Some((policy, _)) => fail(TB_EQOS, format!("{policy}: the null driver has no QoS policies")),
        None => Ok(()),
    }
}
