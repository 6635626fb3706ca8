//! Makes an SVG file of a chart: drawings below one another, with their description and their source.

use crate::escape::escape;
use crate::picture::canvas::{Canvas, Hold, Medium, WIDTH, n};
use crate::picture::look;
use tailbound_document::{Report, ReportStatus};

/// Height of the title, in SVG units.
const HEAD: f64 = 34.0;

/// Height of the last line, which names the source of the chart, in SVG units.
const FOOT: f64 = 24.0;

/// Combines drawings below one another into an SVG document, with their description and source. If the figures must not
/// be trusted, the first line says so.
pub(crate) fn still(report: &Report, title: &str, drawings: Vec<Canvas>) -> String {
    let mut whole = Canvas::new(Medium::Still, 0.0, "");
    whole.text("", (16.0, 22.0), &title.chars().take(120).collect::<String>(), Hold::Start);
    let mut top = HEAD;
    for drawing in drawings {
        let height = drawing.height();
        whole.put(drawing, (0.0, top));
        top += height;
    }
    let mut right = WIDTH - 16.0;
    for caution in cautions(report) {
        whole.text("warn", (right, top + 12.0), &caution, Hold::End);
        right -= 6.6 * caution.chars().count() as f64 + 18.0;
    }
    let from = format!("Tailbound {}, study {}, run {}", report.run.recorded_by, report.study, report.run.id);
    whole.text("tick", (16.0, top + 12.0), &from, Hold::Start);
    let (body, _) = whole.into_parts();
    let height = n(top + FOOT);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif\" font-size=\"12.5\">\n\
         <title>{}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"{}\"/>\n{body}</svg>\n",
        escape(&report.view.title),
        look::token("paper"),
    )
}

/// Warnings that apply to every figure of the record.
fn cautions(report: &Report) -> Vec<String> {
    let status = match report.status {
        ReportStatus::Valid => None,
        ReportStatus::Invalid => Some("invalid trials: see the report"),
        ReportStatus::Incomplete => Some("the run was interrupted"),
    };
    let functional = report.functional_only.as_ref().map(|_| "functional only");
    functional.into_iter().chain(status).map(str::to_owned).collect()
}
