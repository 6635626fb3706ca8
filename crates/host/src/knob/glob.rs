//! Names with `*` and `?`.

/// True when `pattern` stands for the whole of `text`.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    fn rest(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', more)), _) => (0..=text.len()).any(|n| rest(more, &text[n..])),
            (Some((b'?', more)), Some((_, text))) => rest(more, text),
            (Some((p, more)), Some((t, text))) => p == t && rest(more, text),
            _ => false,
        }
    }
    // `**` means `*` and would only take longer.
    let mut pattern = pattern.as_bytes().to_vec();
    pattern.dedup_by(|a, b| *a == b'*' && *b == b'*');
    rest(&pattern, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_pattern_stands_for_the_whole_name() {
        for (pattern, text) in
            [("eth0", "eth0"), ("irq/24-*", "irq/24-ACPI:Ged"), ("ksoftirqd/?", "ksoftirqd/1"), ("*", "")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("eth0", "eth0-rx"), ("irq/2?-x", "irq/2-x"), ("", "a"), ("*b", "ba")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
