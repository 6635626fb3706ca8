//! Makes text from files safe for a terminal: replaces characters that control the terminal.

/// Replaces control characters and characters that change the writing direction: line breaks and tabs become spaces,
/// all others become U+FFFD. The resulting text cannot control a terminal.
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        assert_eq!(
            plain("a\x1b]0;t\x07b\u{9b}2Jc\x7f\u{202e}d\r\n\te"),
            "a\u{fffd}]0;t\u{fffd}b\u{fffd}2Jc\u{fffd}\u{fffd}d   e"
        );
        assert_eq!(plain("p99 \u{2264} 62\u{202f}us, \u{e4}\u{4f60}"), "p99 \u{2264} 62\u{202f}us, \u{e4}\u{4f60}");
    }
}
