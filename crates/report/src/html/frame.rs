//! Makes an HTML page with text and tables in the style of the report, for other local pages.

use crate::escape::escape;
use crate::html::{DRAWN_SCRIPT, STYLE};

/// Content security policy of the page: the browser fetches nothing and runs no script, and forms can be sent only to
/// the same server.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'";

/// Content security policy of a page with a script: the browser fetches nothing, whatever the page contains.
const DRAWN_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'";

/// Makes an HTML page without a script from `title` (text) and `main` (HTML, in which text from users must have been escaped by
/// [`escape_html`]).
pub fn render_frame(title: &str, main: &str) -> String {
    frame(title, main, POLICY, "")
}

/// Makes an HTML page like [`render_frame`], whose figures are drawn again when the width of the page changes.
pub(crate) fn render_drawn_frame(title: &str, main: &str) -> String {
    let script = format!("<script>\n(() => {{\n\"use strict\";\n{}}})();\n</script>\n", DRAWN_SCRIPT.concat());
    frame(title, main, DRAWN_POLICY, &script)
}

fn frame(title: &str, main: &str, policy: &str, script: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n\
         <header>\n<p class=\"product\"><strong>Tailbound</strong></p>\n<h1>{title}</h1>\n</header>\n\
         <main>\n{main}\n</main>\n{script}</body>\n</html>\n",
        STYLE.concat(),
    )
}
