//! Parses the target of an HTTP request into path and query, and decodes percent encoding.

use std::collections::BTreeMap;

/// Returns the path, and each key of the query with its last value; `None` if the text is not UTF-8, or if a percent
/// sign is not followed by two hexadecimal digits.
pub(crate) fn parse(target: &str) -> Option<(String, BTreeMap<String, String>)> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter(|p| !p.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(&key.replace('+', " "))?, decode(&value.replace('+', " "))?))
    });
    Some((decode(path)?, pairs.collect::<Option<_>>()?))
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                (digit(rest.next())? * 16 + digit(rest.next())?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Percent-encodes a name for use in a path or as a value of a query; slashes are kept.
pub(crate) fn encode(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b'/');
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in ["plain", "a b/ü?&=#%+c", "\u{202f}", "..%2f"] {
            let (path, query) = parse(&format!("/{0}?q={0}&r", encode(name))).unwrap();
            assert_eq!((path.as_str(), query["q"].as_str(), query["r"].as_str()), (&*format!("/{name}"), name, ""));
        }
        assert_eq!(parse("/%2"), None);
        assert_eq!(parse("/%ff"), None);
    }
}
