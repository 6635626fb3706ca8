//! Escapes text for use in HTML and in Markdown.

/// Escapes text for use in an HTML element or in a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Formats a sentence as HTML: a number and its unit stay on one line, and text between back quotes is shown as code.
pub(crate) fn prose(text: &str) -> String {
    let text = &thin(text);
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // A single back quote without a second one stays a character.
        return escape(text);
    }
    let set = |(i, part): (usize, &&str)| {
        if i.is_multiple_of(2) { escape(part) } else { format!("<code>{}</code>", escape(part)) }
    };
    parts.iter().enumerate().map(set).collect()
}

/// Puts a narrow no-break space between a number and its unit.
pub(crate) fn thin(text: &str) -> String {
    const UNITS: [&str; 17] =
        ["ns", "us", "ms", "s", "min", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "Hz", "kHz", "MHz", "Mbit/s", "%"];
    let mut thin = String::with_capacity(text.len());
    for (i, word) in text.split(' ').enumerate() {
        let unit = UNITS.contains(&word.trim_end_matches([',', '.', ':', ';', ')']));
        let after_number = thin.ends_with(|c: char| c.is_ascii_digit());
        if i > 0 {
            thin.push(if unit && after_number { tailbound_document::number::THIN } else { ' ' });
        }
        thin.push_str(word);
    }
    thin
}

/// Escapes text for use in an HTML element or in a quoted attribute.
pub fn escape_html(text: &str) -> String {
    escape(text)
}

/// Escapes characters with a special meaning in Markdown, or in HTML inside Markdown.
pub(crate) fn escape_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut code = false;
    for c in text.chars() {
        code ^= c == '`';
        match c {
            '|' => escaped.push_str("\\|"),
            '<' if !code => escaped.push_str("&lt;"),
            '&' if !code => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            '*' | '_' | '[' | ']' | '#' | '~' if !code => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_name_stays_text() {
        assert_eq!(escape("<b a='1'>&\""), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;");
        assert_eq!(prose("use `--x <n>` now"), "use <code>--x &lt;n&gt;</code> now");
        assert_eq!(prose("one ` alone"), "one ` alone");
        assert_eq!(
            thin("64 B, 1 kHz: 5 samples (95 %: 2 s)"),
            "64\u{202f}B, 1\u{202f}kHz: 5 samples (95\u{202f}%: 2\u{202f}s)"
        );
    }
}
