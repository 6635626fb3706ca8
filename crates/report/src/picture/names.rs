//! Places names of lines beside the ends of the lines.

use crate::picture::canvas::{Canvas, Hold, ids, n};

/// A name that is drawn beside the end of a line.
pub(crate) struct Name {
    /// Vertical position, in the drawing, of the end of the line to which the name belongs.
    pub end: (f64, f64),
    pub words: String,
    /// Further CSS classes of the text that shows the name.
    pub class: &'static str,
    pub hue: usize,
    pub conditions: Vec<usize>,
}

impl Name {
    /// Data attributes with which the script hides the name if all its conditions are hidden.
    pub fn data(&self) -> Vec<(&'static str, String)> {
        match self.conditions.as_slice() {
            [one] => vec![("condition", one.to_string())],
            some => vec![("points", ids(some.iter()))],
        }
    }
}

impl Canvas {
    /// Writes names at the horizontal position `x`, apart from each other between `top` and `bottom`, each with a
    /// stroke to the end of its line. If some names are hidden, the script places the others again.
    pub fn names(&mut self, x: f64, gap: f64, (top, bottom): (f64, f64), names: Vec<Name>) {
        let mut places: Vec<(f64, Name)> = names.into_iter().map(|name| (name.end.1.max(top), name)).collect();
        spread(&mut places, gap, bottom);
        let data = format!("data-gap=\"{gap}\" data-low=\"{}\" data-high=\"{}\"", n(top), n(bottom));
        self.only_page(&format!("<g class=\"names\" {data}>\n"));
        for (at, name) in places {
            let class = if name.conditions.len() == 1 { "name own" } else { "name" };
            self.open(class, name.hue, &name.data());
            self.path("leader", &format!("M{},{}L{},{}h4", n(name.end.0 + 7.0), n(name.end.1), n(x), n(at)));
            self.text(&format!("end {}", name.class), (x + 7.0, at + 4.0), &name.words, Hold::Start);
            self.close();
        }
        self.only_page("</g>\n");
    }
}

/// Moves labels downwards until they are at least `gap` apart, and then upwards if they would end below `high`.
pub(crate) fn spread<T>(labels: &mut [(f64, T)], gap: f64, high: f64) {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    for i in 1..labels.len() {
        labels[i].0 = labels[i].0.max(labels[i - 1].0 + gap);
    }
    let mut limit = high;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(limit);
        limit = label.0 - gap;
    }
}
