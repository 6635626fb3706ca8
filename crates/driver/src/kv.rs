//! Keys and values that are passed to the functions `open` and `create` of a driver.

use std::ffi::{CString, c_int};

use tailbound_abi::{TB_EINVAL, tb_kv};

/// An ordered list of keys and values for the functions `open` and `create` of a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kv(Vec<(String, String)>);

impl Kv {
    /// Makes an empty list of keys and values for driver options or QoS policies.
    pub fn new() -> Kv {
        Kv::default()
    }

    /// Returns the list with `key` set to `value`; an earlier value of the key is replaced.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Kv {
        self.set(key, value);
        self
    }

    /// Sets `key` to `value` in the list; an earlier value of the key is replaced.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// The value of a key in the list, if the key is present.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The keys and values of the list in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Calls `f` with the keys and values as C structs; the error names a text that C cannot represent.
    pub(crate) fn with_c<R>(&self, f: impl FnOnce(*const tb_kv, usize) -> R) -> Result<R, (c_int, String)> {
        let text = |s: &str| {
            CString::new(s).map_err(|_| (TB_EINVAL, format!("`{}` contains a NUL character", s.escape_default())))
        };
        let owned = self.0.iter().map(|(k, v)| Ok((text(k)?, text(v)?))).collect::<Result<Vec<_>, _>>()?;
        let raw: Vec<tb_kv> = owned.iter().map(|(k, v)| tb_kv { key: k.as_ptr(), value: v.as_ptr() }).collect();
        Ok(f(raw.as_ptr(), raw.len()))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Kv {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(items: I) -> Kv {
        let mut kv = Kv::new();
        for (k, v) in items {
            kv.set(k, v);
        }
        kv
    }
}
