//! A page of words and tables in the look of the report, for other local pages. It has no script.

use super::{STYLE, escape};

/// Nothing is fetched and no script runs; forms lead to the same server.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'";

/// The page of `title` (text) around `main` (HTML, in which whatever a user named went through [`escape_html`]).
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

/// Text for an element or a quoted attribute.
pub fn escape_html(text: &str) -> String {
    escape(text)
}
