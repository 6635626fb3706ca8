//! Formats text for a terminal: colours and line breaks.

/// Formats words in bold, dim or the colour of warnings, or leaves them unchanged if colours are off.
pub(crate) struct Paint(bool);

impl Paint {
    pub fn new(colour: bool) -> Paint {
        Paint(colour)
    }
    fn with(&self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
    pub fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }
    pub fn dim(&self, text: &str) -> String {
        self.with("2", text)
    }
    pub fn alarm(&self, text: &str) -> String {
        self.with("33", text)
    }
}

/// Breaks a text for the terminal into lines at spaces; lines after the first are indented.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in text.split(' ') {
        let fits = current.chars().count() + 1 + word.chars().count() <= width;
        if !current.is_empty() && !fits {
            lines.push(std::mem::replace(&mut current, " ".repeat(indent)));
            current.push_str(word);
        } else {
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
    }
    lines.push(current);
    lines
}
