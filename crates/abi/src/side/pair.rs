//! Reads options and QoS policies: makes keys with values from `tb_kv`, and numbers, words and lists from values.

use core::ffi::c_int;
use core::fmt::Display;
use core::ops::RangeInclusive;
use core::str::FromStr;

use super::fail::{Fail, Outcome};
use super::raw;
use crate::tb_kv;

/// One option or QoS policy: its key and its value. The text of every failure begins with the key.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Key of the driver option or QoS policy.
    pub key: &'a str,
    /// Value of the driver option or QoS policy.
    pub value: &'a str,
}

impl<'a> Pair<'a> {
    /// Makes the failure for a call that is refused because of this option or QoS policy. The error text has the form
    /// `key=value: why`.
    pub fn bad(&self, code: c_int, why: &str) -> Fail {
        Fail::new(code, format!("{}={}: {why}", self.key, self.value))
    }

    /// Reads the option's value as a number within `range`.
    ///
    /// # Errors
    /// Fails with `code` and a text that names the range, if the value is not a number in the range.
    pub fn number<T: FromStr + PartialOrd + Display>(&self, code: c_int, range: RangeInclusive<T>) -> Outcome<T> {
        match self.value.parse() {
            Ok(n) if range.contains(&n) => Ok(n),
            _ => Err(self.bad(code, &format!("a whole number from {} to {} is expected", range.start(), range.end()))),
        }
    }

    /// Finds the index of the option's value in `words`.
    ///
    /// # Errors
    /// Fails with `code` and a text that lists the words, if the value is not one of them.
    pub fn word(&self, code: c_int, words: &[&str]) -> Outcome<usize> {
        let found = words.iter().position(|w| *w == self.value);
        found.ok_or_else(|| self.bad(code, &format!("expected one of: {}", words.join(", "))))
    }

    /// The option's value without white space around it; `None` if nothing remains.
    pub fn text(&self) -> Option<&'a str> {
        Some(self.value.trim()).filter(|v| !v.is_empty())
    }

    /// The parts of the option's value between commas, without white space around them; empty parts are skipped.
    pub fn list(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.value.split(',').map(str::trim).filter(|v| !v.is_empty())
    }
}

/// Reads the keys and values that the caller passed.
///
/// # Safety
/// `kv` is null or points to `n` pairs of strings. Each string is null or ends with a NUL byte, and is not changed
/// during `'a`.
pub(super) unsafe fn read<'a>(kv: *const tb_kv, n: usize) -> Outcome<Vec<Pair<'a>>> {
    // SAFETY: the caller of this function promises it.
    let raw = unsafe { raw::many("the list of options", kv, n) }?;
    let pair = |p: &tb_kv| {
        // SAFETY: the caller of this function promises it.
        unsafe {
            let key = raw::text("the key of an option", p.key)?;
            Ok(Pair { key, value: raw::text(key, p.value)? })
        }
    };
    raw.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;
    use core::ptr::null;

    use super::*;
    use crate::{TB_EINVAL, TB_EQOS};

    fn pair(value: &str) -> Pair<'_> {
        Pair { key: "depth", value }
    }

    #[test]
    fn values_are_read_or_refused_with_their_key() {
        assert_eq!(pair("7").number(TB_EINVAL, 0..=u32::MAX).unwrap(), 7);
        assert_eq!(pair("off").word(TB_EINVAL, &["on", "off"]).unwrap(), 1);
        assert_eq!((pair(" ").text(), pair(" a ").text()), (None, Some("a")));
        assert_eq!(pair(" a, ,b,").list().collect::<Vec<_>>(), ["a", "b"]);
        let refused = |fail: Fail| (fail.code, fail.text.into_owned());
        let range = "a whole number from 1 to 9 is expected";
        for value in ["0", "x", "", "99999999999"] {
            let fail = pair(value).number(TB_EQOS, 1..=9).unwrap_err();
            assert_eq!(refused(fail), (TB_EQOS, format!("depth={value}: {range}")));
        }
        let fail = pair("maybe").word(TB_EINVAL, &["on", "off"]).unwrap_err();
        assert_eq!(refused(fail), (TB_EINVAL, "depth=maybe: expected one of: on, off".to_owned()));
    }

    #[test]
    fn arrays_are_read_or_refused() {
        let read = |key: Option<&CStr>, value: Option<&CStr>| {
            let raw = |s: Option<&CStr>| s.map_or(null(), CStr::as_ptr);
            // SAFETY: one pair of strings that live through the call.
            let pairs = unsafe { super::read(&tb_kv { key: raw(key), value: raw(value) }, 1) };
            pairs.map(|p| (p[0].key.to_owned(), p[0].value.to_owned())).map_err(|fail| fail.text.into_owned())
        };
        assert_eq!(read(Some(c"a"), Some(c"1")), Ok(("a".to_owned(), "1".to_owned())));
        assert_eq!(read(Some(c"a"), None), Err("a is null".to_owned()));
        assert_eq!(read(Some(c"a"), Some(c"\xff")), Err("a is not UTF-8".to_owned()));
        assert_eq!(read(None, Some(c"1")), Err("the key of an option is null".to_owned()));
        // SAFETY: null is allowed.
        let (none, missing) = unsafe { (super::read(null(), 0), super::read(null(), 1)) };
        assert!(none.unwrap().is_empty());
        assert_eq!(missing.unwrap_err().text, "the list of options is null");
    }
}
