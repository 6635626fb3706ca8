//! Makes HTML tables: heads, cells, and a box around each table that scrolls.

use crate::escape::escape;

/// A table with more columns than this is set in smaller type.
const MANY: usize = 10;

/// Makes an HTML table in a scroll box of its own. Heads and cells are HTML; a head that begins with `<` is a complete
/// element.
pub(crate) fn table(heads: &[Head], rows: &[String]) -> String {
    let head: String = heads
        .iter()
        .map(|h| {
            let unit =
                if h.unit.is_empty() { String::new() } else { format!(" <span class=\"unit\">{}</span>", h.unit) };
            format!("<th scope=\"col\"{}>{}{unit}</th>", if h.left { " class=\"l\"" } else { "" }, escape(&h.name))
        })
        .collect();
    let many = if heads.len() > MANY { " class=\"many\"" } else { "" };
    format!(
        "<div class=\"scroll\"><table{many}><thead><tr>{head}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        rows.concat()
    )
}

/// HTML of the head of one table column.
pub(crate) struct Head {
    name: String,
    unit: &'static str,
    left: bool,
}

/// Makes the head of a table column that contains words.
pub(crate) fn left(name: impl Into<String>) -> Head {
    Head { name: name.into(), unit: "", left: true }
}

/// HTML of the head of a table column that contains numbers with one unit.
pub(crate) fn right(name: impl Into<String>, unit: &'static str) -> Head {
    Head { name: name.into(), unit, left: false }
}

/// Makes a table cell with words as HTML.
pub(crate) fn words(text: &str) -> String {
    format!("<td class=\"l\">{}</td>", escape(text))
}

/// Makes a table cell with a number as HTML.
pub(crate) fn number(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
}

/// A table whose first column has words and whose others have numbers: the heads of the columns, and the cells of each row.
pub(crate) fn of_cells<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let side = |(nth, head): (usize, &&str)| if nth == 0 { left(*head) } else { right(*head, "") };
    let heads: Vec<_> = heads.iter().enumerate().map(side).collect();
    let cell = |(nth, text): (usize, &String)| if nth == 0 { words(text) } else { number(text) };
    let row = |cells: [String; N]| format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>());
    table(&heads, &rows.map(row).collect::<Vec<_>>())
}
