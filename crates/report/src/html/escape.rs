//! Text within HTML.

/// Text for an element or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
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

/// A sentence: units stay with their numbers, and what stands between back quotes is set as code.
pub(crate) fn prose(text: &str) -> String {
    let text = &thin(text);
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // A quote without its fellow is only a quote.
        return escape(text);
    }
    let set = |(i, part): (usize, &&str)| {
        if i.is_multiple_of(2) { escape(part) } else { format!("<code>{}</code>", escape(part)) }
    };
    parts.iter().enumerate().map(set).collect()
}

/// Puts a narrow no-break space between a number and its unit.
pub(super) fn thin(text: &str) -> String {
    const UNITS: [&str; 17] =
        ["ns", "us", "ms", "s", "min", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "Hz", "kHz", "MHz", "Mbit/s", "%"];
    let mut thin = String::with_capacity(text.len());
    for (i, word) in text.split(' ').enumerate() {
        let unit = UNITS.contains(&word.trim_end_matches([',', '.', ':', ';', ')']));
        let after_number = thin.ends_with(|c: char| c.is_ascii_digit());
        if i > 0 {
            thin.push(if unit && after_number { crate::number::THIN } else { ' ' });
        }
        thin.push_str(word);
    }
    thin
}

/// A table within its own scroll box. Heads and cells are HTML; a head that begins with `<` sets its class itself.
pub(super) fn table(heads: &[Head], rows: &[String]) -> String {
    let head: String = heads
        .iter()
        .map(|h| {
            let unit =
                if h.unit.is_empty() { String::new() } else { format!(" <span class=\"unit\">{}</span>", h.unit) };
            format!("<th scope=\"col\"{}>{}{unit}</th>", if h.left { " class=\"l\"" } else { "" }, escape(&h.name))
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        rows.concat()
    )
}

/// The head of a column.
pub(super) struct Head {
    name: String,
    unit: &'static str,
    left: bool,
}

/// A head over words.
pub(super) fn left(name: impl Into<String>) -> Head {
    Head { name: name.into(), unit: "", left: true }
}

/// A head over numbers of one unit.
pub(super) fn right(name: impl Into<String>, unit: &'static str) -> Head {
    Head { name: name.into(), unit, left: false }
}

/// A cell of words.
pub(super) fn words(text: &str) -> String {
    format!("<td class=\"l\">{}</td>", escape(text))
}

/// A cell of a number.
pub(super) fn number(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
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
