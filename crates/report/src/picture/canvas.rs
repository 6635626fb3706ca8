//! Builds one drawing from shapes, for the HTML page or for an SVG file of its own.
//!
//! Every shape has classes. In the page the style sheet formats the classes, and shapes carry the lines of their
//! tooltips. In an SVG file the classes become attributes, and there are no tooltips.

use crate::escape::escape;
use crate::picture::look;
use std::fmt::{Arguments, Write};

/// Width of every drawing, in SVG units.
pub(crate) const WIDTH: f64 = 960.0;

/// Destination of a drawing: the HTML page, or an SVG file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// The drawing is part of the HTML page, which has the style sheet and the script.
    Page,
    /// The drawing is an SVG file of its own.
    Still,
}

/// Alignment of a text: which part of the text lies at the given position.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hold {
    Start,
    Middle,
    End,
}

/// The tooltip of a shape, and the data attributes that a script or a test can read.
#[derive(Default)]
pub(crate) struct Mark {
    /// Lines of the tooltip. The script of the page adds the exact value from `value-ns`.
    pub lines: Vec<String>,
    /// Names of the data attributes without the prefix `data-`, and their values.
    pub data: Vec<(&'static str, String)>,
}

/// A drawing to which functions add one shape after another.
pub(crate) struct Canvas {
    medium: Medium,
    width: f64,
    height: f64,
    /// Description of the drawing for readers who cannot see it (screen readers).
    label: String,
    /// The condition of the drawing, if the drawing shows only one condition.
    condition: Option<usize>,
    class: &'static str,
    /// Left and right edge of the plot; empty if the drawing has no plot that can be stretched.
    plot: Option<(f64, f64)>,
    body: String,
    /// Hues of the groups of shapes that are open; the innermost group is the last.
    hues: Vec<usize>,
}

impl Canvas {
    pub fn new(medium: Medium, height: f64, label: impl Into<String>) -> Canvas {
        Canvas {
            medium,
            width: WIDTH,
            height,
            label: label.into(),
            condition: None,
            class: "",
            plot: None,
            body: String::new(),
            hues: Vec::new(),
        }
    }

    /// Stores the condition of a drawing that shows only one condition. If a reader hides this condition, the page
    /// hides the drawing.
    pub fn of(mut self, condition: usize) -> Canvas {
        self.condition = Some(condition);
        self
    }

    /// Sets the width of a small drawing that is shown beside others.
    pub fn wide(mut self, width: f64) -> Canvas {
        self.width = width;
        self
    }

    /// Sets the class of the whole drawing.
    pub fn class(mut self, class: &'static str) -> Canvas {
        self.class = class;
        self
    }

    /// Stores the left and the right edge of the plot. The script of the page stretches the plot between these edges to
    /// the width of the page.
    pub fn plot(mut self, left: f64, right: f64) -> Canvas {
        self.plot = Some((left, right));
        self
    }

    pub fn is_page(&self) -> bool {
        self.medium == Medium::Page
    }

    pub fn height(&self) -> f64 {
        self.height
    }

    /// Adds another drawing, with its upper left corner at this place.
    pub fn put(&mut self, other: Canvas, (x, y): (f64, f64)) {
        let (body, _) = other.into_parts();
        self.push(format_args!("<g transform=\"translate({},{})\">\n{body}</g>\n", n(x), n(y)));
    }

    pub fn grow(&mut self, height: f64) {
        self.height += height;
    }

    pub fn push(&mut self, text: Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.body.write_fmt(text);
    }

    /// Returns the class of a shape (in the page), or the attributes that have the same effect (in a file).
    fn look(&self, class: &str) -> String {
        match self.medium {
            Medium::Page if class.is_empty() => String::new(),
            Medium::Page => format!(" class=\"{class}\""),
            Medium::Still => look::attributes(class, self.hues.last().copied().unwrap_or(0)),
        }
    }

    /// Opens a group of shapes with one hue. The data attributes of the group apply to all shapes in the group.
    pub fn open(&mut self, class: &str, hue: usize, data: &[(&'static str, String)]) {
        self.hues.push(hue % look::HUES);
        if self.medium == Medium::Page {
            let data = attributes(data);
            let space = if class.is_empty() { "" } else { " " };
            self.push(format_args!("<g class=\"{class}{space}s{}\"{data}>", hue % look::HUES));
        }
    }

    /// Opens a group of shapes of one condition, with the hue of the condition. The script gives the group another hue
    /// if the shown conditions have their hues in another order.
    pub fn open_condition(&mut self, hue: usize, condition: &tailbound_document::ConditionReport) {
        let data = [("condition", condition.id.to_string()), ("title", condition.name.clone())];
        self.open("own", hue, &data);
    }

    /// Opens a group of shapes with a fixed hue, which the script does not change.
    pub fn open_fixed(&mut self, hue: usize, condition: &tailbound_document::ConditionReport) {
        let data = [("condition", condition.id.to_string()), ("title", condition.name.clone())];
        self.open("", hue, &data);
    }

    pub fn close(&mut self) {
        self.hues.pop();
        if self.medium == Medium::Page {
            self.body.push_str("</g>\n");
        }
    }

    /// Opens a part of the drawing that is clipped at its edges. The part has the units of the drawing until the
    /// script zooms.
    pub fn window(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        draw: impl FnOnce(&mut Canvas),
    ) {
        let class = if self.is_page() { format!(" class=\"{class}\"") } else { String::new() };
        let size = format!("width=\"{}\" height=\"{}\"", n(width), n(height));
        self.push(format_args!(
            "<svg{class} x=\"{0}\" y=\"{1}\" {size} viewBox=\"{0} {1} {2} {3}\" preserveAspectRatio=\"none\">\n",
            n(x),
            n(y),
            n(width),
            n(height)
        ));
        draw(self);
        self.body.push_str("</svg>\n");
    }

    /// Adds a shape whose tooltip a reader can open by pointing, by touch and by keyboard.
    pub fn mark(&mut self, mark: &Mark, draw: impl FnOnce(&mut Canvas)) {
        if self.medium == Medium::Still {
            return draw(self);
        }
        let data = mark.attributes();
        self.push(format_args!("<g class=\"mark\"{data}>"));
        draw(self);
        self.body.push_str("</g>\n");
    }

    /// Adds a shape with data attributes that a program can read, and without a tooltip.
    pub fn plain_mark(&mut self, mark: &Mark, draw: impl FnOnce(&mut Canvas)) {
        self.only_page(&format!("<g{}>", mark.attributes()));
        draw(self);
        self.only_page("</g>\n");
    }

    /// Adds a shape only in the page, not in an SVG file.
    pub fn only_page(&mut self, svg: &str) {
        if self.medium == Medium::Page {
            self.body.push_str(svg);
        }
    }

    /// Adds SVG definitions, such as patterns. The shapes in the definitions have classes like all other shapes.
    pub fn define(&mut self, element: &str, draw: impl FnOnce(&mut Canvas)) {
        self.push(format_args!("<defs><{element}>"));
        draw(self);
        let name = element.split(' ').next().unwrap_or_default();
        self.push(format_args!("</{name}></defs>\n"));
    }

    /// Defines a pattern for times that are hatched. Each drawing needs an id of its own, because a browser does not draw a pattern of
    /// a drawing that is hidden.
    pub fn define_hatch(&mut self, id: &str) {
        let pattern = "width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"";
        self.define(&format!("pattern id=\"{id}\" {pattern}"), |c| c.rect("hatch", (0.0, 0.0), (2.0, 6.0)));
    }

    /// Adds a rectangle with the pattern of [`Canvas::define_hatch`].
    pub fn hatched(&mut self, id: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.push(format_args!(
            "<rect fill=\"url(#{id})\" opacity=\"0.6\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
            n(x),
            n(y),
            n(width),
            n(height)
        ));
    }

    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let look = self.look(class);
        self.push(format_args!("<line{look} x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", n(x1), n(y1), n(x2), n(y2)));
    }

    /// Adds vertical lines as one shape.
    pub fn upright(&mut self, class: &str, at: impl Iterator<Item = f64>, (top, bottom): (f64, f64)) {
        let d: String = at.map(|x| format!("M{},{}V{}", n(x), n(top), n(bottom))).collect();
        if !d.is_empty() {
            self.path(class, &d);
        }
    }

    /// Adds horizontal lines as one shape.
    pub fn level(&mut self, class: &str, at: impl Iterator<Item = f64>, (left, right): (f64, f64)) {
        let d: String = at.map(|y| format!("M{},{}H{}", n(left), n(y), n(right))).collect();
        if !d.is_empty() {
            self.path(class, &d);
        }
    }

    /// Adds a line through the points of several conditions; the script redraws the line without the conditions that a
    /// reader hides.
    pub fn line_of(&mut self, class: &str, points: &[(f64, f64)], conditions: &[usize]) {
        if points.len() > 1 {
            let data = [("points", ids(conditions.iter()))];
            self.path_with(class, &d(points), &data);
        }
    }

    /// Adds the area between two lines through the points of several conditions.
    pub fn band_of(&mut self, class: &str, low: &[(f64, f64)], high: &[(f64, f64)], conditions: &[usize]) {
        if low.len() > 1 {
            let points: Vec<_> = low.iter().chain(high.iter().rev()).copied().collect();
            let data = [("points", ids(conditions.iter().chain(conditions.iter().rev())))];
            self.path_with(class, &format!("{}z", d(&points)), &data);
        }
    }

    /// Adds a line through points.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let look = self.look(class);
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", n(*x), n(*y))).collect();
        self.push(format_args!("<polyline{look} points=\"{}\"/>\n", points.join(" ")));
    }

    pub fn path(&mut self, class: &str, d: &str) {
        self.path_with(class, d, &[]);
    }

    /// Adds an SVG path with data attributes that a program can read.
    pub fn path_with(&mut self, class: &str, d: &str, data: &[(&'static str, String)]) {
        let (look, data) = (self.look(class), if self.is_page() { attributes(data) } else { String::new() });
        self.push(format_args!("<path{look}{data} d=\"{d}\"/>\n"));
    }

    /// Adds an SVG path that has its own units and begins at `left`; `unit` is the width and height of a path unit in
    /// the units of the drawing.
    pub fn path_in_units(
        &mut self,
        class: &str,
        d: &str,
        (left, unit): (f64, (f64, f64)),
        data: &[(&'static str, String)],
    ) {
        let (look, data) = (self.look(class), if self.is_page() { attributes(data) } else { String::new() });
        let transform = match (left, unit) {
            (0.0, (1.0, 1.0)) => String::new(),
            _ => format!(" transform=\"translate({left},0) scale({:.6},{})\"", unit.0, unit.1),
        };
        self.push(format_args!("<path{look}{data}{transform} d=\"{d}\"/>\n"));
    }

    /// Adds an SVG path that has its own units, and a line width of its own in place of the width of its class; `unit`
    /// is the width and height of a path unit in the units of the drawing.
    pub fn stroke(
        &mut self,
        class: &str,
        d: &str,
        width: f64,
        (left, unit): (f64, (f64, f64)),
        data: &[(&'static str, String)],
    ) {
        let (look, data) = (self.look(class), if self.is_page() { attributes(data) } else { String::new() });
        let transform = format!("translate({left},0) scale({:.5},{})", unit.0, unit.1);
        self.push(format_args!(
            "<path{look}{data} stroke-width=\"{width:.3}\" transform=\"{transform}\" d=\"{d}\"/>\n"
        ));
    }

    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        self.rect_with(class, at, size, "");
    }

    /// Adds a rectangle, in the page with the tooltip and the data attributes of `mark`. The rectangle has no group
    /// element of its own, because a drawing may have many such rectangles.
    pub fn bar(&mut self, class: &str, at: (f64, f64), size: (f64, f64), mark: &Mark) {
        match self.medium {
            Medium::Page => self.rect_with(&format!("mark {class}"), at, size, &mark.attributes()),
            Medium::Still => self.rect(class, at, size),
        }
    }

    fn rect_with(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), more: &str) {
        let look = self.look(class);
        self.push(format_args!(
            "<rect{look} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{more}/>\n",
            n(x),
            n(y),
            n(width),
            n(height)
        ));
    }

    pub fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let look = self.look(format!("dot {class}").trim_end());
        self.push(format_args!("<circle{look} cx=\"{}\" cy=\"{}\" r=\"{}\"/>", n(x), n(y), n(radius)));
    }

    /// Adds the symbol (a hollow triangle) of a maximum.
    pub fn triangle(&mut self, (x, y): (f64, f64)) {
        let look = self.look("triangle");
        self.push(format_args!("<path{look} d=\"M{},{}l5,9h-10z\"/>", n(x), n(y - 5.0)));
    }

    pub fn text(&mut self, class: &str, (x, y): (f64, f64), words: &str, hold: Hold) {
        let held = match hold {
            Hold::Start => "",
            Hold::Middle => " mid",
            Hold::End => " right",
        };
        let (mut look, words) = (self.look(format!("{class}{held}").trim()), escape(words));
        if self.medium == Medium::Still && !look.contains(" fill=") {
            look.push_str(&format!(" fill=\"{}\"", look::token("ink")));
        }
        self.push(format_args!("<text{look} x=\"{}\" y=\"{}\">{words}</text>\n", n(x), n(y)));
    }

    /// Returns the SVG text of the shapes, and the height of the drawing.
    pub fn into_parts(self) -> (String, f64) {
        (self.body, self.height)
    }

    /// Returns the drawing as HTML for the page.
    pub fn embed(self) -> String {
        let Canvas { width, height, label, condition, class, plot, body, .. } = self;
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let condition = condition.map_or(String::new(), |id| format!(" data-condition=\"{id}\""));
        let plot = plot.map_or(String::new(), |(left, right)| format!(" data-plot=\"{} {}\"", n(left), n(right)));
        format!(
            "<svg{class} viewBox=\"0 0 {width} {}\" role=\"group\" aria-label=\"{}\"{condition}{plot}>\n{body}</svg>\n",
            n(height),
            escape(&label)
        )
    }
}

impl Mark {
    /// Adds a data attribute that a program can read.
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Mark {
        self.data.push((name, value.to_string()));
        self
    }

    fn attributes(&self) -> String {
        let lines = match self.lines.is_empty() {
            true => String::new(),
            false => format!(" data-lines=\"{}\"", escape(&self.lines.join("\n"))),
        };
        attributes(&self.data) + &lines
    }
}

/// Formats a number with at most one decimal.
pub(crate) fn n(value: f64) -> String {
    let mut text = String::new();
    push(&mut text, value);
    text
}

/// Adds a number with at most one decimal to a text. A page has some hundred thousand of them, and whole numbers are
/// formatted in a tenth of the time of decimal fractions.
fn push(text: &mut String, value: f64) {
    let tenths = (value * 10.0).round_ties_even() as i64;
    let (whole, tenth) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
    let sign = if tenths < 0 { "-" } else { "" };
    // Writing to a text does not fail.
    let _ = match tenth {
        0 => write!(text, "{sign}{whole}"),
        _ => write!(text, "{sign}{whole}.{tenth}"),
    };
}

/// Makes the SVG path through points.
pub(crate) fn d(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(12 * points.len());
    for (i, (x, y)) in points.iter().enumerate() {
        text.push(if i == 0 { 'M' } else { 'L' });
        push(&mut text, *x);
        text.push(',');
        push(&mut text, *y);
    }
    text
}

pub(crate) fn ids<'a>(conditions: impl Iterator<Item = &'a usize>) -> String {
    conditions.map(usize::to_string).collect::<Vec<_>>().join(" ")
}

fn attributes(data: &[(&'static str, String)]) -> String {
    data.iter().map(|(name, value)| format!(" data-{name}=\"{}\"", escape(value))).collect()
}
