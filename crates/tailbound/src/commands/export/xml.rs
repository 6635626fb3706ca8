//! Writes XML that is easy to read: indented, with a comment at the top.

use std::fmt::Write;

/// Writes an XML comment. `--` would end a comment, so it is written as `- -`.
pub fn comment(lines: &[String]) -> String {
    let text: Vec<String> = lines.iter().map(|l| format!("  {}", l.replace("--", "- -"))).collect();
    format!("<!--\n{}\n-->\n", text.join("\n"))
}

/// Escapes text for an XML element or an XML attribute.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Indents XML: one tag per line, elements that contain only text on one line. Empty elements without attributes are
/// left out.
pub fn indented(dense: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    let mut rest = dense;
    while let Some(tag) = rest.strip_prefix('<') {
        let (tag, after) = tag.split_once('>').unwrap_or((tag, ""));
        let (text, after) = after.split_at(after.find('<').unwrap_or(after.len()));
        rest = after;
        if tag.starts_with('/') {
            depth -= 1;
            let _ = writeln!(out, "{:indent$}<{tag}>", "", indent = 2 * depth);
            continue;
        }
        let _ = write!(out, "{:indent$}<{tag}>", "", indent = 2 * depth);
        let end = format!("</{tag}>");
        match rest.strip_prefix(end.as_str()) {
            _ if tag.ends_with(['/', '?']) => out.push('\n'),
            Some(after) if text.is_empty() => {
                out.truncate(out.rfind('\n').map_or(0, |at| at + 1));
                rest = after;
            }
            Some(after) => {
                let _ = writeln!(out, "{text}{end}");
                rest = after;
            }
            None => {
                depth += 1;
                out.push('\n');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_element_a_line() {
        let dense = "<a b=\"1\"><c>x</c><e></e><d><f/></d></a>";
        assert_eq!(indented(dense), "<a b=\"1\">\n  <c>x</c>\n  <d>\n    <f/>\n  </d>\n</a>\n");
        assert_eq!(comment(&["a --> b".into()]), "<!--\n  a - -> b\n-->\n");
    }
}
