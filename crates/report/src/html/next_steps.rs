//! The section of the HTML page with the next steps: what to try, what it should gain, and the commands that try it.

use crate::escape::{escape, prose};
use crate::tables::next_steps::{commands, sentences, steps, tune};
use tailbound_document::Report;

/// Whether the report has next steps.
pub(crate) fn are_there(report: &Report) -> bool {
    !steps(report).is_empty()
}

/// The section with the next steps; empty if the report has none.
pub(crate) fn section(report: &Report) -> String {
    if !are_there(report) {
        return String::new();
    }
    let code = |command: &str| format!("<pre><code>{}</code></pre>\n", escape(command));
    let mut html = String::from("<section id=\"next-step\"><h2>Next step</h2>\n");
    for step in steps(report) {
        html.push_str(&format!("<p>{}</p>\n", prose(&sentences(step))));
        html.extend(commands(step).map(code));
    }
    if let Some(command) = tune(steps(report)) {
        html.push_str("<p>To try these and other changes one by one, and keep only what is shown to help:</p>\n");
        html.push_str(&code(command));
    }
    html.push_str("</section>\n");
    html
}
