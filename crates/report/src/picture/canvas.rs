//! Shapes of an SVG document, in the look of the page on paper.

use crate::document::{Report, ReportStatus};
use std::fmt::Write;

/// Hues of conditions, after Okabe and Ito, as on the page.
const HUES: [&str; 6] = ["#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6b6b6b"];
pub(crate) const PAPER: &str = "#fdfdfb";
pub(crate) const INK: &str = "#1b1e22";
pub(crate) const MUTED: &str = "#5b616b";
pub(crate) const WARN: &str = "#b84a00";
pub(crate) const HAIR: &str = "#e4e4df";

pub(crate) fn hue(n: usize) -> &'static str {
    HUES[n % HUES.len()]
}

/// The same drawing in the colours of the page around it, light or dark. Words of users cannot be taken for a colour: in
/// them quotation marks are escaped.
pub(crate) fn in_tokens(picture: &str) -> String {
    let fixed = [(PAPER, "paper"), (INK, "ink"), (MUTED, "muted"), (HAIR, "hair")];
    let hues = HUES.iter().zip(["s0", "s1", "s2", "s3", "s4", "s5"]).map(|(colour, token)| (*colour, token));
    fixed.into_iter().chain(hues).fold(picture.to_owned(), |text, (colour, token)| {
        text.replace(&format!("\"{colour}\""), &format!("\"var(--{token})\""))
    })
}

/// Where a text is held.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hold {
    Start,
    Middle,
    End,
}

/// A drawing that grows shape by shape.
pub(crate) struct Canvas {
    body: String,
    width: f64,
    height: f64,
}

impl Canvas {
    pub fn new(width: f64, height: f64) -> Canvas {
        Canvas { body: String::new(), width, height }
    }

    fn push(&mut self, shape: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.body.write_fmt(shape);
        self.body.push('\n');
    }

    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, more: &str) {
        self.push(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"{more}/>"
        ));
    }

    /// A line through points.
    pub fn path(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        if points.len() > 1 {
            let d = d(points);
            self.push(format_args!(
                "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"/>"
            ));
        }
    }

    /// The area between two lines.
    pub fn band(&mut self, low: &[(f64, f64)], high: &[(f64, f64)], colour: &str) {
        if low.len() > 1 {
            let points: Vec<_> = low.iter().chain(high.iter().rev()).copied().collect();
            let d = d(&points);
            self.push(format_args!("<path d=\"{d}z\" fill=\"{colour}\" fill-opacity=\"0.22\"/>"));
        }
    }

    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str, value: i64) {
        self.push(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\" stroke=\"{PAPER}\" data-value-ns=\"{value}\"/>"
        ));
    }

    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str, more: &str) {
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"{more}/>"
        ));
    }

    pub fn hollow(&mut self, (x, y): (f64, f64), colour: &str) {
        self.push(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{PAPER}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        ));
    }

    /// The mark of a maximum.
    pub fn triangle(&mut self, (x, y): (f64, f64), colour: &str, value: i64) {
        self.push(format_args!(
            "<path d=\"M{x:.1},{:.1}l5,9h-10z\" fill=\"{PAPER}\" stroke=\"{colour}\" stroke-width=\"1.5\" data-value-ns=\"{value}\"/>",
            y - 5.0
        ));
    }

    pub fn text(&mut self, (x, y): (f64, f64), words: &str, hold: Hold, colour: &str) {
        let anchor = match hold {
            Hold::Start => "start",
            Hold::Middle => "middle",
            Hold::End => "end",
        };
        let words = escape(words);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    /// A dot that stands for a ratio.
    pub fn mark(&mut self, (x, y): (f64, f64), colour: &str, ratio: f64) {
        self.push(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\" data-ratio=\"{ratio}\"/>"
        ));
    }

    /// The document, with where it comes from below, and first of all that it is not to be trusted, if so.
    pub fn finish(mut self, report: &Report) -> String {
        let low = self.height + 12.0;
        self.height += 24.0;
        let mut right = self.width - 16.0;
        for caution in cautions(report) {
            self.text((right, low), &caution, Hold::End, WARN);
            right -= 6.6 * caution.chars().count() as f64 + 18.0;
        }
        let from = format!("Tailbound {}, study {}, run {}", report.run.recorded_by, report.study, report.run.id);
        self.text((16.0, low), &from, Hold::Start, MUTED);
        self.bare(&report.view.title)
    }

    /// The document alone.
    pub fn bare(self, title: &str) -> String {
        let Canvas { body, width, height } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif\" font-size=\"12.5\">\n\
             <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>\n{body}</svg>\n",
            escape(title)
        )
    }
}

/// What must be known of every figure of this record.
fn cautions(report: &Report) -> Vec<String> {
    let status = match report.status {
        ReportStatus::Valid => None,
        ReportStatus::Invalid => Some("invalid trials: see the report"),
        ReportStatus::Incomplete => Some("the run was cut off"),
    };
    let functional = report.functional_only.as_ref().map(|_| "functional only");
    functional.into_iter().chain(status).map(str::to_owned).collect()
}

fn d(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("M{}", points.join("L"))
}

fn escape(text: &str) -> String {
    crate::escape_html(text)
}

/// Moves labels apart by at least `gap`, downwards from where they belong, and up again from `high`.
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
