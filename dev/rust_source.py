"""Rust source text for scripts that check it: what is code, and what is a comment, a string or a test."""
import re

def blank(text):
    """Spaces in place of a text; the line breaks stay, so that positions and line numbers stay the same."""
    return re.sub(r"[^\n]", " ", text)

def code(text):
    """The text with spaces in place of comments, of the contents of strings and characters, and of the code of tests
    (`#[cfg(test)]` and the item after it). Positions stay the same."""
    def without(match):
        found = match[0]
        return blank(found) if found.startswith("//") or len(found) < 2 else '"' + blank(found[1:-1]) + '"'
    # Comments, raw strings, strings and characters, whichever begins first: what is inside another one is a part of it.
    text = re.sub(r"""//[^\n]*|\br(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\[^']+|\\'|[^'\\])'""", without, text, flags=re.S)
    out, at = [], 0
    # The item after `#[cfg(test)]` ends at its semicolon, or at the end of its block.
    for match in re.finditer(r"#\[cfg\((?:test|all\(test[^\]]*)\)\]", text):
        if match.start() < at: continue
        out.append(text[at:match.start()])
        depth, i = 0, match.end()
        while i < len(text):
            if text[i] == "{": depth += 1
            elif text[i] == "}":
                depth -= 1
                if depth == 0: break
            elif text[i] == ";" and depth == 0: break
            i += 1
        at = i + 1
        out.append(blank(text[match.start():at]))
    return "".join(out) + text[at:]
