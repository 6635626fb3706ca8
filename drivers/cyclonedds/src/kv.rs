//! Reading the key-value arrays of the ABI.

use core::ffi::CStr;

use tailbound_abi::tb_kv;

use crate::error::{Fail, Outcome};

/// One option or policy.
pub struct Pair {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

impl Pair {
    /// The failure that names this pair: "`key`=value: why".
    pub fn bad(&self, code: i32, why: &str) -> Fail {
        Fail::new(code, format!("{}={}: {why}", self.key, self.value))
    }

    /// The value as a number within `range`.
    pub fn number(&self, code: i32, range: std::ops::RangeInclusive<i64>) -> Outcome<i64> {
        match self.value.parse::<i64>() {
            Ok(n) if range.contains(&n) => Ok(n),
            _ => Err(self.bad(code, &format!("a whole number from {} to {} is expected", range.start(), range.end()))),
        }
    }

    /// The value as one of `words`; the result is its index.
    pub fn word(&self, code: i32, words: &[&str]) -> Outcome<usize> {
        words
            .iter()
            .position(|w| *w == self.value)
            .ok_or_else(|| self.bad(code, &format!("expected one of: {}", words.join(", "))))
    }
}

/// Copies an array of pairs.
///
/// # Safety
/// `kv` points to `n` pairs of NUL-terminated strings, or `n` is 0.
pub unsafe fn read(kv: *const tb_kv, n: usize) -> Outcome<Vec<Pair>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    if kv.is_null() {
        return Err(Fail::invalid("the option array is null"));
    }
    // SAFETY: the caller promises n pairs.
    let pairs = unsafe { core::slice::from_raw_parts(kv, n) };
    pairs
        .iter()
        .map(|pair| {
            if pair.key.is_null() || pair.value.is_null() {
                return Err(Fail::invalid("an option has a null key or value"));
            }
            // SAFETY: not null, and NUL-terminated by the caller's promise.
            let (key, value) = unsafe { (CStr::from_ptr(pair.key), CStr::from_ptr(pair.value)) };
            match (key.to_str(), value.to_str()) {
                (Ok(key), Ok(value)) => Ok(Pair { key: key.to_owned(), value: value.to_owned() }),
                _ => Err(Fail::invalid(format!("option {}: not UTF-8", key.to_string_lossy()))),
            }
        })
        .collect()
}
