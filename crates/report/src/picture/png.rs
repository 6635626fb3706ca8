//! From SVG to pixels.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

/// Pixels of one unit of the drawing.
const SCALE: f32 = 2.0;

/// Families that draw well, the best first; any other is better than none.
const FAMILIES: [&str; 4] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "Roboto"];

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// Text could not be drawn.
    #[error("no font is installed: install one (`apt-get install fonts-dejavu-core`), or take --format svg")]
    NoFont,
    /// The drawing is none, or too large.
    #[error("the figure cannot be drawn as PNG: {0}; take --format svg")]
    Drawing(String),
}

/// A drawing of [`render_svg`](crate::render_svg) as PNG, at twice its size.
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

    /// A picture without its words would be worse than none.
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
