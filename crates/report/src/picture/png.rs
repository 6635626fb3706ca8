//! Converts SVG charts to PNG images.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Number of pixels of the PNG image for one unit of the SVG chart.
const SCALE: f32 = 2.0;

/// Preferred font families, the best first; any other installed font is used if none of them is installed.
const FAMILIES: [&str; 4] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "Roboto"];

/// Error: the reason why a chart cannot be drawn as PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// Error: text cannot be drawn, because no font is installed.
    #[error("no font is installed: install one (`apt-get install fonts-dejavu-core`), or use --format svg")]
    NoFont,
    /// Error: the SVG chart is empty or cannot be parsed, or it is too large.
    #[error("the figure cannot be drawn as PNG: {0}; use --format svg")]
    Drawing(String),
}

/// Converts an SVG chart of [`render_svg`](crate::render_svg) to PNG, at twice its size.
///
/// # Errors
/// No font is installed.
pub fn render_png(svg: &str) -> Result<Vec<u8>, PngError> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    let there = |family: &str| fonts.faces().any(|f| f.families.iter().any(|(name, _)| name == family));
    let any = || fonts.faces().find_map(|f| f.families.first().map(|(name, _)| name.clone()));
    let family = FAMILIES.iter().find(|f| there(f)).map(|f| (*f).to_owned()).or_else(any).ok_or(PngError::NoFont)?;
    fonts.set_sans_serif_family(family);
    let drawing = |e: &dyn std::fmt::Display| PngError::Drawing(e.to_string());
    let options = Options { fontdb: fonts.into(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|e| drawing(&e))?;
    let size = tree.size();
    let pixels = |length: f32| (length * SCALE).ceil() as u32;
    let mut picture =
        Pixmap::new(pixels(size.width()), pixels(size.height())).ok_or_else(|| drawing(&"it has no size"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().map_err(|e| drawing(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that the text of a chart is drawn, or that there is no image: a chart without its text would be
    /// misleading.
    #[test]
    fn words_are_drawn_or_there_is_no_picture() {
        let with = |words: &str| {
            let text = format!("<text x=\"5\" y=\"20\" font-family=\"system-ui, sans-serif\">{words}</text>");
            render_png(&format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"30\">{text}</svg>"))
        };
        match (with("p99"), with("")) {
            (Ok(words), Ok(empty)) => {
                assert!(words.starts_with(b"\x89PNG\r\n\x1a\n") && empty.starts_with(b"\x89PNG"));
                assert_ne!(words, empty);
            }
            (words, _) => assert!(matches!(words, Err(PngError::NoFont)), "{words:?}"),
        }
    }
}
