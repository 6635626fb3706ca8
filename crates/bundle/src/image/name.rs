//! Names of container images: registry, path and tag.

use std::fmt;

/// A complete name of a container image: registry, path and tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    path: String,
    tag: String,
}

/// The reason why a text cannot be the name of a container image.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an image cannot be named `{name}`: {reason}. A name is [REGISTRY/]PATH[:TAG], e.g. localhost/tailbound:1 or \
     registry.example:5000/team/tailbound; PATH has lower-case letters and digits, joined by . _ __ - and /, TAG up to \
     128 letters, digits and . _ -"
)]
pub struct BadName {
    name: String,
    reason: &'static str,
}

impl ImageName {
    /// Parses the name of an image, `[REGISTRY/]PATH[:TAG]`. The default registry is `localhost`, because runtimes
    /// interpret a missing registry differently. The default tag is `release`.
    ///
    /// # Errors
    /// The text contains characters, or a sequence of characters, that names of images cannot have.
    pub fn parse(name: &str, release: &str) -> Result<ImageName, BadName> {
        let bad = |reason| BadName { name: name.to_owned(), reason };
        if name.contains('@') {
            return Err(bad("a digest follows from the content and cannot be chosen"));
        }
        // A colon before the last slash belongs to the port of the registry.
        let last = name.rfind('/').map_or(0, |at| at + 1);
        let (path, tag) = match name[last..].split_once(':') {
            Some((end, tag)) => (&name[..last + end.len()], tag),
            None => (name, release),
        };
        let (registry, rest) = match path.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => ("localhost", path),
        };
        if !is_registry(registry) {
            return Err(bad("the registry in the name is not HOST or HOST:PORT"));
        }
        if rest.is_empty() || !rest.split('/').all(is_component) {
            return Err(bad("the path in the name has characters, or a sequence of characters, that are not allowed"));
        }
        if registry.len() + 1 + rest.len() > 255 {
            return Err(bad("registry and path are longer than 255 characters"));
        }
        if !is_tag(tag) {
            return Err(bad("the tag in the name is not valid"));
        }
        Ok(ImageName { path: format!("{registry}/{rest}"), tag: tag.to_owned() })
    }

    /// Tag of the container image's name.
    pub fn tag(&self) -> &str {
        &self.tag
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.tag)
    }
}

fn is_registry(registry: &str) -> bool {
    let (host, port) = registry.split_once(':').map_or((registry, None), |(h, p)| (h, Some(p)));
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    host.split('.').all(label) && port.is_none_or(|p| p.parse::<u16>().is_ok_and(|p| p > 0))
}

/// Whether a text consists of lower-case letters and digits, separated by `.`, `_`, `__` or any number of `-`.
fn is_component(component: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let between = component.split(|c: char| c.is_ascii() && plain(c as u8)).filter(|s| !s.is_empty());
    component.bytes().next().is_some_and(plain) && component.bytes().last().is_some_and(plain) && { between }
        .all(|s| matches!(s, "." | "_" | "__") || s.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= 128 && tag.bytes().next().is_some_and(word) && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_of_a_name_are_added() {
        for (given, whole) in [
            ("tailbound:1", "localhost/tailbound:1"),
            ("tailbound", "localhost/tailbound:0.9"),
            ("localhost/tailbound", "localhost/tailbound:0.9"),
            ("team/tailbound:a", "localhost/team/tailbound:a"),
            ("registry.example:5000/a/b-c__d.e:V_1.2-x", "registry.example:5000/a/b-c__d.e:V_1.2-x"),
            ("registry.example:5000/a", "registry.example:5000/a:0.9"),
            ("a---b", "localhost/a---b:0.9"),
        ] {
            assert_eq!(ImageName::parse(given, "0.9").map(|n| n.to_string()), Ok(whole.to_owned()));
        }
    }

    #[test]
    fn invalid_names_are_refused_with_the_reason() {
        let long = "a".repeat(256);
        for (given, reason) in [
            ("", "path"),
            (":1", "path"),
            ("Tailbound", "path"),
            ("tail bound", "path"),
            ("a..b", "path"),
            ("a___b", "path"),
            ("a._b", "path"),
            ("-a", "path"),
            ("a/", "path"),
            ("/a", "path"),
            ("a//b", "path"),
            ("ä", "path"),
            ("localhost/", "path"),
            (long.as_str(), "255"),
            ("a:", "tag"),
            ("a:.1", "tag"),
            ("a:b:c", "tag"),
            ("a:ü", "tag"),
            ("registry.example:port/a", "registry"),
            ("registry.example:99999/a", "registry"),
            ("-x.example/a", "registry"),
            ("a@sha256:0", "digest"),
        ] {
            let refused = ImageName::parse(given, "0.9").unwrap_err();
            assert!(refused.reason.contains(reason), "{given}: {refused}");
        }
        assert!(ImageName::parse(&format!("a:{}", "t".repeat(129)), "0.9").is_err());
    }
}
