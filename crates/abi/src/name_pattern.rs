//! Patterns that match names, for example names of threads and of interrupts.

/// Whether `pattern` matches the whole of `name`: `*` matches any text, also no text, and `?` matches one character.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Index behind the last `*` in the pattern, and index of the first character of the name that this `*` does not
    // match yet.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                p += 1;
                retry = Some((p, n));
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match &mut retry {
                Some((after, from)) => {
                    *from += 1;
                    (p, n) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::name_matches;

    #[test]
    fn a_pattern_fits_the_whole_name() {
        for (pattern, name) in [
            ("eth0", "eth0"),
            ("irq/24-*", "irq/24-ACPI:Ged"),
            ("ksoftirqd/?", "ksoftirqd/1"),
            ("recv?", "recvU"),
            ("recv*", "recvUC"),
            ("?x", "\u{e4}x"),
            ("*", ""),
            ("a*c", "abc"),
            ("*ab*b", "aabab"),
            ("**", "x"),
        ] {
            assert!(name_matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("eth0", "eth0-rx"),
            ("irq/2?-x", "irq/2-x"),
            ("", "a"),
            ("*b", "ba"),
            ("recv*", "dq.user"),
            ("a*c", "abd"),
            ("?", ""),
        ] {
            assert!(!name_matches(pattern, name), "{pattern} {name}");
        }
    }
}
