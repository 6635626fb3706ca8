//! Makes an HTML page with text and tables in the style of the report, without a script, for other local pages.

use crate::escape::escape;
use crate::html::STYLE;

/// Content security policy of the page: the browser fetches nothing and runs no script, and forms can be sent only to
/// the same server.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'";

/// Makes an HTML page from `title` (text) and `main` (HTML, in which text from users must have been escaped by
/// [`escape_html`]).
pub fn render_frame(title: &str, main: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n\
         <header>\n<p class=\"product\"><strong>Tailbound</strong></p>\n<h1>{title}</h1>\n</header>\n\
         <main>\n{main}\n</main>\n</body>\n</html>\n",
        STYLE.concat(),
    )
}
